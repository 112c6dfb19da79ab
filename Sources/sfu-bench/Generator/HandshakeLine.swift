/// Clients who do nothing but connect: so many at a time, so that what is measured is the work and not a queue.
struct HandshakeLine<Client: Identifiable> where Client.ID == Int {
    /// Under way at a time: enough to keep a server busy although each takes 20 ms, too few for flights to be repeated.
    static var width: Int { 96 }

    private var waiting: [Client] = []
    private var next = 0
    private var underWay: Set<Int> = []

    mutating func append(_ client: Client) {
        waiting.append(client)
    }

    /// The next client, if it is its turn.
    mutating func start() -> Client? {
        guard underWay.count < Self.width, next < waiting.count else { return nil }
        defer { next += 1 }
        underWay.insert(waiting[next].id)
        return waiting[next]
    }

    /// Takes note of what clients did.
    /// - Returns: those who are done.
    mutating func take(_ notices: [Notice]) -> [Int] {
        guard !underWay.isEmpty else { return [] }
        return notices.compactMap { $0.milestone.endsHandshake ? underWay.remove($0.id) : nil }
    }
}

extension Milestone {
    fileprivate var endsHandshake: Bool {
        switch self {
        case .dtlsConnected, .failed, .closedByServer: true
        case .iceConnected, .firstPacket, .firstFrame, .taken: false
        }
    }
}
