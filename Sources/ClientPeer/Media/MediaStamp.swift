import Base
import Wire

/// When a packet of synthetic media left its publisher, as it is written into the packet's payload.
///
/// Sixteen bits that tell it from other bytes, and microseconds of the machine's monotonic clock: publisher and viewer
/// have to be on one machine for it to mean something.
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

    /// As it stands in the payload, big-endian.
    package var bits: UInt64 {
        Self.mark | UInt64(bitPattern: time.nanoseconds / 1_000) & Self.mask
    }

    /// Overwrites what stands at `offset`; a payload that is too short stays as it is.
    package func write(to payload: inout [UInt8], at offset: Int) {
        guard offset >= 0, offset + Self.length <= payload.count else { return }
        for index in 0..<Self.length {
            payload[offset + index] = UInt8(truncatingIfNeeded: bits >> UInt64(56 - 8 * index))
        }
    }

    /// Where `SyntheticVideo` has its stamp.
    /// - Parameter payload: of RTP, beginning with a VP8 descriptor.
    package static func offset(inVideo payload: Span<UInt8>) throws(WireError) -> Int {
        let descriptor = try VP8Descriptor(parsing: payload)
        guard descriptor.startsFrame else { return descriptor.length }
        let isKeyFrame = try payload.uint8(at: descriptor.length) & 1 == 0
        return descriptor.length + (isKeyFrame ? 10 : 3)
    }
}

/// Which stream a packet of synthetic media belongs to, as it is written behind the packet's stamp.
///
/// It tells a receiver what a server put into a slot, whatever the server says of it. Sixteen bits tell it from other
/// bytes; the rest is a hash of the stream's name, and which simulcast layer it is.
/// - Source: FNV-1a, RFC 9923.
package struct StreamTag: Hashable, Sendable {
    private static let mark: UInt64 = 0x5EED << 48
    private static let mask: UInt64 = 1 << 48 - 1
    private static let layerMask: UInt64 = 3
    /// Bytes in a payload.
    package static let length = 8
    /// Behind the stamp of video stand the frame's number and the packet's.
    package static let offsetInVideo = MediaStamp.length + 6
    /// From the stamp of `SyntheticAudio`.
    package static let offsetInAudio = MediaStamp.length
    /// From a tag to the stamp behind it, which says when the media was captured.
    package static let toCapture = length

    /// As it stands in the payload, big-endian.
    package let bits: UInt64

    /// - Parameter layer: 0 for the best one, which sound counts as; at most 3.
    package init(stream name: String, layer: Int = 0) {
        let hash = name.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        let name = (hash ^ hash >> 48) & Self.mask & ~Self.layerMask
        bits = Self.mark | name | UInt64(clamping: layer) & Self.layerMask
    }

    /// 0 for the best one.
    package var layer: Int { Int(bits & Self.layerMask) }
    /// The same for all layers.
    package var ofStream: StreamTag { StreamTag(bits: bits & ~Self.layerMask) ?? self }

    /// - Returns: nil if the bits are no tag.
    package init?(bits: UInt64) {
        guard bits & ~Self.mask == Self.mark else { return nil }
        self.bits = bits
    }

    /// Overwrites what stands at `offset`; a payload that is too short stays as it is.
    package func write(to payload: inout [UInt8], at offset: Int) {
        guard offset >= 0, offset + Self.length <= payload.count else { return }
        for index in 0..<Self.length {
            payload[offset + index] = UInt8(truncatingIfNeeded: bits >> UInt64(56 - 8 * index))
        }
    }
}
