import Base
import Codecs
import Wire

/// A publisher's pictures on their way to viewers without being decoded: packets in as they come, whole frames with
/// their times out, and all since the last key frame for whoever has to decode after all.
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

    private let codec: VideoCodec
    private var assembler = FrameAssembler()
    private var clock = MediaClock(rate: 90_000)
    private var epoch: UInt32?
    /// The latest so far, and that of the last key frame.
    private var lastTimestamp: Int64?
    private var keyTimestamp: Int64?
    /// How many pictures may come before one and be shown after it: of HEVC, which passes them on.
    private var reordered = 0
    /// Of H.264, as the latest entry point says it.
    private var resolution: VideoResolution?
    private var frames: [Waiting] = []
    private var lastWish: MonotonicTime?
    /// Whether what comes without a key frame is of no use.
    private var awaitsKeyFrame = false
    /// From an entry point on; empty where it was too much.
    private(set) var group: [InputPacket] = []
    /// Whether it cannot be passed on: pictures that are turned, out of order but in HEVC, in several sizes, of another
    /// codec, or of one of its profiles that few players have.
    private(set) var isUnfit = false

    /// - Parameter codec: H.264, HEVC, VP9 or AV1.
    init(_ codec: VideoCodec) {
        self.codec = codec
    }

    mutating func receive(_ packet: InputPacket, at now: MonotonicTime) {
        keep(packet)
        guard packet.codec.video == codec else {
            isUnfit = true
            return
        }
        if packet.isEntryPoint || codec != .h264 {
            let info = try? VideoPayload.describe(codec, payload: packet.payload.span, marker: packet.marker)
            // Of pictures that come in several sizes players show the smallest, or all one after the other.
            guard info?.spatialLayer ?? 0 == 0 else {
                isUnfit = true
                return
            }
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
                (lastTimestamp, keyTimestamp) = (nil, nil)
            }
            let timestamp = clock.extend(frame.timestamp)
            clock.note(timestamp, captured: frame.captured, arrival: frame.arrival)
            // Whatever follows a key frame is shown after it, or who begins there could not show it.
            let earliest = frame.isKeyFrame || reordered == 0 ? lastTimestamp : keyTimestamp
            guard timestamp > earliest ?? .min,
                Picture.Turn(orientation: frame.orientation ?? 0) == .none
            else {
                isUnfit = true
                return
            }
            lastTimestamp = max(timestamp, lastTimestamp ?? timestamp)
            if frame.isKeyFrame { (awaitsKeyFrame, keyTimestamp) = (false, timestamp) }
            let video = frame.isKeyFrame ? header(of: frame) : nil
            reordered = video?.reordered ?? reordered
            guard !frame.isKeyFrame || video != nil else {
                isUnfit = true
                return
            }
            if frames.count >= Self.frameLimit { frames.removeAll() }
            let bytes =
                codec == .hevc && frame.isKeyFrame
                ? StreamHeader.withoutParameterSets(frame.bytes) : frame.bytes
            frames.append(Waiting(bytes: bytes, video: video, timestamp: timestamp))
        }
    }

    /// Nil where players could not begin with it: of VP9 and AV1, what is not of 8 bits and 4:2:0 in colour; of HEVC,
    /// what is neither main nor main 10.
    /// - Parameter frame: a key frame.
    private func header(of frame: AssembledFrame) -> Muxer.Video? {
        let header = StreamHeader.header(codec, of: frame.bytes)
        var (size, reordered) = (resolution, 0)
        switch codec {
        case .h264:
            guard !header.isEmpty else { return nil }
        case .vp9:
            guard let first = try? VP9FrameHeader(parsing: frame.bytes.span), first.profile == 0 else {
                return nil
            }
            size = first.resolution
        case .av1:
            guard let sequence = CodecName.sequence(of: header), sequence.profile == 0,
                sequence.samples?.bitDepth == 8, sequence.samples?.isMonochrome == false
            else { return nil }
            size = sequence.resolution
        case .hevc:
            guard let sequence = CodecName.hevcSequence(of: header), 1...2 ~= sequence.profile,
                sequence.chromaFormat == 1, sequence.bitDepth <= 10
            else { return nil }
            (size, reordered) = (sequence.resolution, sequence.reorderedPictures ?? 0)
        case .vp8: return nil
        }
        return size.map { Muxer.Video(codec: codec, resolution: $0, header: header, reordered: reordered) }
    }

    /// Frames with the time of their capture, in the order in which they are decoded.
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
