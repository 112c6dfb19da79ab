import Base

/// The addresses to which datagrams of one DTLS handshake were sent.
///
/// A peer that completes the handshake must have received our half of it. So if all of our datagrams went to one
/// address, the completed handshake proves that address. Until then, the number of datagrams to unproven addresses
/// is limited to what a handshake on a bad network needs, because the source of a request can be forged.
struct HandshakeRoute {
    /// Datagrams to unproven addresses.
    ///
    /// DTLS sends about 20 within 30 s if nothing answers; the rest is for a client that repeats its ClientHello.
    static let limit = 32

    /// Source of the first record: some clients start DTLS before they nominate a pair.
    var origin: TransportAddress?
    private var first: TransportAddress?
    private var isSplit = false
    private var unproven = 0

    /// The only address that was sent anything; nil if there were several, or none yet.
    var only: TransportAddress? { isSplit ? nil : first }

    /// Counts a datagram that is about to be sent.
    ///
    /// - Returns: false if it must not be sent.
    mutating func take(_ address: TransportAddress, isProven: Bool) -> Bool {
        guard isProven || unproven < Self.limit else { return false }
        if !isProven { unproven += 1 }
        if let first { isSplit = isSplit || first != address } else { first = address }
        return true
    }
}
