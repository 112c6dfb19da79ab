import Wire

/// Makes Opus packets that decode to silence, of a chosen size, with room for a stamp.
///
/// The silent frame comes first; the rest of the packet is Opus padding, which decoders skip whatever it contains.
/// - Source: RFC 6716 §3.1, §3.2.5 (code 3 packets), RFC 7587.
package struct SyntheticAudio {
    /// Duration of one packet.
    package static let packetMilliseconds = 20

    /// Fullband CELT, 20 ms, mono, code 3.
    private static let tableOfContents: UInt8 = 31 << 3 | 3
    /// One frame, with padding.
    private static let frameCount: UInt8 = 0x41
    /// What libopus writes for digital silence.
    private static let silence: [UInt8] = [0xFF, 0xFE]

    /// The same for every packet except for the stamp.
    package let payload: [UInt8]
    /// Position of the stamp.
    package let stampOffset: Int

    /// - Parameter bitrate: in bits per second; packets have at least 14 bytes.
    package init(bitrate: Int) {
        let wanted = max(bitrate / 8 * Self.packetMilliseconds / 1_000, 14)
        var bytes = [Self.tableOfContents, Self.frameCount]
        // A length byte of 255 stands for 254 bytes of padding, and another length byte follows.
        var padding = wanted - 2 - 1 - Self.silence.count
        var lengths: [UInt8] = []
        while padding > 254 {
            lengths.append(255)
            padding -= 255
        }
        lengths.append(UInt8(clamping: max(padding, 0)))
        bytes += lengths
        bytes += Self.silence
        stampOffset = bytes.count
        bytes.append(repeating: 0, count: max(wanted - bytes.count, MediaStamp.length))
        payload = bytes
    }

    /// The stamp of a packet made here.
    package static func stamp(in payload: Span<UInt8>) throws(WireError) -> MediaStamp? {
        guard let offset = try stampOffset(in: payload) else { return nil }
        return MediaStamp(bits: try payload.uint64(at: offset))
    }

    /// Position of the stamp in a packet made here; nil in other packets.
    package static func stampOffset(in payload: Span<UInt8>) throws(WireError) -> Int? {
        guard try payload.uint8(at: 0) == tableOfContents, try payload.uint8(at: 1) == frameCount else {
            return nil
        }
        var offset = 2
        while try payload.uint8(at: offset) == 255 { offset &+= 1 }
        return offset &+ 1 &+ silence.count
    }
}
