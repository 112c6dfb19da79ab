import Base
import Peer
import Testing

@testable import Net

@Suite struct `A datagram to an IPv6 address` {
    /// An IPv6 address whose last four bytes are those of an IPv4 address.
    private static func lookalike(of address: TransportAddress) -> TransportAddress {
        let ip = IPAddress(high: 0x2001_0DB8_0000_0000, low: UInt64(address.ip.ipv4 ?? 0))
        return TransportAddress(ip: ip, port: address.port)
    }

    @Test func `does not go to the IPv4 address of its last bytes, and holds up no others`() throws {
        var remote = try Remote()
        let sender = try Sender()
        sender.append(datagram(1, size: 100), to: remote.address)
        sender.append(datagram(2, size: 100), to: Self.lookalike(of: remote.address))
        sender.append(datagram(3, size: 90), to: remote.address)
        sender.flush()
        #expect(remote.receiveWaiting().map(\.bytes) == [datagram(1, size: 100), datagram(3, size: 90)])
        #expect(sender.counters.droppedUnreachable == 1 && sender.counters.datagramsOut == 2)
        #expect(!sender.isBlocked)
    }

    @Test func `does not go there after datagrams to that address have used the same memory`() throws {
        var remote = try Remote()
        let sender = try Sender()
        for number in 0..<3 {
            sender.append(datagram(number, size: 50), to: remote.address)
            sender.flush()
            sender.append(datagram(99, size: 50), to: Self.lookalike(of: remote.address))
            sender.flush()
        }
        let numbers = remote.receiveWaiting().map { $0.bytes[3] }
        #expect(numbers == [0, 1, 2])
        #expect(sender.counters.droppedUnreachable == 3)
    }

    @Test func `does not go there by itself either`() throws {
        var remote = try Remote()
        let socket = try DatagramSocket(bind: TransportAddress(ip: .loopback, port: 0))
        let buffer = DirectSinkBuffer()
        var sink = DirectSink(socket: socket, buffer: buffer)
        sink.append([1, 2, 3], to: Self.lookalike(of: remote.address))
        sink.append([4], to: remote.address)
        #expect(remote.receiveWaiting().map(\.bytes) == [[4]])
        #expect(buffer.counters.datagramsOut == 1 && buffer.counters.droppedOther == 1)
    }
}
