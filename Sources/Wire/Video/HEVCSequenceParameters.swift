/// The properties of pictures in an HEVC sequence parameter set.
/// - Source: ITU-T H.265 §7.3.2.2.1 (syntax), §7.3.3 (profile, tier and level), §7.4.3.2.1 (semantics).
package struct HEVCSequenceParameters: Equatable, Sendable {
    /// `general_profile_space`: 0 for the profiles defined in H.265.
    package let profileSpace: UInt8
    /// `general_tier_flag`.
    package let isHighTier: Bool
    /// `general_profile_idc`: 1 is main, 2 main 10.
    package let profile: UInt8
    /// `general_profile_compatibility_flag`, with profile 0 in the highest bit.
    package let compatibility: UInt32
    /// The six bytes from there to the level; the highest bit of the first is `general_progressive_source_flag`.
    package let constraints: [UInt8]
    /// `general_level_idc`: the level number times thirty.
    package let level: UInt8
    /// Chroma subsampling: 0 for monochrome, 1 for 4:2:0, 2 for 4:2:2, 3 for 4:4:4.
    package let chromaFormat: UInt8
    /// Bits per sample; the larger value of luma and chroma.
    package let bitDepth: Int
    /// Size of the displayed part of pictures.
    package let resolution: VideoResolution
    /// How many pictures may precede one in decoding order and follow it in output order, as with B-frames; nil if
    /// unknown.
    package let reorderedPictures: Int?

    /// - Parameter body: the NAL unit after its header of two bytes.
    package init(parsing body: Span<UInt8>) throws(WireError) {
        let raw = H264SequenceParameters.unescaped(body)
        let bytes = raw.span
        var reader = BitReader(0..<bytes.count)
        try reader.skip(4)
        let layers = Int(try reader.bits(3, in: bytes))
        try reader.skip(1)
        profileSpace = UInt8(truncatingIfNeeded: try reader.bits(2, in: bytes))
        isHighTier = try reader.flag(in: bytes)
        profile = UInt8(truncatingIfNeeded: try reader.bits(5, in: bytes))
        compatibility = try reader.bits(32, in: bytes)
        var constraints: [UInt8] = []
        for _ in 0..<6 { constraints.append(UInt8(truncatingIfNeeded: try reader.bits(8, in: bytes))) }
        self.constraints = constraints
        level = UInt8(truncatingIfNeeded: try reader.bits(8, in: bytes))
        try Self.skipLayers(&reader, layers, bytes)
        _ = try reader.exponentialGolomb(in: bytes)
        let chromaFormat = try reader.exponentialGolomb(in: bytes)
        guard chromaFormat <= 3 else { throw .invalid(.hevcSequenceParameters) }
        if chromaFormat == 3 { try reader.skip(1) }
        self.chromaFormat = UInt8(truncatingIfNeeded: chromaFormat)
        resolution = try Self.size(chromaFormat, &reader, bytes)
        let luma = try reader.exponentialGolomb(in: bytes)
        let chroma = try reader.exponentialGolomb(in: bytes)
        guard luma <= 8, chroma <= 8 else { throw .invalid(.hevcSequenceParameters) }
        bitDepth = 8 + Int(max(luma, chroma))
        reorderedPictures = try? Self.reorderedPictures(&reader, layers, bytes)
    }

    /// The value of the highest temporal layer, which is the largest.
    private static func reorderedPictures(
        _ reader: inout BitReader, _ layers: Int, _ bytes: Span<UInt8>
    ) throws(WireError) -> Int {
        _ = try reader.exponentialGolomb(in: bytes)
        let isToldOfEach = try reader.flag(in: bytes)
        var reordered: UInt32 = 0
        for _ in 0...(isToldOfEach ? layers : 0) {
            _ = try reader.exponentialGolomb(in: bytes)
            reordered = try reader.exponentialGolomb(in: bytes)
            _ = try reader.exponentialGolomb(in: bytes)
        }
        guard reordered <= 16 else { throw .invalid(.hevcSequenceParameters) }
        return Int(reordered)
    }

    private static func size(
        _ chromaFormat: UInt32, _ reader: inout BitReader, _ bytes: Span<UInt8>
    ) throws(WireError) -> VideoResolution {
        var width = Int(try reader.exponentialGolomb(in: bytes))
        var height = Int(try reader.exponentialGolomb(in: bytes))
        if try reader.flag(in: bytes) {
            let (unitX, unitY) = (chromaFormat == 1 || chromaFormat == 2 ? 2 : 1, chromaFormat == 1 ? 2 : 1)
            let left = Int(try reader.exponentialGolomb(in: bytes))
            let right = Int(try reader.exponentialGolomb(in: bytes))
            let top = Int(try reader.exponentialGolomb(in: bytes))
            let bottom = Int(try reader.exponentialGolomb(in: bytes))
            width -= (left + right) * unitX
            height -= (top + bottom) * unitY
        }
        guard 1...65_536 ~= width, 1...65_536 ~= height else { throw .invalid(.hevcSequenceParameters) }
        return VideoResolution(width: width, height: height)
    }

    /// Skips the profiles and levels of single temporal layers.
    /// - Parameter layers: number of temporal layers above the lowest.
    private static func skipLayers(
        _ reader: inout BitReader, _ layers: Int, _ bytes: Span<UInt8>
    ) throws(WireError) {
        guard layers > 0 else { return }
        var length = 0
        for layer in 0..<8 {
            let (hasProfile, hasLevel) = (try reader.flag(in: bytes), try reader.flag(in: bytes))
            guard layer < layers else { continue }
            length += (hasProfile ? 88 : 0) + (hasLevel ? 8 : 0)
        }
        try reader.skip(length)
    }
}
