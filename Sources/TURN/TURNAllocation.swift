import Base
import Wire

/// A relayed address that a client has, and with whom it may speak by it.
///
/// - Source: RFC 8656 §3.2, §9 (permissions), §12 (channels).
struct TURNAllocation: Sendable {
    /// What a request about peers is refused with.
    enum Refusal: Error {
        case forbidden, wrongFamily, conflict, tooMany
    }

    private struct Channel {
        let peer: TransportAddress
        var end: MonotonicTime
    }

    let relayed: TransportAddress
    /// Who made it; nobody else may change it.
    let username: String
    /// Of the request that made it, which a client may repeat.
    let transactionID: STUNTransactionID
    var end: MonotonicTime
    private var permissions: [IPAddress: MonotonicTime] = [:]
    private var channels: [ChannelNumber: Channel] = [:]
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

    private func check(_ peer: TransportAddress) throws(Refusal) {
        guard (peer.ip.ipv4 == nil) == (relayed.ip.ipv4 == nil) else { throw .wrongFamily }
    }

    /// Lets datagrams pass between the client and some addresses, or none of them.
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

    /// Gives a peer a number, or lets it have that for longer.
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

    private mutating func expireChannels(at now: MonotonicTime) {
        for (number, channel) in channels where channel.end <= now {
            channels[number] = nil
            numbers[channel.peer] = nil
        }
    }

    /// The channels by which something may go to the client now, and until when it may.
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

    func isPermitted(_ peer: TransportAddress, by policy: TURNPolicy, at now: MonotonicTime) -> Bool {
        policy.peers.contains(peer) && permissions[peer.ip].map { $0 > now } ?? false
    }

    /// Nil for a number that stands for nobody.
    func peer(of number: ChannelNumber, at now: MonotonicTime) -> TransportAddress? {
        channels[number].flatMap { $0.end > now ? $0.peer : nil }
    }

    /// Nil for a peer without a channel.
    func channel(of peer: TransportAddress, at now: MonotonicTime) -> ChannelNumber? {
        guard let number = numbers[peer], self.peer(of: number, at: now) != nil else { return nil }
        return number
    }
}
