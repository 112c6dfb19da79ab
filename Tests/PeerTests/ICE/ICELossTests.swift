import Base
@testable import Peer
import TestSupport
import Testing
import Wire

private typealias Client = ICETestClient

private func address(_ port: UInt16) -> TransportAddress { Client.address(port) }

@Suite struct `The loss of an ICE address` {
    private var client = ICETestClient()

    @Test mutating func `losing the selected address moves media to the one used last`() throws {
        for port: UInt16 in 1...3 {
            _ = try client.check(from: port, priority: UInt32(port) * 1_000, at: Int64(port))
        }
        #expect(
            client.agent.lose(address(3), at: Client.time(10)) == [
                .nominate(address(2)), .dismiss(address(3)),
            ])
        #expect(client.agent.addresses == [address(1), address(2)])
    }

    @Test mutating func `losing the only nominated address moves media to a checked one`() throws {
        _ = try client.check(from: 1, at: 0)
        _ = try client.check(from: 2, nominates: false, at: 1)
        _ = try client.check(from: 3, nominates: false, at: 2)
        #expect(
            client.agent.lose(address(1), at: Client.time(10)) == [
                .nominate(address(3)), .dismiss(address(1)),
            ])
    }

    @Test mutating func `losing the only address leaves none until the next nomination`() throws {
        _ = try client.check(from: 1, at: 1_000)
        #expect(client.agent.lose(address(1), at: Client.time(1_100)) == [.abandon, .dismiss(address(1))])
        #expect(client.agent.selected == nil)
        #expect(client.agent.addresses.isEmpty)
        #expect(client.traffic(from: 1, at: 1_200) == nil)
        #expect(try client.check(from: 2, priority: Client.low, at: 1_500) == [.nominate(address(2))])
    }

    @Test mutating func `losing an address does not lengthen the time until consent is lost`() throws {
        _ = try client.check(from: 1, at: 1_000)
        _ = client.agent.lose(address(1), at: Client.time(1_100))
        #expect(client.agent.deadline == Client.time(31_000))
        #expect(client.advance(to: 30_999) == [])
        #expect(client.advance(to: 31_000) == [.consentLost])
    }

    @Test mutating func `losing an address that was not selected changes nothing else`() throws {
        _ = try client.check(from: 1, at: 0)
        _ = try client.check(from: 2, nominates: false, at: 1)
        #expect(client.agent.lose(address(2), at: Client.time(2)) == [.dismiss(address(2))])
        #expect(client.agent.selected == address(1))
    }

    @Test mutating func `losing an unknown address changes nothing`() throws {
        _ = try client.check(from: 1, at: 0)
        #expect(client.agent.lose(address(9), at: Client.time(2)) == [])
        #expect(client.agent.lose(address(1).over(.tcp), at: Client.time(2)) == [])
        #expect(client.agent.selected == address(1))
    }
}

@Suite struct `A TCP address` {
    private let tcp = ICETestClient.address(1).over(.tcp)

    private func check(
        _ agent: inout ICELiteAgent, from source: TransportAddress, priority: UInt32, at time: Int64
    ) throws {
        var random = SeededGenerator(seed: UInt64(time))
        func receive(_ bytes: [UInt8]) throws {
            let effects = try agent.receive(
                bytes.span, from: source, at: Client.time(time), authenticator: SHA1Authenticator(),
                using: &random)
            for case .send(let bytes, source) in effects {
                let request = try ReceivedSTUN(bytes)
                guard request.message.kind == .bindingRequest else { continue }
                #expect(source.transport == .udp)
                try receive(Client.answer(to: request))
            }
        }
        try receive(
            Client.check(priority: priority, nominates: true)
                .sealed(key: Client.first.key, by: SHA1Authenticator()))
    }

    @Test(arguments: [true, false]) func `yields to UDP when both are nominated`(tcpFirst: Bool) throws {
        var agent = ICETestClient().agent
        let udp = address(1)
        // As a browser's candidates have them (RFC 6544 §4.2): 126 and 90 are the type preferences.
        let order = [(udp, UInt32(126) << 24), (tcp, UInt32(90) << 24)]
        for (index, (source, priority)) in (tcpFirst ? order.reversed() : order).enumerated() {
            try check(&agent, from: source, priority: priority, at: Int64(index) * 20)
        }
        #expect(agent.addresses.count == 2)
        #expect(agent.selected == udp)
    }
}
