import Base
import Peer
import TestSupport
import Wire

@testable import Forwarding

/// Packets of AV1 in spatial layers, as `L3T1_KEY` has them, with dependency descriptors written by hand.
struct AV1Layers {
    static let extensionID: UInt8 = 12

    /// Half as high as they are wide; there is a spatial layer of each.
    var heights: [UInt32]
    /// Added to each template's id.
    var firstTemplate: UInt32 = 0

    private static let reader: PacketReader = {
        var ids = ExtensionIDs()
        ids.dependencyDescriptor = extensionID
        return PacketReader(formats: [MediaFormat(codec: .av1, payloadType: 96)], ids: ids)
    }()

    /// What all that follow refer to.
    func structure() throws -> DependencyStructure? {
        let value = descriptor(of: 0, frame: 0, isKey: true, isFirst: true, isLast: true)
        return try DependencyDescriptor(parsing: value.span, structure: nil).attachedStructure
    }

    /// - Parameter targets: what is told of the decode targets that are active; nil for nothing.
    func descriptor(
        of layer: Int, frame: Int, isKey: Bool, isFirst: Bool, isLast: Bool, targets: UInt32? = nil
    ) -> [UInt8] {
        let count = heights.count
        let template = (firstTemplate + UInt32(layer * 2 + (isKey ? 0 : 1))) & 0x3F
        var fields: [(value: UInt32, bits: Int)] = [
            (isFirst ? 1 : 0, 1), (isLast ? 1 : 0, 1), (template, 6), (UInt32(frame & 0xFFFF), 16),
        ]
        if isKey, isFirst, layer == 0 {
            fields += [(targets == nil ? 0b10000 : 0b11000, 5), (firstTemplate, 6), (UInt32(count - 1), 5)]
            for layer in heights.indices { fields += [(0, 2), (layer == count - 1 ? 3 : 2, 2)] }
            for layer in heights.indices {
                // What a key picture's layer is to each decode target, and then what another picture's is.
                fields += heights.indices.map { ($0 >= layer ? 2 : 0, 2) }
                fields += heights.indices.map { ($0 == layer ? 2 : 0, 2) }
            }
            for layer in heights.indices {
                fields += layer > 0 ? [(1, 1), (0, 4), (0, 1)] : [(0, 1)]
                fields += [(1, 1), (UInt32(count - 1), 4), (0, 1)]
            }
            // No chains: 0 of two, three or four values.
            fields.append((0, count == 3 ? 2 : 1))
            fields.append((1, 1))
            for height in heights { fields += [(height * 2 - 1, 16), (height - 1, 16)] }
            if let targets { fields.append((targets, count)) }
        }
        return pack(fields)
    }

    private func pack(_ fields: [(value: UInt32, bits: Int)]) -> [UInt8] {
        var bits = fields.flatMap { field in
            (0..<field.bits).reversed().map { UInt8(field.value >> UInt32($0) & 1) }
        }
        while !bits.count.isMultiple(of: 8) { bits.append(0) }
        return stride(from: 0, to: bits.count, by: 8).map { bits[$0..<($0 + 8)].reduce(0) { $0 << 1 | $1 } }
    }

    /// A packet of RTP with a descriptor in the two-byte form.
    static func bytes(
        _ descriptor: [UInt8], _ sequence: Int64, timestamp: UInt32, marker: Bool, isFirst: Bool,
        size: Int = 8
    ) -> [UInt8] {
        var elements = [extensionID, UInt8(descriptor.count)] + descriptor
        while elements.count % 4 != 0 { elements.append(0) }
        var bytes: [UInt8] = [0x90, (marker ? 0x80 : 0) | 96]
        bytes.append(bigEndian: UInt16(truncatingIfNeeded: sequence))
        bytes.append(bigEndian: timestamp)
        bytes.append(bigEndian: UInt32(7))
        bytes += [0x10, 0x00, 0, UInt8(elements.count / 4)] + elements
        // One element: a frame that needs others, or a piece of it.
        bytes += [isFirst ? 0x10 : 0x90, 0x30, 0x30]
        return bytes + [UInt8](repeating: 1, count: size)
    }

    static func packet(
        _ bytes: [UInt8], _ sequence: Int64, _ structure: DependencyStructure?
    ) throws -> MediaPacket {
        var packet = try reader.read(bytes.span, RTPHeader(parsing: bytes.span), structure: structure)
        packet.sequenceNumber = sequence
        return packet
    }
}
