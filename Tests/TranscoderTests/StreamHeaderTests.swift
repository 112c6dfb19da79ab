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
}
