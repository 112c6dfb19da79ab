/// The beginning of a VP9 frame, up to the size of a key frame.
/// - Source: VP9 bitstream specification §6.2 (uncompressed header), §7.2.
package struct VP9FrameHeader {
    /// 0 is 8-bit 4:2:0.
    package let profile: UInt8
    /// False for an existing frame that is shown again, too.
    package let isKeyFrame: Bool
    /// The size of a key frame; nil for other frames.
    package private(set) var resolution: VideoResolution?

    /// Parses the header.
    /// - Throws: `.invalid` for data that is not a frame, such as an end-to-end encrypted one.
    package init(parsing frame: Span<UInt8>) throws(WireError) {
        var reader = BitReader(0..<frame.count)
        guard try reader.bits(2, in: frame) == 2 else { throw .invalid(.vp9FrameHeader) }
        let profile = try reader.bits(1, in: frame) | reader.bits(1, in: frame) << 1
        self.profile = UInt8(truncatingIfNeeded: profile)
        if profile == 3 { try reader.skip(1) }
        let showsExisting = try reader.flag(in: frame)
        let isInter = try reader.flag(in: frame)
        isKeyFrame = !showsExisting && !isInter
        guard isKeyFrame else { return }
        // show_frame, error_resilient_mode.
        try reader.skip(2)
        guard try reader.bits(24, in: frame) == 0x498342 else { throw .invalid(.vp9FrameHeader) }
        try Self.skipColor(profile: profile, &reader, frame)
        let width = try reader.bits(16, in: frame)
        let height = try reader.bits(16, in: frame)
        resolution = VideoResolution(width: Int(width) &+ 1, height: Int(height) &+ 1)
    }

    private static func skipColor(
        profile: UInt32, _ reader: inout BitReader, _ frame: Span<UInt8>
    ) throws(WireError) {
        if profile >= 2 { try reader.skip(1) }
        let isRGB = try reader.bits(3, in: frame) == 7
        // The color range of YUV; profiles 1 and 3 also contain the subsampling.
        if !isRGB { try reader.skip(1) }
        if profile & 1 == 1 { try reader.skip(isRGB ? 1 : 3) }
    }
}
