import TestSupport
import Testing
import Wire

@Suite struct RTMPChunkTests {
    /// Messages of some bytes, cut after each `size`.
    private static func messages(
        of bytes: [UInt8], cut size: Int = .max, limit: Int = 1 << 16
    ) throws(WireError) -> [RTMPMessage] {
        var reader = RTMPChunkReader(messageLimit: limit)
        var messages: [RTMPMessage] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = Array(rest.prefix(size))
            rest = rest.dropFirst(piece.count)
            try reader.read(piece.span) { messages.append($0) }
        }
        return messages
    }

    private static func payload(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0) }
    }

    /// RTMP 1.0 §5.3.2.2: a message of 307 bytes in three chunks of at most 128.
    private static var long: [UInt8] {
        let payload = payload(307)
        return hexBytes("04 0003e8 000133 09 39300000") + payload[..<128] + [0xC4] + payload[128..<256]
            + [0xC4] + payload[256...]
    }

    /// RTMP 1.0 §5.3.2.1: four messages of 32 bytes, 20 ms apart, whose headers get shorter.
    private static var repeated: [UInt8] {
        let payload = payload(32)
        return hexBytes("03 0003e8 000020 08 39300000") + payload + hexBytes("83 000014") + payload + [0xC3]
            + payload + [0xC3] + payload
    }

    @Test(arguments: [1, 2, 7, 129, 1_000]) func `are put together however the stream is cut`(size: Int)
        throws
    {
        #expect(
            try Self.messages(of: Self.long, cut: size) == [
                RTMPMessage(.video, timestamp: 1_000, stream: 12_345, payload: Self.payload(307))
            ])
        #expect(
            try Self.messages(of: Self.repeated, cut: size)
                == [1_000, 1_020, 1_040, 1_060].map {
                    RTMPMessage(.audio, timestamp: $0, stream: 12_345, payload: Self.payload(32))
                })
    }

    @Test func `give no message while one is missing a byte`() throws {
        for length in 0..<Self.long.count {
            #expect(try Self.messages(of: Array(Self.long.prefix(length))).isEmpty)
        }
    }

    @Test(arguments: [0, 1, 127, 128, 129, 4_096, 10_000], [0, 0xFF_FFFE, 0xFF_FFFF, .max] as [UInt32])
    func `are read as they were written`(count: Int, timestamp: UInt32) throws {
        var writer = RTMPChunkWriter()
        var bytes: [UInt8] = []
        let written = RTMPMessage(.command, timestamp: timestamp, stream: 1, payload: Self.payload(count))
        writer.append(written, to: &bytes)
        writer.setChunkSize(4_096, in: &bytes)
        writer.append(written, to: &bytes)
        #expect(try Self.messages(of: bytes, cut: 1_000) == [written, written])
    }

    @Test func `of several streams may lie between one another`() throws {
        let payload = Self.payload(200)
        let bytes =
            hexBytes("04 000000 0000c8 09 01000000") + payload[..<128]
            + hexBytes("05 000000 000001 08 01000000 aa")
            + [0xC4] + payload[128...]
        #expect(try Self.messages(of: bytes).map(\.kind) == [.audio, .video])
    }

    @Test func `may have ids of two and three bytes`() throws {
        let bytes = hexBytes("00 00 000001 000001 08 01000000 aa 01 0100 000002 000001 08 01000000 bb")
        #expect(try Self.messages(of: bytes).map(\.payload) == [[0xAA], [0xBB]])
    }

    @Test func `are given up by an abort`() throws {
        let bytes =
            hexBytes("04 000000 0000c8 09 01000000") + Self.payload(128)
            + hexBytes("02 000000 000004 02 00000000 00000004 04 000000 000001 09 01000000 aa")
        #expect(try Self.messages(of: bytes).map(\.payload) == [[0xAA]])
    }

    @Test func `begin no message within another, nor without its fields`() {
        let within =
            hexBytes("04 000000 0000c8 09 01000000") + Self.payload(128) + hexBytes("44 000000 0000c8 09")
        #expect(throws: WireError.invalid(.rtmpChunk)) { try Self.messages(of: within) }
        #expect(throws: WireError.invalid(.rtmpChunk)) { try Self.messages(of: [0xC4]) }
    }

    @Test func `cannot make us keep more than the limits`() throws {
        #expect(throws: WireError.invalid(.rtmpMessageLength)) {
            try Self.messages(of: hexBytes("04 000000 ffffff 09 01000000"), limit: 1 << 20)
        }
        // Of many messages that are never complete, all count.
        var incomplete: [UInt8] = []
        for id: UInt8 in 4..<20 {
            incomplete += [id] + hexBytes("000000 0001f4 09 01000000") + Self.payload(128)
        }
        #expect(throws: WireError.invalid(.rtmpMessageLength)) {
            try Self.messages(of: incomplete, limit: 1_000)
        }
        #expect(try Self.messages(of: Array(incomplete.prefix(140 * 11)), limit: 1_000).isEmpty)
        #expect(throws: WireError.invalid(.rtmpChunkStreams)) {
            var bytes: [UInt8] = []
            for id in 3..<UInt8(3 + RTMPChunkReader.streamLimit + 1) {
                bytes += [id] + hexBytes("000000 000000 09 01000000")
            }
            _ = try Self.messages(of: bytes)
        }
        #expect(throws: WireError.invalid(.rtmpChunkSize)) {
            try Self.messages(of: hexBytes("02 000000 000004 01 00000000 00000000"))
        }
    }

    @Test func `of random bytes are refused or are messages within the limit`() {
        var random = SeededGenerator(seed: 1_935)
        for _ in 0..<2_000 {
            let bytes = (0..<Int.random(in: 0..<600, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            let messages = (try? Self.messages(of: bytes, cut: 50, limit: 500)) ?? []
            #expect(messages.allSatisfy { $0.payload.count <= 500 })
        }
    }
}

@Suite struct RTMPHandshakeTests {
    @Test func `repeats what the client sent`() throws {
        let hello = [3] + (0..<1_536).map { UInt8(truncatingIfNeeded: $0 / 7) }
        let random = [UInt8](repeating: 9, count: RTMPHandshake.randomLength)
        let answer = try RTMPHandshake.answer(to: hello.span, random: random)
        #expect(answer.count == 1 + 2 * 1_536)
        #expect(answer[0] == 3 && answer[1...8].allSatisfy { $0 == 0 } && answer[9] == 9)
        #expect(Array(answer[1_537...]) == Array(hello[1...]))
    }

    @Test func `refuses other protocols and what is too short`() {
        #expect(throws: WireError.invalid(.rtmpVersion)) {
            try RTMPHandshake.answer(to: Array("GET / HTTP/1.1".utf8).span, random: [])
        }
        #expect(throws: WireError.truncated) {
            try RTMPHandshake.answer(to: [UInt8](repeating: 3, count: 1_536).span, random: [])
        }
        #expect(throws: WireError.truncated) { try RTMPHandshake.answer(to: [UInt8]().span, random: []) }
    }
}

@Suite struct RTMPCommandTests {
    @Test(arguments: [false, true]) func `are read as they were written`(isAMF3: Bool) throws {
        let command = RTMPCommand(
            "publish", transaction: 5, object: .null, [.string("talk"), .string("live")])
        let payload = (isAMF3 ? [0] : []) + command.message(on: 1).payload
        #expect(try RTMPCommand(parsing: payload.span, isAMF3: isAMF3) == command)
    }

    @Test func `have a name and a number`() {
        #expect(throws: WireError.invalid(.rtmpCommand)) { try RTMPCommand(parsing: [5, 5].span) }
        #expect(throws: WireError.invalid(.rtmpCommand)) { try RTMPCommand(parsing: [2, 0, 0].span) }
        #expect(throws: WireError.truncated) { try RTMPCommand(parsing: [UInt8]().span, isAMF3: true) }
    }
}
