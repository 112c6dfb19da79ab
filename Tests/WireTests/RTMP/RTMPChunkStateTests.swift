import TestSupport
import Testing
import Wire

/// What a chunk reader keeps from one chunk to the next.
@Suite struct `The state of an RTMP stream` {
    private var reader = RTMPChunkReader(messageLimit: 1_000)

    private mutating func read(_ bytes: [UInt8]) throws(WireError) -> [RTMPMessage] {
        var messages: [RTMPMessage] = []
        try reader.read(bytes.span) { messages.append($0) }
        return messages
    }

    private static func payload(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0) }
    }

    /// An abort of the message on a chunk stream.
    private static func abort(_ id: UInt8) -> [UInt8] {
        hexBytes("02 000000 000004 02 00000000 000000") + [id]
    }

    @Test mutating func `forgets the bytes of what is aborted, however often`() throws {
        let begun = hexBytes("04 000000 0000c8 09 01000000") + Self.payload(128)
        for _ in 0..<100 {
            let messages = try read(begun + Self.abort(4))
            #expect(messages.isEmpty)
        }
        let whole = try read(hexBytes("04 000000 000001 09 01000000 aa"))
        #expect(whole.map(\.payload) == [[0xAA]])
    }

    @Test mutating func `forgets the bytes of what is complete, however often`() throws {
        let message =
            hexBytes("04 000000 0000c8 09 01000000") + Self.payload(128) + [0xC4]
            + Array(Self.payload(200)[128...])
        for _ in 0..<100 {
            let messages = try read(message)
            #expect(messages.map(\.payload) == [Self.payload(200)])
        }
    }

    @Test mutating func `is as it was after an abort of nothing`() throws {
        let begun = hexBytes("04 000000 0000c8 09 01000000") + Self.payload(128)
        // A stream that is unknown, and that of the abort itself.
        let messages = try read(begun + Self.abort(9) + Self.abort(2))
        #expect(messages.isEmpty)
        let rest = try read([0xC4] + Array(Self.payload(200)[128...]))
        #expect(rest.map(\.payload) == [Self.payload(200)])
    }

    @Test mutating func `takes a new size of chunks between the chunks of a message`() throws {
        let payload = Self.payload(300)
        var bytes = hexBytes("04 000000 00012c 09 01000000") + Array(payload[..<128])
        bytes += hexBytes("02 000000 000004 01 00000000 00000040")
        for start in stride(from: 128, to: 300, by: 64) {
            bytes += [0xC4] + Array(payload[start..<min(start + 64, 300)])
        }
        let messages = try read(bytes)
        #expect(messages.map(\.payload) == [payload])
    }

    @Test mutating func `goes on over the end of the timestamps`() throws {
        let messages = try read(
            hexBytes("04 ffffff 000001 08 01000000 fffffff0 aa 84 000020 bb c4 cc"))
        #expect(messages.map(\.timestamp) == [0xFFFF_FFF0, 0x10, 0x30])
        #expect(messages.map(\.payload) == [[0xAA], [0xBB], [0xCC]])
    }

    @Test mutating func `repeats a difference that does not fit into three bytes, with its field`() throws {
        let messages = try read(
            hexBytes("04 000000 000001 08 01000000 aa 44 ffffff 000001 08 01000000 bb c4 01000000 cc"))
        #expect(messages.map(\.timestamp) == [0, 0x100_0000, 0x200_0000])
        #expect(messages.map(\.payload) == [[0xAA], [0xBB], [0xCC]])
    }

    @Test mutating func `expects the long field in every chunk of a message, and no longer`() throws {
        let payload = Self.payload(200)
        let long =
            hexBytes("04 ffffff 0000c8 09 01000000 01000000") + Array(payload[..<128])
            + hexBytes("c4 01000000") + Array(payload[128...])
        let short =
            hexBytes("04 000007 0000c8 09 01000000") + Array(payload[..<128]) + [0xC4]
            + Array(payload[128...])
        let messages = try read(long + short)
        #expect(messages.map(\.timestamp) == [0x100_0000, 7])
        #expect(messages.map(\.payload) == [payload, payload])
    }

    /// Old encoders do not repeat it, and need it after 4 hours and 40 minutes.
    @Test(arguments: [1, 3, 1_000])
    mutating func `does without the long field in further chunks of a message`(size: Int) throws {
        let payload = Self.payload(300)
        // Its last two bytes are the beginning of its time.
        let similar = Self.payload(128) + [1, 0]
        let next = hexBytes("04 ffffff 000001 08 01000000 01000014 bb")
        var bytes = hexBytes("04 ffffff 00012c 09 01000000 01000000") + Array(payload[..<128])
        bytes += [0xC4] + Array(payload[128..<256]) + [0xC4] + Array(payload[256...])
        bytes += hexBytes("04 ffffff 000082 09 01000000 01000000") + Array(similar[..<128])
        bytes += [0xC4] + Array(similar[128...]) + next
        var messages: [RTMPMessage] = []
        for start in stride(from: 0, to: bytes.count, by: size) {
            messages += try read(Array(bytes[start..<min(start + size, bytes.count)]))
        }
        #expect(messages.map(\.timestamp) == [0x100_0000, 0x100_0000, 0x100_0014])
        #expect(messages.map(\.payload) == [payload, similar, [0xBB]])
    }

    @Test mutating func `keeps the values of each stream apart`() throws {
        let messages = try read(
            hexBytes("04 000064 000001 08 01000000 aa 05 0003e8 000002 09 02000000 bbbb")
                + hexBytes("84 000001 cc 85 000002 dddd"))
        #expect(messages.map(\.timestamp) == [100, 1_000, 101, 1_002])
        #expect(messages.map(\.kind) == [.audio, .video, .audio, .video])
        #expect(messages.map(\.stream) == [1, 2, 1, 2])
        #expect(messages.map(\.payload) == [[0xAA], [0xBB, 0xBB], [0xCC], [0xDD, 0xDD]])
    }

    @Test mutating func `has messages of no bytes`() throws {
        let messages = try read(hexBytes("04 000005 000000 09 01000000 c4 c4"))
        #expect(messages.map(\.timestamp) == [5, 10, 15])
        #expect(messages.allSatisfy { $0.payload.isEmpty })
    }

    @Test(arguments: [
        "02 000000 000003 01 00000000 000001", "02 000000 000000 01 00000000",
        "02 000000 000003 02 00000000 000004",
    ])
    mutating func `does not survive a control message that is cut short`(text: String) {
        #expect(throws: WireError.truncated) { try read(hexBytes(text)) }
    }

    @Test(arguments: ["80000000", "ffffffff"])
    mutating func `has no chunks of a size with the highest bit`(size: String) {
        #expect(throws: WireError.invalid(.rtmpChunkSize)) {
            try read(hexBytes("02 000000 000004 01 00000000" + size))
        }
    }

    @Test mutating func `obeys a limit that changes between two messages of one piece`() throws {
        let bytes = hexBytes("04 000000 000001 08 01000000 aa 04 000000 000005 08 01000000 0102030405")
        var offset = 0
        let first = try reader.next(bytes.span, from: &offset)
        #expect(first?.payload == [0xAA])
        // Behind the first message, with nothing read of the second.
        #expect(offset == 13)
        var strict = reader
        strict.messageLimit = 4
        var strictOffset = offset
        #expect(throws: WireError.invalid(.rtmpMessageLength)) {
            try strict.next(bytes.span, from: &strictOffset)
        }
        let second = try reader.next(bytes.span, from: &offset)
        #expect(second?.payload == [1, 2, 3, 4, 5])
        let third = try reader.next(bytes.span, from: &offset)
        #expect(third == nil && offset == bytes.count)
    }
}
