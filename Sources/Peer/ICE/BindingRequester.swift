import Base
import Wire

/// Writes the Binding requests of one lite agent, not too many of them.
///
/// - Source: RFC 8445 §7.1 (attributes), §7.2.2 (credentials).
struct BindingRequester: Sendable {
    /// Enough for a client that changes its address, too few to trouble anybody with.
    static let requestsPerSecond = 5
    /// Of a peer-reflexive candidate of the best kind (RFC 8445 §5.1.2.1); a full agent has no use for a lite one's.
    private static let priority: UInt32 = 110 << 24 | 0xFFFF << 8 | 255

    /// The client's.
    var credentials: ICECredentials
    private var limit = PerSecondLimit(Self.requestsPerSecond)
    /// Nil until the first request.
    private var tieBreaker: UInt64?

    init(credentials: ICECredentials) {
        self.credentials = credentials
    }

    /// When the next request may be sent.
    var earliest: MonotonicTime { limit.next }

    /// Whether a check's USERNAME is as long as that of the request which it would cause.
    ///
    /// Every client's is, and so nobody is sent longer requests than a forger sends checks.
    func mayFollow(_ check: STUNMessage, to local: ICECredentials) -> Bool {
        (check[.username]?.count ?? 0) >= username(for: local).utf8.count
    }

    /// Counts a request.
    ///
    /// - Returns: false if there were too many lately.
    mutating func take(at now: MonotonicTime) -> Bool { limit.take(at: now) }

    mutating func request(
        _ id: STUNTransactionID, from local: ICECredentials, authenticator: some MessageAuthenticator,
        using random: inout some RandomNumberGenerator
    ) -> [UInt8] {
        let tieBreaker = tieBreaker ?? random.next()
        self.tieBreaker = tieBreaker
        var request = STUNWriter(.bindingRequest, transactionID: id)
        request.appendUsername(username(for: local))
        request.append(.iceControlled, tieBreaker)
        request.append(.priority, Self.priority)
        return request.sealed(key: credentials.key, by: authenticator)
    }

    private func username(for local: ICECredentials) -> String {
        "\(credentials.ufrag):\(local.ufrag)"
    }
}
