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

    @Test func `keep so much for an owner that takes nothing`() throws {
        let ports = try RelayPorts()
        defer { ports.stop() }
        let port = try ports.open(at: .loopback) { [rings] in rings.change { $0 += 1 } }
        let other = try ports.open(at: .loopback) { [rings] in rings.change { $0 += 1_000 } }
        var remote = try Remote()
        for number in 0..<20 {
            remote.send((0..<40).map { datagram(40 * number + $0, size: 1_200) }, to: port.localAddress)
        }
        remote.send([[7]], to: other.localAddress)
        #expect(rings.waitHere { $0 >= 1_000 })
        ports.close(port)
        let kept = port.take()
        #expect(kept.count <= (512 << 10) / 1_200 && kept.count > 0)
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
