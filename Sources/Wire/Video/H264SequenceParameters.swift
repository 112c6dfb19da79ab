/// The properties of pictures in an H.264 sequence parameter set.
/// - Source: ITU-T H.264 §7.3.2.1.1 (syntax), §7.4.2.1.1 (semantics), §7.4.1 (emulation prevention), annex E.
package struct H264SequenceParameters: Equatable, Sendable {
    /// `profile_idc`: 66 is baseline, 77 main, 100 high.
    package let profile: UInt8
    /// Chroma subsampling: 0 for monochrome, 1 for 4:2:0, 2 for 4:2:2, 3 for 4:4:4.
    package let chromaFormat: UInt8
    /// Bits per sample; the larger value of luma and chroma.
    package let bitDepth: Int
    /// The picture after cropping.
    package let resolution: VideoResolution
    /// Whether pictures may consist of two fields, as in interlaced video (`frame_mbs_only_flag`).
    package let mayHaveFields: Bool
    /// How many pictures may be displayed after one that follows them in decoding order, as with B-frames; nil if
    /// unknown.
    package let reorderedPictures: Int?

    /// Bytes that are read at most, enough for a set with scaling lists.
    private static let maximumLength = 512
    private static let baseline: UInt32 = 66
    /// Profiles that contain the chroma format.
    private static let highProfiles: Set<UInt32> = [
        44, 83, 86, 100, 110, 118, 122, 128, 134, 135, 138, 139, 244,
    ]

    /// - Parameter body: the NAL unit after its header byte.
    package init(parsing body: Span<UInt8>) throws(WireError) {
        let raw = Self.unescaped(body)
        let bytes = raw.span
        var reader = BitReader(0..<bytes.count)
        let profile = try reader.bits(8, in: bytes)
        self.profile = UInt8(truncatingIfNeeded: profile)
        // Constraint flags and level.
        try reader.skip(16)
        // seq_parameter_set_id.
        _ = try reader.exponentialGolomb(in: bytes)
        let samples = Self.highProfiles.contains(profile) ? try Self.highFields(&reader, bytes) : Samples()
        chromaFormat = UInt8(truncatingIfNeeded: samples.chromaFormat)
        bitDepth = samples.bitDepth
        // log2_max_frame_num, then the picture order count type.
        _ = try reader.exponentialGolomb(in: bytes)
        let order = try Self.skipPictureOrder(&reader, bytes)
        // max_num_ref_frames, gaps_in_frame_num_value_allowed_flag.
        _ = try reader.exponentialGolomb(in: bytes)
        try reader.skip(1)
        (resolution, mayHaveFields) = try Self.size(samples.chromaFormat, &reader, bytes)
        // Baseline has no B slices, and with order type 2 the output order is the decoding order (§7.4.2.1.1).
        let isInOrder = profile == Self.baseline || order == 2
        reorderedPictures = isInOrder ? 0 : try? Self.reorderedPictures(&reader, bytes)
    }

    private static func size(
        _ chromaFormat: UInt32, _ reader: inout BitReader, _ bytes: Span<UInt8>
    ) throws(WireError) -> (VideoResolution, mayHaveFields: Bool) {
        let width = try UInt64(reader.exponentialGolomb(in: bytes)) &+ 1
        let height = try UInt64(reader.exponentialGolomb(in: bytes)) &+ 1
        let isFrameCoded = try reader.flag(in: bytes)
        if !isFrameCoded { try reader.skip(1) }
        try reader.skip(1)
        let mapUnits: UInt64 = isFrameCoded ? 1 : 2
        var size = (width: width &* 16, height: height &* 16 &* mapUnits)
        if try reader.flag(in: bytes) {
            // Units of cropping: chroma samples, and two lines each in field coding.
            let unitX: UInt64 = chromaFormat == 1 || chromaFormat == 2 ? 2 : 1
            let unitY: UInt64 = (chromaFormat == 1 ? 2 : 1) &* mapUnits
            let left = try UInt64(reader.exponentialGolomb(in: bytes))
            let right = try UInt64(reader.exponentialGolomb(in: bytes))
            let top = try UInt64(reader.exponentialGolomb(in: bytes))
            let bottom = try UInt64(reader.exponentialGolomb(in: bytes))
            let crop = (width: (left &+ right) &* unitX, height: (top &+ bottom) &* unitY)
            guard crop.width < size.width, crop.height < size.height else {
                throw .invalid(.h264SequenceParameters)
            }
            size = (size.width &- crop.width, size.height &- crop.height)
        }
        guard size.width <= 65_536, size.height <= 65_536 else { throw .invalid(.h264SequenceParameters) }
        return (VideoResolution(width: Int(size.width), height: Int(size.height)), !isFrameCoded)
    }

    /// The values in profiles that do not contain them.
    private struct Samples {
        var chromaFormat: UInt32 = 1
        var bitDepth = 8
    }

    private static func highFields(
        _ reader: inout BitReader, _ bytes: Span<UInt8>
    ) throws(WireError) -> Samples {
        let chromaFormat = try reader.exponentialGolomb(in: bytes)
        guard chromaFormat <= 3 else { throw .invalid(.h264SequenceParameters) }
        if chromaFormat == 3 { try reader.skip(1) }
        let luma = try reader.exponentialGolomb(in: bytes)
        let chroma = try reader.exponentialGolomb(in: bytes)
        guard max(luma, chroma) <= 6 else { throw .invalid(.h264SequenceParameters) }
        let samples = Samples(chromaFormat: chromaFormat, bitDepth: 8 + Int(max(luma, chroma)))
        try reader.skip(1)
        guard try reader.flag(in: bytes) else { return samples }
        for index in 0..<(chromaFormat == 3 ? 12 : 8) where try reader.flag(in: bytes) {
            try skipScalingList(size: index < 6 ? 16 : 64, &reader, bytes)
        }
        return samples
    }

    // MARK: Usability

    /// Reads the usability information up to the number of reordered pictures.
    /// - Source: annex E.1.1 (`max_num_reorder_frames`).
    /// - Returns: nil if it is not present.
    private static func reorderedPictures(
        _ reader: inout BitReader, _ bytes: Span<UInt8>
    ) throws(WireError) -> Int? {
        guard try reader.flag(in: bytes) else { return nil }
        // The aspect ratio, which may consist of two numbers.
        if try reader.flag(in: bytes), try reader.bits(8, in: bytes) == 255 { try reader.skip(32) }
        if try reader.flag(in: bytes) { try reader.skip(1) }
        if try reader.flag(in: bytes) {
            try reader.skip(4)
            if try reader.flag(in: bytes) { try reader.skip(24) }
        }
        if try reader.flag(in: bytes) {
            _ = try reader.exponentialGolomb(in: bytes)
            _ = try reader.exponentialGolomb(in: bytes)
        }
        // Timing, and then the parameters of two buffers.
        if try reader.flag(in: bytes) { try reader.skip(65) }
        let hasNetworkBuffer = try reader.flag(in: bytes)
        if hasNetworkBuffer { try skipBuffer(&reader, bytes) }
        let hasVideoBuffer = try reader.flag(in: bytes)
        if hasVideoBuffer { try skipBuffer(&reader, bytes) }
        if hasNetworkBuffer || hasVideoBuffer { try reader.skip(1) }
        try reader.skip(1)
        guard try reader.flag(in: bytes) else { return nil }
        try reader.skip(1)
        for _ in 0..<4 { _ = try reader.exponentialGolomb(in: bytes) }
        return Int(try reader.exponentialGolomb(in: bytes))
    }

    /// Skips the parameters of one buffer (HRD).
    /// - Source: annex E.1.2.
    private static func skipBuffer(
        _ reader: inout BitReader, _ bytes: Span<UInt8>
    ) throws(WireError) {
        let last = try reader.exponentialGolomb(in: bytes)
        guard last <= 31 else { throw .invalid(.h264SequenceParameters) }
        try reader.skip(8)
        for _ in 0...last {
            _ = try reader.exponentialGolomb(in: bytes)
            _ = try reader.exponentialGolomb(in: bytes)
            try reader.skip(1)
        }
        try reader.skip(20)
    }

    // MARK: What only has to be read over

    private static func skipScalingList(
        size: Int, _ reader: inout BitReader, _ bytes: Span<UInt8>
    ) throws(WireError) {
        var last: Int64 = 8
        for _ in 0..<size {
            let code = try Int64(reader.exponentialGolomb(in: bytes))
            let delta = code & 1 == 1 ? (code &+ 1) / 2 : 0 &- code / 2
            let next = (last &+ delta &+ 256) & 0xFF
            // A zero ends the list: the rest repeats the last value.
            guard next != 0 else { return }
            last = next
        }
    }

    /// Skips the fields of the picture order count.
    /// - Returns: pic_order_cnt_type.
    private static func skipPictureOrder(
        _ reader: inout BitReader, _ bytes: Span<UInt8>
    ) throws(WireError) -> UInt32 {
        let type = try reader.exponentialGolomb(in: bytes)
        switch type {
        case 0: _ = try reader.exponentialGolomb(in: bytes)
        case 1:
            try reader.skip(1)
            _ = try reader.exponentialGolomb(in: bytes)
            _ = try reader.exponentialGolomb(in: bytes)
            for _ in 0..<(try Int(reader.exponentialGolomb(in: bytes))) {
                _ = try reader.exponentialGolomb(in: bytes)
            }
        case 2: break
        default: throw .invalid(.h264SequenceParameters)
        }
        return type
    }

    /// Removes the bytes 3 that keep two zero bytes from forming a start code.
    static func unescaped(_ body: Span<UInt8>) -> [UInt8] {
        var raw: [UInt8] = []
        var zeros = 0
        for index in 0..<min(body.count, maximumLength) {
            let byte = body[index]
            if zeros >= 2, byte == 3 {
                zeros = 0
                continue
            }
            zeros = byte == 0 ? zeros &+ 1 : 0
            raw.append(byte)
        }
        return raw
    }
}
