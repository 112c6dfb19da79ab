import Wire

/// Pictures of AV1 in several spatial layers, with dependency descriptors, as Chromium's `L3T1_KEY` has them.
///
/// - Source: RTP Payload Format for AV1 §4.4 (aggregation header), appendix A (dependency descriptor).
extension SyntheticVideo {
    /// What stands before the filler of a packet: aggregation header, and where a frame begins its header.
    func av1Payload(ofLayer layer: Int, isKeyFrame: Bool, isFirst: Bool, isLast: Bool) -> [UInt8] {
        let startsSequence = isKeyFrame && isFirst && layer == 0
        // Z, Y, one element, and N.
        var bytes: [UInt8] = [
            (isFirst ? 0 : 0x80) | (isLast ? 0 : 0x40) | 0x10 | (startsSequence ? 0x08 : 0)
        ]
        guard isFirst else { return bytes }
        // OBU_FRAME with an extension that tells the layer; a shown key frame, or one that needs others.
        bytes += [6 << 3 | 0x04, UInt8(layer) << 3, isKeyFrame && layer == 0 ? 0x10 : 0x30]
        return bytes
    }

    /// The dependency descriptor of a packet.
    func dependencyDescriptor(ofLayer layer: Int, isKeyFrame: Bool, isFirst: Bool, isLast: Bool) -> [UInt8] {
        let count = settings.spatialLayers
        let number = frameNumber &* UInt32(count) &+ UInt32(layer)
        var bits = BitList()
        bits.append(isFirst ? 1 : 0, 1)
        bits.append(isLast ? 1 : 0, 1)
        // Two templates a layer: that of a key picture comes first.
        bits.append(UInt32(layer * 2 + (isKeyFrame ? 0 : 1)), 6)
        bits.append(number & 0xFFFF, 16)
        if isKeyFrame, isFirst, layer == 0 {
            // A structure, and nothing of the frame's own.
            bits.append(0b10000, 5)
            appendStructure(to: &bits)
        }
        return bits.bytes
    }

    private func appendStructure(to bits: inout BitList) {
        let count = settings.spatialLayers
        // Ids from 0 on, and a decode target for each layer.
        bits.append(0, 6)
        bits.append(UInt32(count - 1), 5)
        // The next template is of the same layer, of the next one, or there is none.
        for layer in 0..<count {
            bits.append(0, 2)
            bits.append(layer == count - 1 ? 3 : 2, 2)
        }
        for layer in 0..<count {
            for isKey in [true, false] {
                for target in 0..<count {
                    // Not there; what all that follows can be decoded after.
                    bits.append(target == layer || (isKey && target > layer) ? 2 : 0, 2)
                }
            }
        }
        for layer in 0..<count {
            // In a key picture the layer below, else the same layer of the picture before.
            for difference in [layer > 0 ? 1 : 0, count] {
                if difference > 0 {
                    bits.append(1, 1)
                    bits.append(UInt32(difference - 1), 4)
                }
                bits.append(0, 1)
            }
        }
        appendNoChains(to: &bits)
        bits.append(1, 1)
        for layer in 0..<count {
            let size = settings.size(ofLayer: layer)
            bits.append(UInt32(size.width - 1), 16)
            bits.append(UInt32(size.height - 1), 16)
        }
    }

    /// 0 of at most as many as there are decode targets, in the shortest code: `ns(n)`.
    private func appendNoChains(to bits: inout BitList) {
        let limit = settings.spatialLayers + 1
        let width = Int.bitWidth - limit.leadingZeroBitCount
        // The first values are a bit shorter where not all codes are needed.
        bits.append(0, (1 << width) - limit > 0 ? width - 1 : width)
    }
}

/// Fields of some bits each, the highest bit first, with zeros up to a whole byte.
private struct BitList {
    private(set) var bytes: [UInt8] = []
    private var count = 0

    mutating func append(_ value: UInt32, _ width: Int) {
        for shift in (0..<width).reversed() {
            if count % 8 == 0 { bytes.append(0) }
            bytes[count / 8] |= UInt8(value >> UInt32(shift) & 1) << UInt8(7 - count % 8)
            count += 1
        }
    }
}
