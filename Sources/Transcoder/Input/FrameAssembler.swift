import Base
import Wire

/// A complete frame of an input, in the format of decoders.
package struct AssembledFrame: Equatable, Sendable {
    /// Of its first packet.
    package let codec: VideoCodec
    /// Whether decoders can begin with this frame.
    package let isKeyFrame: Bool
    /// In ticks of 90 kHz.
    package let timestamp: UInt32
    /// Frames of different epochs belong to different sources.
    package let epoch: UInt32
    /// When its last packet arrived.
    package let arrival: MonotonicTime
    /// When it was captured; nil while that is unknown.
    package let captured: MonotonicTime?
    /// The byte of the video orientation extension; nil if no packet has one.
    package let orientation: UInt8?
    /// H.264 and HEVC with start codes, AV1 as units with sizes.
    package let bytes: [UInt8]
}

/// Orders the packets of a video input, and assembles whole frames.
///
/// Packets may be late because they were retransmitted; a frame is returned once all frames before it are complete.
/// Packets missing for `patience` are given up. Frames are then withheld up to the next key frame, and `needsKeyFrame`
/// is set.
package struct FrameAssembler: Sendable {
    /// How long a missing packet is waited for.
    package static let patience = Duration.milliseconds(250)
    /// Most packets that are kept.
    package static let packetLimit = 2_048
    /// Most late packets that are kept in front of the frame with which decoders are to begin.
    private static let frontLimit = 64

    /// Waiting packets by extended sequence number.
    private var packets: [Int64: InputPacket] = [:]
    /// Packets in front of `next`, of the frame with which decoders are to begin: its parameter sets, whose first one
    /// is still missing.
    private var front: [Int64: InputPacket] = [:]
    private var epoch: UInt32?
    /// Number of the next packet to be used; nil before a decoder can begin.
    private var next: Int64? {
        didSet { if next != oldValue { reach = next } }
    }
    /// The first number from `next` on that has not been examined.
    ///
    /// All packets before it are present, belong to one frame, and are not its last. Without it a frame of n packets
    /// would be scanned n times.
    private var reach: Int64?
    /// Packets before this number are refused: later ones have been returned or given up.
    private var floor = Int64.min
    /// The first missing packet, and since when packets after it wait; nil without a gap.
    private var gap: (number: Int64, since: MonotonicTime)?
    /// Whether no frame can be returned until a key frame arrives.
    package private(set) var needsKeyFrame = true

    package init() {}

    /// Adds a packet.
    /// - Returns: the frames that are complete now, in order.
    package mutating func insert(_ packet: InputPacket, at now: MonotonicTime) -> [AssembledFrame] {
        if packet.epoch != epoch { startAnew(packet.epoch) }
        if packet.sequenceNumber < next ?? floor {
            guard isInFront(packet) else { return [] }
            front[packet.sequenceNumber] = packet
            guard packet.isEntryPoint else { return [] }
            packets.merge(front) { present, _ in present }
            begin(at: packet.sequenceNumber)
        } else {
            packets[packet.sequenceNumber] = packet
            if packet.isEntryPoint, next == nil { begin(at: packet.sequenceNumber) }
        }
        if packets.count > Self.packetLimit { giveUp() }
        return takeFrames(at: now)
    }

    /// Whether a packet belongs in front of the frame with which decoders are to begin.
    ///
    /// Parameter sets of H.264 may be overtaken by their picture, at which decoders could begin as well.
    private func isInFront(_ packet: InputPacket) -> Bool {
        guard needsKeyFrame, packet.sequenceNumber >= floor, let next,
            packet.isEntryPoint || front.count < Self.frontLimit
        else { return false }
        return packets[next]?.timestamp == packet.timestamp
    }

    /// Begins with a packet at which decoders can.
    ///
    /// Earlier ones belong to frames that cannot be decoded, except those of the same frame, which are kept apart.
    /// - Parameter last: the last number that is given up.
    private mutating func begin(at number: Int64, after last: Int64 = .min) {
        let timestamp = packets[number]?.timestamp
        front = packets.filter { key, packet in
            last < key && key < number && packet.timestamp == timestamp
        }
        packets = packets.filter { $0.key >= number }
        next = number
    }

    /// Gives up packets that have been missing for too long.
    /// - Returns: the frames that are complete now, in order.
    package mutating func advance(to now: MonotonicTime) -> [AssembledFrame] {
        guard let gap, now >= gap.since + Self.patience else { return [] }
        giveUp()
        return takeFrames(at: now)
    }

    /// Begins with another source.
    private mutating func startAnew(_ epoch: UInt32) {
        self.epoch = epoch
        packets.removeAll(keepingCapacity: true)
        front.removeAll()
        next = nil
        floor = .min
        gap = nil
        needsKeyFrame = true
    }

    /// Skips to the first key frame after the gap, or waits for one.
    private mutating func giveUp() {
        gap = nil
        needsKeyFrame = true
        floor = max(floor, next ?? floor)
        let start = next ?? .min
        let entries = packets.values.filter { $0.isEntryPoint && $0.sequenceNumber > start }
        guard let first = entries.map(\.sequenceNumber).min() else {
            packets.removeAll(keepingCapacity: true)
            front.removeAll()
            next = nil
            return
        }
        begin(at: first, after: start)
    }

    /// Removes complete frames; those that cannot be decoded are dropped.
    private mutating func takeFrames(at now: MonotonicTime) -> [AssembledFrame] {
        var frames: [AssembledFrame] = []
        while let range = nextFrame() {
            let parts = range.compactMap { packets.removeValue(forKey: $0) }
            next = range.upperBound
            floor = max(floor, range.upperBound)
            if !front.isEmpty { front.removeAll() }
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
        noteGap(at: now)
        return frames
    }

    /// Notes which packet is missing; each is waited for from the moment at which it is the first one that is.
    ///
    /// Without a gap the frame only lasts: its last packets have not been sent yet, so nothing is given up.
    private mutating func noteGap(at now: MonotonicTime) {
        guard let missing else {
            gap = nil
            return
        }
        if gap?.number != missing { gap = (missing, now) }
    }

    /// The first missing packet after which others wait; nil if there is none.
    ///
    /// Only valid after `nextFrame` returned nil: `reach` is then the first number that is not there.
    private var missing: Int64? {
        guard let next, let reach, reach &- next < packets.count else { return nil }
        return reach
    }

    /// The numbers of the next frame if it is complete: up to the marker, or to a packet with another time stamp.
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
