import Base
import TestSupport
import Testing
import Wire

@testable import Peer

@Suite struct `A capture of headers` {
    private let address = TransportAddress(ip: .loopback, port: 7_000)
    private let client = TransportAddress(ip: .loopback, port: 50_000)

    private func capture() -> HeaderCapture {
        HeaderCapture(local: address, clock: WallClock(unixNanoseconds: 1_000, at: .zero))
    }

    /// Bytes in the file of one datagram, without pcap's, IP's and UDP's own; nil for nothing.
    private func kept(_ datagram: [UInt8]) -> [UInt8]? {
        let capture = capture()
        let before = capture.bytes.count
        capture.noteReceived(datagram.span, from: client, at: .zero)
        return capture.bytes.count > before ? Array(capture.bytes.dropFirst(before + 16 + 28)) : nil
    }

    @Test func `keeps what comes before the payload`() {
        let payload = [UInt8](repeating: 0xEE, count: 50)
        let plain: [UInt8] = [0x80, 96, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3]
        #expect(kept(plain + payload) == plain)
        let sources: [UInt8] = [0x82, 96, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5]
        #expect(kept(sources + payload) == sources)
        let extended: [UInt8] = [
            0x90, 0xE0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0xBE, 0xDE, 0, 1, 0x10, 0x7F, 0, 0,
        ]
        #expect(kept(extended + payload) == extended)
        // The length of the padding is in the encrypted payload, so the padding bit changes nothing.
        #expect(kept([0xA0] + plain.dropFirst() + payload) == [0xA0] + plain.dropFirst())
    }

    @Test func `keeps the sender's SSRC of RTCP`() {
        let report: [UInt8] = [0x81, 201, 0, 7, 0, 0, 0, 3] + [UInt8](repeating: 0xEE, count: 30)
        #expect(kept(report) == Array(report.prefix(8)))
    }

    @Test func `leaves out ICE, DTLS and bytes that are no packet`() {
        for first: UInt8 in [0, 1, 20, 22, 63, 64, 127, 192, 255] {
            #expect(kept([first] + [UInt8](repeating: 1, count: 60)) == nil)
        }
        #expect(kept([]) == nil)
        #expect(kept([0x80, 96, 0]) == nil)
        // Its header extension ends beyond the packet.
        #expect(kept([0x90, 96, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0xBE, 0xDE, 0xFF, 0xFF, 1]) == nil)
    }

    @Test func `never keeps more bytes than a packet has`() {
        var random = SeededGenerator(seed: 1)
        for _ in 0..<20_000 {
            let datagram = (0..<Int.random(in: 0...60, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            guard let kept = kept(datagram) else { continue }
            #expect(datagram.starts(with: kept))
        }
    }

    @Test func `the size of a capture is bounded`() {
        let capture = capture()
        let datagram = [UInt8]([0x9F, 96, 0, 1]) + [UInt8](repeating: 1, count: 1_196)
        for _ in 0..<200_000 { capture.noteSent(datagram.span, to: client, at: .zero) }
        #expect(capture.bytes.count >= HeaderCapture.limit)
        #expect(capture.bytes.count < HeaderCapture.limit + 2_000)
    }
}
