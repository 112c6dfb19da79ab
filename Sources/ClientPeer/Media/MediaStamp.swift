import Base
import Wire

/// The time at which a packet of synthetic media was sent, as it is written into the packet's payload.
///
/// Sixteen bits distinguish it from other content; the rest is the machine's monotonic clock in microseconds. So it is
/// meaningful only if publisher and viewer run on the same machine.
package struct MediaStamp: Equatable, Sendable {
    private static let mark: UInt64 = 0xBE9C << 48
    private static let mask: UInt64 = 1 << 48 - 1
    /// Bytes in a payload.
    package static let length = 8

    /// Rounded down to microseconds.
    package let time: MonotonicTime

    package init(_ time: MonotonicTime) {
        self.time = MonotonicTime(nanoseconds: time.nanoseconds / 1_000 * 1_000)
    }

    /// - Returns: nil if the bits are no stamp.
    package init?(bits: UInt64) {
        guard bits & ~Self.mask == Self.mark else { return nil }
        time = MonotonicTime(nanoseconds: Int64(bits & Self.mask) &* 1_000)
    }

    /// The stamp as a big-endian number.
    package var bits: UInt64 {
        Self.mark | UInt64(bitPattern: time.nanoseconds / 1_000) & Self.mask
    }

    /// Overwrites the bytes at `offset`; a payload that is too short stays as it is.
    package func write(to payload: inout [UInt8], at offset: Int) {
        guard offset >= 0, offset + Self.length <= payload.count else { return }
        for index in 0..<Self.length {
            payload[offset + index] = UInt8(truncatingIfNeeded: bits >> UInt64(56 - 8 * index))
        }
    }

    /// Position of the stamp that `SyntheticVideo` has written.
    /// - Parameter payload: of RTP, beginning with a VP8 descriptor.
    package static func offset(inVideo payload: Span<UInt8>) throws(WireError) -> Int {
        let descriptor = try VP8Descriptor(parsing: payload)
        guard descriptor.startsFrame else { return descriptor.length }
        let isKeyFrame = try payload.uint8(at: descriptor.length) & 1 == 0
        return descriptor.length + (isKeyFrame ? 10 : 3)
    }
}

/// The stream of a packet of synthetic media, as it is written after the packet's stamp.
///
/// It tells a receiver what a server has put into a slot, independently of the server's own reports. Sixteen bits
/// distinguish it from other content; the rest is a hash of the stream's name, and the simulcast layer.
/// - Source: FNV-1a, RFC 9923.
package struct StreamTag: Hashable, Sendable {
    private static let mark: UInt64 = 0x5EED << 48
    private static let mask: UInt64 = 1 << 48 - 1
    private static let layerMask: UInt64 = 3
    /// Bytes in a payload.
    package static let length = 8
    /// From the stamp in video: between them are the numbers of the frame and of the packet.
    package static let offsetInVideo = MediaStamp.length + 6
    /// From the stamp in audio.
    package static let offsetInAudio = MediaStamp.length
    /// From a tag to the second stamp after it, which contains the capture time.
    package static let toCapture = length

    /// The tag as a big-endian number.
    package let bits: UInt64

    /// - Parameter layer: 0 for the best layer, and for audio; at most 3.
    package init(stream name: String, layer: Int = 0) {
        let hash = name.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        let name = (hash ^ hash >> 48) & Self.mask & ~Self.layerMask
        bits = Self.mark | name | UInt64(clamping: layer) & Self.layerMask
    }

    /// 0 for the best layer.
    package var layer: Int { Int(bits & Self.layerMask) }
    /// The same tag for all layers of a stream.
    package var ofStream: StreamTag { StreamTag(bits: bits & ~Self.layerMask) ?? self }

    /// - Returns: nil if the bits are no tag.
    package init?(bits: UInt64) {
        guard bits & ~Self.mask == Self.mark else { return nil }
        self.bits = bits
    }

    /// Overwrites the bytes at `offset`; a payload that is too short stays as it is.
    package func write(to payload: inout [UInt8], at offset: Int) {
        guard offset >= 0, offset + Self.length <= payload.count else { return }
        for index in 0..<Self.length {
            payload[offset + index] = UInt8(truncatingIfNeeded: bits >> UInt64(56 - 8 * index))
        }
    }
}
