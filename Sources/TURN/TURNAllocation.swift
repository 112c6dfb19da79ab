import Base
import Wire

/// A client's relayed address, and the peers that it may communicate with.
///
/// - Source: RFC 8656 §3.2, §9 (permissions), §12 (channels).
struct TURNAllocation: Sendable {
    /// Why a request about peers is refused.
    enum Refusal: Error {
        case forbidden, wrongFamily, conflict, tooMany
    }

    /// A peer to which a number was bound.
    private struct Channel {
        let peer: TransportAddress
        var end: MonotonicTime
    }

    let relayed: TransportAddress
    /// The user name that made the allocation; requests under other names are refused.
    let username: String
    /// Transaction ID of the Allocate request, which the client may retransmit.
    let transactionID: STUNTransactionID
    /// When the allocation ends unless it is refreshed.
    var end: MonotonicTime
    /// When each permission ends, by the peer's IP address; the port does not matter (RFC 8656 §9).
    private var permissions: [IPAddress: MonotonicTime] = [:]
    private var channels: [ChannelNumber: Channel] = [:]
    /// The reverse of `channels`, looked up for every datagram of a peer.
    private var numbers: [TransportAddress: ChannelNumber] = [:]

    init(
        _ relayed: TransportAddress, of username: String, by transactionID: STUNTransactionID,
        until end: MonotonicTime
    ) {
        self.relayed = relayed
        self.username = username
        self.transactionID = transactionID
        self.end = end
    }

    /// Checks that the peer has the same address family as the relayed address.
    private func check(_ peer: TransportAddress) throws(Refusal) {
        guard (peer.ip.ipv4 == nil) == (relayed.ip.ipv4 == nil) else { throw .wrongFamily }
    }

    /// Adds or extends permissions for all the given peers, or for none if one is refused.
    mutating func permit(
        _ peers: [TransportAddress], by policy: TURNPolicy, at now: MonotonicTime
    ) throws(Refusal) {
        for peer in peers {
            try check(peer)
            guard policy.mayPermit(peer.ip) else { throw .forbidden }
        }
        for peer in peers { permissions[peer.ip] = now + policy.permissionLifetime }
        if permissions.count > policy.peersPerClient {
            permissions = permissions.filter { $0.value > now }
            guard permissions.count <= policy.peersPerClient else { throw .tooMany }
        }
    }

    /// Binds a number to a peer, or extends an existing binding of exactly these two.
    ///
    /// The peer also gets a permission (RFC 8656 §12).
    /// - Throws: `.conflict` if the number or the peer is bound otherwise.
    mutating func bind(
        _ number: ChannelNumber, to peer: TransportAddress, by policy: TURNPolicy, at now: MonotonicTime
    ) throws(Refusal) {
        try check(peer)
        guard policy.peers.contains(peer) else { throw .forbidden }
        expireChannels(at: now)
        guard channels[number]?.peer ?? peer == peer, numbers[peer] ?? number == number else {
            throw .conflict
        }
        guard channels[number] != nil || channels.count < policy.peersPerClient else { throw .tooMany }
        try permit([peer], by: policy, at: now)
        channels[number] = Channel(peer: peer, end: now + policy.channelLifetime)
        numbers[peer] = number
    }

    /// Removes bindings that have ended, so that their numbers can be bound again.
    private mutating func expireChannels(at now: MonotonicTime) {
        for (number, channel) in channels where channel.end <= now {
            channels[number] = nil
            numbers[channel.peer] = nil
        }
    }

    /// The channels by which the peers may send to the client now, and when that ends: with the allocation, the
    /// permission or the channel, whichever ends first.
    func openChannels(
        by policy: TURNPolicy, at now: MonotonicTime
    ) -> [(peer: TransportAddress, number: ChannelNumber, end: MonotonicTime)] {
        numbers.compactMap { peer, number in
            guard isPermitted(peer, by: policy, at: now), let permission = permissions[peer.ip],
                let channel = channels[number], channel.end > now
            else { return nil }
            return (peer, number, min(end, permission, channel.end))
        }
    }

    /// Whether datagrams may pass between the client and this peer now.
    func isPermitted(_ peer: TransportAddress, by policy: TURNPolicy, at now: MonotonicTime) -> Bool {
        policy.peers.contains(peer) && permissions[peer.ip].map { $0 > now } ?? false
    }

    /// The peer of a channel; nil if the number is not bound.
    func peer(of number: ChannelNumber, at now: MonotonicTime) -> TransportAddress? {
        channels[number].flatMap { $0.end > now ? $0.peer : nil }
    }

    /// The channel of a peer; nil if it has none.
    func channel(of peer: TransportAddress, at now: MonotonicTime) -> ChannelNumber? {
        guard let number = numbers[peer], self.peer(of: number, at: now) != nil else { return nil }
        return number
    }
}
