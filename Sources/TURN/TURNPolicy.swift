import Base
import Wire

/// The rules of a relay, the same for all its clients: which peers they may reach, who may use it, and how much.
///
/// - Source: RFC 8656 §7 to §12, §21.1.6 (limiting peers so that the relay is not an open one).
package struct TURNPolicy: Sendable {
    /// Sent to clients in the authentication challenge (RFC 8489 §9.2); part of the key.
    package let realm: String
    /// The only addresses to and from which anything is relayed: this server's own.
    package let peers: Set<TransportAddress>
    /// Lifetime of an allocation without a refresh, whatever lifetime the client requests (RFC 8656 §3.2).
    package var lifetime = Duration.seconds(600)
    /// Lifetime of a permission (RFC 8656 §9).
    package var permissionLifetime = Duration.seconds(300)
    /// Lifetime of a channel binding (RFC 8656 §12).
    package var channelLifetime = Duration.seconds(600)
    /// Permissions that one client may have at a time, and as many channels; a page needs one of each.
    package var peersPerClient = 32
    /// Requests of one client per second; a browser sends about twenty at once, one for each candidate that it
    /// receives.
    package var requestsPerSecond = 64
    /// Bytes that one client may send per second; a publisher of three simulcast layers sends about half a million.
    package var bytesPerSecond = 8 << 20
    /// Messages that one client may send per second, datagrams included; the same publisher sends about seven hundred.
    ///
    /// A datagram may be empty, and costs a call of the kernel all the same.
    package var messagesPerSecond = 8_192

    let credentials: TURNCredentials
    let nonces: TURNNonces

    /// - Parameters:
    ///   - realm: any text; clients show or ignore it.
    ///   - nonceKey: at least 16 bytes that cannot be guessed.
    ///   - peers: addresses for UDP.
    package init(
        realm: String, credentials: TURNCredentials, nonceKey: Secret<[UInt8]>, peers: Set<TransportAddress>
    ) {
        self.realm = realm
        self.credentials = credentials
        self.peers = peers
        nonces = TURNNonces(key: nonceKey)
    }

    /// Whether a permission may be granted for an IP address, whatever the port.
    func mayPermit(_ ip: IPAddress) -> Bool { peers.contains { $0.ip == ip } }

    /// Whether there is any peer of this address family.
    func hasPeers(isIPv4: Bool) -> Bool { peers.contains { ($0.ip.ipv4 != nil) == isIPv4 } }
}

/// What the clients of a relay did and were refused.
package struct TURNCounters: Equatable, Sendable {
    /// Allocations granted.
    package var allocations: UInt64 = 0
    /// Allocations refused because there was no room, in all or for one address.
    package var refusedQuota: UInt64 = 0
    /// Requests refused because of the user name, password or nonce: wrong, or expired.
    package var refusedCredentials: UInt64 = 0
    /// Requests and datagrams refused because the peer is not one of this server's or has no permission.
    package var refusedPeers: UInt64 = 0
    /// Messages that could not be parsed.
    package var malformed: UInt64 = 0
    /// Requests and datagrams refused because the client exceeded its limit per second.
    package var refusedRate: UInt64 = 0
    /// Datagrams relayed from clients.
    package var datagramsIn: UInt64 = 0
    /// Payload bytes relayed from clients.
    package var bytesIn: UInt64 = 0
    /// Datagrams relayed to clients.
    package var datagramsOut: UInt64 = 0
    /// Payload bytes relayed to clients.
    package var bytesOut: UInt64 = 0
    /// Datagrams dropped because the client did not read fast enough.
    package var droppedSlow: UInt64 = 0

    /// All zero.
    package init() {}

    /// Adds the counts of another client.
    package static func += (sum: inout Self, more: Self) {
        sum.allocations &+= more.allocations
        sum.refusedQuota &+= more.refusedQuota
        sum.refusedCredentials &+= more.refusedCredentials
        sum.refusedPeers &+= more.refusedPeers
        sum.malformed &+= more.malformed
        sum.refusedRate &+= more.refusedRate
        sum.datagramsIn &+= more.datagramsIn
        sum.bytesIn &+= more.bytesIn
        sum.datagramsOut &+= more.datagramsOut
        sum.bytesOut &+= more.bytesOut
        sum.droppedSlow &+= more.droppedSlow
    }
}

/// A limit per second; each second begins with the first use after the one before.
struct RateLimit: Sendable {
    private let limit: Int
    private var since = MonotonicTime.zero
    private var used = 0

    init(_ limit: Int) {
        self.limit = limit
    }

    /// Uses an amount, unless it exceeds what is left in this second.
    /// - Returns: false if it does; then nothing is used.
    mutating func take(_ amount: Int = 1, at now: MonotonicTime) -> Bool {
        if used == 0 || now - since >= .seconds(1) { (since, used) = (now, 0) }
        guard amount <= limit - used else { return false }
        used += amount
        return true
    }
}
