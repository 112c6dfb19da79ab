/// What is told of a stream of VP9 before its first picture.
/// - Source: VP Codec ISO Media File Format Binding, "VP Codec Configuration Box".
package struct VP9Configuration: Equatable, Sendable {
    /// 0 is 4:2:0 of 8 bits, 1 other colours of 8 bits, 2 and 3 the same of more bits.
    package let profile: UInt8
    /// Of a sample: 8, 10 or 12.
    package let bitDepth: Int

    package init(parsing bytes: Span<UInt8>) throws(WireError) {
        // Some writers put the version and the flags of the box before the record. A record that begins with the same
        // bytes would have samples of no bits.
        let start = try bytes.uint32(at: 0) == 0x0100_0000 ? 4 : 0
        try bytes.require(start + 8)
        profile = try bytes.uint8(at: start)
        bitDepth = try Int(bytes.uint8(at: start + 2) >> 4)
        guard profile <= 3, profile < 2 ? bitDepth == 8 : bitDepth == 10 || bitDepth == 12 else {
            throw .invalid(.vp9Profile)
        }
        // What the codec itself would say: nothing, of VP9.
        guard try bytes.uint16(at: start + 6) == 0 else { throw .invalid(.vp9Configuration) }
    }
}

extension WireError.Field {
    /// A profile that there is not, or not with this depth.
    package static var vp9Profile: Self { .init("vp9.profile") }
    /// Data that VP9 has none of.
    package static var vp9Configuration: Self { .init("vp9.configuration") }
}
