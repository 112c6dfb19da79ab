import Base
import TestSupport
import Testing

@testable import Net

@Suite struct RelayPortsTests {
    private let rings = Watched(0)

    @Test func `carry datagrams both ways, and tell when something came`() throws {
        let ports = try RelayPorts()
        defer { ports.stop() }
        let port = try ports.open(at: .loopback) { [rings] in rings.change { $0 += 1 } }
        var remote = try Remote()
        ports.send([1, 2, 3], by: port, to: remote.address)
        let heard = remote.receive(1)
        #expect(heard.map(\.bytes) == [[1, 2, 3]] && heard.first?.source == port.localAddress)

        remote.send([datagram(1, size: 900), datagram(2, size: 1_200)], to: port.localAddress)
        #expect(rings.waitHere { $0 > 0 })
        var taken: [[UInt8]] = []
        var round = 0
        while taken.count < 2, rings.waitHere(until: { [round] in $0 > round }) {
            round = rings.value
            port.take().forEach { bytes, source in
                taken.append((0..<bytes.count).map { bytes[$0] })
                #expect(source == remote.address)
            }
        }
        #expect(taken == [datagram(1, size: 900), datagram(2, size: 1_200)])
        #expect(port.take().count == 0)
    }

    /// However much the thread finds at once.
    @Test func `keep so much for an owner that takes nothing`() throws {
        let ports = try RelayPorts()
        defer { ports.stop() }
        let port = try ports.open(at: .loopback) { [rings] in rings.change { $0 += 1 } }
        let isSent = Watched(false)
        // While its owner is told, the thread reads nothing.
        let other = try ports.open(at: .loopback) { [rings] in
            rings.change { $0 += 1_000 }
            _ = isSent.waitHere { $0 }
        }
        var remote = try Remote()
        remote.send([[7]], to: other.localAddress)
        #expect(rings.waitHere { $0 >= 1_000 })
        for number in 0..<20 {
            remote.send((0..<40).map { datagram(40 * number + $0, size: 1_200) }, to: port.localAddress)
        }
        isSent.change { $0 = true }
        #expect(rings.waitHere { $0 == 1_001 })
        ports.close(port)
        let kept = port.take()
        #expect(kept.count > 0 && kept.byteCount <= RelayPort.limit && kept.count + kept.dropped <= 800)
    }

    @Test func `keep so many that are empty`() {
        var kept = RelayedDatagrams()
        var arrived = RelayedDatagrams()
        let nothing: [UInt8] = []
        for _ in 0..<1_000 { arrived.append(nothing.span, from: TransportAddress(ip: .loopback, port: 1)) }
        for _ in 0..<100 { kept.append(arrived, within: RelayPort.limit) }
        #expect(kept.byteCount <= RelayPort.limit && kept.count + kept.dropped == 100_000 && kept.dropped > 0)
    }

    @Test func `hear nothing once they are closed`() throws {
        let ports = try RelayPorts()
        defer { ports.stop() }
        let port = try ports.open(at: .loopback) { [rings] in rings.change { $0 += 1 } }
        ports.close(port)
        var remote = try Remote()
        remote.send([[1]], to: port.localAddress)
        let other = try ports.open(at: .loopback) { [rings] in rings.change { $0 += 1_000 } }
        remote.send([[2]], to: other.localAddress)
        #expect(rings.waitHere { $0 >= 1_000 })
        #expect(rings.value == 1_000 && port.take().count == 0)
    }
}
