import Base
import Wire

/// A frame of an input, in what decoders take.
package struct AssembledFrame: Equatable, Sendable {
    /// Of the frame's first packet.
    package let codec: VideoCodec
    /// Whether a decoder can begin here.
    package let isKeyFrame: Bool
    /// In ticks of 90 kHz.
    package let timestamp: UInt32
    /// Frames of different epochs are of different sources.
    package let epoch: UInt32
    /// Of its last packet.
    package let arrival: MonotonicTime
    /// Nil while the publisher has not told.
    package let captured: MonotonicTime?
    /// The video orientation extension's byte, if there was one.
    package let orientation: UInt8?
    /// H.264 with start codes, AV1 as units with sizes.
    package let bytes: [UInt8]
}

/// Puts the packets of a video input in order, and whole frames out of them.
///
/// Packets may be late, because they were sent again; a frame is handed out once all before it are there. What is
/// missing for `patience` is given up: frames are held back then until one comes that a decoder can begin with, and
/// `needsKeyFrame` says so.
package struct FrameAssembler: Sendable {
    /// What is missing for longer will not come.
    package static let patience = Duration.milliseconds(250)
    /// Packets kept at most.
    package static let packetLimit = 2_048

    private var packets: [Int64: InputPacket] = [:]
    private var epoch: UInt32?
    /// The packet that comes next; nil before a decoder can begin.
    private var next: Int64? {
        didSet { if next != oldValue { reach = next } }
    }
    /// The first place from `next` on that was not looked at.
    ///
    /// All before it are there, of one time, and not the last of a frame: so a frame of many packets is not walked over
    /// again for each of them.
    private var reach: Int64?
    /// What comes before this one is not taken any more: later ones were handed out, or given up.
    private var floor = Int64.min
    /// When the first packet behind a gap came.
    private var gapSince: MonotonicTime?
    /// Whether nothing can be decoded until a key frame comes.
    package private(set) var needsKeyFrame = true

    package init() {}

    /// Takes a packet in.
    /// - Returns: the frames that are whole now, in order.
    package mutating func insert(_ packet: InputPacket, at now: MonotonicTime) -> [AssembledFrame] {
        if packet.epoch != epoch { startAnew(packet.epoch) }
        if packet.sequenceNumber < next ?? floor { return [] }
        packets[packet.sequenceNumber] = packet
        if packet.isEntryPoint, next == nil {
            next = packet.sequenceNumber
            // What came before waits for nothing any more.
            packets = packets.filter { $0.key >= packet.sequenceNumber }
        }
        if packets.count > Self.packetLimit { giveUp() }
        return takeFrames(at: now)
    }

    /// Gives up what is missing for too long.
    package mutating func advance(to now: MonotonicTime) -> [AssembledFrame] {
        guard let gapSince, now >= gapSince + Self.patience else { return [] }
        giveUp()
        return takeFrames(at: now)
    }

    private mutating func startAnew(_ epoch: UInt32) {
        self.epoch = epoch
        packets.removeAll(keepingCapacity: true)
        next = nil
        floor = .min
        gapSince = nil
        needsKeyFrame = true
    }

    /// Goes on with the first key frame that is there, or waits for one.
    private mutating func giveUp() {
        gapSince = nil
        needsKeyFrame = true
        floor = max(floor, next ?? floor)
        let start = next ?? .min
        let entries = packets.values.filter { $0.isEntryPoint && $0.sequenceNumber > start }
        guard let first = entries.map(\.sequenceNumber).min() else {
            packets.removeAll(keepingCapacity: true)
            next = nil
            return
        }
        next = first
        packets = packets.filter { $0.key >= first }
    }

    private mutating func takeFrames(at now: MonotonicTime) -> [AssembledFrame] {
        var frames: [AssembledFrame] = []
        while let range = nextFrame() {
            let parts = range.compactMap { packets.removeValue(forKey: $0) }
            next = range.upperBound
            gapSince = nil
            guard let first = parts.first, let last = parts.last, let codec = first.codec.video else {
                continue
            }
            let isKeyFrame = parts.contains { $0.isEntryPoint }
            if needsKeyFrame, !isKeyFrame { continue }
            guard let bytes = try? FrameDepacketizer.frame(codec, parts.map(\.payload)), !bytes.isEmpty else {
                needsKeyFrame = true
                continue
            }
            needsKeyFrame = false
            frames.append(
                AssembledFrame(
                    codec: codec, isKeyFrame: isKeyFrame, timestamp: first.timestamp, epoch: first.epoch,
                    arrival: last.arrival, captured: first.captured ?? last.captured,
                    orientation: parts.lazy.compactMap(\.orientation).first, bytes: bytes))
        }
        if gapSince == nil, next != nil, !packets.isEmpty, hasGap { gapSince = now }
        return frames
    }

    /// Whether packets wait behind one that is missing.
    ///
    /// After `nextFrame` found none: `reach` is what is missing.
    private var hasGap: Bool {
        guard let next, let reach else { return false }
        return reach &- next < packets.count
    }

    /// The packets of the next frame, if all are there: up to the marker, or to a packet of another time.
    private mutating func nextFrame() -> Range<Int64>? {
        guard let next, let first = packets[next] else { return nil }
        var place = reach ?? next
        defer { reach = place }
        while let packet = packets[place] {
            if packet.timestamp != first.timestamp { return next..<place }
            place &+= 1
            if packet.marker { return next..<place }
        }
        return nil
    }
}
