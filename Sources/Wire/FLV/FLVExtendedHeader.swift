/// The fields of an Enhanced RTMP tag between its first byte and its content, the same for sound and video.
///
/// Modifiers are skipped. Of several tracks only the first, with number 0, counts: an encoder sends further ones
/// besides it, such as other languages or smaller pictures.
/// - Source: Enhanced RTMP v2, `ExAudioTagHeader` and `ExVideoTagHeader` (`ModEx`, `Multitrack`).
struct FLVExtendedHeader {
    /// How a message with tracks is divided.
    private enum Division {
        static let oneTrack: UInt8 = 0
        /// Tracks of one codec, each with its length.
        static let manyTracks: UInt8 = 1
        /// The same with a codec each.
        static let manyCodecs: UInt8 = 2
    }

    /// The packet type of a modifier, which precedes the actual type.
    private static let modifier: UInt8 = 7

    /// After modifiers and the header of tracks.
    let packetType: UInt8
    /// Names the codec; 0 where there is no first track.
    private(set) var fourCC: UInt32 = 0
    /// Of the first track; empty where there is none.
    private(set) var body: Range<Int>
    /// Whether there are only other tracks than the first.
    private(set) var isOtherTrack = false

    /// Parses the header.
    /// - Parameter multitrack: the packet type of messages with tracks.
    /// - Throws: `.truncated` if it is incomplete, or if a track exceeds the message.
    init(parsing bytes: Span<UInt8>, multitrack: UInt8) throws(WireError) {
        var type = try bytes.uint8(at: 0) & 0x0F
        var offset = 1
        while type == Self.modifier {
            // One less than the length; 255 announces a longer field.
            var length = try Int(bytes.uint8(at: offset)) + 1
            offset += 1
            if length == 256 {
                length = try Int(bytes.uint16(at: offset)) + 1
                offset += 2
            }
            offset += length
            type = try bytes.uint8(at: offset) & 0x0F
            offset += 1
        }
        guard type == multitrack else {
            packetType = type
            fourCC = try bytes.uint32(at: offset)
            body = (offset + 4)..<bytes.count
            return
        }
        let first = try bytes.uint8(at: offset)
        let division = first >> 4
        packetType = first & 0x0F
        body = bytes.count..<bytes.count
        try findFirstTrack(in: bytes, from: offset + 1, division)
    }

    /// Finds the first track; a division that is not known yet has none.
    private mutating func findFirstTrack(
        in bytes: Span<UInt8>, from start: Int, _ division: UInt8
    ) throws(WireError) {
        var offset = start
        var codec: UInt32 = 0
        isOtherTrack = true
        guard division <= Division.manyCodecs else { return }
        if division != Division.manyCodecs {
            codec = try bytes.uint32(at: offset)
            offset += 4
        }
        repeat {
            if division == Division.manyCodecs {
                codec = try bytes.uint32(at: offset)
                offset += 4
            }
            let track = try bytes.uint8(at: offset)
            offset += 1
            var end = bytes.count
            if division != Division.oneTrack {
                let length = try Int(bytes.uint24(at: offset))
                offset += 3
                guard length <= bytes.count - offset else { throw .truncated }
                end = offset + length
            }
            guard track != 0 else {
                (fourCC, body, isOtherTrack) = (codec, offset..<end, false)
                return
            }
            offset = end
        } while offset < bytes.count
    }
}
