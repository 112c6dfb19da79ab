import Base
import Crypto
import Forwarding
import Interaction
import Peer
import Stage
import Wire

/// What the node remembers of a session, and what follows for it alone from what its worker and its client say.
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
    /// Whether it took the place of a source that was lost.
    var isSuccessor = false
    /// Its place in the order in which sessions are made.
    var order: UInt64 = 0
    /// When it was made, and what its client was answered.
    var created = MonotonicTime.zero
    var answer = ""
    /// Where its client was when it connected, and how its media is encrypted.
    var connection: (profile: SRTPProfile?, address: TransportAddress?)?
    /// Who is behind that address, where it belongs to one of the node's TURN ports.
    var relayed: RelayedClient?

    /// Where its client itself was when it connected.
    var clientMediaAddress: TransportAddress? { relayed?.address ?? connection?.address }

    var purpose: SessionRequest.Purpose { request.purpose }
    var stream: StreamID { request.stream }

    /// What viewers get of it.
    var source: Stage.Source {
        Stage.Source(
            owner: request.participant, name: request.name,
            hasAudio: plan.sources.contains { $0.kind == .audio },
            hasVideo: plan.sources.contains { $0.kind == .video }, isSuccessor: isSuccessor)
    }

    // MARK: What its worker says

    /// Notes what its worker says, and passes on what its client or its stage has to know of that.
    mutating func receive(_ event: WorkerEvent) -> [LiveAction] {
        switch event {
        case .connected(_, let profile, let address):
            connection = (profile, address)
            return [.report(.connected(self, profile, address))]
        case .layersWanted(_, let mid, let rids):
            return [tell(ControlReply(type: .wanted, mid: mid, rids: rids))]
        case .qualityChanged(_, let quality):
            // That it lost its place is the last that a client is told.
            return closesAt == nil ? [tell(quality)] : []
        case .uplinkWeak: return noteWeakUplink()
        case .checked, .mediaStarted, .closed, .published, .sourceChanged, .voice, .controlOpened,
            .controlMessage, .begun, .passed, .injected, .keyFrameWanted, .sessionKeyFrameWanted,
            .keyFrameRequested, .renditionWanted:
            return []
        }
    }

    /// Much of what somebody on the stage sends gets lost, or their client sends less than it would: all there see it
    /// for a while.
    private func noteWeakUplink() -> [LiveAction] {
        request.isOnStage ? [.notify(.weakUplink(id), stream)] : []
    }

    // MARK: What its client says

    /// Does what its client asks for on its control channel.
    /// - Returns: nil for what the stage of its stream has to arrange.
    mutating func receive(_ wish: ControlRequest) -> [LiveAction]? {
        switch (wish, request.isAudience) {
        case (.ping, _): [tell(ControlReply(type: .pong))]
        case (.mute(let participant, let kind), _): mute(participant, kind)
        case (.prefer(let patch), _): [prefer(patch)]
        // What a viewer may ask of the programme is its size.
        case (.slot(let mid, let height), true): [limit(mid, to: height)]
        // There is always one who looks: what nobody sees is not worth more than the smallest layer.
        case (.visible(let isVisible, let mid), true): [limit(mid, to: isVisible ? nil : 1)]
        case (.interact(let command), _): interact(command)
        case (.follow, _): [.notify(.follow(request.sender, id), stream)]
        case (.pin, true), (.weakUplink, true): [tell(.refusal(.rejected(.notOnStage)))]
        case (.weakUplink, false): noteWeakUplink()
        case (.pin, false), (.slot, false), (.visible, false): nil
        }
    }

    /// Its client wants other pictures, or none.
    mutating func prefer(_ patch: DeliveryPatch) -> LiveAction {
        preferences = patch.applied(to: preferences)
        return .post(.prefer(id, preferences), worker: worker, of: nil)
    }

    private func limit(_ mid: String, to height: Int?) -> LiveAction {
        .post(.limit(id, mid: mid, maximumHeight: height), worker: worker, of: nil)
    }

    /// It asks another to mute: the stage decides, and delivers it by an effect.
    private func mute(_ participant: ParticipantID, _ kind: String) -> [LiveAction] {
        guard let sender = request.sender else { return [] }
        let command = Stage.Command.requestMute(participant, kind == "video" ? .video : .audio)
        return [.notify(.submit(command, sender, id), stream)]
    }

    /// It says something as one of the audience, by the rules of sync sockets.
    private func interact(_ command: Interaction.Command) -> [LiveAction] {
        // Who has a control channel by the stage's endpoint has a token.
        guard let sender = request.sender else { return [] }
        return [.notify(.interact(command, sender, id), stream)]
    }

    // MARK: What its client is told

    /// On its control channel.
    func tell(_ reply: ControlReply) -> LiveAction {
        .post(.sendControl(id, .string(reply.bytes)), worker: worker, of: nil)
    }

    /// What it is sent now, and why.
    private func tell(_ quality: DeliveryQuality) -> LiveAction {
        var json = DeliveryQuality.json(quality, preferences)
        json["type"] = .string(ControlReply.Kind.quality.rawValue)
        return .post(.sendControl(id, .string(json.bytes)), worker: worker, of: nil)
    }
}
