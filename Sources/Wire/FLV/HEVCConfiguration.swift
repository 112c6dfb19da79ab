/// What an HEVC decoder needs before the first picture, and the width of the lengths before NAL units.
/// - Source: ISO/IEC 14496-15 §8.3.2.1 (HEVCDecoderConfigurationRecord).
package struct HEVCConfiguration: Equatable, Sendable {
    /// `general_profile_idc`: 1 is main, 2 main 10.
    package let profile: UInt8
    /// Chroma subsampling: 0 for monochrome, 1 for 4:2:0, 2 for 4:2:2, 3 for 4:4:4.
    package let chromaFormat: UInt8
    /// Bits per sample; the larger value of luma and chroma.
    package let bitDepth: Int
    /// Bytes of the length field before each NAL unit: 1, 2 or 4.
    package let lengthSize: Int
    /// Video, sequence and picture parameter sets, in this order, with their header bytes.
    package let parameterSets: [[UInt8]]

    /// Limits for parameter sets and their bytes, far above what encoders write.
    private static let setLimit = 64
    private static let byteLimit = 16 << 10
    private static let videoParameters: UInt8 = 32
    private static let sequenceParameters: UInt8 = 33
    private static let pictureParameters: UInt8 = 34

    /// Parses a record of version 1.
    /// - Throws: `.truncated`, or `.invalid` for another version, lengths of three bytes, or missing parameter
    ///   sets.
    package init(parsing bytes: Span<UInt8>) throws(WireError) {
        try bytes.require(23)
        guard try bytes.uint8(at: 0) == 1 else { throw .invalid(.hevcVersion) }
        profile = try bytes.uint8(at: 1) & 0x1F
        chromaFormat = try bytes.uint8(at: 16) & 3
        bitDepth = try 8 + Int(max(bytes.uint8(at: 17) & 7, bytes.uint8(at: 18) & 7))
        let size = try Int(bytes.uint8(at: 21) & 3) + 1
        guard size != 3 else { throw .invalid(.hevcLengthSize) }
        lengthSize = size
        var sets: [UInt8: [[UInt8]]] = [:]
        var (offset, count, total) = (23, 0, 0)
        for _ in 0..<(try bytes.uint8(at: 22)) {
            let type = try bytes.uint8(at: offset) & 0x3F
            let units = try bytes.uint16(at: offset + 1)
            offset += 3
            for _ in 0..<units {
                let length = try Int(bytes.uint16(at: offset))
                (count, total) = (count + 1, total + length)
                guard length >= 2, count <= Self.setLimit, total <= Self.byteLimit else {
                    throw .invalid(.hevcParameterSets)
                }
                sets[type, default: []].append(try bytes.bytes((offset + 2)..<(offset + 2 + length)))
                offset += 2 + length
            }
        }
        let kinds = [Self.videoParameters, Self.sequenceParameters, Self.pictureParameters].map {
            sets[$0] ?? []
        }
        guard kinds.allSatisfy({ !$0.isEmpty }) else { throw .invalid(.hevcParameterSets) }
        parameterSets = kinds.flatMap(\.self)
    }

    /// Size of the pictures; nil if the sequence parameter set is malformed.
    package var resolution: VideoResolution? {
        let set = parameterSets.first { $0.first.map { $0 >> 1 & 0x3F } == Self.sequenceParameters }
        guard let set else { return nil }
        return try? HEVCSequenceParameters(parsing: set.span.extracting(2..<set.count)).resolution
    }

    /// The ranges of a picture's NAL units, each with its header of two bytes; empty ones are omitted.
    package func units(in bytes: Span<UInt8>) throws(WireError) -> [Range<Int>] {
        try AVCConfiguration.units(in: bytes, lengthSize: lengthSize).filter { $0.count > 2 }
    }
}

extension WireError.Field {
    /// A record version other than 1.
    package static var hevcVersion: Self { .init("hevc.version") }
    /// Length fields of three bytes.
    package static var hevcLengthSize: Self { .init("hevc.lengthSize") }
    /// One of the three kinds is missing, or there are too many.
    package static var hevcParameterSets: Self { .init("hevc.parameterSets") }
    /// A size that no picture has.
    package static var hevcSequenceParameters: Self { .init("hevc.sequenceParameters") }
}
