/// The properties of pictures in an AV1 sequence header.
/// - Source: AV1 bitstream specification §5.5.1 to §5.5.5.
package struct AV1SequenceHeader: Equatable, Sendable {
    /// `seq_profile`: 0 is main, with 4:2:0 of 8 or 10 bits.
    package let profile: UInt8
    /// `seq_level_idx` of the first operating point, which includes all layers; at most 31.
    package private(set) var level: UInt8 = 0
    /// Whether that operating point has the high tier.
    package private(set) var isHighTier = false
    /// Size of the largest picture.
    package let resolution: VideoResolution
    /// Nil if the header ends before its color configuration.
    package let samples: Samples?

    /// The sample format of pictures.
    package struct Samples: Equatable, Sendable {
        /// Bits per sample: 8, 10 or 12.
        package let bitDepth: Int
        /// Whether there is no chroma.
        package let isMonochrome: Bool
    }

    /// Parses a sequence header OBU.
    /// - Parameter unit: the OBU without a size field, as transports carry it.
    package init(parsing unit: Span<UInt8>) throws(WireError) {
        let start = try unit.uint8(at: 0) & 0x04 != 0 ? 2 : 1
        try unit.require(start)
        try self.init(unit, start..<unit.count)
    }

    /// - Parameter body: the OBU after its header.
    init(_ bytes: Span<UInt8>, _ body: Range<Int>) throws(WireError) {
        var reader = BitReader(body)
        profile = UInt8(truncatingIfNeeded: try reader.bits(3, in: bytes))
        // still_picture.
        try reader.skip(1)
        let isReduced = try reader.flag(in: bytes)
        let point =
            isReduced
            ? Point(level: try reader.bits(5, in: bytes), isHighTier: false)
            : try Self.firstPoint(&reader, bytes)
        (level, isHighTier) = (UInt8(truncatingIfNeeded: point.level), point.isHighTier)
        let widthBits = try Int(reader.bits(4, in: bytes)) &+ 1
        let heightBits = try Int(reader.bits(4, in: bytes)) &+ 1
        let width = try reader.bits(widthBits, in: bytes)
        let height = try reader.bits(heightBits, in: bytes)
        resolution = VideoResolution(width: Int(width) &+ 1, height: Int(height) &+ 1)
        samples = try? Self.samples(&reader, bytes, profile: profile, isReduced: isReduced)
    }

    /// Parses only the picture size.
    /// - Parameter body: the OBU after its header.
    static func resolution(_ bytes: Span<UInt8>, _ body: Range<Int>) throws(WireError) -> VideoResolution {
        try AV1SequenceHeader(bytes, body).resolution
    }

    private struct Point {
        var level: UInt32
        var isHighTier: Bool
    }

    /// Reads all operating points, and returns the first.
    private static func firstPoint(
        _ reader: inout BitReader, _ bytes: Span<UInt8>
    ) throws(WireError) -> Point {
        /// Length of the decoder model's delays in bits; `nil` without a decoder model.
        var delayBits: Int?
        if try reader.flag(in: bytes) {
            // num_units_in_display_tick, time_scale, then equal_picture_interval.
            try reader.skip(64)
            if try reader.flag(in: bytes) { _ = try reader.exponentialGolomb(in: bytes) }
            if try reader.flag(in: bytes) {
                delayBits = try Int(reader.bits(5, in: bytes)) &+ 1
                try reader.skip(42)
            }
        }
        let hasDisplayDelay = try reader.flag(in: bytes)
        var first: Point?
        for _ in 0...(try Int(reader.bits(5, in: bytes))) {
            try reader.skip(12)
            let level = try reader.bits(5, in: bytes)
            // Levels from 4.0 on have a tier.
            let isHighTier = level > 7 ? try reader.flag(in: bytes) : false
            if first == nil { first = Point(level: level, isHighTier: isHighTier) }
            if let delayBits, try reader.flag(in: bytes) { try reader.skip(2 &* delayBits &+ 1) }
            if hasDisplayDelay, try reader.flag(in: bytes) { try reader.skip(4) }
        }
        return first ?? Point(level: 0, isHighTier: false)
    }

    /// - Source: §5.5.1 (from `frame_id_numbers_present_flag` on), §5.5.2 (color_config).
    private static func samples(
        _ reader: inout BitReader, _ bytes: Span<UInt8>, profile: UInt8, isReduced: Bool
    ) throws(WireError) -> Samples {
        // Lengths of frame ids.
        if !isReduced, try reader.flag(in: bytes) { try reader.skip(7) }
        // Superblock size, intra filter, intra edge filter.
        try reader.skip(3)
        if !isReduced { try skipTools(&reader, bytes) }
        // Super-resolution, CDEF, loop restoration.
        try reader.skip(3)
        let isHigh = try reader.flag(in: bytes)
        let isTwelve = profile == 2 && isHigh ? try reader.flag(in: bytes) : false
        let isMonochrome = profile == 1 ? false : try reader.flag(in: bytes)
        return Samples(bitDepth: isTwelve ? 12 : isHigh ? 10 : 8, isMonochrome: isMonochrome)
    }

    /// Skips the coding tools for inter frames.
    private static func skipTools(_ reader: inout BitReader, _ bytes: Span<UInt8>) throws(WireError) {
        // Inter-intra and masked compound prediction, warped motion, dual filter.
        try reader.skip(4)
        let hasOrderHint = try reader.flag(in: bytes)
        if hasOrderHint { try reader.skip(2) }
        // seq_choose_screen_content_tools: each frame decides, or else seq_force_screen_content_tools does.
        let isChosen = try reader.flag(in: bytes)
        let mayBeScreen = isChosen ? true : try reader.flag(in: bytes)
        // seq_choose_integer_mv, seq_force_integer_mv.
        if mayBeScreen, try !reader.flag(in: bytes) { try reader.skip(1) }
        if hasOrderHint { try reader.skip(3) }
    }
}
