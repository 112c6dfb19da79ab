/// Limits how many clients perform their handshake at the same time.
///
/// Without a limit thousands of clients would wait in the server's queue, and the run would measure that queue.
struct HandshakeLine<Client: Identifiable> where Client.ID == Int {
    /// Handshakes in progress on one generator thread.
    ///
    /// Enough to keep a server busy although each takes 20 ms; few enough that no flight is repeated.
    static var width: Int { 96 }

    private var waiting: [Client] = []
    /// Index of the next client to start; those before it stay in `waiting`, as an array is slow to shift.
    private var next = 0
    private var underWay: Set<Int> = []

    mutating func append(_ client: Client) {
        waiting.append(client)
    }

    /// The next client, or nil while the line is full or empty.
    mutating func start() -> Client? {
        guard underWay.count < Self.width, next < waiting.count else { return nil }
        defer { next += 1 }
        underWay.insert(waiting[next].id)
        return waiting[next]
    }

    /// Removes the clients whose handshake ended by these milestones.
    /// - Returns: the ids of those clients.
    mutating func take(_ notices: [Notice]) -> [Int] {
        guard !underWay.isEmpty else { return [] }
        return notices.compactMap { $0.milestone.endsHandshake ? underWay.remove($0.id) : nil }
    }
}

extension Milestone {
    /// Whether the handshake succeeded or can no longer succeed.
    fileprivate var endsHandshake: Bool {
        switch self {
        case .dtlsConnected, .failed, .closedByServer: true
        case .iceConnected, .firstPacket, .firstFrame, .taken: false
        }
    }
}
