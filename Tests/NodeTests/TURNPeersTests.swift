import Base
import Testing

@testable import Node

private func ip(_ text: String) -> IPAddress { TransportAddress("\(text):1")?.ip ?? .any }

private func address(_ text: String) -> TransportAddress {
    TransportAddress(text) ?? TransportAddress(ip: .any, port: 0)
}

@Suite struct TURNPeersTests {
    private func workers(_ bound: String, _ advertised: [String], count: UInt16 = 2) -> [TURNPeers.Worker] {
        (0..<count).map { number in
            TURNPeers.Worker(
                bound: TransportAddress(ip: ip(bound), port: 7_000 + number),
                advertised: advertised.map { TransportAddress(ip: ip($0), port: 7_000 + number) })
        }
    }

    @Test func `are the workers at their public address, and reached at a local one`() {
        let peers = TURNPeers(
            workers("0.0.0.0", ["203.0.113.7", "10.0.0.5", "127.0.0.1"]), local: [ip("10.0.0.5")])
        #expect(peers.named == [address("203.0.113.7:7000"), address("203.0.113.7:7001")])
        #expect(peers.relayed(isIPv4: true) == ip("10.0.0.5"))
        #expect(peers.target(of: address("203.0.113.7:7001")) == address("10.0.0.5:7001"))
        #expect(peers.name(of: address("10.0.0.5:7001")) == address("203.0.113.7:7001"))
    }

    @Test func `no other address is a peer`() {
        let peers = TURNPeers(workers("0.0.0.0", ["203.0.113.7"]), local: [ip("10.0.0.5")])
        for stranger in ["203.0.113.7:22", "203.0.113.8:7000", "10.0.0.5:7000", "127.0.0.1:7000"] {
            #expect(peers.target(of: address(stranger)) == nil)
        }
        #expect(peers.name(of: address("10.0.0.6:7000")) == nil)
    }

    @Test func `are at loopback where there is nothing else`() {
        let peers = TURNPeers(workers("127.0.0.1", ["127.0.0.1"], count: 1), local: [ip("127.0.0.1")])
        #expect(peers.named == [address("127.0.0.1:7000")])
        #expect(peers.target(of: address("127.0.0.1:7000")) == address("127.0.0.1:7000"))
    }

    @Test func `have both families where the socket has`() {
        let peers = TURNPeers(
            workers("[::]", ["203.0.113.7", "[2001:db8::7]"], count: 1),
            local: [ip("10.0.0.5"), ip("[fd00::5]")])
        #expect(peers.named == [address("203.0.113.7:7000"), address("[2001:db8::7]:7000")])
        #expect(peers.target(of: address("[2001:db8::7]:7000")) == address("[fd00::5]:7000"))
        let onlyIPv4 = TURNPeers(workers("0.0.0.0", ["203.0.113.7"]), local: [ip("10.0.0.5")])
        #expect(onlyIPv4.relayed(isIPv4: false) == nil)
    }
}
