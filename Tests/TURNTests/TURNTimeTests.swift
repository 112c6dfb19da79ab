import Base
@testable import TURN
import TestSupport
import Testing
import Wire

private typealias Client = TURNTestClient

/// To the second: what a relay grants lasts so long, and no longer, whether or not anybody advances it.
/// - Source: RFC 8656 §3.2, §9, §12; RFC 8489 §9.2.1.
@Suite struct `What a relay grants` {
    private var client = Client()

    @Test mutating func `ends with the allocation, also before it is let go`() throws {
        _ = try client.allocate()
        _ = try client.bind(0x4000, to: Client.peer, at: 400)
        try client.say([1], by: 0x4000, at: 600)
        #expect(client.relayed.count == 1)
        #expect(!client.hear([1], from: Client.peer, at: 600).isEmpty)
        try client.say([1], by: 0x4000, at: 601)
        try client.indicate([1], to: Client.peer, at: 601)
        #expect(client.relayed.count == 1)
        #expect(client.hear([1], from: Client.peer, at: 601).isEmpty)
        #expect(try client.refresh(600, at: 601)?.errorCode() == .allocationMismatch)
        #expect(try client.permit(Client.peer, at: 601)?.errorCode() == .allocationMismatch)
        #expect(try client.bind(0x4000, to: Client.peer, at: 601)?.errorCode() == .allocationMismatch)
        #expect(client.agent.hasAllocation && client.releases == 0)
        // Another one takes its place, with nothing of its permissions.
        #expect(try client.allocate(at: 601)?.kind == STUNKind.allocateRequest.success)
        #expect(client.releases == 1)
        #expect(client.agent.deadline == Client.time(1_201))
        #expect(client.hear([1], from: Client.peer, at: 602).isEmpty)
    }

    @Test mutating func `to a peer is extended by a channel, and by no datagrams`() throws {
        _ = try client.allocate()
        _ = try client.bind(0x4000, to: Client.peer)
        for second in 2...300 as ClosedRange<Int64> {
            try client.say([1], by: 0x4000, at: second)
            #expect(!client.hear([1], from: Client.peer, at: second).isEmpty)
        }
        #expect(client.relayed.count == 299)
        try client.say([1], by: 0x4000, at: 301)
        #expect(client.relayed.count == 299)
        #expect(client.hear([1], from: Client.peer, at: 301).isEmpty)
        // The channel is still there, and has only to be bound again.
        #expect(try client.bind(0x4000, to: Client.peer, at: 400)?.errorCode() == nil)
        try client.say([1], by: 0x4000, at: 599)
        #expect(client.relayed.count == 300)
        #expect(client.hear([7], from: Client.peer, at: 599) == [0x40, 0, 0, 1, 7])
    }

    @Test mutating func `as a channel may be bound otherwise once it has ended`() throws {
        _ = try client.allocate()
        _ = try client.bind(0x4000, to: Client.peer)
        _ = try client.refresh(600, at: 599)
        #expect(try client.bind(0x4000, to: Client.otherPeer, at: 600)?.errorCode() == .badRequest)
        #expect(try client.bind(0x4001, to: Client.peer, at: 600)?.errorCode() == .badRequest)
        #expect(try client.bind(0x4000, to: Client.otherPeer, at: 601)?.errorCode() == nil)
        #expect(try client.bind(0x4001, to: Client.peer, at: 601)?.errorCode() == nil)
        #expect(client.hear([7], from: Client.peer, at: 602) == [0x40, 1, 0, 1, 7])
        #expect(client.hear([7], from: Client.otherPeer, at: 602) == [0x40, 0, 0, 1, 7])
    }

    @Test mutating func `to ask with lasts an hour`() throws {
        try client.learnNonce()
        #expect(try client.allocate(at: 3_601)?.kind == STUNKind.allocateRequest.success)
        #expect(try client.refresh(600, at: 3_602)?.errorCode() == .staleNonce)
        #expect(client.agent.takeCounters().refusedCredentials == 1)
    }

    /// A stream may last longer than the credentials with which it began, and nothing else may.
    @Test mutating func `goes on after its credentials have ended, and does not begin again`() throws {
        _ = try client.allocate()
        client.present = Client.second + 60
        #expect(try client.refresh(600, at: 100)?.number(.lifetime) == 600)
        #expect(try client.permit(Client.peer, at: 101)?.errorCode() == nil)
        #expect(client.agent.deadline == Client.time(700))
        let name = client.username
        client.username = "\(Client.second):another"
        #expect(try client.refresh(0, at: 102)?.errorCode() == .unauthenticated)
        client.username = name
        // It has ended, though nobody has advanced it.
        #expect(try client.allocate(at: 700)?.errorCode() == .unauthenticated)
        #expect(try client.refresh(600, at: 700)?.errorCode() == .unauthenticated)
        #expect(client.agent.advance(to: Client.time(700)) == [.release])
        #expect(try client.allocate(at: 701)?.errorCode() == .unauthenticated)
        #expect(!client.agent.hasAllocation)
        client.present = Client.second + 59
        #expect(try client.allocate(at: 702)?.kind == STUNKind.allocateRequest.success)
    }
}

@Suite struct `The limits of a relay` {
    private static let far = TransportAddress(ip: IPAddress(ipv4: 0xCB00_7108), port: 7_000)
    private static let ipv6 = TransportAddress(
        ip: IPAddress(high: 0x2001_0DB8_0000_0000, low: 1), port: 7_000)

