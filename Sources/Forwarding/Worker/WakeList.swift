/// Sessions to look at when the batch of datagrams is done.
///
/// A packet of one session can make another session due: a viewer's key-frame request becomes one to the publisher.
/// Noting that costs a flag and an append, however many viewers ask.
final class WakeList {
    private var sessions: [Session] = []

    func add(_ session: Session) {
        sessions.append(session)
    }

    func takeAll() -> [Session] {
        guard !sessions.isEmpty else { return [] }
        defer { sessions.removeAll(keepingCapacity: true) }
        return sessions
    }
}
