/// Reads the picture size out of an AV1 sequence header.
/// - Source: AV1 bitstream specification §5.5.1 to §5.5.5.
enum AV1SequenceHeader {
    /// - Parameter body: of the unit, after its header.
    static func resolution(_ bytes: Span<UInt8>, _ body: Range<Int>) throws(WireError) -> VideoResolution {
        var reader = BitReader(body)
        // seq_profile, still_picture.
        try reader.skip(4)
        if try reader.flag(in: bytes) {
            // A reduced still picture header has but a level.
            try reader.skip(5)
        } else {
            try skipOperatingPoints(&reader, bytes)
        }
        let widthBits = try Int(reader.bits(4, in: bytes)) &+ 1
        let heightBits = try Int(reader.bits(4, in: bytes)) &+ 1
        let width = try reader.bits(widthBits, in: bytes)
        let height = try reader.bits(heightBits, in: bytes)
        return VideoResolution(width: Int(width) &+ 1, height: Int(height) &+ 1)
    }

    private static func skipOperatingPoints(
        _ reader: inout BitReader, _ bytes: Span<UInt8>
    ) throws(WireError) {
        /// Of the decoder model's delays, in bits; `nil` without a decoder model.
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
        for _ in 0...(try Int(reader.bits(5, in: bytes))) {
            try reader.skip(12)
            // Levels from 4.0 on tell a tier.
            if try reader.bits(5, in: bytes) > 7 { try reader.skip(1) }
            if let delayBits, try reader.flag(in: bytes) { try reader.skip(2 &* delayBits &+ 1) }
            if hasDisplayDelay, try reader.flag(in: bytes) { try reader.skip(4) }
        }
    }
}
