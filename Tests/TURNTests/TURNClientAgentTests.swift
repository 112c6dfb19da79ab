import Base
@testable import TURN
import TestSupport
import Testing
import Wire

/// A client and a relay of ours, with nothing between them.
private struct RelayedPath {
    static let second = TURNTestClient.second
    static let authenticator = TURNTestClient.authenticator
    static let username = "\(second + 60):guest"

    var client: TURNClientAgent
    var agent = TURNAgent(of: TURNTestClient.address, by: TURNTestClient.policy)
    var random = SeededGenerator(seed: 1)
    /// Of the client's messages, so many get lost first.
    var lost = 0
    var room: TransportAddress? = TURNTestClient.relayed
    private(set) var relayed: [[UInt8]] = []
    private(set) var kinds: [STUNKind] = []

    init(password: String? = nil, peer: TransportAddress = TURNTestClient.peer) {
        let relay = TURNClientAgent.Relay(
            address: TransportAddress(ip: .loopback, port: 3_478), username: Self.username,
            password: password ?? TURNTestClient.password(of: Self.username))
        client = TURNClientAgent(relay, peer: peer, at: .zero, by: Self.authenticator, using: &random)
    }

    /// Until neither has anything to say.
    mutating func exchange(at seconds: Int64 = 1) {
        var messages = client.takeMessages()[...]
        while let message = messages.popFirst() {
            if let kind = try? STUNMessage(parsing: message.span).kind { kinds.append(kind) }
            guard lost == 0 else {
                lost -= 1
                continue
            }
            var effects = agent.receive(
                message.span, at: TURNTestClient.time(seconds), second: Self.second, by: Self.authenticator)[
                    ...]
            while let effect = effects.popFirst() {
                switch effect {
                case .answer(let bytes): _ = hear(bytes, at: seconds)
                case .allocate:
                    effects += agent.open(
                        room, at: TURNTestClient.time(seconds), by: Self.authenticator)
                case .relay(let datagram, _): relayed.append(datagram)
                case .release: break
                }
            }
            messages += client.takeMessages()
        }
    }

    mutating func hear(_ bytes: [UInt8], at seconds: Int64 = 1) -> Range<Int>? {
        client.receive(
            bytes.span, at: TURNTestClient.time(seconds), by: Self.authenticator, using: &random)
    }

    mutating func advance(to seconds: Int64) {
        client.advance(to: TURNTestClient.time(seconds), by: Self.authenticator, using: &random)
        exchange(at: seconds)
    }

    mutating func say(_ bytes: [UInt8], at seconds: Int64) {
        guard let wrapped = client.wrapped(bytes.span) else { return }
        let effects = agent.receive(
            wrapped.span, at: TURNTestClient.time(seconds), second: Self.second, by: Self.authenticator)
        for case .relay(let datagram, TURNTestClient.peer) in effects { relayed.append(datagram) }
    }
}

@Suite struct TURNClientAgentTests {
    @Test func `reaches its peer, and is reached`() throws {
        var path = RelayedPath()
        #expect(path.client.wrapped([1].span) == nil)
        path.exchange()
        #expect(path.client.state == .connected)
        #expect(path.kinds == [.allocateRequest, .allocateRequest, .channelBindRequest])
        path.say([1, 2, 3], at: 2)
        #expect(path.relayed == [[1, 2, 3]])
        var output: [UInt8] = []
        path.agent.append(
            [4, 5].span, from: TURNTestClient.peer, isStream: false, at: TURNTestClient.time(2), to: &output)
        let heard = path.hear(output)
        let data = try #require(heard)
        #expect(Array(output[data]) == [4, 5])
        // Another channel, which it never bound.
        output[1] = 1
        let other = path.hear(output)
        #expect(other == nil)
    }

    @Test func `repeats what got lost`() {
        var path = RelayedPath()
        path.lost = 2
        path.exchange()
        #expect(path.client.deadline == .zero + .milliseconds(500))
        path.advance(to: 1)
        path.advance(to: 2)
        #expect(path.client.state == .connected)
    }

    @Test func `gives up where nobody answers`() {
        var path = RelayedPath()
        path.lost = .max
        for second in 0...64 { path.advance(to: Int64(second)) }
        #expect(path.client.state == .failed(code: nil))
        #expect(path.kinds.count == 7 && path.client.deadline == nil)
    }

    /// - Source: RFC 8489 §6.2.1: half a second, and twice as long each time.
    @Test func `asks seven times, and waits twice as long each time`() {
        var path = RelayedPath()
        path.lost = .max
        path.exchange()
        for (milliseconds, count) in [
            (500, 1), (1_500, 2), (3_500, 3), (7_500, 4), (15_500, 5), (31_500, 6), (63_500, 7),
        ] as [(Int64, Int)] {
            let due = MonotonicTime.zero + .milliseconds(milliseconds)
            #expect(path.client.deadline == due)
            #expect(path.kinds.count == count)
            let early = due - Duration.nanoseconds(1)
            path.client.advance(to: early, by: RelayedPath.authenticator, using: &path.random)
            let nothing = path.client.takeMessages()
            #expect(nothing.isEmpty && path.client.state == .connecting)
            path.client.advance(to: due, by: RelayedPath.authenticator, using: &path.random)
            path.exchange()
        }
        #expect(path.client.state == .failed(code: nil))
        #expect(path.client.deadline == nil && path.kinds.count == 7)
    }

