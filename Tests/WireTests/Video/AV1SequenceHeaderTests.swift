import TestSupport
import Testing
import Wire

/// What libaom writes, and what ffmpeg's trace_headers reads of it.
@Suite struct `An AV1 sequence header` {
    /// Of 320x180 in 8 bits and colours, without its size.
    private static let header = hexBytes("08 000000043cfeccdaf90040")

    @Test func `tells profile, level, size and samples`() throws {
        let header = try AV1SequenceHeader(parsing: Self.header.span)
        #expect((header.profile, header.level, header.isHighTier) == (0, 0, false))
        #expect(header.resolution == VideoResolution(width: 320, height: 180))
        #expect((header.samples?.bitDepth, header.samples?.isMonochrome) == (8, false))
        let ten = try AV1SequenceHeader(parsing: hexBytes("08 000000043cfeccdaf94040").span)
        #expect((ten.samples?.bitDepth, ten.samples?.isMonochrome) == (10, false))
        let grey = try AV1SequenceHeader(parsing: hexBytes("08 000000043cfeccdaf92a").span)
        #expect((grey.samples?.bitDepth, grey.samples?.isMonochrome) == (8, true))
        // A unit's extension tells layers.
        let extended = [0x0C, 0x08] + Self.header.dropFirst()
        #expect(try AV1SequenceHeader(parsing: extended.span) == header)
    }

    @Test func `is cut off anywhere without harm`() throws {
        for count in 0..<Self.header.count {
            let part = Array(Self.header[..<count])
            guard let read = try? AV1SequenceHeader(parsing: part.span) else { continue }
            // What says the size may lack what is behind it.
            #expect(read.resolution == VideoResolution(width: 320, height: 180))
            #expect(read.samples == nil || count >= 10)
        }
        for part in ["", "0c"] {
            #expect(throws: WireError.self) { try AV1SequenceHeader(parsing: hexBytes(part).span) }
        }
    }
}
