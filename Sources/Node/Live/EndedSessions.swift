import Base

/// Sessions that ended before their clients asked for it.
///
/// A client that leaves closes its connection and sends `DELETE` in the same moment, and which of the two comes first
/// is luck; it is answered the same both ways. The oldest one is forgotten for a new one: its client then hears that
/// there is no such session, which is as true.
struct EndedSessions {
    /// As many as leave when one large stream ends.
    static let limit = 4_096

    private var places: [SessionID: (stream: StreamID, purpose: SessionRequest.Purpose)] = [:]
    /// In the order in which they ended, from `next` on once it is full; some were acknowledged since.
    private var order: [SessionID] = []
    private var next = 0

    /// What a session was; nil for one that is not remembered.
    subscript(_ id: SessionID) -> (stream: StreamID, purpose: SessionRequest.Purpose)? { places[id] }

    mutating func add(_ record: SessionRecord) {
        places[record.id] = (record.stream, record.purpose)
        guard order.count >= Self.limit else { return order.append(record.id) }
        places[order[next]] = nil
        order[next] = record.id
        next = (next + 1) % Self.limit
    }

    /// Its client knows of the end.
    /// - Returns: whether it was remembered.
    mutating func acknowledge(_ id: SessionID) -> Bool { places.removeValue(forKey: id) != nil }
}
