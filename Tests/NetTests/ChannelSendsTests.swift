import Base
import Crypto
import Testing

@testable import Net

/// A worker's batch, a TURN port and the table between them.
private final class Relay {
    static let end = MonotonicTime.zero + .seconds(100)

    let routes = ChannelRoutes()
    let worker: DatagramSocket
    let port: DatagramSocket
    private var batch: SendBatch

    init(_ capacity: SendBatch.Capacity = .init()) throws {
        let address = TransportAddress(ip: .loopback, port: 0)
        worker = try DatagramSocket(bind: address)
        port = try DatagramSocket(bind: address)
        batch = SendBatch(socket: worker, streams: nil, routes: routes, capacity: capacity, hashKey: 7)
    }

    var counters: TrafficCounters { batch.counters }

    func route(_ relayed: TransportAddress, to client: TransportAddress, channel: UInt16 = 0x4001) {
        let route = ChannelRoutes.Route(client: client, channel: channel, end: Self.end)
        routes.set([worker.localAddress: route], of: relayed)
    }

    /// All datagrams at once, and one by itself before and after.
    func send(_ datagrams: [[UInt8]], to address: TransportAddress, at now: MonotonicTime = .zero) {
        batch.begin(at: now)
        batch.append(datagrams[0], to: address)
        batch.append(datagrams.count, to: address, capacity: 1_300) { number, span in
            for (index, byte) in datagrams[number].enumerated() { span[index] = byte }
            return EncryptedPacket(length: datagrams[number].count)
        }
        batch.append(datagrams[0], to: address)
        batch.flush(at: now)
    }
}

@Suite struct ChannelSendsTests {
    private static let datagrams = [datagram(1, size: 700), datagram(2, size: 700), datagram(3, size: 261)]
    private static let sent = [0, 0, 1, 2, 0].map { datagrams[$0] }

    private static func inChannel(_ datagram: [UInt8]) -> [UInt8] {
        [0x40, 0x01, UInt8(datagram.count >> 8), UInt8(datagram.count & 0xFF)] + datagram
    }

    @Test func `go from the port to the client`() throws {
        var client = try Remote()
        var relayed = try Remote()
        let relay = try Relay()
        relay.routes.open(relay.port)
        relay.route(relayed.address, to: client.address)
        relay.send(Self.datagrams, to: relayed.address)
        let heard = client.receive(5)
        #expect(heard.map(\.bytes) == Self.sent.map(Self.inChannel))
        #expect(heard.allSatisfy { $0.source == relay.port.localAddress })
        #expect(relayed.receiveWaiting().isEmpty)
        let bytes = UInt64(Self.sent.reduce(0) { $0 + $1.count })
        #expect(relay.routes.counters == (5, bytes, 0))
        #expect(relay.counters.datagramsOut == 5 && relay.counters.bytesOut == bytes + 20)
        // 700 twice and 261, and 700 again, as they would go without.
        if relay.port.canSegment { #expect(relay.counters.messagesOut == 2) }
    }

    @Test func `go to the address where there is no route, or none any more`() throws {
        var client = try Remote()
        var relayed = try Remote()
        let relay = try Relay()
        func expectAtAddress(at second: Int64, _ why: Comment) {
            relay.send(Self.datagrams, to: relayed.address, at: .zero + .seconds(second))
            #expect(relayed.receive(5).map(\.bytes) == Self.sent, why)
        }
        relay.route(relayed.address, to: client.address)
        expectAtAddress(at: 0, "The port is not open.")
        relay.routes.open(relay.port)
        relay.routes.set([:], of: relayed.address)
        expectAtAddress(at: 1, "It was taken away.")
        let elsewhere = ChannelRoutes.Route(client: client.address, channel: 0x4001, end: Relay.end)
        relay.routes.set([relay.port.localAddress: elsewhere], of: relayed.address)
        expectAtAddress(at: 2, "It is another worker's.")
        relay.route(relayed.address, to: client.address)
        expectAtAddress(at: 100, "Its time is over.")
        #expect(client.receiveWaiting().isEmpty && relay.routes.counters.datagrams == 0)
    }

    /// So that clients who refresh all the time do not make workers copy all the time.
    @Test func `follow changes fifty times a second at most`() throws {
        var first = try Remote()
        var second = try Remote()
        let relayed = try Remote()
        let relay = try Relay()
        relay.routes.open(relay.port)
        relay.route(relayed.address, to: first.address)
        relay.send([[1]], to: relayed.address)
        relay.route(relayed.address, to: second.address)
        relay.send([[2]], to: relayed.address, at: .zero + .milliseconds(19))
        relay.send([[3]], to: relayed.address, at: .zero + .milliseconds(20))
        #expect(first.receive(6).map { $0.bytes[4] } == [1, 1, 1, 2, 2, 2])
        #expect(second.receive(3).map { $0.bytes[4] } == [3, 3, 3])
    }

    @Test func `are lost and counted where the arena has no room`() throws {
        var client = try Remote()
        let relayed = try Remote()
        var capacity = SendBatch.Capacity()
        capacity.bytes = 3_000
        let relay = try Relay(capacity)
        relay.routes.open(relay.port)
        relay.route(relayed.address, to: client.address)
        relay.send(Self.datagrams, to: relayed.address)
        // Three of up to 1,304 bytes never fit.
        #expect(client.receive(2).map(\.bytes) == [0, 0].map { Self.inChannel(Self.datagrams[$0]) })
        #expect(relay.routes.counters.dropped == 3 && relay.counters.droppedBufferFull == 3)
    }
}
