import Wire

/// AV1 pictures in several spatial layers with dependency descriptors, like Chromium's `L3T1_KEY`.
///
/// - Source: RTP Payload Format for AV1 §4.4 (aggregation header), appendix A (dependency descriptor).
extension SyntheticVideo {
    /// The bytes before a packet's filler: the aggregation header, and at the start of a frame its header.
    func av1Payload(ofLayer layer: Int, isKeyFrame: Bool, isFirst: Bool, isLast: Bool) -> [UInt8] {
        let startsSequence = isKeyFrame && isFirst && layer == 0
        // The bits Z and Y, one OBU element, and N.
        var bytes: [UInt8] = [
            (isFirst ? 0 : 0x80) | (isLast ? 0 : 0x40) | 0x10 | (startsSequence ? 0x08 : 0)
        ]
        guard isFirst else { return bytes }
        // OBU_FRAME with an extension that contains the layer; then a shown key frame, or a frame that refers to
        // others.
        bytes += [6 << 3 | 0x04, UInt8(layer) << 3, isKeyFrame && layer == 0 ? 0x10 : 0x30]
        return bytes
    }

    /// The dependency descriptor of a packet, with the template structure in the first packet of a key frame.
    func dependencyDescriptor(ofLayer layer: Int, isKeyFrame: Bool, isFirst: Bool, isLast: Bool) -> [UInt8] {
        let count = settings.spatialLayers
        let number = frameNumber &* UInt32(count) &+ UInt32(layer)
        var bits = BitList()
        bits.append(isFirst ? 1 : 0, 1)
        bits.append(isLast ? 1 : 0, 1)
        // Each layer has two templates, the first of which is for key pictures.
        bits.append(UInt32(layer * 2 + (isKeyFrame ? 0 : 1)), 6)
        bits.append(number & 0xFFFF, 16)
        if isKeyFrame, isFirst, layer == 0 {
            // A template structure follows, and nothing specific to this frame.
            bits.append(0b10000, 5)
            appendStructure(to: &bits)
        }
        return bits.bytes
    }

    /// The template structure: layers, decode targets, dependencies and sizes.
    private func appendStructure(to bits: inout BitList) {
        let count = settings.spatialLayers
        // Template IDs begin with 0, and each layer has a decode target.
        bits.append(0, 6)
        bits.append(UInt32(count - 1), 5)
        // Where the next template is: in the same layer, in the next one, or there is none.
        for layer in 0..<count {
            bits.append(0, 2)
            bits.append(layer == count - 1 ? 3 : 2, 2)
        }
        for layer in 0..<count {
            for isKey in [true, false] {
                for target in 0..<count {
                    // Decode target indication: 2 (switch) if the frame belongs to the target, 0 (not present) if it
                    // does not.
                    bits.append(target == layer || (isKey && target > layer) ? 2 : 0, 2)
                }
            }
        }
        for layer in 0..<count {
            // A key picture refers to the layer below, other pictures to the same layer of the previous picture.
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

    /// The number 0 among at most as many chains as there are decode targets, in the code `ns(n)`.
    private func appendNoChains(to bits: inout BitList) {
        let limit = settings.spatialLayers + 1
        let width = Int.bitWidth - limit.leadingZeroBitCount
        // The first values have a shorter code if not all codes of the full width are needed.
        bits.append(0, (1 << width) - limit > 0 ? width - 1 : width)
    }
}

/// Bit fields, most significant bit first; the last byte is filled with zeros.
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
