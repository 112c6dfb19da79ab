/// Converts an H.264 picture from Annex B, as encoders and transport streams have it, to the form of MP4 and FLV.
/// - Source: ITU-T H.264 annex B; ISO/IEC 14496-15 §5.3.3.1.2 (AVCDecoderConfigurationRecord).
package struct AnnexBPicture {
    private enum UnitType {
        static let refresh: UInt8 = 5
        static let sequenceParameters: UInt8 = 7
        static let pictureParameters: UInt8 = 8
    }

    /// NAL units, each with a length field of four bytes.
    package private(set) var units: [UInt8] = []
    /// Sequence parameter sets with their header bytes.
    package private(set) var sequenceParameters: [[UInt8]] = []
    /// Picture parameter sets with their header bytes.
    package private(set) var pictureParameters: [[UInt8]] = []
    /// Whether a decoder can start here.
    package private(set) var isRefresh = false

    /// - Parameter bytes: NAL units separated by start codes; bytes before the first start code are skipped.
    package init(parsing bytes: Span<UInt8>) {
        units.reserveCapacity(bytes.count + 64)
        var start: Int?
        var zeros = 0
        for index in bytes.indices {
            let byte = bytes[index]
            if byte == 1, zeros >= 2 {
                // A NAL unit never ends with a zero byte: zeros before a start code are padding.
                if let start, index - zeros > start { append(bytes.extracting(start..<(index - zeros))) }
                start = index + 1
            }
            zeros = byte == 0 ? zeros + 1 : 0
        }
        if let start, bytes.count - zeros > start {
            append(bytes.extracting(start..<(bytes.count - zeros)))
        }
    }

    private mutating func append(_ unit: Span<UInt8>) {
        guard let copy = try? unit.bytes(0..<unit.count), let first = copy.first else { return }
        switch first & 0x1F {
        case UnitType.sequenceParameters: sequenceParameters.append(copy)
        case UnitType.pictureParameters: pictureParameters.append(copy)
        case UnitType.refresh: isRefresh = true
        default: break
        }
        units.append(bigEndian: UInt32(truncatingIfNeeded: copy.count))
        units += copy
    }

    /// An AVCDecoderConfigurationRecord of the parameter sets; nil without both kinds.
    package var configurationRecord: [UInt8]? {
        guard let first = sequenceParameters.first, first.count >= 4, !pictureParameters.isEmpty,
            sequenceParameters.count <= 31, pictureParameters.count <= 255,
            (sequenceParameters + pictureParameters).allSatisfy({ $0.count <= 0xFFFF })
        else { return nil }
        var record: [UInt8] = [1, first[1], first[2], first[3], 0xFF]
        record.append(0xE0 | UInt8(truncatingIfNeeded: sequenceParameters.count))
        for set in sequenceParameters {
            record.append(bigEndian: UInt16(truncatingIfNeeded: set.count))
            record += set
        }
        record.append(UInt8(truncatingIfNeeded: pictureParameters.count))
        for set in pictureParameters {
            record.append(bigEndian: UInt16(truncatingIfNeeded: set.count))
            record += set
        }
        return record
    }
}
