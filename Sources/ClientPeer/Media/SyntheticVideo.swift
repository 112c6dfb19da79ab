import Base
import Wire

/// Makes RTP payloads like those of a VP8 encoder, or with spatial layers like those of a VP9 or AV1 encoder.
///
/// Headers and descriptors are valid, sizes are configurable, and key frames come on request. After the frame header
/// follows filler that identifies the frame, so that a receiver can check it.
///
/// - Source: RFC 7741 §4.2, §4.3 (descriptor, payload header); RFC 6386 §9.1 (key-frame header).
package struct SyntheticVideo {
    /// Size and structure of the pictures.
    package struct Settings: Sendable {
        /// In bits per second, including key frames.
        package var bitrate = 1_500_000
        /// Over all temporal layers.
        package var framesPerSecond = 30
        /// How many times larger a key frame is than the average frame.
        package var keyFrameRatio = 8
        /// As key frames announce it; there are no pixels of this size.
        package var width = 1_280
        /// As key frames announce it.
        package var height = 720
        /// Bytes of RTP payload per packet.
        package var maximumPayload = 1_150
        /// 1 to 3; like Chromium's, each has twice the frame rate of the one below.
        package var temporalLayers = 1
        /// 1 to 8; like Chromium's, each is twice as wide and high as the one below.
        ///
        /// More than one layer, which depend on each other in key pictures only, excludes temporal layers.
        package var spatialLayers = 1
        /// The codec of pictures in spatial layers: VP9, or AV1 with at most four layers and dependency descriptors.
        package var layeredCodec = VideoCodec.vp9

        package init() {}
    }

    /// An RTP payload with the header fields that belong to it.
    package struct Packet {
        /// A VP8 or VP9 descriptor or an AV1 aggregation header, and a piece of the frame.
        package let payload: [UInt8]
        /// Of AV1; empty for other codecs.
        package var dependencyDescriptor: [UInt8] = []
        /// Whether this is the last packet of its frame.
        package let marker: Bool
        /// The same for all packets of a frame.
        package let isKeyFrame: Bool
        /// In ticks of 90 kHz.
        package let timestamp: UInt32
    }

    /// As at the start.
    package let settings: Settings
    private(set) var frameNumber: UInt32 = 0
    private(set) var timestamp: UInt32
    private(set) var pictureID: UInt16
    private var wantsKeyFrame = true
    /// Position in the pattern of temporal layers, counted from the latest key frame.
    private var place = 0
    /// TL0PICIDX: the number of the latest frame in the lowest temporal layer.
    private(set) var lowestIndex = UInt8.max
    /// Bytes that key frames took beyond the average; the frames after them are smaller until these are made up for.
    private var debt = 0

    package init(_ settings: Settings = Settings(), using random: inout some RandomNumberGenerator) {
        self.settings = settings
        timestamp = UInt32.random(in: 0...UInt32.max, using: &random)
        pictureID = UInt16.random(in: 0...0x7FFF, using: &random)
    }

    /// From the beginning of one frame to that of the next.
    package var frameInterval: Duration {
        .nanoseconds(1_000_000_000 / Int64(max(settings.framesPerSecond, 1)))
    }

    /// Makes the next frame a key frame.
    package mutating func requestKeyFrame() {
        wantsKeyFrame = true
    }

    /// Makes the packets of the next frame.
    /// - Parameter stamp: eight bytes that a receiver finds in every packet of the frame, such as the time of sending.
    package mutating func nextFrame(stamp: UInt64 = 0) -> [Packet] {
        let isKeyFrame = wantsKeyFrame
        wantsKeyFrame = false
        place = isKeyFrame ? 0 : place + 1
        if temporalLayer == 0 { lowestIndex &+= 1 }
        let budget = max(settings.bitrate / 8 / max(settings.framesPerSecond, 1), 64)
        let size: Int
        if isKeyFrame {
            size = budget * settings.keyFrameRatio
            debt += size - budget
        } else {
            let repayment = min(debt, budget / 4)
            debt -= repayment
            size = budget - repayment
        }
        let packets =
            settings.spatialLayers > 1
            ? layeredPackets(size: size, isKeyFrame: isKeyFrame, stamp: stamp)
            : packetize(size: size, isKeyFrame: isKeyFrame, stamp: stamp)
        frameNumber &+= 1
        pictureID = (pictureID + 1) & 0x7FFF
        timestamp &+= UInt32(90_000 / max(settings.framesPerSecond, 1))
        return packets
    }

    /// Of the current frame.
    private var temporalLayer: UInt8 {
        switch settings.temporalLayers {
        case 2: place % 2 == 0 ? 0 : 1
        case 3: place % 4 == 0 ? 0 : place % 4 == 2 ? 1 : 2
        default: 0
        }
    }

    /// Whether the frame depends on the lowest layer only, which holds for the first frame of its layer in eight.
    private var isLayerSync: Bool {
        place % 8 == 1 || settings.temporalLayers == 3 && place % 8 == 2
    }

    private func packetize(size: Int, isKeyFrame: Bool, stamp: UInt64) -> [Packet] {
        let count = max((size + settings.maximumPayload - 1) / settings.maximumPayload, 1)
        return (0..<count).map { index in
            let hasLayers = settings.temporalLayers > 1
            var payload: [UInt8] = [index == 0 ? 0x90 : 0x80, hasLayers ? 0xE0 : 0x80]
            payload.append(bigEndian: pictureID | 0x8000)
            if hasLayers { payload += [lowestIndex, temporalLayer << 6 | (isLayerSync ? 0x20 : 0)] }
            if index == 0 { appendFrameHeader(isKeyFrame: isKeyFrame, size: size, to: &payload) }
            payload.append(bigEndian: stamp)
            payload.append(bigEndian: frameNumber)
            payload.append(bigEndian: UInt16(truncatingIfNeeded: index))
            // Like libwebrtc, a remainder goes to the last packets, one byte each.
            let length = max(size / count + (index >= count - size % count ? 1 : 0), payload.count)
            payload.append(
                repeating: UInt8(truncatingIfNeeded: frameNumber), count: length - payload.count)
            return Packet(
                payload: payload, marker: index == count - 1, isKeyFrame: isKeyFrame, timestamp: timestamp)
        }
    }

    private func appendFrameHeader(isKeyFrame: Bool, size: Int, to payload: inout [UInt8]) {
        // Frame tag: inverted key-frame bit, version 0, show_frame, size of the first partition.
        let tag = (isKeyFrame ? 0 : 1) | 1 << 4 | (min(size, 0x7FFFF) << 5)
        payload += [UInt8(tag & 0xFF), UInt8(tag >> 8 & 0xFF), UInt8(tag >> 16 & 0xFF)]
        guard isKeyFrame else { return }
        payload += [0x9D, 0x01, 0x2A]
        payload += [UInt8(settings.width & 0xFF), UInt8(settings.width >> 8 & 0x3F)]
        payload += [UInt8(settings.height & 0xFF), UInt8(settings.height >> 8 & 0x3F)]
    }
}

/// The content that `SyntheticVideo` has written into a packet.
package struct SyntheticMark: Equatable, Sendable {
    /// The argument of `nextFrame`.
    package let stamp: UInt64
    /// Counted from 0; wraps.
    package let frameNumber: UInt32
    /// Index within the frame.
    package let packetIndex: UInt16

    /// - Parameter payload: of RTP, beginning with a VP8 descriptor.
    package init(reading payload: Span<UInt8>) throws(WireError) {
        let descriptor = try VP8Descriptor(parsing: payload)
        var offset = descriptor.length
        if descriptor.startsFrame {
            let isKeyFrame = try payload.uint8(at: offset) & 1 == 0
            offset += isKeyFrame ? 10 : 3
        }
        stamp = try payload.uint64(at: offset)
        frameNumber = try payload.uint32(at: offset + 8)
        packetIndex = try payload.uint16(at: offset + 12)
    }
}
