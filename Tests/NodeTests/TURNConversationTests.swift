import Base
import Crypto
import Foundation
import Net
import TestSupport
import Testing
import Wire

@testable import Node
@testable import TURN

private func instant(_ seconds: Double) -> MonotonicTime {
    MonotonicTime(nanoseconds: Int64(seconds * 1e9))
}

/// A client's connection by TCP, without a network: only a relayed address is a socket, on this machine.
@Suite struct `A connection to a TURN port` {
    private static let secret = Array("north wind".utf8)
    /// Until one minute after the relay's time.
    private static let username = "1000060:guest"
    private static let worker = TransportAddress(ip: .loopback, port: 7_000)

    private let relay: TURNRelay
    private var random = SeededGenerator(seed: 1)

    init() throws {
        var settings = TURNSettings(secret: Secret(Self.secret))
        settings.perAddress = 2
        let peers = TURNPeers(
            [TURNPeers.Worker(bound: Self.worker, advertised: [Self.worker])], local: [.loopback])
        relay = try TURNRelay(settings, peers: peers, routes: ChannelRoutes()) {
            Moment(elapsed: .zero, wall: WallTime(milliseconds: 1_000_000_000))
        }
    }

    private func connect(_ ip: UInt32 = 0xC633_6401) -> TURNConversation {
        let client = TURNClient(
            TransportAddress(ip: IPAddress(ipv4: ip), port: 50_000), by: .tcp, of: relay, notify: {})
        return TURNConversation(client, at: instant(0))
    }

    /// As the gateway makes it (draft-uberti-behave-turn-rest-00 §2.2).
    private static var password: String {
        let name = Array(username.utf8)
        return Data(HMAC.sha1(key: secret.span, name.span)).base64EncodedString()
    }

    private mutating func makeAgent(password: String = Self.password) -> TURNClientAgent {
        let server = TURNClientAgent.Relay(
            address: TransportAddress(ip: .loopback, port: 3_478), username: Self.username,
            password: password)
        return TURNClientAgent(
            server, peer: Self.worker, at: instant(0), by: OpenSSLAuthenticator(), using: &random)
    }

    /// Hands over what both say, until the client has nothing more to say.
    /// - Parameter size: of the pieces in which the client's bytes arrive.
    private mutating func talk(
        _ agent: inout TURNClientAgent, _ conversation: TURNConversation, at seconds: Double = 1,
        size: Int = 2_048
    ) throws {
        var reader = TURNFrameReader()
        var random = random
        while true {
            let messages = agent.takeMessages()
            guard !messages.isEmpty else { break }
            var rest = messages.flatMap(\.self)[...]
            while !rest.isEmpty {
                let piece = Array(rest.prefix(size))
                rest = rest.dropFirst(piece.count)
                conversation.receive(piece.span, at: instant(seconds))
            }
            let output = conversation.takeOutput(waiting: 0)
            try reader.read(output.span) { message in
                _ = agent.receive(message, at: instant(seconds), by: OpenSSLAuthenticator(), using: &random)
            }
        }
        self.random = random
    }

    @Test func `is closed after ten seconds without an allocation`() {
        let conversation = connect()
        #expect(conversation.deadline == instant(10))
        conversation.advance(to: instant(9.5))
        #expect(!conversation.isOver && !conversation.isEstablished)
        conversation.advance(to: instant(10))
        #expect(conversation.isOver)
        relay.stop()
    }

    @Test func `is answered without credentials, and given no more time for that`() {
        let conversation = connect()
        let request = STUNWriter(.allocateRequest, transactionID: STUNTransactionID(high: 0, low: 1)).sealed()
        for second in 1...3 {
            conversation.receive(request.span, at: instant(Double(second)))
            let answer = conversation.takeOutput(waiting: 0)
            #expect(!answer.isEmpty)
        }
        #expect(conversation.deadline == instant(10))
        #expect(!conversation.isEstablished && relay.count == 0)
        relay.stop()
    }

    /// Of neither kind, longer than any message, or of a length that no message has.
    @Test(
        arguments: [
            [0xFF, 0xFF, 0, 0], [0x80, 0, 0, 0], [0x40, 0, 0xFF, 0xFF], [0, 1, 0, 3],
        ] as [[UInt8]])
    func `is closed where its bytes are no messages`(_ bytes: [UInt8]) {
        let conversation = connect()
        conversation.receive(bytes.span, at: instant(1))
        #expect(conversation.isOver)
        let answer = conversation.takeOutput(waiting: 0)
        #expect(answer.isEmpty)
        relay.stop()
    }

