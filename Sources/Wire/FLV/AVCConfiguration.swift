/// What an H.264 decoder needs before the first picture, and the width of the lengths before NAL units.
/// - Source: ISO/IEC 14496-15 §5.3.3.1.2 (AVCDecoderConfigurationRecord), §5.3.2 (units with lengths).
package struct AVCConfiguration: Equatable, Sendable {
    /// `profile_idc`: 66 is baseline, 77 main, 100 high.
    package let profile: UInt8
    /// `level_idc`: ten times the level.
    package let level: UInt8
    /// Bytes of the length field before each NAL unit: 1, 2 or 4.
    package let lengthSize: Int
    /// Sequence parameter sets with their header bytes; at least one.
    package let sequenceParameters: [[UInt8]]
    /// Picture parameter sets with their header bytes.
    package let pictureParameters: [[UInt8]]

    /// Most NAL units of one picture: slices, parameter sets and SEI.
    package static let unitLimit = 1_024

    /// Parses a record of version 1.
    /// - Throws: `.truncated`, or `.invalid` for another version, lengths of three bytes, or no sequence parameter
    ///   set.
    package init(parsing bytes: Span<UInt8>) throws(WireError) {
        try bytes.require(6)
        guard try bytes.uint8(at: 0) == 1 else { throw .invalid(.avcVersion) }
        profile = try bytes.uint8(at: 1)
        level = try bytes.uint8(at: 3)
        let size = try Int(bytes.uint8(at: 4) & 3) + 1
        guard size != 3 else { throw .invalid(.avcLengthSize) }
        lengthSize = size
        var offset = 5
        sequenceParameters = try Self.sets(in: bytes, at: &offset, mask: 0x1F)
        pictureParameters = try Self.sets(in: bytes, at: &offset, mask: 0xFF)
        guard !sequenceParameters.isEmpty else { throw .invalid(.avcParameterSets) }
    }

    /// The parsed sequence parameters; nil if they are malformed.
    package var pictures: H264SequenceParameters? {
        guard let first = sequenceParameters.first, first.count > 1 else { return nil }
        return try? H264SequenceParameters(parsing: first.span.extracting(1..<first.count))
    }

    private static func sets(
        in bytes: Span<UInt8>, at offset: inout Int, mask: UInt8
    ) throws(WireError) -> [[UInt8]] {
        let count = try bytes.uint8(at: offset) & mask
        offset += 1
        var sets: [[UInt8]] = []
        for _ in 0..<count {
            let length = try Int(bytes.uint16(at: offset))
            guard length > 0 else { throw .invalid(.avcParameterSets) }
            sets.append(try bytes.bytes((offset + 2)..<(offset + 2 + length)))
            offset += 2 + length
        }
        return sets
    }

    /// The ranges of a picture's NAL units, each with its header byte; empty ones are omitted.
    package func units(in bytes: Span<UInt8>) throws(WireError) -> [Range<Int>] {
        try Self.units(in: bytes, lengthSize: lengthSize)
    }

    /// The same for other formats with such length fields.
    /// - Parameter lengthSize: 1, 2 or 4.
    static func units(in bytes: Span<UInt8>, lengthSize: Int) throws(WireError) -> [Range<Int>] {
        var units: [Range<Int>] = []
        var offset = 0
        while offset < bytes.count {
            let length: Int
            switch lengthSize {
            case 1: length = try Int(bytes.uint8(at: offset))
            case 2: length = try Int(bytes.uint16(at: offset))
            default: length = try Int(bytes.uint32(at: offset))
            }
            let start = offset + lengthSize
            guard length <= bytes.count - start else { throw .truncated }
            offset = start + length
            guard length > 0 else { continue }
            guard units.count < unitLimit else { throw .invalid(.avcUnits) }
            units.append(start..<offset)
        }
        return units
    }
}

extension WireError.Field {
    /// A record version other than 1.
    package static var avcVersion: Self { .init("avc.version") }
    /// Length fields of three bytes.
    package static var avcLengthSize: Self { .init("avc.lengthSize") }
    /// No sequence parameter set, or an empty parameter set.
    package static var avcParameterSets: Self { .init("avc.parameterSets") }
    /// More NAL units than a picture has.
    package static var avcUnits: Self { .init("avc.units") }
}
