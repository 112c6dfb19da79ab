import TestSupport
import Testing
import Wire

private func words(_ values: UInt32...) -> [UInt8] {
    var bytes: [UInt8] = []
    for value in values { bytes.append(bigEndian: value) }
    return bytes
}

@Suite struct `A file that is read in pieces` {
    @Test func `gives what there is of it, and nothing outside`() {
        let source = ByteSource([1, 2, 3])
        #expect(source.bytes(at: 1, count: 2) == [2, 3])
        #expect(source.bytes(at: 2, count: 5) == [3])
        for (offset, count) in [(3, 1), (9, 1), (-1, 2), (0, 0), (0, -1), (.max, 1)] as [(Int64, Int)] {
            #expect(source.bytes(at: offset, count: count) == [], "\(count) at \(offset)")
        }
    }

    @Test func `has neither boxes nor elements where it cannot be read`() {
        let source = ByteSource(size: 1 << 40) { _, _ in [] }
        #expect(Array(MP4Boxes(in: source, from: 0, to: source.size)).isEmpty)
        #expect(Array(EBMLElements(in: source, from: 0, to: source.size)).isEmpty)
        #expect(source.element(at: 0) == nil)
    }

    @Test func `is never read in whole for one box`() throws {
        let header = words(1) + Array("mdat".utf8) + words(1, 0)
        let box = try MP4Box(parsing: header.span)
        #expect(box.end == 1 << 32)
        let source = ByteSource(size: box.end) { _, count in [UInt8](repeating: 7, count: count) }
        let body = MP4BoxBody(of: box, source)
        #expect(body.bytes.count == 4 << 20)
    }

    @Test func `has boxes up to the offset that is given, even if more follow`() {
        let file = words(8) + Array("free".utf8) + words(9) + Array("skip".utf8) + [1]
        let source = ByteSource(file)
        #expect(MP4Boxes(in: source, from: 0, to: 17).map(\.type) == ["free", "skip"])
        #expect(MP4Boxes(in: source, from: 0, to: 16).map(\.type) == ["free"])
        #expect(MP4Boxes(in: source, from: 8, to: 17).map(\.start) == [8])
        #expect(Array(MP4Boxes(in: source, from: 8, to: 8)).isEmpty)
    }

    @Test func `ends with an element of unknown size, behind which nothing is found`() {
        let source = ByteSource([0xEC, 0x80, 0xEC, 0x81, 0, 0xE7, 0xFF, 0xEC, 0x80])
        let elements = Array(EBMLElements(in: source, from: 0, to: source.size))
        #expect(elements.map(\.end) == [2, 5])
        #expect(source.element(at: 5)?.id == MatroskaID.timestamp)
        #expect(source.element(at: 8) == nil)
    }
}

@Suite struct `A Matroska block` {
    @Test func `may have the longest track number`() throws {
        let bytes: [UInt8] = [0x01, 0, 0, 0, 0, 0, 0, 5, 0x7F, 0xFF, 0x01]
        let block = try MatroskaBlock(parsing: bytes.span)
        #expect(block.trackNumber == 5 && block.timestamp == .max && !block.isLaced)
        #expect(block.headerLength == MatroskaBlock.longestHeader)
        let longer: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0]
        #expect(throws: WireError.invalid(.ebmlVariableInteger)) { try MatroskaBlock(parsing: longer.span) }
    }
}

@Suite struct `A fragment of an MP4 track` {
    private let track = MP4SampleDefaults(trex: MP4BoxBody(words(0, 1, 1, 10, 20, 0x1_0000)))

    private func samples(_ words: [UInt8], _ defaults: MP4SampleDefaults) -> [MP4TrackRun.Sample] {
        var samples: [MP4TrackRun.Sample] = []
        MP4TrackRun(MP4BoxBody(words), defaults: defaults).forEach { samples.append($0) }
        return samples
    }

    @Test(
        arguments: [
            // All five fields; one alone; none.
            (words(0x3B, 1, 0, 0, 1, 30, 40, 0), 30, 40, 0), (words(0x20, 1, 5), 10, 20, 5),
            (words(0x10, 1, 5), 10, 5, 0x1_0000), (words(0x09, 1, 0, 0, 7), 7, 20, 0x1_0000),
            (words(0x02, 1, 9), 10, 20, 0x1_0000), (words(0, 1), 10, 20, 0x1_0000),
            // Cut short: what it says to have, but has not, is 0.
            (words(0x38, 1, 30), 30, 0, 0),
        ] as [([UInt8], UInt64, UInt64, UInt64)])
    func `overrides what its header has, and nothing else`(
        header: [UInt8], duration: UInt64, size: UInt64, flags: UInt64
    ) {
        let found = MP4SampleDefaults(tfhd: MP4BoxBody(header), of: track)
        #expect(found.duration == duration && found.size == size && found.flags == flags)
    }

    @Test func `begins with a sample whose flags are its own`() {
        // first-sample-flags, and of each sample its size and flags.
        let found = samples(words(0x604, 3, 0, 11, 0x1_0000, 12, 0x1_0000, 13, 0), track)
        #expect(found.map(\.size) == [11, 12, 13])
        #expect(found.map(\.isSync) == [true, false, true])
        #expect(found.map(\.duration) == [10, 10, 10])
    }

    @Test func `begins with the first flags where the samples have none`() {
        let found = samples(words(0x004, 3, 0), track)
        #expect(found.map(\.isSync) == [true, false, false])
    }

    @Test func `has samples of nothing behind the end of its box`() {
        let found = samples(words(0x300, 3, 1, 2, 3), track)
        #expect(found.map(\.duration) == [1, 3, 0])
        #expect(found.map(\.size) == [2, 0, 0])
    }

    @Test func `has no samples without a count`() {
        #expect(samples(words(0x300), track).isEmpty)
        #expect(samples([], track).isEmpty)
    }
}