    @Test(arguments: [1, 3, 7, 2_048]) mutating func `keeps its place with an allocation`(size: Int) throws {
        let conversation = connect()
        var agent = makeAgent()
        try talk(&agent, conversation, size: size)
        #expect(agent.state == .connected)
        #expect(conversation.isEstablished && !conversation.isOver)
        #expect(relay.count == 1)
        #expect(relay.counters.allocations == 1)
        let deadline = try #require(conversation.deadline)
        #expect(deadline > instant(60))
        conversation.advance(to: instant(60))
        #expect(conversation.isEstablished && !conversation.isOver)
        // With the connection its allocation ends.
        conversation.lose(at: instant(61))
        #expect(relay.count == 0)
        conversation.lose(at: instant(62))
        #expect(relay.count == 0)
        relay.stop()
    }

    @Test mutating func `has ten seconds again once the allocation is given back`() throws {
        let conversation = connect()
        var agent = makeAgent()
        try talk(&agent, conversation)
        agent.giveBack(by: OpenSSLAuthenticator(), using: &random)
        try talk(&agent, conversation, at: 30)
        #expect(relay.count == 0)
        #expect(!conversation.isEstablished && !conversation.isOver)
        #expect(conversation.deadline == instant(40))
        conversation.advance(to: instant(40))
        #expect(conversation.isOver)
        relay.stop()
    }

    @Test mutating func `loses an allocation that its client does not refresh`() throws {
        let conversation = connect()
        var agent = makeAgent()
        try talk(&agent, conversation)
        let end = try #require(conversation.deadline)
        conversation.advance(to: end)
        // Permissions and channels may end before the allocation does.
        var steps = 0
        while conversation.isEstablished, let next = conversation.deadline, steps < 100 {
            conversation.advance(to: next)
            steps += 1
        }
        #expect(!conversation.isEstablished)
        #expect(relay.count == 0)
        relay.stop()
    }

    @Test mutating func `gets nothing for a wrong password`() throws {
        let conversation = connect()
        var agent = makeAgent(password: "guess")
        try talk(&agent, conversation)
        #expect(agent.state != .connected)
        #expect(!conversation.isEstablished && relay.count == 0)
        #expect(relay.counters.refusedCredentials > 0)
        #expect(conversation.deadline == instant(10))
        relay.stop()
    }

    @Test mutating func `shares what one address may have, and gives its part back`() throws {
        var conversations: [TURNConversation] = []
        for _ in 0..<3 {
            let conversation = connect()
            var agent = makeAgent()
            try talk(&agent, conversation)
            conversations.append(conversation)
        }
        #expect(conversations.map(\.isEstablished) == [true, true, false])
        #expect(relay.counters.refusedQuota == 1)
        // Another address is not concerned.
        let other = connect(0xCB00_7109)
        var agent = makeAgent()
        try talk(&agent, other)
        #expect(other.isEstablished && relay.count == 3)
        conversations[0].lose(at: instant(2))
        let next = connect()
        var last = makeAgent()
        try talk(&last, next)
        #expect(next.isEstablished && relay.count == 3)
        relay.stop()
    }
}

@Suite struct `The usual limits of TURN` {
    private let settings = TURNSettings(secret: Secret(Array("north wind".utf8)))

    /// A browser makes an allocation by each of UDP, TCP and TLS.
    @Test func `are enough for an office of three hundred, and leave most places to others`() {
        let quota = settings.makeQuota()
        let office = IPAddress(ipv4: 0xC633_6401)
        let taken = (0..<2_000).count { _ in quota.take(office) }
        #expect(taken >= 900 && taken * 4 <= settings.total)
        let site = (0..<4_096).count { network in
            quota.take(IPAddress(high: 0x2001_0DB8_0001_0000 | UInt64(network), low: 1))
        }
        #expect(site == settings.total / 2)
    }

    @Test func `let a hundred of one office connect at the same time`() {
        let limits = settings.connectionLimits
        #expect(limits.waitingPerAddress >= 100 && limits.waitingPerAddress * 8 <= limits.waiting)
        #expect(limits.perAddress == settings.perAddress && limits.total == settings.total)
    }
}
