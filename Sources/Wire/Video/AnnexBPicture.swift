/// A picture of H.264 as encoders and transport streams have it, made what containers of files and FLV have.
/// - Source: ITU-T H.264 annex B; ISO/IEC 14496-15 §5.3.3.1.2 (AVCDecoderConfigurationRecord).
package struct AnnexBPicture {
    private enum UnitType {
        static let refresh: UInt8 = 5
        static let sequenceParameters: UInt8 = 7
        static let pictureParameters: UInt8 = 8
    }

    /// Units, each behind its length in four bytes.
    package private(set) var units: [UInt8] = []
    /// With their header bytes, as are the others.
    package private(set) var sequenceParameters: [[UInt8]] = []
    package private(set) var pictureParameters: [[UInt8]] = []
    /// Whether decoders can begin here.
    package private(set) var isRefresh = false

    /// - Parameter bytes: units between start codes; what stands before the first is left out.
    package init(parsing bytes: Span<UInt8>) {
        units.reserveCapacity(bytes.count + 64)
        var start: Int?
        var zeros = 0
        for index in bytes.indices {
            let byte = bytes[index]
            if byte == 1, zeros >= 2 {
                // What ends a unit is never zero.
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

    /// The record that says what its parameter sets say; nil without both kinds.
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
