import Base
import TestSupport
import Testing

@testable import Net

@Suite struct `Routes to clients of TURN` {
    private let routes = ChannelRoutes()
    private let client = TransportAddress(ip: IPAddress(ipv4: 0xC633_6401), port: 50_000)

    private func address(_ port: UInt16) -> TransportAddress { TransportAddress(ip: .loopback, port: port) }

    private func route(_ channel: UInt16) -> ChannelRoutes.Route {
        .init(client: client, channel: channel, end: .zero + .seconds(300))
    }

    @Test func `are those of one worker, once there is a socket`() throws {
        routes.set([address(1): route(0x4000), address(2): route(0x4001)], of: address(40_000))
        routes.set([address(2): route(0x4002)], of: address(40_001))
        let early = routes.routes(of: 1)?.routes
        #expect(early == nil)
        routes.open(try DatagramSocket(bind: TransportAddress(ip: .loopback, port: 0)))
        #expect(routes.routes(of: 1)?.routes == [address(40_000): route(0x4000)])
        #expect(
            routes.routes(of: 2)?.routes == [address(40_000): route(0x4001), address(40_001): route(0x4002)])
        #expect(routes.routes(of: 3)?.routes == [:])
    }

    /// Workers copy them only where there is something new.
    @Test func `have another version where they have changed, and only there`() {
        var versions = [routes.version]
        let steps: [([TransportAddress: ChannelRoutes.Route], Bool)] = [
            ([:], false), ([address(1): route(0x4000)], true), ([address(1): route(0x4000)], false),
            ([address(1): route(0x4001)], true), ([address(2): route(0x4001)], true), ([:], true),
            ([:], false),
        ]
        for (step, isNew) in steps {
            routes.set(step, of: address(40_000))
            #expect((routes.version != versions.last) == isNew)
            #expect(!isNew || !versions.contains(routes.version))
            versions.append(routes.version)
        }
    }

    @Test func `count what was sent by them`() {
        routes.count(datagrams: 1, bytes: 2, dropped: 3)
        routes.count(datagrams: 10, bytes: 20, dropped: 30)
        #expect(routes.counters == (11, 22, 33))
    }
}

@Suite struct `Datagrams that wait in a relay port` {
    @Test(arguments: 0..<20 as Range<UInt64>)
    func `are the first ones that fit, in their order`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let limit = Int.random(in: 500...5_000, using: &random)
        var kept = RelayedDatagrams()
        var expected: [[UInt8]] = []
        var (room, dropped, stride) = (limit, 0, 0)
        for round in 0..<20 {
            var arrived = RelayedDatagrams()
            let datagrams = (0..<Int.random(in: 0...8, using: &random)).map {
                datagram(round * 10 + $0, size: Int.random(in: 0...300, using: &random))
            }
            for datagram in datagrams {
                arrived.append(datagram.span, from: TransportAddress(ip: .loopback, port: 1))
            }
            if !datagrams.isEmpty, stride == 0 {
                // What each takes besides its bytes.
                let all = datagrams.reduce(0) { $0 + $1.count }
                stride = (arrived.byteCount - all) / datagrams.count
                #expect(stride > 0)
            }
            kept.append(arrived, within: limit)
            for (index, datagram) in datagrams.enumerated() {
                guard room >= datagram.count + stride else {
                    dropped += datagrams.count - index
                    break
                }
                room -= datagram.count + stride
                expected.append(datagram)
            }
            #expect(kept.byteCount == limit - room && kept.byteCount <= limit)
            #expect(kept.count == expected.count && kept.dropped == dropped)
        }
        var found: [[UInt8]] = []
        kept.forEach { bytes, _ in found.append((0..<bytes.count).map { bytes[$0] }) }
        #expect(found == expected)
    }
}
