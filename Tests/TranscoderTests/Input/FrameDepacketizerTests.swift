import Testing
import Wire

@testable import Transcoder

@Suite struct `A frame in its packets` {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let codec: VideoCodec
        let payloads: [[UInt8]]
        let frame: [UInt8]

        init(_ description: String, _ codec: VideoCodec, _ payloads: [[UInt8]], _ frame: [UInt8]) {
            testDescription = description
            self.codec = codec
            self.payloads = payloads
            self.frame = frame
        }
    }

    private static let long = [UInt8](repeating: 9, count: 200)

    static let cases = [
        Case("VP8 with a picture ID", .vp8, [[0x90, 0x80, 5, 1, 2], [], [0x00, 3]], [1, 2, 3]),
        // Without another layer there is nothing to index.
        Case("VP9 of one layer in two packets", .vp9, [[0x08, 1, 2], [0x04, 3]], [1, 2, 3]),
        Case(
            "HEVC in one packet", .hevc, [[0x40, 1, 5], [0x26, 1, 6]],
            [0, 0, 0, 1, 0x40, 1, 5, 0, 0, 0, 1, 0x26, 1, 6]),
        // The type of the unit is in the fragments' third byte.
        Case(
            "HEVC in fragments, of which the first has nothing but heads", .hevc,
            [[0x62, 1, 0x93], [0x62, 1, 0x13, 6], [0x62, 1, 0x53, 7]], [0, 0, 0, 1, 0x26, 1, 6, 7]),
        Case("HEVC aggregated, which nobody here does", .hevc, [[0x60, 1, 0, 2, 0x26, 1]], []),
        Case(
            "AV1 whose elements all have a length", .av1, [[0x00, 2, 0x08, 0xAA, 2, 0x30, 7]],
            [0x12, 0, 0x0A, 1, 0xAA, 0x32, 1, 7]),
        Case(
            "AV1 of three elements, of which the last has none", .av1,
            [[0x30, 1, 0x08, 2, 0x08, 0xAA, 0x30, 7]], [0x12, 0, 0x0A, 0, 0x0A, 1, 0xAA, 0x32, 1, 7]),
        Case(
            "AV1 with an extension, which counts to the head", .av1, [[0x10, 0x34, 0x20, 9]],
            [0x12, 0, 0x36, 0x20, 1, 9]),
        Case("AV1 that has its size already", .av1, [[0x10, 0x32, 1, 7]], [0x12, 0, 0x32, 1, 7]),
        Case(
            "AV1 whose size takes two bytes", .av1, [[0x10, 0x30] + long],
            [0x12, 0, 0x32, 0xC8, 0x01] + long),
        Case(
            "AV1 in three packets", .av1, [[0x50, 0x30, 1], [0xD0, 2], [0x90, 3]],
            [0x12, 0, 0x32, 3, 1, 2, 3]),
        Case(
            "AV1 of two units, of which the first goes on", .av1, [[0x50, 0x08, 1], [0xA0, 1, 2, 0x30, 7]],
            [0x12, 0, 0x0A, 2, 1, 2, 0x32, 1, 7]),
        Case("AV1 with an element of nothing", .av1, [[0x20, 0, 0x30, 7]], [0x12, 0, 0x32, 1, 7]),
    ]

    @Test(arguments: cases) func `is what decoders take`(_ example: Case) throws {
        let frame = try FrameDepacketizer.frame(example.codec, example.payloads)
        #expect(frame == example.frame)
    }

    @Test func `of AV1 is refused where a head is cut off`() {
        #expect(throws: WireError.truncated) { try FrameDepacketizer.frame(.av1, [[0x10, 0x34]]) }
    }
}
