import Base
import Forwarding
import Peer
import Stage
import Wire

/// What clients say on their control channels.
extension LiveStreams {
    mutating func receive(
        _ message: DataChannelMessage, from id: SessionID, at now: MonotonicTime
    ) -> [LiveAction] {
        guard let record = sessions[id], record.closesAt == nil else { return [] }
        if record.purpose == .feed { return inFeed(at: now) { $0.receive(message, from: id, at: now) } }
        guard let request = ControlRequest(parsing: message) else {
            return [record.tell(.error("malformed", "This is no message that this server knows."))]
        }
        return record.request.isAudience
            ? fromAudience(request, record, at: now) : fromStage(request, record, at: now)
    }

    /// A viewer wants other pictures, or none; nil if there is no such viewer any more.
    mutating func prefer(
        _ patch: DeliveryPatch, by id: SessionID, at now: MonotonicTime
    ) -> LiveAction? {
        guard let record = sessions[id] else { return nil }
        let preferences = patch.applied(to: record.preferences)
        update(id) { $0.preferences = preferences }
        histories.note(.preferred(preferences), of: id, at: now)
        return .post(.prefer(id, preferences), worker: record.worker, of: nil)
    }

    private mutating func fromStage(
        _ request: ControlRequest, _ record: SessionRecord, at now: MonotonicTime
    ) -> [LiveAction] {
        let (id, stream) = (record.id, record.stream)
        return switch request {
        case .ping: [record.tell(ControlReply(type: "pong"))]
        case .pin(let participant, let mid, let height):
            conduct(stream, at: now) {
                $0.pin(participant, in: mid, of: id) + $0.limit(mid, of: id, to: height)
            }
        case .slot(let mid, let height): conduct(stream, at: now) { $0.limit(mid, of: id, to: height) }
        case .visible(let isVisible, let mid):
            conduct(stream, at: now) { $0.setVisible(isVisible, mid, of: id) }
        case .mute(let participant, let kind): mute(participant, kind, by: record)
        case .prefer(let patch): [prefer(patch, by: id, at: now)].compactMap(\.self)
        case .weakUplink: noteWeakUplink(of: id)
        }
    }

    /// What a viewer may ask of the programme is its size.
    private mutating func fromAudience(
        _ request: ControlRequest, _ record: SessionRecord, at now: MonotonicTime
    ) -> [LiveAction] {
        switch request {
        case .slot(let mid, let height): limit(mid, of: record, to: height)
        // There is always one who looks: what nobody sees is not worth more than the smallest layer.
        case .visible(let isVisible, let mid): limit(mid, of: record, to: isVisible ? nil : 1)
        case .pin: refuse(.rejected(.notOnStage), to: record.id)
        case .ping: [record.tell(ControlReply(type: "pong"))]
        case .mute(let participant, let kind): mute(participant, kind, by: record)
        case .prefer(let patch): [prefer(patch, by: record.id, at: now)].compactMap(\.self)
        case .weakUplink: refuse(.rejected(.notOnStage), to: record.id)
        }
    }

    /// Much of what somebody on the stage sends gets lost, or their client sends less than it would: all there see it
    /// for a while.
    func noteWeakUplink(of id: SessionID) -> [LiveAction] {
        guard let record = sessions[id], record.request.isOnStage else { return [] }
        return [.notify(.weakUplink(id), record.stream)]
    }

    private func limit(_ mid: String, of record: SessionRecord, to height: Int?) -> [LiveAction] {
        [.post(.limit(record.id, mid: mid, maximumHeight: height), worker: record.worker, of: nil)]
    }

    /// Somebody asks another to mute: the stage decides, and delivers it by an effect.
    private func mute(
        _ participant: ParticipantID, _ kind: String, by record: SessionRecord
    ) -> [LiveAction] {
        guard let sender = record.request.sender else { return [] }
        let command = Stage.Command.requestMute(participant, kind == "video" ? .video : .audio)
        return [.notify(.submit(command, sender, record.id), record.stream)]
    }

    /// Tells a client why something was not done.
    func refuse(_ refusal: StageRefusal, to id: SessionID) -> [LiveAction] {
        guard let record = sessions[id] else { return [] }
        guard case .rejected(let rejection) = refusal else {
            return [record.tell(.error("unavailable", "This cannot be done now."))]
        }
        return [record.tell(.error(rejection.name, rejection.explanation))]
    }
}
