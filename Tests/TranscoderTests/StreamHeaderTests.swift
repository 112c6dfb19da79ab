import Testing
import Wire

@testable import Transcoder

@Suite struct `A header of a file` {
    private func unit(_ bytes: [UInt8]) -> [UInt8] { [0, 0, 0, 1] + bytes }

    @Test func `has each parameter set once, in order`() {
        let frame =
            unit([0x67, 1]) + unit([0x68, 2]) + unit([0x67, 1]) + unit([0x68, 3]) + unit([0x65, 9, 9])
        #expect(
            StreamHeader.header(.h264, of: frame) == unit([0x67, 1]) + unit([0x68, 2]) + unit([0x68, 3]))
    }

    @Test func `has at most so many of them, of so many bytes`() {
        var frame: [UInt8] = []
        for number in 0..<124_000 {
            frame += unit([
                0x68, UInt8(truncatingIfNeeded: number >> 8), UInt8(truncatingIfNeeded: number), 1,
            ])
        }
        #expect(StreamHeader.header(.h264, of: frame).count == StreamHeader.setLimit * 8)
        frame = unit([0x67, 1]) + unit([0x68] + [UInt8](repeating: 5, count: 5_000)) + unit([0x68, 2])
        #expect(StreamHeader.header(.h264, of: frame) == unit([0x67, 1]))
    }

    @Test(
        arguments: [
            // None; the same; another one of ID 0; one of ID 1; IDs of more than 255, of which there are none.
            ([], [[0x67, 1], [0x68, 0xCE]]), ([[0x68, 0xCE]], [[0x67, 1], [0x68, 0xCE]]),
            ([[0x68, 0x88]], [[0x67, 1], [0x68, 0x88]]),
            ([[0x68, 0x40]], [[0x67, 1], [0x68, 0xCE], [0x68, 0x40]]),
            ([[0x68], [0x68, 0, 0x40]], [[0x67, 1], [0x68, 0xCE], [0x68, 0, 0x40]]),
            // All of a picture that has a sequence parameter set.
            ([[0x67, 2], [0x68, 0x40]], [[0x67, 2], [0x68, 0x40]]),
        ] as [([[UInt8]], [[UInt8]])])
    func `keeps the parameter sets of H.264 that a key frame does not replace`(
        sets: [[UInt8]], all: [[UInt8]]
    ) {
        let known = unit([0x67, 1]) + unit([0x68, 0xCE])
        let frame = sets.flatMap(unit) + unit([0x65, 9])
        let found = StreamHeader.parameterSets(of: frame, after: known)
        #expect(found == all.flatMap(unit))
        let alone = StreamHeader.parameterSets(of: unit([0x68, 0xCE]) + unit([0x65, 9]), after: [])
        #expect(alone.isEmpty)
    }

    @Test func `takes the parameter sets of HEVC out of the frame`() {
        let sets = unit([0x40, 1, 1]) + unit([0x42, 1, 2]) + unit([0x44, 1, 3])
        let rest = unit([0x4E, 1, 4]) + unit([0x26, 1, 5])
        let units: [[UInt8]] = [
            [0x40, 1, 1], [], [0x4E, 1, 4], [0x42, 1, 2], [0x44, 1, 3], [0x26, 1, 5],
        ]
        let frame = units.flatMap(unit)
        #expect(StreamHeader.header(.hevc, of: frame) == sets)
        #expect(StreamHeader.withoutParameterSets(frame) == rest)
        #expect(StreamHeader.withoutParameterSets([1, 2, 3]) == [])
    }

    @Test(
        arguments: [
            // Behind a delimiter; with an extension; none; cut off in the extension, in the size and in the unit.
            ([0x12, 0, 0x0A, 1, 0xAA, 0x32, 1, 5], [0x0A, 1, 0xAA]),
            ([0x0E, 0x20, 1, 0xAA], [0x0E, 0x20, 1, 0xAA]),
            ([0x12, 0, 0x32, 1, 5], []), ([0x0E], []), ([0x12, 0, 0x0A, 0x81], []), ([0x0A, 3, 1, 2], []),
            // Sizes of 2^35 - 1 and of more bytes than there may be; a unit that does not tell its size.
            ([0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F], []), ([0x0A] + [UInt8](repeating: 0xFF, count: 30), []),
            ([0x08, 1, 2], []), ([], []),
        ] as [([UInt8], [UInt8])])
    func `is the sequence header of AV1, if it is whole`(frame: [UInt8], header: [UInt8]) {
        #expect(StreamHeader.header(.av1, of: frame) == header)
    }
}