    /// A relay that has forgotten everything, as after a restart.
    @Test func `fails when its address is gone`() {
        var path = RelayedPath()
        path.exchange()
        path.agent = TURNAgent(of: TURNTestClient.address, by: TURNTestClient.policy)
        path.advance(to: 240)
        #expect(path.client.state == .connected)
        path.advance(to: 241)
        #expect(path.kinds.last == .refreshRequest)
        #expect(path.client.state == .failed(code: 437))
        #expect(path.client.deadline == nil)
        #expect(path.client.wrapped([1].span) == nil)
    }

    @Test func `is refused by a wrong password, once`() {
        var path = RelayedPath(password: "guess")
        path.exchange()
        #expect(path.client.state == .failed(code: 401))
        #expect(path.kinds == [.allocateRequest, .allocateRequest])
    }

    @Test func `is refused where there is no room, and for a peer that is none of the server's`() {
        var full = RelayedPath()
        full.room = nil
        full.exchange()
        #expect(full.client.state == .failed(code: 486))
        var stranger = RelayedPath(peer: TURNTestClient.stranger)
        stranger.exchange()
        #expect(stranger.client.state == .failed(code: 403))
    }

    /// Of an hour: nonces change in between, permissions end after five minutes and addresses after ten.
    @Test func `keeps its address and its way to the peer`() {
        var path = RelayedPath()
        path.exchange()
        for second in stride(from: Int64(10), through: 7_200, by: 10) {
            path.advance(to: second)
            #expect(path.agent.advance(to: TURNTestClient.time(second)) == [])
            path.say([UInt8(second % 251)], at: second)
        }
        #expect(path.relayed.count == 720)
        #expect(path.client.state == .connected)
    }

    @Test func `gives its address back`() {
        var path = RelayedPath()
        path.exchange()
        path.client.giveBack(by: RelayedPath.authenticator, using: &path.random)
        path.exchange()
        #expect(!path.agent.hasAllocation)
    }

    /// Answers the request that the client sends now; nil for one that grants it.
    private func answer(_ path: inout RelayedPath, _ code: STUNErrorCode?) throws {
        let messages = path.client.takeMessages()
        try #require(messages.count == 1)
        let request = try ReceivedSTUN(messages[0])
        let id = request.message.transactionID
        if let code {
            var writer = STUNWriter(request.kind.failure, transactionID: id)
            writer.appendErrorCode(code)
            writer.append(.realm, Array("rostrum".utf8))
            writer.append(.nonce, Array("nonce".utf8))
            _ = path.hear(writer.sealed())
        } else {
            let password = TURNTestClient.password(of: RelayedPath.username)
            let text = Array("\(RelayedPath.username):rostrum:\(password)".utf8)
            let digest = RelayedPath.authenticator.md5(text.span)
            let key = try #require(digest)
            let writer = STUNWriter(request.kind.success, transactionID: id)
            _ = path.hear(writer.sealed(key: key, by: RelayedPath.authenticator))
        }
    }

    /// The relay would keep it for ten minutes otherwise, and it has only so many.
    @Test func `gives its address back once it has one, before it can reach its peer, too`() throws {
        var path = RelayedPath()
        path.client.giveBack(by: RelayedPath.authenticator, using: &path.random)
        try answer(&path, .unauthenticated)
        path.client.giveBack(by: RelayedPath.authenticator, using: &path.random)
        try answer(&path, nil)
        for _ in 0..<2 { path.client.giveBack(by: RelayedPath.authenticator, using: &path.random) }
        let messages = try path.client.takeMessages().map { try ReceivedSTUN($0) }
        #expect(messages.map(\.kind) == [.channelBindRequest, .refreshRequest])
        #expect(try messages.last?.number(.lifetime) == 0)
        #expect(path.client.deadline == nil)
    }

    @Test func `gives its address back where its peer was refused`() throws {
        var path = RelayedPath()
        try answer(&path, .unauthenticated)
        try answer(&path, nil)
        try answer(&path, .forbidden)
        #expect(path.client.state == .failed(code: 403))
        path.client.giveBack(by: RelayedPath.authenticator, using: &path.random)
        let messages = try path.client.takeMessages().map { try ReceivedSTUN($0) }
        #expect(messages.map(\.kind) == [.refreshRequest])
    }

    /// It would be asked without end otherwise, as fast as it answers.
    @Test func `gives up a relay that calls every nonce stale`() throws {
        var path = RelayedPath()
        try answer(&path, .unauthenticated)
        for _ in 0..<8 {
            try answer(&path, .staleNonce)
            #expect(path.client.state == .connecting)
        }
        try answer(&path, .staleNonce)
        #expect(path.client.state == .failed(code: 438))
        let rest = path.client.takeMessages()
        #expect(rest.isEmpty && path.client.deadline == nil)
    }

    @Test func `bears stale nonces now and then`() throws {
        var path = RelayedPath()
        try answer(&path, .unauthenticated)
        // The address and the channel, and then what keeps them.
        for round in 0..<6 {
            for _ in 0..<8 { try answer(&path, .staleNonce) }
            try answer(&path, nil)
            #expect(path.client.state == (round == 0 ? .connecting : .connected))
            if round.isMultiple(of: 2) { continue }
            path.client.advance(
                to: TURNTestClient.time(1_000 * Int64(round)), by: RelayedPath.authenticator,
                using: &path.random)
        }
    }

    @Test func `takes no answer that it cannot believe`() throws {
        var path = RelayedPath()
        let messages = path.client.takeMessages()
        let asked = try #require(messages.first)
        let message = try STUNMessage(parsing: asked.span)
        let forged = STUNWriter(message.kind.success, transactionID: message.transactionID)
        let heard = path.hear(forged.sealed())
        let said = path.client.takeMessages()
        #expect(heard == nil && said.isEmpty && path.client.state == .connecting)
    }
}
