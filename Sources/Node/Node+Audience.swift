import Base
import Forwarding
import Peer
import Stage
import Wire

/// The audience's sessions by the stage's own endpoint: the first slot of each kind has the programme, the others stay
/// empty; the control channel says so.
extension Node {
    /// Whose picture and sound the programme is made of changed, or whether there is any.
    func announceProgramme(of stream: StreamID) {
        for ids in (streams[stream]?.own ?? [:]).values {
            for id in ids { if let record = sessions[id] { announceProgramme(to: record) } }
        }
    }

    func announceProgramme(to record: SessionRecord) {
        var filled: Set<MediaKind> = []
        let composed = rooms[record.stream]?.composedParticipants ?? []
        let slots = record.plan.slots.map { plan -> ControlReply.Slot in
            let isFilled = filled.insert(plan.kind).inserted
            if isFilled, !composed.isEmpty {
                return ControlReply.Slot(composed, in: plan, of: record.stream)
            }
            let source = isFilled ? source(of: record.stream, plan.kind) : nil
            let participant = source?.request.participant
            let mute = participant.map { rooms[record.stream]?.mute(of: $0) ?? StageRoom.Mute() }
            return ControlReply.Slot(
                mid: plan.mid, kind: plan.kind.rawValue,
                stream: source.map { _ in record.stream.description },
                participant: participant?.description, name: source?.request.name,
                muted: (plan.kind == .audio ? mute?.audio : mute?.video) ?? false, screen: false)
        }
        tell(ControlReply(type: "slots", slots: slots), to: record)
    }

    /// Whose media of a kind viewers get now.
    private func source(of stream: StreamID, _ kind: MediaKind) -> SessionRecord? {
        if let chosen = rooms[stream]?.programmeSession(kind) { return sessions[chosen] }
        guard let record = streams[stream]?.publisher.flatMap({ sessions[$0] }) else { return nil }
        return record.plan.sources.contains { $0.kind == kind } ? record : nil
    }

    /// What a viewer may wish of the programme: its size.
    /// - Returns: false for what is everybody's to ask.
    func takeFromAudience(_ request: ControlRequest, _ record: SessionRecord) -> Bool {
        switch request {
        case .slot(let mid, let height): limit(mid, of: record, to: height)
        // There is always one who looks: what nobody sees is not worth more than the smallest layer.
        case .visible(let isVisible, let mid): limit(mid, of: record, to: isVisible ? nil : 1)
        case .pin: refuse(.notOnStage, to: record)
        case .ping, .mute: return false
        }
        return true
    }

    private func limit(_ mid: String, of record: SessionRecord, to height: Int?) {
        _ = workers[record.worker].post(.limit(record.id, mid: mid, maximumHeight: height))
    }
}

extension ControlReply.Slot {
    /// One picture, or one mix, of several people: no single one's.
    fileprivate init(_ composed: [ParticipantID], in plan: SlotPlan, of stream: StreamID) {
        self.init(
            mid: plan.mid, kind: plan.kind.rawValue, stream: stream.description, muted: false, screen: false,
            participants: composed.map(\.description))
    }
}
