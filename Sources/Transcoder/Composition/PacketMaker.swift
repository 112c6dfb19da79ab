import Base
import Wire

/// A packet that composing gives out.
package struct ComposedPacket: Sendable {
    /// Which of the composition's tracks and layers it is for.
    package enum Kind: UInt8, Sendable {
        case audio = 0
        case video = 1
        /// The same picture, small.
        case smallVideo = 2
    }

    package let kind: Kind
    /// What the RTP time stamp stands for, on the machine's monotonic clock.
    package let captured: MonotonicTime
    /// A whole RTP packet in the clear.
    package let bytes: [UInt8]
}

/// Cuts encoded frames into RTP packets.
/// - Source: RFC 7741 §4.2 (VP8), RFC 7587 §4.2 (Opus).
struct PacketMaker {
    static let videoPayloadType: UInt8 = 96
    static let audioPayloadType: UInt8 = 111
    /// Bytes of a frame in one packet.
    static let maximumChunk = 1_130

    private let ssrc: UInt32
    private var sequenceNumber: UInt16
    private var pictureID: UInt16
    private var tl0PictureIndex: UInt8 = 0

    /// - Parameter seed: any number; another one each time that a process begins.
    init(seed: UInt64, kind: ComposedPacket.Kind) {
        self.init(seed: seed, stream: kind.rawValue)
    }

    /// - Parameter stream: tells the streams of one seed apart.
    init(seed: UInt64, stream: UInt8) {
        var mixed = seed &+ UInt64(stream) &* 0x9E37_79B9_7F4A_7C15
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed ^= mixed >> 27
        ssrc = UInt32(truncatingIfNeeded: mixed) | 1
        sequenceNumber = UInt16(truncatingIfNeeded: mixed >> 32) & 0x7FFF
        pictureID = UInt16(truncatingIfNeeded: mixed >> 48) & 0x7FFF
    }

    mutating func opus(_ payload: [UInt8], timestamp: UInt32, marker: Bool) -> [UInt8] {
        packet([], payload[...], payloadType: Self.audioPayloadType, timestamp: timestamp, marker: marker)
    }

    /// - Parameter isInHigherLayer: whether it is of the higher one of two temporal layers.
    mutating func vp8(_ frame: [UInt8], timestamp: UInt32, isInHigherLayer: Bool = false) -> [[UInt8]] {
        pictureID = (pictureID &+ 1) & 0x7FFF
        if !isInHigherLayer { tl0PictureIndex &+= 1 }
        let count = max((frame.count + Self.maximumChunk - 1) / Self.maximumChunk, 1)
        // Of even size: a last packet of a few bytes costs as much as a full one.
        let size = (frame.count + count - 1) / count
        var packets: [[UInt8]] = []
        for index in 0..<count {
            let chunk = frame[min(index * size, frame.count)..<min((index + 1) * size, frame.count)]
            packets.append(
                packet(
                    descriptor(isFirst: index == 0, isInHigherLayer: isInHigherLayer), chunk,
                    payloadType: Self.videoPayloadType,
                    timestamp: timestamp, marker: index == count - 1))
        }
        return packets
    }

    /// Extended, with 15 bits of picture id, TL0PICIDX and the temporal layer; one of the higher layer is no reference
    /// (N), and may be taken in by whoever has the lower one (Y).
    private func descriptor(isFirst: Bool, isInHigherLayer: Bool) -> [UInt8] {
        [
            (isFirst ? 0x90 : 0x80) | (isInHigherLayer ? 0x20 : 0), 0xE0, 0x80 | UInt8(pictureID >> 8),
            UInt8(pictureID & 0xFF), tl0PictureIndex, isInHigherLayer ? 0x60 : 0x00,
        ]
    }

    private mutating func packet(
        _ prefix: [UInt8], _ payload: ArraySlice<UInt8>, payloadType: UInt8, timestamp: UInt32, marker: Bool
    ) -> [UInt8] {
        defer { sequenceNumber &+= 1 }
        var bytes: [UInt8] = [0x80, (marker ? 0x80 : 0) | payloadType]
        bytes.reserveCapacity(RTPHeader.fixedLength + prefix.count + payload.count)
        bytes.append(bigEndian: sequenceNumber)
        bytes.append(bigEndian: timestamp)
        bytes.append(bigEndian: ssrc)
        bytes += prefix
        bytes += payload
        return bytes
    }
}
