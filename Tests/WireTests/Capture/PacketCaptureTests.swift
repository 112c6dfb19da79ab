import Base
import TestSupport
import Testing

@testable import Wire

@Suite struct `A packet capture` {
    private let server = TransportAddress(ip: .loopback, port: 7_000)
    private let client = TransportAddress(ip: IPAddress(ipv4: 0xC000_0205), port: 50_000)

    @Test func `begins with pcap's header`() {
        #expect(
            PacketCapture().bytes == [
                0x4D, 0x3C, 0xB2, 0xA1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0, 0, 101, 0, 0, 0,
            ])
    }

    @Test func `says how long each packet was, and when it passed`() {
        var capture = PacketCapture()
        let head: [UInt8] = [0x80, 96, 0, 7]
        capture.append(
            head.span, of: 1_000, from: client, to: server, at: 1_800_000_000_000_000_005)
        let expected: [UInt8] = [
            // 1,800,000,000 s and 5 ns; 32 bytes here of 1,028.
            0x00, 0xD2, 0x49, 0x6B, 5, 0, 0, 0, 32, 0, 0, 0, 0x04, 0x04, 0, 0,
            0x45, 0, 0x04, 0x04, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 192, 0, 2, 5, 127, 0, 0, 1,
            0xC3, 0x50, 0x1B, 0x58, 0x03, 0xF0, 0, 0, 0x80, 96, 0, 7,
        ]
        #expect(Array(capture.bytes.dropFirst(24)) == expected)
        #expect(capture.count == 1)
    }

    @Test func `takes IPv6, and one of each as IPv6`() {
        let six = TransportAddress(ip: IPAddress(high: 0x2001_0DB8_0000_0000, low: 1), port: 9)
        for (source, destination) in [(six, server), (server, six)] {
            var capture = PacketCapture()
            let head: [UInt8] = [0x80]
            capture.append(head.span, of: 20, from: source, to: destination, at: 0)
            let packet = Array(capture.bytes.dropFirst(40))
            #expect(packet.count == 49)
            #expect(Array(packet[0..<8]) == [0x60, 0, 0, 0, 0, 28, 17, 64])
            #expect(packet[8] == (source == six ? 0x20 : 0))
        }
    }

    @Test func `bears times before 1970 and lengths that cannot be`() {
        var capture = PacketCapture()
        let (nothing, head): ([UInt8], [UInt8]) = ([], [1, 2])
        capture.append(nothing.span, of: -1, from: client, to: server, at: -1)
        capture.append(head.span, of: 1 << 40, from: client, to: server, at: .max)
        #expect(capture.count == 2)
        #expect(capture.bytes.count == 24 + 2 * (16 + 28) + 2)
    }
}
