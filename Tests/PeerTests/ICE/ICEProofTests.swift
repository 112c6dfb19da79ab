import Base
@testable import Peer
import TestSupport
import Testing
import Wire

private typealias Client = ICETestClient

private func address(_ port: UInt16) -> TransportAddress { Client.address(port) }

/// An attacker who forges source addresses can send checks in the name of a victim.
@Suite struct `The proof of an ICE address` {
    /// Media goes to port 1, and nobody answers anywhere else.
    private var client = ICETestClient()

    init() throws {
        _ = try client.check(from: 1, at: 0)
        #expect(client.agent.selected == address(1))
        client.answersRequests = false
    }

    private func ports(of requests: [(message: ReceivedSTUN, destination: TransportAddress)]) -> [UInt16] {
        requests.map(\.destination.port)
    }

    @Test mutating func `is asked for at once, by a request that only a full agent answers`() throws {
        #expect(try client.check(from: 2, at: 1_000) == [])
        #expect(client.agent.selected == address(1))
        #expect(ports(of: client.requests) == [1, 2])
        let (request, destination) = try #require(client.requests.last)
        #expect(destination == address(2))
        #expect(request.username == "client:srv1AAAA")
        #expect(request.isAuthentic(key: Client.own.key))
        #expect(request.fingerprint == .right)
        #expect(request.message.iceControlled != nil)
        #expect(request.message.priority != nil)
        #expect(!request.message.useCandidate)
        #expect(request.bytes.count <= 100)
        let answer = Client.answer(to: request)
        #expect(try client.receive(answer, from: 2, at: 1_050) == [.nominate(address(2))])
        #expect(client.agent.selected == address(2))
    }

    @Test mutating func `is asked for three times, and once more with each further check`() throws {
        _ = try client.check(from: 2, at: 10_000)
        #expect(client.agent.deadline == Client.time(10_100))
        #expect(client.advance(to: 10_099) == [])
        #expect(ports(of: client.requests) == [1, 2])
        _ = client.advance(to: 10_100)
        #expect(client.agent.deadline == Client.time(10_300))
        _ = client.advance(to: 10_300)
        #expect(ports(of: client.requests) == [1, 2, 2, 2])
        #expect(Set(client.requests.dropFirst().map(\.message.message.transactionID)).count == 1)
        _ = client.advance(to: 12_000)
        #expect(ports(of: client.requests) == [1, 2, 2, 2])
        for time in stride(from: Int64(12_000), to: 14_500, by: 500) {
            _ = try client.check(from: 2, at: time)
            _ = client.advance(to: time + 450)
        }
        #expect(client.requests.count == 4 + 5)
        #expect(client.agent.selected == address(1))
    }

    /// By a client that a NAT gave another port, and that does not check it.
    @Test mutating func `is asked for after one packet, and not after more`() throws {
        #expect(try client.stray(from: 2, at: 1_000) == [.admit(address(2))])
        #expect(ports(of: client.requests) == [1, 2])
        for time in stride(from: Int64(1_020), to: 5_000, by: 20) {
            #expect(try client.stray(from: 2, at: time) == [])
            #expect(client.traffic(from: 2, at: time) == nil)
            _ = client.advance(to: time)
        }
        #expect(ports(of: client.requests) == [1, 2, 2, 2])
        #expect(client.agent.selected == address(1))
        let request = try #require(client.requests.last).message
        // It answers in the end, and has been used since.
        let moved = try client.receive(Client.answer(to: request), from: 2, at: 5_010)
        #expect(moved == [.nominate(address(2))])
    }

    @Test mutating func `is not asked for by a packet before the handshake`() throws {
        client = ICETestClient(hasHandshake: false)
        _ = try client.check(from: 1, at: 0)
        #expect(try client.stray(from: 2, at: 1_000) == [])
        #expect(client.agent.addresses == [address(1)])
    }

    @Test mutating func `is asked for five times a second at most, of however many addresses`() throws {
        for step in Int64(0)..<400 {
            _ = try client.check(from: UInt16(100 + step), at: 1_000 + step * 10)
            _ = client.advance(to: 1_005 + step * 10)
        }
        // The first one was the client's own.
        #expect(client.requests.count - 1 <= 4 * BindingRequester.requestsPerSecond)
        #expect(client.requests.count > 10)
        #expect(client.agent.selected == address(1))
        #expect(client.agent.addresses.contains(address(1)))
    }

    @Test mutating func `is not given by packets, which a forger can send too`() throws {
        for time in stride(from: Int64(1_000), to: 14_000, by: 20) {
            if time % 1_000 == 0 { _ = try client.check(from: 9, at: time) }
            #expect(client.traffic(from: 9, at: time) == nil)
            #expect(client.advance(to: time) == [])
        }
        #expect(client.agent.selected == address(1))
    }

