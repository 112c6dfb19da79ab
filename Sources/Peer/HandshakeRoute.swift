import Base

/// Where the datagrams of one DTLS handshake went.
///
/// Whoever makes the other half of the handshake got ours. So if all of ours went to one address, that one is proven;
/// and until one is, it gets no more than a handshake on a bad network needs, whoever asked for it.
struct HandshakeRoute {
    /// Some 20 are what DTLS sends by itself in 30 s without an answer; the rest is for a client that repeats
    /// its hello.
    static let limit = 32

    /// Where the first record came from: some clients begin before they nominate.
    var origin: TransportAddress?
    private var first: TransportAddress?
    private var isSplit = false
    private var unproven = 0

    /// The only address that anything was sent to.
    var only: TransportAddress? { isSplit ? nil : first }

    /// Counts a datagram that is to be sent.
    ///
    /// - Returns: false if it must not.
    mutating func take(_ address: TransportAddress, isProven: Bool) -> Bool {
        guard isProven || unproven < Self.limit else { return false }
        if !isProven { unproven += 1 }
        if let first { isSplit = isSplit || first != address } else { first = address }
        return true
    }
}
