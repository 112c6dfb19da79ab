/// The configuration of a VP9 stream, sent before its first picture.
/// - Source: VP Codec ISO Media File Format Binding, "VP Codec Configuration Box".
package struct VP9Configuration: Equatable, Sendable {
    /// 0 is 8-bit 4:2:0, 1 other 8-bit formats, 2 and 3 the same with more bits.
    package let profile: UInt8
    /// Bits per sample: 8, 10 or 12.
    package let bitDepth: Int

    /// Parses the record, with or without the header of its box.
    /// - Throws: `.truncated`, or `.invalid` for a reserved profile or for data that VP9 does not have.
    package init(parsing bytes: Span<UInt8>) throws(WireError) {
        // Some writers include the version and flags of the box. A record cannot begin with the same bytes, because
        // its bit depth would be 0.
        let start = try bytes.uint32(at: 0) == 0x0100_0000 ? 4 : 0
        try bytes.require(start + 8)
        profile = try bytes.uint8(at: start)
        bitDepth = try Int(bytes.uint8(at: start + 2) >> 4)
        guard profile <= 3, profile < 2 ? bitDepth == 8 : bitDepth == 10 || bitDepth == 12 else {
            throw .invalid(.vp9Profile)
        }
        // The size of codec-specific data, which must be 0 for VP9.
        guard try bytes.uint16(at: start + 6) == 0 else { throw .invalid(.vp9Configuration) }
    }
}

extension WireError.Field {
    /// A reserved profile, or one that does not have this bit depth.
    package static var vp9Profile: Self { .init("vp9.profile") }
    /// Codec-specific data, of which VP9 has none.
    package static var vp9Configuration: Self { .init("vp9.configuration") }
}
