import Base
import Codecs
import Wire

/// A publisher's H.264 on its way to viewers without being decoded: packets in as they come, whole frames with their
/// times out, and all since the last key frame for whoever has to decode after all.
struct PassThrough {
    /// A frame that nobody has taken.
    private struct Waiting {
        let bytes: [UInt8]
        let video: Muxer.Video?
        let timestamp: Int64
        /// Once its clock is another one's.
        var settled: MonotonicTime?
    }

    /// Packets since the last key frame.
    private static let groupLimit = 4_096
    /// Frames that wait to be taken.
    private static let frameLimit = 1_000
    private static let wishInterval = Duration.milliseconds(500)

    private var assembler = FrameAssembler()
    private var clock = MediaClock(rate: 90_000)
    private var epoch: UInt32?
    private var lastTimestamp: Int64?
    /// As the latest entry point says it.
    private var resolution: VideoResolution?
    private var frames: [Waiting] = []
    private var lastWish: MonotonicTime?
    /// Whether what comes without a key frame is of no use.
    private var awaitsKeyFrame = false
    /// From an entry point on; empty where it was too much.
    private(set) var group: [InputPacket] = []
    /// Whether it cannot be passed on: pictures that are turned, out of order, or of another codec.
    private(set) var isUnfit = false

    mutating func receive(_ packet: InputPacket, at now: MonotonicTime) {
        keep(packet)
        guard packet.codec.video == .h264 else {
            isUnfit = true
            return
        }
        if packet.isEntryPoint {
            let info = try? VideoPayload.describe(.h264, payload: packet.payload.span, marker: packet.marker)
            resolution = info?.resolution ?? resolution
        }
        take(assembler.insert(packet, at: now))
    }

    mutating func advance(to now: MonotonicTime) { take(assembler.advance(to: now)) }

    private mutating func keep(_ packet: InputPacket) {
        if packet.isEntryPoint,
            packet.timestamp != group.first?.timestamp || packet.epoch != group.first?.epoch
        {
            group = []
        } else if group.isEmpty || group.count >= Self.groupLimit {
            // Without its beginning nobody can decode it.
            group = []
            guard packet.isEntryPoint else { return }
        }
        group.append(packet)
    }

    private mutating func take(_ assembled: [AssembledFrame]) {
        for frame in assembled {
            if frame.epoch != epoch {
                for index in frames.indices { frames[index].settled = time(of: frames[index]) }
                epoch = frame.epoch
                clock = MediaClock(rate: 90_000)
                lastTimestamp = nil
            }
            let timestamp = clock.extend(frame.timestamp)
            clock.note(timestamp, captured: frame.captured, arrival: frame.arrival)
            guard timestamp > lastTimestamp ?? .min,
                Picture.Turn(orientation: frame.orientation ?? 0) == .none
            else {
                isUnfit = true
                return
            }
            lastTimestamp = timestamp
            if frame.isKeyFrame { awaitsKeyFrame = false }
            let video = frame.isKeyFrame ? header(of: frame) : nil
            guard !frame.isKeyFrame || video != nil else {
                isUnfit = true
                return
            }
            if frames.count >= Self.frameLimit { frames.removeAll() }
            frames.append(Waiting(bytes: frame.bytes, video: video, timestamp: timestamp))
        }
    }

    private func header(of frame: AssembledFrame) -> Muxer.Video? {
        let header = StreamHeader.header(.h264, of: frame.bytes)
        guard let resolution, !header.isEmpty else { return nil }
        return Muxer.Video(codec: .h264, resolution: resolution, header: header)
    }

    /// Frames by the time of their capture, in order.
    mutating func takeFrames() -> [PassedFrame] {
        defer { frames = [] }
        return frames.map(passed)
    }

    private func passed(_ frame: Waiting) -> PassedFrame {
        PassedFrame(bytes: frame.bytes, video: frame.video, time: time(of: frame))
    }

    /// As far as the clock is known by now: what comes out of a cache comes all at once, and tells nothing of its time
    /// but by what is behind it.
    private func time(of frame: Waiting) -> MonotonicTime {
        frame.settled ?? clock.time(of: frame.timestamp) ?? .zero
    }

    /// What comes next is to begin with a key frame.
    mutating func beginAnew() {
        frames = []
        awaitsKeyFrame = true
    }

    /// What would begin now: the frames since the last key frame, once another follows it.
    var beginning: [PassedFrame]? {
        guard let start = frames.lastIndex(where: { $0.video != nil }), start + 1 < frames.count else {
            return nil
        }
        return frames[start...].map(passed)
    }

    /// Whether a publisher should be asked for a key frame now, because nothing can be passed on without one.
    mutating func takeKeyFrameWish(at now: MonotonicTime) -> Bool {
        guard assembler.needsKeyFrame || awaitsKeyFrame,
            lastWish.map({ now >= $0 + Self.wishInterval }) ?? true
        else { return false }
        lastWish = now
        return true
    }
}
