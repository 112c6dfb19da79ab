import Testing
import TestSupport
import Wire

/// A packet without payload whose header extension has this profile and body.
private func packet(profile: UInt16, body: [UInt8]) -> [UInt8] {
    var bytes: [UInt8] = [0x90, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9]
    bytes.append(bigEndian: profile)
    bytes.append(bigEndian: UInt16(body.count / 4))
    return bytes + body
}

/// Ids and values, in order.
private func elements(of packet: [UInt8]) throws -> [[UInt8]] {
    var cursor = try RTPExtensionCursor(RTPHeader(parsing: packet.span))
    var found: [[UInt8]] = []
    while let element = cursor.next(in: packet.span) {
        found.append([element.id] + packet[element.range])
    }
    return found
}

@Suite struct RTPExtensions {
    /// The example of RFC 8285 §4.2.
    @Test func `of the one-byte form may have padding between elements`() throws {
        let body: [UInt8] = [0x10, 0xA1, 0x21, 0xB1, 0xB2, 0, 0, 0x33, 0xC1, 0xC2, 0xC3, 0xC4]
        let found = try elements(of: packet(profile: 0xBEDE, body: body))
        #expect(found == [[1, 0xA1], [2, 0xB1, 0xB2], [3, 0xC1, 0xC2, 0xC3, 0xC4]])
    }

    /// The example of RFC 8285 §4.3.
    @Test func `of the two-byte form may have empty elements`() throws {
        let body: [UInt8] = [1, 0, 2, 1, 0xB1, 0, 3, 4, 0xC1, 0xC2, 0xC3, 0xC4]
        let found = try elements(of: packet(profile: 0x1003, body: body))
        #expect(found == [[1], [2, 0xB1], [3, 0xC1, 0xC2, 0xC3, 0xC4]])
    }

    @Test(
        arguments: [
            [0x10, 0xA1, 0xF0, 0xB1, 0x20, 0xC1, 0, 0],  // id 15
            [0x10, 0xA1, 0x02, 0xB1, 0x20, 0xC1, 0, 0],  // id 0 with a length
            [0x10, 0xA1, 0x2F, 0xB1, 0x20, 0xC1, 0, 0],  // longer than the extension
        ] as [[UInt8]])
    func `end where an element makes no sense`(body: [UInt8]) throws {
        let found = try elements(of: packet(profile: 0xBEDE, body: body))
        #expect(found == [[1, 0xA1]])
    }

    @Test(arguments: [[1, 1, 0xA1, 2], [1, 1, 0xA1, 0, 2, 3, 0xB1, 0xB2]] as [[UInt8]])
    func `of the two-byte form end where an element is cut short`(body: [UInt8]) throws {
        let found = try elements(of: packet(profile: 0x1000, body: body))
        #expect(found == [[1, 0xA1]])
    }

    @Test func `of an unknown profile have no elements`() throws {
        let found = try elements(of: packet(profile: 0x2000, body: [0x10, 0xA1, 0, 0]))
        #expect(found == [])
    }

    @Test func `are found by id, never by id 0`() throws {
        let bytes = packet(profile: 0xBEDE, body: [0x10, 0xA1, 0x20, 0xB1])
        let header = try RTPHeader(parsing: bytes.span)
        #expect(header.extensionRange(id: 2, in: bytes.span) == 19..<20)
        #expect(header.extensionRange(id: 3, in: bytes.span) == nil)
        #expect(header.extensionRange(id: 0, in: bytes.span) == nil)
    }
}

@Suite struct RTPExtensionValues {
    /// Parses `bytes`, compares with `value`, writes it again and tries every truncation.
    private func check<Value: RTPExtensionValue>(_ value: Value, _ bytes: [UInt8]) throws {
        let parsed = try Value(parsing: bytes.span)
        #expect(parsed == value)
        #expect(value.encodedLength == bytes.count)
        var written = [UInt8](repeating: 0xEE, count: bytes.count)
        var span = written.mutableSpan
        try value.write(into: &span, at: 0)
        #expect(written == bytes)
        for length in 0..<min(bytes.count, 8) {
            let prefix = Array(bytes.prefix(length))
            #expect(throws: WireError.truncated) { try Value(parsing: prefix.span) }
            var short = prefix
            #expect(throws: WireError.noRoom) {
                var span = short.mutableSpan
                try value.write(into: &span, at: 0)
            }
        }
    }

    @Test func `tell the video orientation`() throws {
        try check(VideoOrientation(rotation: .clockwise90), [0x01])
        try check(VideoOrientation(isBackCamera: true, isFlipped: true, rotation: .clockwise270), [0x0F])
    }

    @Test func `tell the transport-wide sequence number`() throws {
        try check(TransportSequenceNumber(0xABCD), [0xAB, 0xCD])
    }

    @Test func `tell the playout delay`() throws {
        try check(PlayoutDelay(minimum: 0, maximum: 0), [0, 0, 0])
        try check(PlayoutDelay(minimum: 0x123, maximum: 0xFED), [0x12, 0x3F, 0xED])
    }
}
