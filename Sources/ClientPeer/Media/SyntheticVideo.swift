import Base
import Wire

/// Makes RTP packets that look like a VP8 encoder's, or with spatial layers like a VP9 or AV1 encoder's.
///
/// Headers and descriptors are valid, sizes as chosen, key frames come on request. What lies behind the frame header is
/// filler that names its frame, so that a receiver can check it.
///
/// - Source: RFC 7741 §4.2, §4.3 (descriptor, payload header); RFC 6386 §9.1 (key-frame header).
package struct SyntheticVideo {
    /// Size and shape of what is made.
    package struct Settings: Sendable {
        /// In bits a second, key frames included.
        package var bitrate = 1_500_000
        /// Of all temporal layers together.
        package var framesPerSecond = 30
        /// A key frame is so many times larger than the frames between.
        package var keyFrameRatio = 8
        /// Told by key frames; nothing has that size.
        package var width = 1_280
        /// Told by key frames.
        package var height = 720
        /// Bytes of RTP payload.
        package var maximumPayload = 1_150
        /// 1 to 3; as Chromium has them, each frame rate twice the one below.
        package var temporalLayers = 1
        /// 1 to 8; as Chromium has them, each twice as large as the one below.
        ///
        /// With more than one, which need each other in key frames alone, there are no temporal layers.
        package var spatialLayers = 1
        /// Of pictures in spatial layers: VP9, or AV1, which has at most four and dependency descriptors.
        package var layeredCodec = VideoCodec.vp9

        package init() {}
    }

    /// One RTP payload, and whether its frame ends with it.
    package struct Packet {
        /// A VP8 or VP9 descriptor, or what AV1 begins with, and a piece of the frame.
        package let payload: [UInt8]
        /// Of AV1; empty without.
        package var dependencyDescriptor: [UInt8] = []
        /// The last packet of its frame.
        package let marker: Bool
        /// The same for all packets of a frame.
        package let isKeyFrame: Bool
        /// 90 kHz.
        package let timestamp: UInt32
    }

    /// As they were at the start.
    package let settings: Settings
    private(set) var frameNumber: UInt32 = 0
    private(set) var timestamp: UInt32
    private(set) var pictureID: UInt16
    private var wantsKeyFrame = true
    /// Place in the pattern of temporal layers, from the latest key frame on.
    private var place = 0
    private(set) var lowestIndex = UInt8.max
    /// Key frames are paid for by smaller frames after them.
    private var debt = 0

    package init(_ settings: Settings = Settings(), using random: inout some RandomNumberGenerator) {
        self.settings = settings
        timestamp = UInt32.random(in: 0...UInt32.max, using: &random)
        pictureID = UInt16.random(in: 0...0x7FFF, using: &random)
    }

    /// Between the beginnings of two frames.
    package var frameInterval: Duration {
        .nanoseconds(1_000_000_000 / Int64(max(settings.framesPerSecond, 1)))
    }

    /// The next frame is a key frame.
    package mutating func requestKeyFrame() {
        wantsKeyFrame = true
    }

    /// - Parameter stamp: 8 bytes that a receiver finds in every packet of the frame, such as the time it was sent.
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

    /// Of the frame that is being made.
    private var temporalLayer: UInt8 {
        switch settings.temporalLayers {
        case 2: place % 2 == 0 ? 0 : 1
        case 3: place % 4 == 0 ? 0 : place % 4 == 2 ? 1 : 2
        default: 0
        }
    }

    /// Whether this frame needs the lowest layer only: the first of its layer in eight frames.
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
            // As libwebrtc splits a frame: what does not divide goes to the last packets, a byte each.
            let length = max(size / count + (index >= count - size % count ? 1 : 0), payload.count)
            payload.append(
                repeating: UInt8(truncatingIfNeeded: frameNumber), count: length - payload.count)
            return Packet(
                payload: payload, marker: index == count - 1, isKeyFrame: isKeyFrame, timestamp: timestamp)
        }
    }

    private func appendFrameHeader(isKeyFrame: Bool, size: Int, to payload: inout [UInt8]) {
        // Tag: key-frame bit (inverted), version 0, shown, size of the first partition.
        let tag = (isKeyFrame ? 0 : 1) | 1 << 4 | (min(size, 0x7FFFF) << 5)
        payload += [UInt8(tag & 0xFF), UInt8(tag >> 8 & 0xFF), UInt8(tag >> 16 & 0xFF)]
        guard isKeyFrame else { return }
        payload += [0x9D, 0x01, 0x2A]
        payload += [UInt8(settings.width & 0xFF), UInt8(settings.width >> 8 & 0x3F)]
        payload += [UInt8(settings.height & 0xFF), UInt8(settings.height >> 8 & 0x3F)]
    }
}

/// What `SyntheticVideo` wrote into a packet.
package struct SyntheticMark: Equatable, Sendable {
    /// What `nextFrame` was given.
    package let stamp: UInt64
    /// From 0 on; wraps.
    package let frameNumber: UInt32
    /// Within the frame, from 0 on.
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
