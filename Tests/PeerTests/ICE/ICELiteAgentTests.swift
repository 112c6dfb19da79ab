import Base
@testable import Peer
import TestSupport
import Testing
import Wire

private typealias Client = ICETestClient

private func address(_ port: UInt16) -> TransportAddress { Client.address(port) }

@Suite struct ICEChecks {
    private var client = ICETestClient()

    @Test mutating func `admit their address every time`() throws {
        let check = Client.check().sealed(key: Client.first.key, by: SHA1Authenticator())
        for time in Int64(0)..<3 {
            let effects = try client.receive(check, at: time)
            #expect(effects.dropFirst() == [.admit(address(1))])
        }
        #expect(client.agent.addresses == [address(1)])
        #expect(client.agent.selected == nil)
    }

    @Test mutating func `let media flow once they nominate`() throws {
        _ = try client.check(from: 1, nominates: false, at: 0)
        #expect(try client.check(from: 1, at: 10) == [.nominate(address(1))])
        #expect(client.agent.selected == address(1))
        #expect(try client.check(from: 1, at: 20) == [])
    }

    @Test mutating func `may come without a role`() throws {
        var writer = STUNWriter(.bindingRequest, transactionID: .init(high: 0, low: 0))
        writer.appendUsername(Client.first.ufrag + ":x")
        writer.append(.priority, Client.high)
        let effects = try client.receive(writer.sealed(key: Client.first.key, by: SHA1Authenticator()))
        #expect(effects.count == 2)
    }

    @Test mutating func `may carry optional attributes of browsers`() throws {
        let check = Client.check { writer in
            writer.append(STUNAttribute(rawValue: 0xC057), [0, 1, 0, 10])
            writer.append(STUNAttribute(rawValue: 0xC001), [0, 0, 0, 1])
        }
        let effects = try client.receive(check.sealed(key: Client.first.key, by: SHA1Authenticator()))
        #expect(effects.count == 2)
    }

    @Test mutating func `from more than eight addresses push out the quietest`() throws {
        for port in UInt16(1)...8 { _ = try client.check(from: port, nominates: port == 1, at: Int64(port)) }
        _ = try client.check(from: 2, nominates: false, at: 20)
        _ = client.traffic(from: 3, at: 21)
        #expect(
            try client.check(from: 9, nominates: false, at: 30) == [.dismiss(address(4))])
        #expect(client.agent.addresses.count == 8)
        #expect(client.agent.selected == address(1))
    }

    @Test mutating func `never push out the selected address`() throws {
        _ = try client.check(from: 1, at: 0)
        for port in UInt16(2)...40 { _ = try client.check(from: port, nominates: false, at: Int64(port)) }
        #expect(client.agent.addresses.count == 8)
        #expect(client.agent.addresses.contains(address(1)))
        #expect(client.agent.selected == address(1))
    }
}

@Suite struct ICEConsent {
    private var client = ICETestClient()

    @Test mutating func `is waited for from the start`() {
        #expect(client.agent.deadline == Client.time(10_000))
        #expect(client.advance(to: 9_999) == [])
        #expect(client.advance(to: 10_000) == [.consentLost])
    }

    @Test mutating func `is renewed by every check`() throws {
        _ = try client.check(from: 1, at: 1_000)
        #expect(client.agent.deadline == Client.time(31_000))
        _ = try client.check(from: 2, nominates: false, at: 9_000)
        #expect(client.agent.lastConsent == Client.time(9_000))
        #expect(client.agent.deadline == Client.time(39_000))
    }

    @Test mutating func `is renewed by traffic from known addresses only`() throws {
        _ = try client.check(from: 1, at: 0)
        _ = client.traffic(from: 1, at: 5_000)
        _ = client.traffic(from: 2, at: 6_000)
        #expect(client.agent.lastConsent == Client.time(5_000))
        #expect(client.advance(to: 34_999) == [])
        #expect(client.advance(to: 35_000) == [.consentLost])
    }

    @Test mutating func `is lost once and for all`() throws {
        _ = try client.check(from: 1, at: 0)
        #expect(client.advance(to: 30_000) == [.consentLost])
        #expect(client.advance(to: 30_001) == [])
        #expect(client.agent.deadline == nil)
        #expect(client.traffic(from: 1, at: 30_002) == nil)
        let check = Client.check().sealed(key: Client.first.key, by: SHA1Authenticator())
        #expect(throws: ICELiteAgent.Refusal(reason: .consentLost, answer: nil)) {
            try client.receive(check, at: 30_003)
        }
    }

    @Test func `may be waited for as long as one likes`() throws {
        var configuration = ICELiteAgent.Configuration()
        configuration.consentTimeout = .seconds(40)
        configuration.connectTimeout = .seconds(5)
        var client = ICETestClient(configuration)
        #expect(client.agent.deadline == Client.time(5_000))
        _ = try client.check(from: 1, at: 0)
        #expect(client.agent.deadline == Client.time(40_000))
    }
}

