import Base
import Wire

/// Writes the Binding requests of one lite agent and limits their rate.
///
/// - Source: RFC 8445 §7.1 (attributes), §7.2.2 (credentials).
struct BindingRequester: Sendable {
    /// Enough for a client that changes its address, too few to flood a third party.
    static let requestsPerSecond = 5
    /// That of a peer-reflexive candidate of the best kind (RFC 8445 §5.1.2.1); full agents ignore a lite one's
    /// value.
    private static let priority: UInt32 = 110 << 24 | 0xFFFF << 8 | 255

    /// The client's ufrag and password.
    var credentials: ICECredentials
    private var limit = PerSecondLimit(Self.requestsPerSecond)
    /// Nil until the first request.
    private var tieBreaker: UInt64?

    init(credentials: ICECredentials) {
        self.credentials = credentials
    }

    /// When the next request may be sent.
    var earliest: MonotonicTime { limit.next }

    /// Whether a check's USERNAME is at least as long as that of the request which it would cause.
    ///
    /// Every genuine check passes. So a forger cannot cause requests that are longer than its checks.
    func mayFollow(_ check: STUNMessage, to local: ICECredentials) -> Bool {
        (check[.username]?.count ?? 0) >= username(for: local).utf8.count
    }

    /// Counts a request.
    ///
    /// - Returns: false if the limit for this second is reached.
    mutating func take(at now: MonotonicTime) -> Bool { limit.take(at: now) }

    /// Builds a request as the controlled agent, authenticated with the client's password.
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
