import Base
import Wire

/// An RTP packet of a composition.
package struct ComposedPacket: Sendable {
    /// The track and layer of the composition to which the packet belongs.
    package enum Kind: UInt8, Sendable {
        case audio = 0
        case video = 1
        /// The small copy of the picture.
        case smallVideo = 2
    }

    package let kind: Kind
    /// The time for which the RTP time stamp stands, on the server's clock.
    package let captured: MonotonicTime
    /// A whole RTP packet, not encrypted.
    package let bytes: [UInt8]
}

/// Splits encoded frames into RTP packets.
/// - Source: RFC 7741 §4.2 (VP8), RFC 7587 §4.2 (Opus).
struct PacketMaker {
    /// Dynamic payload types (RFC 3551 §6); viewers get those that they negotiated.
    static let videoPayloadType: UInt8 = 96
    static let audioPayloadType: UInt8 = 111
    /// Most bytes of a frame in one packet.
    static let maximumChunk = 1_130

    private let ssrc: UInt32
    private var sequenceNumber: UInt16
    private var pictureID: UInt16
    /// Counts pictures of the lower temporal layer, modulo 256 (TL0PICIDX).
    private var tl0PictureIndex: UInt8 = 0

    /// - Parameter seed: any number; a different one for each life of the process.
    init(seed: UInt64, kind: ComposedPacket.Kind) {
        self.init(seed: seed, stream: kind.rawValue)
    }

    /// - Parameter stream: distinguishes the streams that share a seed.
    init(seed: UInt64, stream: UInt8) {
        // Mixes the bits, so that similar seeds give unrelated SSRCs and numbers.
        var mixed = seed &+ UInt64(stream) &* 0x9E37_79B9_7F4A_7C15
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed ^= mixed >> 27
        ssrc = UInt32(truncatingIfNeeded: mixed) | 1
        sequenceNumber = UInt16(truncatingIfNeeded: mixed >> 32) & 0x7FFF
        pictureID = UInt16(truncatingIfNeeded: mixed >> 48) & 0x7FFF
    }

    /// Creates the packet of an Opus frame.
    mutating func opus(_ payload: [UInt8], timestamp: UInt32, marker: Bool) -> [UInt8] {
        packet([], payload[...], payloadType: Self.audioPayloadType, timestamp: timestamp, marker: marker)
    }

    /// Creates the packets of a VP8 frame; the last has the marker bit.
    /// - Parameter isInHigherLayer: whether the frame belongs to the higher of two temporal layers.
    mutating func vp8(_ frame: [UInt8], timestamp: UInt32, isInHigherLayer: Bool = false) -> [[UInt8]] {
        pictureID = (pictureID &+ 1) & 0x7FFF
        if !isInHigherLayer { tl0PictureIndex &+= 1 }
        let count = max((frame.count + Self.maximumChunk - 1) / Self.maximumChunk, 1)
        // About equal size: a last packet of a few bytes would cost as much as a full one.
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

    /// The extended descriptor, with a 15-bit picture ID, TL0PICIDX and the temporal layer.
    ///
    /// Frames of the higher layer are not referenced (N), and receivers may switch up to them at any time (Y).
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