@Suite struct ICERestart {
    private var client = ICETestClient()

    @Test mutating func `accepts old and new credentials until the new ones are used`() throws {
        _ = try client.check(from: 1, at: 0)
        #expect(client.restart(with: Client.second) == [])
        #expect(client.agent.localUfrags == [Client.first.ufrag, Client.second.ufrag])
        #expect(try client.check(from: 1, at: 10) == [])
        #expect(client.agent.selected == address(1))
        #expect(
            try client.check(from: 2, nominates: false, with: Client.second, at: 20)
                == [.retire(ufrag: Client.first.ufrag)])
        #expect(client.agent.localUfrags == [Client.second.ufrag])
        #expect(throws: ICELiteAgent.Refusal(reason: .unknownUfrag, answer: nil)) {
            try client.check(from: 1, at: 30)
        }
    }

    @Test mutating func `keeps media where it is until the next nomination`() throws {
        _ = try client.check(from: 1, at: 0)
        _ = client.restart(with: Client.second)
        _ = try client.check(from: 2, priority: 1, nominates: false, with: Client.second, at: 10)
        #expect(client.agent.selected == address(1))
        #expect(
            try client.check(from: 2, priority: 1, with: Client.second, at: 20) == [.nominate(address(2))])
    }

    @Test mutating func `forgets the nomination of an address that is checked again`() throws {
        _ = try client.check(from: 1, at: 0)
        _ = client.restart(with: Client.second)
        _ = try client.check(from: 1, nominates: false, with: Client.second, at: 10)
        #expect(client.agent.selected == address(1))
        #expect(
            try client.check(from: 2, priority: Client.low, with: Client.second, at: 20)
                == [.nominate(address(2))])
    }

    @Test mutating func `is not led back by packets on the old path`() throws {
        _ = try client.check(from: 1, at: 0)
        _ = client.restart(with: Client.second)
        _ = try client.check(from: 2, with: Client.second, at: 1_000)
        #expect(client.traffic(from: 1, at: 2_000) == nil)
        #expect(client.advance(to: 3_000) == [])
        #expect(client.agent.selected == address(2))
    }

    @Test mutating func `that is restarted drops the credentials nobody used`() throws {
        #expect(client.restart(with: Client.second) == [])
        #expect(client.restart(with: Client.third) == [.retire(ufrag: Client.second.ufrag)])
        #expect(client.agent.localUfrags == [Client.first.ufrag, Client.third.ufrag])
        #expect(throws: ICELiteAgent.Refusal(reason: .unknownUfrag, answer: nil)) {
            try client.check(from: 1, with: Client.second, at: 0)
        }
    }

    @Test mutating func `needs the new password for the new ufrag`() throws {
        _ = client.restart(with: Client.second)
        let mixed = Client.check(with: Client.second).sealed(key: Client.first.key, by: SHA1Authenticator())
        let refusal = #expect(throws: ICELiteAgent.Refusal.self) { try client.receive(mixed) }
        #expect(refusal?.reason == .unauthenticated)
    }
}

@Suite struct ICELiteAgentTests {
    /// Whatever a client does, what the effects say agrees with what the agent says.
    @Test(arguments: 0..<50 as Range<UInt64>) func `tells every change of its addresses`(seed: UInt64) throws
    {
        var random = SeededGenerator(seed: seed)
        var client = ICETestClient()
        var known: Set<TransportAddress> = []
        var selected: TransportAddress?
        var now: Int64 = 0
        func follow(_ effects: [ICELiteAgent.Effect]) {
            for effect in effects {
                switch effect {
                case .admit(let address): known.insert(address)
                case .dismiss(let address):
                    #expect(known.remove(address) != nil)
                    #expect(address != selected)
                case .nominate(let address):
                    #expect(known.contains(address))
                    #expect(address != selected)
                    selected = address
                case .abandon: selected = nil
                case .send, .retire, .consentLost: Issue.record("not expected here: \(effect)")
                }
            }
        }
        for _ in 0..<300 {
            now += Int64.random(in: 0...400, using: &random)
            let port = UInt16.random(in: 1...12, using: &random)
            switch Int.random(in: 0..<5, using: &random) {
            case 2: follow(client.agent.lose(Client.address(port), at: Client.time(now)))
            case 0: follow(client.traffic(from: port, at: now).map { [$0] } ?? [])
            case 1:
                follow(client.advance(to: now))
                if let deadline = client.agent.deadline { #expect(deadline > Client.time(now)) }
            default:
                let priority = UInt32.random(in: 1...3, using: &random)
                follow(
                    try client.effectsOfCheck(
                        from: port, priority: priority, nominates: .random(using: &random), at: now))
            }
            #expect(Set(client.agent.addresses) == known)
            #expect(client.agent.selected == selected)
            #expect(known.count <= 8)
        }
    }
}