    @Test mutating func `only the answer to its own request proves an address`() throws {
        _ = try client.check(from: 2, at: 1_000)
        let request = try #require(client.requests.last).message
        let stranger = Client.check(number: 99).sealed(key: Client.own.key, by: SHA1Authenticator())
        let another = try ReceivedSTUN(stranger)
        var wrong = [
            Client.answer(to: another), Client.answer(to: request, with: Client.first),
            Client.answer(to: request, kind: .bindingError),
            Client.answer(to: request, kind: .bindingIndication),
            Client.answer(to: request) { $0.append(STUNAttribute(rawValue: 0x7F01), [1, 2, 3, 4]) },
            STUNWriter(.bindingSuccess, transactionID: request.message.transactionID).sealed(),
        ]
        let right = Client.answer(to: request)
        wrong += right.indices.map { Array(right[..<$0]) }
        // An answer cut before its FINGERPRINT would be valid.
        wrong += (0..<(right.count - 8) * 8).map { bit in
            var changed = right
            changed[bit / 8] ^= 1 << UInt8(bit % 8)
            return changed
        }
        for bytes in wrong {
            #expect(throws: ICELiteAgent.Refusal.self) { try client.receive(bytes, from: 2, at: 1_010) }
        }
        for port: UInt16 in [1, 3] {
            #expect(throws: ICELiteAgent.Refusal.self) { try client.receive(right, from: port, at: 1_010) }
        }
        #expect(client.agent.selected == address(1))
        #expect(try client.receive(right, from: 2, at: 1_020) == [.nominate(address(2))])
        #expect(throws: ICELiteAgent.Refusal.self) { try client.receive(right, from: 2, at: 1_030) }
    }

    @Test mutating func `a proof that comes too late for one nomination counts for the next`() throws {
        _ = try client.check(from: 2, at: 1_000)
        let request = try #require(client.requests.last).message
        _ = client.traffic(from: 1, at: 2_900)
        #expect(try client.receive(Client.answer(to: request), from: 2, at: 3_000) == [])
        #expect(client.agent.selected == address(1))
        let asked = client.requests.count
        #expect(try client.check(from: 2, at: 3_500) == [.nominate(address(2))])
        #expect(client.requests.count == asked)
    }

    @Test mutating func `of two proven addresses, the one with the higher priority is selected`() throws {
        _ = try client.check(from: 2, priority: Client.high + 2, at: 1_000)
        _ = try client.check(from: 3, priority: Client.high + 1, at: 1_001)
        let requests = client.requests.suffix(2)
        #expect(requests.map(\.destination.port) == [2, 3])
        for request in requests.reversed() {
            _ = try client.receive(
                Client.answer(to: request.message), from: request.destination.port, at: 1_050)
        }
        #expect(client.agent.selected == address(2))
    }

    @Test mutating func `checks from an unproven address do not keep a session alive`() throws {
        for time in stride(from: Int64(1_000), to: 30_000, by: 1_000) {
            _ = try client.check(from: 9, at: time)
            _ = client.traffic(from: 9, at: time)
        }
        #expect(client.agent.lastHeard(from: address(9)) == nil)
        #expect(client.advance(to: 29_999) == [])
        #expect(client.advance(to: 30_000) == [.consentLost])
    }

    @Test mutating func `no proof is requested if the request would be longer than the check`() throws {
        var random = SeededGenerator(seed: 1)
        let long = ICECredentials(
            ufrag: String(repeating: "x", count: 256), password: Secret("password-of-the-client"))
        var agent = ICELiteAgent(credentials: Client.first, remote: long, at: Client.time(0))
        _ = agent.noteHandshake(through: nil, at: Client.time(0))
        let check = Client.check(nominates: true).sealed(key: Client.first.key, by: SHA1Authenticator())
        let effects = try agent.receive(
            check.span, from: address(2), at: Client.time(0), authenticator: SHA1Authenticator(),
            using: &random)
        #expect(effects.count == 2)
        #expect(effects.last == .admit(address(2)))
    }
}

@Suite struct `The proof of the first ICE address` {
    private var client = ICETestClient(hasHandshake: false)

    @Test mutating func `is the handshake`() throws {
        #expect(try client.check(from: 1, at: 0) == [])
        #expect(client.agent.selected == nil)
        #expect(client.agent.nominated == address(1))
        #expect(
            client.agent.noteHandshake(through: address(1), at: Client.time(100)) == [.nominate(address(1))])
        #expect(try client.check(from: 1, at: 2_500) == [])
        #expect(client.requests.isEmpty)
    }

    @Test mutating func `is the handshake of somebody who has not nominated, too`() throws {
        _ = try client.check(from: 1, nominates: false, at: 0)
        #expect(client.agent.nominated == nil)
        #expect(
            client.agent.noteHandshake(through: address(1), at: Client.time(100)) == [.nominate(address(1))])
    }

    @Test mutating func `is an answer where the handshake went to several addresses`() throws {
        _ = try client.check(from: 1, at: 0)
        #expect(client.agent.noteHandshake(through: nil, at: Client.time(100)) == [])
        #expect(client.requests.isEmpty)
        #expect(client.agent.deadline == Client.time(100))
        #expect(client.advance(to: 100) == [.nominate(address(1))])
        #expect(client.requests.count == 1)
    }

    @Test mutating func `is asked for before the handshake ends once a second address is nominated`() throws {
        _ = try client.check(from: 1, at: 0)
        #expect(try client.check(from: 2, at: 20) == [.nominate(address(2))])
        #expect(client.requests.map(\.destination) == [address(2)])
    }

    @Test mutating func `is the connection, over TCP`() throws {
        let tcp = address(1).over(.tcp)
        var random = SeededGenerator(seed: 1)
        let check = Client.check(nominates: true).sealed(key: Client.first.key, by: SHA1Authenticator())
        let effects = try client.agent.receive(
            check.span, from: tcp, at: Client.time(0), authenticator: SHA1Authenticator(), using: &random)
        #expect(effects.dropFirst() == [.admit(tcp), .nominate(tcp)])
        #expect(client.agent.selected == tcp)
    }
}
