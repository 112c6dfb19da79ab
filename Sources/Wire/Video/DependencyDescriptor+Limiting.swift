extension DependencyDescriptor {
    /// Changes the descriptor of a key frame so that spatial layers above a limit are inactive.
    ///
    /// A receiver that expects them, such as another server, would wait for frames that are not sent. The value is
    /// parsed again, because key frames are rare.
    /// - Parameter value: the value of the extension element.
    /// - Returns: the new value; nil if nothing changes, or the old one has no structure.
    /// - Source: RTP Payload Format for AV1, appendix A.8.3 and A.8.4 (`active_decode_targets_bitmask`).
    package static func limiting(_ value: Span<UInt8>, toSpatialLayer limit: UInt8) -> [UInt8]? {
        guard let descriptor = try? DependencyDescriptor(parsing: value, structure: nil),
            let structure = descriptor.attachedStructure, let active = descriptor.activeDecodeTargets
        else { return nil }
        let wanted = active & structure.decodeTargets(upTo: limit)
        guard wanted != active, wanted != 0 else { return nil }
        let place = descriptor.structureEnd
        let rest = descriptor.tellsActiveDecodeTargets ? place &+ structure.decodeTargetCount : place
        var bits = BitCopy()
        // After the mandatory fields there is one flag for a structure, and then one for active decode targets.
        bits.append(value, 0..<25)
        bits.append(1, width: 1)
        bits.append(value, 26..<place)
        bits.append(wanted, width: structure.decodeTargetCount)
        bits.append(value, rest..<(value.count &* 8))
        return bits.bytes
    }
}

/// Builds bytes from bit fields of other bytes, padded with zeros to whole bytes.
private struct BitCopy {
    private(set) var bytes: [UInt8] = []
    private var count = 0

    mutating func append(_ value: UInt32, width: Int) {
        for shift in stride(from: width &- 1, through: 0, by: -1) {
            appendBit(value >> UInt32(truncatingIfNeeded: shift) & 1 != 0)
        }
    }

    /// Copies a range of bits.
    /// - Parameter range: in bits, within `source`.
    mutating func append(_ source: Span<UInt8>, _ range: Range<Int>) {
        for position in range {
            guard let byte = try? source.uint8(at: position >> 3) else { return }
            appendBit(byte >> UInt8(truncatingIfNeeded: 7 &- position & 7) & 1 != 0)
        }
    }

    private mutating func appendBit(_ isSet: Bool) {
        if count & 7 == 0 { bytes.append(0) }
        if isSet { bytes[count >> 3] |= 0x80 >> UInt8(truncatingIfNeeded: count & 7) }
        count &+= 1
    }
}
