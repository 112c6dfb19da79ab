import Wire

/// Splits AV1 pictures into the payloads of RTP packets.
///
/// A packet ends with the picture or within a unit, never between two units: receivers without the dependency
/// descriptor take a packet that begins with a unit for the beginning of a picture.
/// - Source: RTP Payload Format for AV1 §4.4 (aggregation header), §5 (units that are left out, sequence headers).
enum AV1Payloads {
    /// Bits of the aggregation header.
    private enum Flag {
        /// Z: the first element continues a unit of the packet before.
        static let continues: UInt8 = 0x80
        /// Y: the last element continues in the next packet.
        static let isContinued: UInt8 = 0x40
        /// N: a coded video sequence begins.
        static let startsSequence: UInt8 = 0x08
    }

    /// Bytes of the length before each element, at most; W is 0, so every element has one.
    private static let longestLength = 2

    /// Splits one picture; empty if it has no units.
    /// - Parameters:
    ///   - picture: its units.
    ///   - sequenceHeader: added to a key frame that does not contain one.
    static func payloads(of picture: AV1Units, sequenceHeader: [UInt8]?) -> [[UInt8]] {
        let isKeyFrame = picture.isKeyFrame
        // Outside key frames sequence headers are dropped: decoders already have them, and forwarding would take them
        // for the start of a sequence.
        var units = picture.all.filter { $0.kind != .sequenceHeader || isKeyFrame }.map(\.bytes)
        let hasHeader = picture.all.contains { $0.kind == .sequenceHeader }
        if isKeyFrame, !hasHeader, let sequenceHeader { units.insert(sequenceHeader, at: 0) }
        guard !units.isEmpty else { return [] }
        var payloads: [[UInt8]] = []
        var payload: [UInt8] = [isKeyFrame ? Flag.startsSequence : 0]
        for (index, unit) in units.enumerated() {
            let isLast = index == units.count - 1
            var rest = unit[...]
            while !rest.isEmpty {
                let room = PicturePacketizer.maximumPayload - payload.count - longestLength
                var size = min(room, rest.count)
                // The next unit has to begin in this packet, so a byte of this unit is left for the next one.
                if size == rest.count, size > 1, !isLast, room - size <= longestLength { size -= 1 }
                append(rest.prefix(size), to: &payload)
                rest = rest.dropFirst(size)
                guard !rest.isEmpty else { continue }
                payload[0] |= Flag.isContinued
                payloads.append(payload)
                payload = [Flag.continues]
            }
        }
        payloads.append(payload)
        return payloads
    }

    /// Appends an element after its length, in LEB128 of one or two bytes.
    private static func append(_ element: ArraySlice<UInt8>, to payload: inout [UInt8]) {
        if element.count > 0x7F {
            payload.append(UInt8(element.count & 0x7F) | 0x80)
            payload.append(UInt8(truncatingIfNeeded: element.count >> 7))
        } else {
            payload.append(UInt8(element.count))
        }
        payload += element
    }
}
