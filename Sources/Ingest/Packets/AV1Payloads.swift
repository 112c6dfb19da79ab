import Wire

/// Cuts pictures of AV1 into payloads of RTP packets.
///
/// A packet ends with the picture or within a unit, never between two: receivers that get no dependency descriptor take
/// a packet that begins with a unit for the beginning of a picture.
/// - Source: RTP Payload Format for AV1 §4.4 (aggregation header), §5 (units that are left out, sequence headers).
enum AV1Payloads {
    private enum Flag {
        /// Z: the first element goes on with a unit of the packet before.
        static let continues: UInt8 = 0x80
        /// Y: the next packet goes on with the last element.
        static let isContinued: UInt8 = 0x40
        /// N: a coded video sequence begins.
        static let startsSequence: UInt8 = 0x08
    }

    /// Before each element its length is said, in two bytes at most (W is 0).
    private static let longestLength = 2

    /// - Parameters:
    ///   - picture: its units; empty for nothing.
    ///   - sequenceHeader: for a key frame that comes without.
    static func payloads(of picture: AV1Units, sequenceHeader: [UInt8]?) -> [[UInt8]] {
        let isKeyFrame = picture.isKeyFrame
        // Decoders keep it, and forwarding takes one for the beginning of a sequence.
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
                // The next unit has to begin in this packet, too.
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
