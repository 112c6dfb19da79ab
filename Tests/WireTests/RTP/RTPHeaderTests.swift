import Testing
import TestSupport
import Wire

/// Two contributing sources, a one-byte extension with ids 1 (1 byte) and 3 (2 bytes), 4 payload bytes, 3 of
/// padding.
private let sample: [UInt8] = [
    0xB2, 0xE0, 0x12, 0x34, 0x00, 0x01, 0x00, 0x02, 0xDE, 0xAD, 0xBE, 0xEF,
    0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x02,
    0xBE, 0xDE, 0x00, 0x02, 0x10, 0xFF, 0x00, 0x31, 0xAA, 0xBB, 0x00, 0x00,
    0x01, 0x02, 0x03, 0x04, 0x00, 0x00, 0x03,
]

@Suite struct RTPHeaders {
    @Test func `are parsed into fields and ranges`() throws {
        let header = try RTPHeader(parsing: sample.span)
        #expect(header.marker)
        #expect(header.payloadType == 96)
        #expect(header.sequenceNumber == 0x1234)
        #expect(header.timestamp == 0x0001_0002)
        #expect(header.ssrc == 0xDEAD_BEEF)
        #expect(header.extensionProfile == 0xBEDE)
        #expect(header.extensionRange == 24..<32)
        #expect(header.payloadRange == 32..<36)
        #expect(header.paddingLength == 3)
    }

    @Test func `have the same length whether or not the payload can be read`() throws {
        let length = try RTPHeader.length(of: sample.span)
        #expect(length == 32)
        let onlyHeader = try RTPHeader.length(of: sample.span.extracting(first: 32))
        #expect(onlyHeader == 32)
    }

    @Test(arguments: 0..<32) func `are refused when cut short`(length: Int) {
        let prefix = Array(sample.prefix(length))
        #expect(throws: WireError.truncated) { try RTPHeader(parsing: prefix.span) }
        #expect(throws: WireError.truncated) { try RTPHeader.length(of: prefix.span) }
    }

    @Test func `of another version are refused`() {
        var packet = sample
        packet[0] = 0x40
        #expect(throws: WireError.invalid(.rtpVersion)) { try RTPHeader(parsing: packet.span) }
        #expect(throws: WireError.invalid(.rtpVersion)) { try RTPHeader.length(of: packet.span) }
    }

    @Test(
        arguments: [(0, WireError.invalid(.rtpPadding)), (8, .truncated), (255, .truncated)]
            as [(UInt8, WireError)])
    func `with impossible padding are refused`(count: UInt8, error: WireError) {
        var packet = sample
        packet[packet.count - 1] = count
        #expect(throws: error) { try RTPHeader(parsing: packet.span) }
    }

    @Test func `may be followed by padding alone`() throws {
        var packet = sample
        packet[packet.count - 1] = 7
        let header = try RTPHeader(parsing: packet.span)
        #expect(header.payloadRange == 32..<32)
        #expect(header.paddingLength == 7)
    }

    @Test func `made of noise never trap`() {
        var random = SeededGenerator(seed: 1)
        var parsed = 0
        for _ in 0..<20_000 {
            var bytes = (0..<Int.random(in: 0..<64, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            if !bytes.isEmpty { bytes[0] = bytes[0] & 0x3F | 0x80 }
            guard let header = try? RTPHeader(parsing: bytes.span) else { continue }
            parsed += 1
            #expect(header.payloadRange.upperBound + header.paddingLength == bytes.count)
            var cursor = RTPExtensionCursor(header)
            while let element = cursor.next(in: bytes.span) {
                #expect(header.extensionRange.contains(element.range.lowerBound - 1))
                #expect(element.range.upperBound <= header.extensionRange.upperBound)
            }
        }
        #expect(parsed > 1_000)
    }
}
