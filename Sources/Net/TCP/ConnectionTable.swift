import Base

/// A port's connections, each watched by epoll under a token of its own.
struct ConnectionTable<Connection> {
    private let port: ListeningPort
    private(set) var all: [UInt32: Connection] = [:]
    /// Tokens are given out in turn, so none is used again soon after its connection closed.
    private var lastToken = ListeningPort.Token.firstConnection

    init(of port: ListeningPort) {
        self.port = port
    }

    subscript(token: UInt32) -> Connection? { all[token] }

    /// Adds a connection under a free token, and watches its descriptor.
    /// - Parameters:
    ///   - forChanges: reports each change once, instead of as long as there is input.
    ///   - connection: makes the table's value; not called if the kernel refuses.
    /// - Returns: the token; nil if the kernel refuses to watch the descriptor.
    mutating func add(
        _ descriptor: Int32, forChanges: Bool = false, _ connection: () -> Connection
    ) -> UInt32? {
        repeat {
            lastToken = lastToken == .max ? ListeningPort.Token.firstConnection : lastToken + 1
        } while all[lastToken] != nil
        let isWatched =
            forChanges
            ? port.watchChanges(descriptor, as: lastToken) : port.watch(descriptor, as: lastToken)
        guard isWatched else { return nil }
        all[lastToken] = connection()
        return lastToken
    }

    /// Replaces the value of a token, if it is in use.
    mutating func update(_ token: UInt32, to connection: Connection) {
        guard all[token] != nil else { return }
        all[token] = connection
    }

    /// Stops watching a connection and removes it; its descriptor stays open.
    mutating func remove(_ token: UInt32, _ descriptor: Int32) -> Connection? {
        guard let connection = all.removeValue(forKey: token) else { return nil }
        port.forget(descriptor)
        return connection
    }
}
