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
        for id in streams[stream]?.told ?? [] {
            if let record = sessions[id] { announceProgramme(to: record) }
        }
    }

    func announceProgramme(to record: SessionRecord) {
        let stream = streams[record.stream] ?? LiveStream()
        tell(
            ControlReply(type: "slots", slots: stream.programmeSlots(of: record, among: sessions)), to: record
        )
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