    private static func policy(_ peers: Set<TransportAddress>) -> TURNPolicy {
        TURNPolicy(
            realm: "rostrum", credentials: TURNCredentials(secret: Secret(Client.secret)),
            nonceKey: Secret([UInt8](repeating: 7, count: 16)), peers: peers)
    }

    @Test func `are of peers too, all of a request or none`() throws {
        var policy = Self.policy([Client.peer, Client.otherPeer, Self.far])
        policy.peersPerClient = 1
        var client = Client(policy)
        _ = try client.allocate()
        let both = try client.permit(Client.peer, Self.far)
        #expect(try both?.errorCode() == .insufficientCapacity)
        let none = client.hear([1], from: Client.peer) + client.hear([1], from: Self.far)
        #expect(none.isEmpty)

        _ = try client.permit(Client.peer)
        let second = try client.permit(Self.far)
        #expect(try second?.errorCode() == .insufficientCapacity)
        let (near, far) = (client.hear([1], from: Client.otherPeer), client.hear([1], from: Self.far))
        #expect(!near.isEmpty && far.isEmpty)
        // Another port of the same address takes no place.
        let again = try client.permit(Client.otherPeer)
        #expect(try again?.errorCode() == nil)
        // A place is free once the permission has ended.
        let later = try client.permit(Self.far, at: 301)
        #expect(try later?.errorCode() == nil)
        let heard = client.hear([1], from: Self.far, at: 302)
        #expect(!heard.isEmpty)
    }

    @Test func `are of channels too`() throws {
        var policy = Self.policy([Client.peer, Client.otherPeer])
        policy.peersPerClient = 1
        var client = Client(policy)
        _ = try client.allocate()
        _ = try client.bind(0x4000, to: Client.peer)
        let second = try client.bind(0x4001, to: Client.otherPeer)
        #expect(try second?.errorCode() == .insufficientCapacity)
        let again = try client.bind(0x4000, to: Client.peer)
        #expect(try again?.errorCode() == nil)
        _ = try client.refresh(600, at: 599)
        let later = try client.bind(0x4001, to: Client.otherPeer, at: 601)
        #expect(try later?.errorCode() == nil)
    }

    /// - Source: RFC 8656 §7.2, §8.2, §10.2 (errors 440 and 443).
    @Test func `are those of its address family`() throws {
        var client = Client(Self.policy([Self.ipv6]))
        client.room = TransportAddress(ip: IPAddress(high: 0x2001_0DB8_0000_0000, low: 2), port: 40_000)
        let usual = try client.allocate()
        #expect(try usual?.errorCode() == .familyNotSupported)
        let wanted = try client.allocate { $0.append(.requestedAddressFamily, [2, 0, 0, 0]) }
        #expect(try wanted?.address(.xorRelayedAddress) == client.room)
        let families: [(UInt8, STUNErrorCode?)] = [
            (1, STUNErrorCode.peerFamilyMismatch), (2, nil), (3, STUNErrorCode.familyNotSupported),
        ]
        for (family, code) in families {
            let request = client.signed(.refreshRequest) { writer, _ in
                writer.append(.requestedAddressFamily, [family, 0, 0, 0])
            }
            let answer = try client.send(request)
            #expect(try answer?.errorCode() == code)
        }
        let wrong = try client.permit(Client.peer)
        #expect(try wrong?.errorCode() == .peerFamilyMismatch)
        let right = try client.permit(Self.ipv6)
        #expect(try right?.errorCode() == nil)
        let heard = try ReceivedSTUN(client.hear([5], from: Self.ipv6))
        #expect(try heard.address(.xorPeerAddress) == Self.ipv6)
    }
}

@Suite struct `Datagrams through a relay` {
    private var client = Client()

    init() throws {
        _ = try client.allocate()
        _ = try client.bind(0x4000, to: Client.peer)
    }

    @Test(arguments: 0...40) mutating func `are the same whatever their length`(length: Int) throws {
        let datagram = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ 1) }
        try client.say(datagram, by: 0x4000)
        try client.indicate(datagram, to: Client.otherPeer)
        #expect(client.relayed.map(\.datagram) == [datagram, datagram])
        #expect(client.relayed.map(\.peer) == [Client.peer, Client.otherPeer])

        let indication = client.hear(datagram, from: Client.otherPeer)
        let message = try ReceivedSTUN(indication)
        let data = try #require(message.message[.data])
        #expect(Array(indication[data]) == datagram)
        // In a stream each is whole words, so that the next one is found.
        let padded = client.hear(datagram, from: Client.peer, isStream: true)
        var reader = TURNFrameReader()
        var found: [[UInt8]] = []
        let stream = padded + indication + padded
        try reader.read(stream.span) { bytes in found.append((try? bytes.bytes(0..<bytes.count)) ?? []) }
        #expect(found == [padded, indication, padded])
    }

    /// What follows the datagram is padding; what is not there is not relayed.
    @Test mutating func `are no longer than they say, and no longer than they are`() throws {
        let datagram: [UInt8] = [1, 2, 3, 4]
        for length in [0, 1, 2, 3, 4, 5, 255, 256, 65_535] as [UInt16] {
            var message: [UInt8] = [0x40, 0]
            message.append(bigEndian: length)
            let before = client.relayed.count
            _ = try client.send(message + datagram)
            let expected = length <= 4 ? [Array(datagram.prefix(Int(length)))] : []
            #expect(client.relayed.dropFirst(before).map(\.datagram) == expected)
        }
        #expect(client.agent.takeCounters().malformed == 4)
        for length in 0..<4 {
            _ = try client.send(Array([0x40, 0, 0, 0].prefix(length)))
        }
        #expect(client.agent.takeCounters().malformed == 4)
    }
}
