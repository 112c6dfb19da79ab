import Base
import Crypto
import Forwarding
import Peer
import Stage
import Wire

/// What the node remembers of a session.
struct SessionRecord {
    let id: SessionID
    var request: SessionRequest
    /// Whether it was made without a token, and counts for its address as long as it lasts.
    let isStrangers: Bool
    /// What was agreed; its remote credentials change with an ICE restart.
    var plan: SessionPlan
    let worker: Int
    /// Names the ICE credentials in force.
    var entityTag: String
    /// What its client wants of the pictures.
    var preferences = DeliveryPreferences()
    /// Where its worker leaves what it is sent.
    var gauge = QualityGauge()
    /// When a viewer without a publisher gives up; nil once there is one.
    var waitsUntil: MonotonicTime?
    /// When it ends, having lost its place.
    var closesAt: MonotonicTime?
    /// Its place in the order in which sessions are made.
    var order: UInt64 = 0
    /// When it was made, and what its client was answered.
    var created = MonotonicTime.zero
    var answer = ""
    /// Where its client was when it connected, and how its media is encrypted.
    var connection: (profile: SRTPProfile?, address: TransportAddress?)?

    var purpose: SessionRequest.Purpose { request.purpose }
    var stream: StreamID { request.stream }

    /// Tells its client something on its control channel.
    func tell(_ reply: ControlReply) -> LiveAction {
        .post(.sendControl(id, .string(reply.bytes)), worker: worker, of: nil)
    }

    /// Tells its client what it is sent now, and why.
    func tell(_ quality: DeliveryQuality) -> LiveAction {
        var json = DeliveryQuality.json(quality, preferences)
        json["type"] = .string("quality")
        return .post(.sendControl(id, .string(json.bytes)), worker: worker, of: nil)
    }

    /// What viewers get of it.
    var source: Stage.Source {
        Stage.Source(
            owner: request.participant, name: request.name,
            hasAudio: plan.sources.contains { $0.kind == .audio },
            hasVideo: plan.sources.contains { $0.kind == .video })
    }
}
