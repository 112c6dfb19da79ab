import Base

/// Sessions that ended before their clients requested it.
///
/// A client that leaves closes its connection and sends `DELETE` in the same moment, in an order that is left to
/// chance. This makes the answer the same in both cases. When it is full, the oldest entry makes way for a new one;
/// that client is then answered that there is no such session, which is true as well.
struct EndedSessions {
    /// As many as may leave when one large stream ends.
    static let limit = 4_096

    private var places: [SessionID: (stream: StreamID, purpose: SessionRequest.Purpose)] = [:]
    /// A ring, in the order of the sessions' ends, with the oldest at `next` once it is full; may contain sessions
    /// that were acknowledged since.
    private var order: [SessionID] = []
    private var next = 0

    /// The stream and the purpose of an ended session; nil if it is not remembered.
    subscript(_ id: SessionID) -> (stream: StreamID, purpose: SessionRequest.Purpose)? { places[id] }

    mutating func add(_ record: SessionRecord) {
        places[record.id] = (record.stream, record.purpose)
        guard order.count >= Self.limit else { return order.append(record.id) }
        places[order[next]] = nil
        order[next] = record.id
        next = (next + 1) % Self.limit
    }

    /// Forgets a session whose client knows of the end.
    /// - Returns: whether it was remembered.
    mutating func acknowledge(_ id: SessionID) -> Bool { places.removeValue(forKey: id) != nil }
}
