import Wire

/// Splits VP9 pictures into the payloads of RTP packets.
///
/// Encoders of programmes produce a single layer, so the picture ID is enough to detect loss. A picture that is not
/// shown is stored together with one that is (a superframe), as in files, and is not separated.
/// - Source: RFC 9628 §4.2 (descriptor), §4.2.1 (scalability structure).
enum VP9Payloads {
    /// Bits of the first byte of the descriptor.
    private enum Flag {
        static let hasPictureID: UInt8 = 0x80
        static let isInterPredicted: UInt8 = 0x40
        static let startsFrame: UInt8 = 0x08
        static let endsFrame: UInt8 = 0x04
        static let hasStructure: UInt8 = 0x02
    }

    /// First byte of the scalability structure: one layer, followed by its size.
    private static let structure: UInt8 = 0x10
    /// Bytes of a descriptor with the structure.
    private static let longestDescriptor = 8

    /// Splits one picture into payloads of about equal size.
    /// - Parameters:
    ///   - picture: as files store it.
    ///   - number: of the picture; 15 bits are sent.
    static func payloads(of picture: Span<UInt8>, _ header: VP9FrameHeader, number: UInt16) -> [[UInt8]] {
        let room = PicturePacketizer.maximumPayload - longestDescriptor
        let count = (picture.count + room - 1) / room
        // A short last packet would cost as much as a full one.
        let size = (picture.count + max(count, 1) - 1) / max(count, 1)
        return (0..<count).map { index in
            let (isFirst, isLast) = (index == 0, index == count - 1)
            var flags = Flag.hasPictureID
            if !header.isKeyFrame { flags |= Flag.isInterPredicted }
            if isFirst { flags |= Flag.startsFrame }
            if isLast { flags |= Flag.endsFrame }
            var payload: [UInt8] = [flags]
            payload.reserveCapacity(longestDescriptor + size)
            payload.append(bigEndian: number | 0x8000)
            if isFirst, header.isKeyFrame, let size = header.resolution {
                payload[0] |= Flag.hasStructure
                payload.append(structure)
                payload.append(bigEndian: UInt16(clamping: size.width))
                payload.append(bigEndian: UInt16(clamping: size.height))
            }
            for place in (index * size)..<min((index + 1) * size, picture.count) {
                payload.append(picture[place])
            }
            return payload
        }
    }
}
