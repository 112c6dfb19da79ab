import TestSupport
import Testing
import Wire

private func box(_ type: String, _ body: [UInt8]) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(bigEndian: UInt32(body.count + 8))
    return bytes + Array(type.utf8) + body
}

private func bytes(_ values: UInt32...) -> [UInt8] {
    var bytes: [UInt8] = []
    for value in values { bytes.append(bigEndian: value) }
    return bytes
}

@Suite struct MP4BoxTests {
    @Test func `says where its contents lie`() throws {
        let header = bytes(24) + Array("moof".utf8)
        let found = try MP4Box(parsing: header.span, at: 100)
        #expect(found.type == "moof")
        #expect(found.start == 100 && found.bodyStart == 108 && found.end == 124)
        for length in 0..<header.count {
            #expect(throws: WireError.truncated) { try MP4Box(parsing: Array(header.prefix(length)).span) }
        }
    }

    @Test func `may have a size of 64 bits`() throws {
        let header = bytes(1) + Array("mdat".utf8) + bytes(1, 16)
        let found = try MP4Box(parsing: header.span)
        #expect(found.bodyStart == 16 && found.end == 1 << 32 + 16)
        for length in 0..<header.count {
            #expect(throws: WireError.truncated) { try MP4Box(parsing: Array(header.prefix(length)).span) }
        }
    }

    @Test(arguments: [[0, 0, 0, 0], [0, 0, 0, 7], [0, 0, 0, 2]] as [[UInt8]])
    func `is refused if it is shorter than its header`(size: [UInt8]) {
        #expect(throws: WireError.invalid(.mp4BoxSize)) {
            try MP4Box(parsing: (size + Array("free".utf8)).span)
        }
    }

    @Test func `is refused if its end cannot be said`() {
        let huge = bytes(1) + Array("mdat".utf8) + [UInt8](repeating: 0xFF, count: 8)
        #expect(throws: WireError.invalid(.mp4BoxSize)) { try MP4Box(parsing: huge.span) }
        let late = bytes(16) + Array("mdat".utf8)
        #expect(throws: WireError.invalid(.mp4BoxSize)) { try MP4Box(parsing: late.span, at: .max - 8) }
    }

    @Test func `follows one another as far as they are whole`() {
        let file =
            box("ftyp", [1]) + box("moov", box("trak", []) + box("trak", [2])) + box("mdat", [3]).dropLast()
        let source = ByteSource(file)
        #expect(MP4Boxes(in: source, from: 0, to: source.size).map(\.type) == ["ftyp", "moov"])
        let body = MP4BoxBody(Array(file.prefix(file.count - 8)))
        #expect(body["moov"]?.children("trak").map(\.bytes) == [[], [2]])
        #expect(body["mdat"] == nil)
    }

    @Test func `has fields, and zeros behind its end`() {
        let body = MP4BoxBody([1, 0, 0x02, 0x03] + bytes(7, 8))
        #expect(body.version == 1 && body.flags == 0x203)
        #expect(body.number(at: 4, count: 4) == 7 && body.versionedNumber(at: 4) == 7 << 32 | 8)
        #expect(body.number(at: 9, count: 4) == 0 && body.number(at: -1, count: 1) == 0)
        #expect(body.number(at: .max, count: 4) == 0 && body.number(at: 0, count: .max) == 0)
        #expect(MP4BoxBody([]).version == nil && MP4BoxBody([]).flags == 0)
    }
}

@Suite struct MP4TrackRunTests {
    private let track = MP4SampleDefaults(trex: MP4BoxBody(bytes(0, 1, 1, 10, 20, 0x1_0000)))

    @Test func `has what its fragment says, and what its track says of the rest`() {
        // base-data-offset, sample-description-index, default-sample-duration.
        let fragment = MP4SampleDefaults(tfhd: MP4BoxBody(bytes(0x0B, 1, 0, 0, 1, 30)), of: track)
        #expect(fragment.duration == 30 && fragment.size == 20 && fragment.flags == 0x1_0000)
        let run = MP4TrackRun(MP4BoxBody(bytes(0, 2)), defaults: fragment)
        #expect(run.count == 2 && run.dataOffset == nil)
        var samples: [MP4TrackRun.Sample] = []
        run.forEach { samples.append($0) }
        #expect(samples.map(\.duration) == [30, 30] && samples.map(\.size) == [20, 20])
        #expect(samples.allSatisfy { !$0.isSync && $0.compositionTimeOffset == 0 })
    }

    @Test func `has fields of its own for each sample`() {
        // data-offset, first-sample-flags, and of each sample its duration, size and composition time offset.
        let run = MP4TrackRun(
            MP4BoxBody(bytes(0xB05, 2, .max, 0, 1, 2, 3, 4, 5, 6)), defaults: track)
        #expect(run.dataOffset == -1)
        var samples: [MP4TrackRun.Sample] = []
        run.forEach { samples.append($0) }
        #expect(samples.map(\.duration) == [1, 4] && samples.map(\.size) == [2, 5])
        #expect(samples.map(\.compositionTimeOffset) == [3, 6])
        #expect(samples.map(\.isSync) == [true, false])
    }

    @Test func `counts no more samples than make sense`() {
        #expect(MP4TrackRun(MP4BoxBody(bytes(0, .max)), defaults: track).count == 100_000)
    }
}
