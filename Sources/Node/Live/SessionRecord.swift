import Base
import Crypto
import Forwarding
import Interaction
import Peer
import Stage
import Wire

/// What the node knows of a session, and what follows for this session alone from its worker's events and its
/// client's requests.
struct SessionRecord {
    let id: SessionID
    var request: SessionRequest
    /// Whether it was made without a token; it counts for its address for as long as it lasts.
    let isStrangers: Bool
    /// What offer and answer have agreed on; the remote credentials change with an ICE restart.
    var plan: SessionPlan
    let worker: Int
    /// Names the ICE credentials in force.
    var entityTag: String
    /// What its client prefers of the pictures.
    var preferences = DeliveryPreferences()
    /// Where its worker leaves measurements of what it sends.
    var gauge = QualityGauge()
    /// When a viewer stops waiting for a source; nil once there is one.
    var waitsUntil: MonotonicTime?
    /// When it ends after losing its place in the feed; nil while it has one.
    var closesAt: MonotonicTime?
    /// Whether it replaced a source that was lost.
    var isSuccessor = false
    /// Its place in the order in which sessions are made.
    var order: UInt64 = 0
    /// When it was made.
    var created = MonotonicTime.zero
    /// The latest effect of a stage when it was admitted, which later ones alone may end.
    var effect: UInt64 = 0
    /// The SDP answer that its client was sent.
    var answer = ""
    /// How its media is encrypted, and its client's address at the end of the handshake; nil before that.
    var connection: (profile: SRTPProfile?, address: TransportAddress?)?
    /// The TURN client behind that address, if the address belongs to one of the node's TURN ports.
    var relayed: RelayedClient?

    /// The client's own address at the end of the handshake, even if its media is relayed.
    var clientMediaAddress: TransportAddress? { relayed?.address ?? connection?.address }

    var purpose: SessionRequest.Purpose { request.purpose }
    var stream: StreamID { request.stream }

    /// The session as a source of the stage's programme.
    var source: Stage.Source {
        Stage.Source(
            owner: request.participant, name: request.name,
            hasAudio: plan.sources.contains { $0.kind == .audio },
            hasVideo: plan.sources.contains { $0.kind == .video }, isSuccessor: isSuccessor)
    }

    // MARK: What its worker says

    /// Notes an event of its worker, and passes on what its client or its stage has to know.
    mutating func receive(_ event: WorkerEvent) -> [LiveAction] {
        switch event {
        case .connected(_, let profile, let address):
            connection = (profile, address)
            return [.report(.connected(self, profile, address))]
        case .layersWanted(_, let mid, let rids):
            return [tell(ControlReply(type: .wanted, mid: mid, rids: rids))]
        case .qualityChanged(_, let quality):
            // The loss of its place is the last message that a client is sent.
            return closesAt == nil ? [tell(quality)] : []
        case .uplinkWeak: return noteWeakUplink()
        case .checked, .mediaStarted, .closed, .published, .sourceChanged, .voice, .controlOpened,
            .controlMessage, .begun, .passed, .injected, .keyFrameWanted, .sessionKeyFrameWanted,
            .keyFrameRequested, .renditionWanted:
            return []
        }
    }

    /// Notifies the stage that much of what a participant sends is lost, or that their client sends less than it
    /// would: everyone there sees that for a while.
    private func noteWeakUplink() -> [LiveAction] {
        request.isOnStage ? [.notify(.weakUplink(id), stream)] : []
    }

    // MARK: What its client says

    /// Handles a request from its control channel.
    /// - Returns: nil if the stage has to handle it.
    mutating func receive(_ wish: ControlRequest) -> [LiveAction]? {
        switch (wish, request.isAudience) {
        case (.ping, _): [tell(ControlReply(type: .pong))]
        case (.mute(let participant, let kind), _): mute(participant, kind)
        case (.prefer(let patch), _): [prefer(patch)]
        // The size is all that a viewer may choose of the programme.
        case (.slot(let mid, let height), true): [limit(mid, to: height)]
        // A hidden picture is not stopped but limited to one pixel, which leaves the smallest layer.
        case (.visible(let isVisible, let mid), true): [limit(mid, to: isVisible ? nil : 1)]
        case (.interact(let command), _): interact(command)
        case (.follow, _): [.notify(.follow(request.sender, id), stream)]
        case (.pin, true), (.weakUplink, true): [tell(.refusal(.rejected(.notOnStage)))]
        case (.weakUplink, false): noteWeakUplink()
        case (.pin, false), (.slot, false), (.visible, false): nil
        }
    }

    /// Changes its client's preferences for pictures.
    mutating func prefer(_ patch: DeliveryPatch) -> LiveAction {
        preferences = patch.applied(to: preferences)
        return .post(.prefer(id, preferences), worker: worker, of: nil)
    }

    private func limit(_ mid: String, to height: Int?) -> LiveAction {
        .post(.limit(id, mid: mid, maximumHeight: height), worker: worker, of: nil)
    }

    /// Asks another participant to mute: the stage decides, and has the request delivered by an effect.
    private func mute(_ participant: ParticipantID, _ kind: MediaKind) -> [LiveAction] {
        guard let sender = request.sender else { return [] }
        let command = Stage.Command.requestMute(participant, kind)
        return [.notify(.submit(command, sender, id), stream)]
    }

    /// Passes on a command of a member of the audience, to which the same rules apply as on sync sockets.
    private func interact(_ command: Interaction.Command) -> [LiveAction] {
        // A client with a control channel on the stage's endpoint always has a token.
        guard let sender = request.sender else { return [] }
        return [.notify(.interact(command, sender, id), stream)]
    }

    // MARK: What its client is told

    /// Sends a message on its control channel.
    func tell(_ reply: ControlReply) -> LiveAction {
        .post(.sendControl(id, .string(reply.bytes)), worker: worker, of: nil)
    }

    /// Sends its client what it is sent now, and why.
    private func tell(_ quality: DeliveryQuality) -> LiveAction {
        var json = DeliveryQuality.json(quality, preferences)
        json["type"] = .string(ControlReply.Kind.quality.rawValue)
        return .post(.sendControl(id, .string(json.bytes)), worker: worker, of: nil)
    }
}
