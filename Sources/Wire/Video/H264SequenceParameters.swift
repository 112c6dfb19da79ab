/// Reads the picture size out of a sequence parameter set.
/// - Source: ITU-T H.264 §7.3.2.1.1 (syntax), §7.4.2.1.1 (semantics), §7.4.1 (emulation prevention).
enum H264SequenceParameters {
    /// Enough for everything before the size, scaling lists included.
    private static let maximumLength = 512
    /// Profiles that also tell the chroma format.
    private static let highProfiles: Set<UInt32> = [
        44, 83, 86, 100, 110, 118, 122, 128, 134, 135, 138, 139, 244,
    ]

    /// - Parameter body: after the unit's header byte.
    static func resolution(_ body: Span<UInt8>) throws(WireError) -> VideoResolution {
        let raw = unescaped(body)
        let bytes = raw.span
        var reader = BitReader(0..<bytes.count)
        let profile = try reader.bits(8, in: bytes)
        // Constraint flags and level.
        try reader.skip(16)
        _ = try reader.exponentialGolomb(in: bytes)
        var chromaFormat: UInt32 = 1
        if highProfiles.contains(profile) { chromaFormat = try highFields(&reader, bytes) }
        // log2_max_frame_num, then the picture order count.
        _ = try reader.exponentialGolomb(in: bytes)
        try skipPictureOrder(&reader, bytes)
        _ = try reader.exponentialGolomb(in: bytes)
        try reader.skip(1)

        let width = try UInt64(reader.exponentialGolomb(in: bytes)) &+ 1
        let height = try UInt64(reader.exponentialGolomb(in: bytes)) &+ 1
        let isFrameCoded = try reader.flag(in: bytes)
        if !isFrameCoded { try reader.skip(1) }
        try reader.skip(1)
        let mapUnits: UInt64 = isFrameCoded ? 1 : 2
        var size = (width: width &* 16, height: height &* 16 &* mapUnits)
        if try reader.flag(in: bytes) {
            // Units of cropping: chroma samples, and in field coding two lines.
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
        return VideoResolution(width: Int(size.width), height: Int(size.height))
    }

    /// - Returns: chroma_format_idc.
    private static func highFields(
        _ reader: inout BitReader, _ bytes: Span<UInt8>
    ) throws(WireError) -> UInt32 {
        let chromaFormat = try reader.exponentialGolomb(in: bytes)
        guard chromaFormat <= 3 else { throw .invalid(.h264SequenceParameters) }
        if chromaFormat == 3 { try reader.skip(1) }
        _ = try reader.exponentialGolomb(in: bytes)
        _ = try reader.exponentialGolomb(in: bytes)
        try reader.skip(1)
        guard try reader.flag(in: bytes) else { return chromaFormat }
        for index in 0..<(chromaFormat == 3 ? 12 : 8) where try reader.flag(in: bytes) {
            try skipScalingList(size: index < 6 ? 16 : 64, &reader, bytes)
        }
        return chromaFormat
    }

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

    private static func skipPictureOrder(
        _ reader: inout BitReader, _ bytes: Span<UInt8>
    ) throws(WireError) {
        switch try reader.exponentialGolomb(in: bytes) {
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
    }

    /// Without the 3 that keeps two zero bytes from looking like a start code.
    private static func unescaped(_ body: Span<UInt8>) -> [UInt8] {
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
