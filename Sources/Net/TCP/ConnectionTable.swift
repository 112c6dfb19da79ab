import Base

/// A port's connections, each of them watched under a token of its own.
struct ConnectionTable<Connection> {
    private let port: ListeningPort
    private(set) var all: [UInt32: Connection] = [:]
    private var lastToken = ListeningPort.Token.firstConnection

    init(of port: ListeningPort) {
        self.port = port
    }

    subscript(token: UInt32) -> Connection? { all[token] }

    /// Watches a descriptor under a token that is free.
    /// - Parameters:
    ///   - forChanges: told once, until there is more of it.
    ///   - connection: what the token stands for from now on; not asked for if there is none.
    /// - Returns: the token; nil if the kernel does not watch the descriptor.
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

    /// Changes what a token stands for.
    mutating func update(_ token: UInt32, to connection: Connection) {
        guard all[token] != nil else { return }
        all[token] = connection
    }

    /// Watches a connection no longer.
    mutating func remove(_ token: UInt32, _ descriptor: Int32) -> Connection? {
        guard let connection = all.removeValue(forKey: token) else { return nil }
        port.forget(descriptor)
        return connection
    }
}
