import Base
import Codecs
import Wire

/// A publisher's H.264 on its way to viewers without being decoded: packets in as they come, whole frames with their
/// times out, and all since the last key frame for whoever has to decode after all.
struct PassThrough {
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
    private var frames: [PassedFrame] = []
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
                epoch = frame.epoch
                clock = MediaClock(rate: 90_000)
                lastTimestamp = nil
            }
            let timestamp = clock.extend(frame.timestamp)
            clock.note(timestamp, captured: frame.captured, arrival: frame.arrival)
            guard let time = clock.time(of: timestamp), timestamp > lastTimestamp ?? .min,
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
            frames.append(PassedFrame(bytes: frame.bytes, video: video, time: time))
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
        return frames
    }

    /// What comes next is to begin with a key frame.
    mutating func beginAnew() {
        frames = []
        awaitsKeyFrame = true
    }

    /// What would begin now: the frames since the last key frame, once another follows it.
    var beginning: ArraySlice<PassedFrame>? {
        guard let start = frames.lastIndex(where: \.isKeyFrame), start + 1 < frames.count else { return nil }
        return frames[start...]
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
