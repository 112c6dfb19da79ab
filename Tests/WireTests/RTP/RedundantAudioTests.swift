import TestSupport
import Testing
import Wire

@Suite struct RedundantAudioTests {
    /// By hand, from the figure in RFC 2198 §3: F, 7 bits of type, 14 of offset, 10 of length; then F and the type.
    @Test func `headers stand as the RFC has them`() throws {
        var bytes = [UInt8](repeating: 0, count: 9)
        var position = 0
        var span = bytes.mutableSpan
        try RedundantAudio.writeHeader(
            payloadType: 111, offset: 1_920, length: 80, into: &span, at: &position)
        try RedundantAudio.writeHeader(
            payloadType: 111, offset: 16_383, length: 1_023, into: &span, at: &position)
        try RedundantAudio.writeLastHeader(payloadType: 111, into: &span, at: &position)
        #expect(position == 9)
        #expect(bytes == [0xEF, 0x1E, 0x00, 0x50, 0xEF, 0xFF, 0xFF, 0xFF, 0x6F])
    }

    @Test func `what does not fit is said`() {
        var bytes = [UInt8](repeating: 0, count: 3)
        var position = 0
        var span = bytes.mutableSpan
        #expect(throws: WireError.noRoom) {
            try RedundantAudio.writeHeader(payloadType: 1, offset: 1, length: 1, into: &span, at: &position)
        }
        position = 3
        #expect(throws: WireError.noRoom) {
            try RedundantAudio.writeLastHeader(payloadType: 1, into: &span, at: &position)
        }
    }

    @Test func `blocks have their limits`() {
        #expect(RedundantAudio.canCarry(length: 1_023, offset: 16_383))
        for (length, offset) in [(0, 960), (1_024, 960), (80, 0), (80, 16_384), (-1, 1)] as [(Int, UInt32)] {
            #expect(!RedundantAudio.canCarry(length: length, offset: offset))
        }
    }
}

@Suite struct RedundantPayloadTests {
    /// Headers of blocks (type, offset, length), then the own type and all the bytes.
    private func payload(
        _ blocks: [(type: UInt8, offset: UInt32, length: Int)], own: UInt8 = 111, bytes: [UInt8]
    ) throws -> [UInt8] {
        var payload = [UInt8](repeating: 0, count: blocks.count * 4 + 1)
        var position = 0
        var span = payload.mutableSpan
        for block in blocks {
            try RedundantAudio.writeHeader(
                payloadType: block.type, offset: block.offset, length: block.length, into: &span,
                at: &position)
        }
        try RedundantAudio.writeLastHeader(payloadType: own, into: &span, at: &position)
        return payload + bytes
    }

    private func read(_ payload: [UInt8]) throws -> (RedundantPayload, [RedundantBlock]) {
        let red = try RedundantPayload(parsing: payload.span)
        var cursor = RedundantBlockCursor(red)
        var blocks: [RedundantBlock] = []
        while let block = cursor.next(in: payload.span) { blocks.append(block) }
        return (red, blocks)
    }

    @Test func `blocks are read as they were written`() throws {
        let bytes = try payload(
            [(111, 1_920, 2), (0, 16_383, 0), (111, 960, 3)], bytes: [1, 2, 3, 4, 5, 6, 7])
        let (red, blocks) = try read(bytes)
        #expect(red.payloadType == 111)
        #expect(red.earlierCount == 3)
        #expect(Array(bytes[red.primary]) == [6, 7])
        #expect(blocks.map(\.payloadType) == [111, 0, 111])
        #expect(blocks.map(\.offset) == [1_920, 16_383, 960])
        #expect(blocks.map { Array(bytes[$0.range]) } == [[1, 2], [], [3, 4, 5]])
    }

    @Test func `a packet may carry nothing earlier, and nothing of its own`() throws {
        let (bare, none) = try read([0x6F, 9, 8])
        #expect(bare.primary == 1..<3 && none.isEmpty)
        let (empty, one) = try read([0xEF, 0x0F, 0x00, 0x02, 0x6F, 1, 2])
        #expect(empty.primary.isEmpty && one.map(\.range) == [5..<7] && one.map(\.offset) == [960])
    }

    @Test(arguments: 0..<13) func `every prefix that cuts headers or earlier blocks is refused`(length: Int)
        throws
    {
        let whole = try payload([(111, 1_920, 2), (111, 960, 2)], bytes: [1, 2, 3, 4, 5])
        #expect(throws: WireError.truncated) {
            try RedundantPayload(parsing: Array(whole[..<length]).span)
        }
    }

    @Test func `a block that is longer than the packet is refused`() throws {
        let bytes = try payload([(111, 960, 1_023)], bytes: [UInt8](repeating: 1, count: 1_022))
        #expect(throws: WireError.truncated) { try RedundantPayload(parsing: bytes.span) }
    }

    @Test func `chains of blocks have an end`() throws {
        let most = RedundantPayload.maximumBlocks
        for count in [most, most + 1, 127] {
            let bytes = try payload(
                (0..<count).map { (111, UInt32(count - $0) * 120, 1) },
                bytes: [UInt8](repeating: 7, count: count + 1))
            guard count <= most else {
                #expect(throws: WireError.invalid(.redundantBlockCount)) {
                    try RedundantPayload(parsing: bytes.span)
                }
                continue
            }
            let (red, blocks) = try read(bytes)
            #expect(blocks.count == most && red.primary.count == 1)
        }
        // Headers alone, up to the end of the largest packet.
        #expect(throws: WireError.invalid(.redundantBlockCount)) {
            try RedundantPayload(parsing: [UInt8](repeating: 0xFF, count: 1_500).span)
        }
    }

    @Test(arguments: 0..<20) func `random bytes give ranges within the payload, one behind the other`(
        seed: UInt64
    ) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<500 {
            var bytes = (0..<Int.random(in: 0...80, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            // Lengths that fit now and then.
            for index in bytes.indices where index % 4 == 2 { bytes[index] &= 0xFC }
            guard let (red, blocks) = try? read(bytes) else { continue }
            var end = red.earlierCount * 4 + 1
            for block in blocks {
                #expect(block.range.lowerBound == end)
                end = block.range.upperBound
            }
            #expect(blocks.count == red.earlierCount)
            #expect(red.primary == end..<bytes.count)
        }
    }
}
