import Base
import Wire

/// To whom a relay relays, for whom, and how much: one for all of its clients.
///
/// - Source: RFC 8656 §7 to §12, §21.1.6 (a relay that names its peers is no open one).
package struct TURNPolicy: Sendable {
    /// What clients are told that their password is for (RFC 8489 §9.2).
    package let realm: String
    /// The only addresses that anything is relayed to and from: this server's own.
    package let peers: Set<TransportAddress>
    /// How long an allocation lasts without being refreshed, whatever its client asks for (RFC 8656 §3.2).
    package var lifetime = Duration.seconds(600)
    /// RFC 8656 §9.
    package var permissionLifetime = Duration.seconds(300)
    /// RFC 8656 §12.
    package var channelLifetime = Duration.seconds(600)
    /// Peers that one client may name at once, and channels that it may bind; a page needs one of each.
    package var peersPerClient = 32
    /// Of one client; a browser sends some twenty at once, one for each candidate that it is told.
    package var requestsPerSecond = 64
    /// Of what one client sends, all together; who publishes in three sizes sends half a million.
    package var bytesPerSecond = 8 << 20

    let credentials: TURNCredentials
    let nonces: TURNNonces

    /// - Parameters:
    ///   - nonceKey: at least 16 bytes that nobody can guess.
    ///   - peers: over UDP.
    package init(
        realm: String, credentials: TURNCredentials, nonceKey: Secret<[UInt8]>, peers: Set<TransportAddress>
    ) {
        self.realm = realm
        self.credentials = credentials
        self.peers = peers
        nonces = TURNNonces(key: nonceKey)
    }

    /// Whether a permission may be had for an address, whatever the port.
    func mayPermit(_ ip: IPAddress) -> Bool { peers.contains { $0.ip == ip } }

    /// Whether there is anything to relay to by this family.
    func hasPeers(isIPv4: Bool) -> Bool { peers.contains { ($0.ip.ipv4 != nil) == isIPv4 } }
}

/// What clients of a relay did and were refused.
package struct TURNCounters: Equatable, Sendable {
    /// Allocations that were made.
    package var allocations: UInt64 = 0
    /// Refused for want of room, in all or for one address.
    package var refusedQuota: UInt64 = 0
    /// Requests with a user name, password or nonce that is none of ours or good no longer.
    package var refusedCredentials: UInt64 = 0
    /// Requests and datagrams to who is none of this server's sessions, or without a permission.
    package var refusedPeers: UInt64 = 0
    /// What cannot be read.
    package var malformed: UInt64 = 0
    /// Requests, and datagrams, beyond what one client may send in a second.
    package var refusedRate: UInt64 = 0
    /// Datagrams from clients to sessions.
    package var datagramsIn: UInt64 = 0
    package var bytesIn: UInt64 = 0
    /// Datagrams from sessions to clients.
    package var datagramsOut: UInt64 = 0
    package var bytesOut: UInt64 = 0
    /// Datagrams to clients that did not read fast enough.
    package var droppedSlow: UInt64 = 0

    package init() {}

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

/// So much a second, counted from the first of it.
struct RateLimit: Sendable {
    private let limit: Int
    private var since = MonotonicTime.zero
    private var used = 0

    init(_ limit: Int) {
        self.limit = limit
    }

    /// - Returns: false if that is too much.
    mutating func take(_ amount: Int = 1, at now: MonotonicTime) -> Bool {
        if used == 0 || now - since >= .seconds(1) { (since, used) = (now, 0) }
        guard amount <= limit - used else { return false }
        used += amount
        return true
    }
}
