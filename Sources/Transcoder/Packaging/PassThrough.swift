import Base
import Codecs
import Wire

/// Assembles a publisher's frames for viewers without decoding them.
///
/// Packets go in as they arrive, and whole frames come out with their capture times. All packets since the last key
/// frame are kept as well, for a decoder that has to take over.
struct PassThrough {
    /// A frame that has not been taken yet.
    private struct Waiting {
        let bytes: [UInt8]
        let video: Muxer.Video?
        let timestamp: Int64
        /// Capture time, fixed once the clock belongs to another epoch; nil before that.
        var settled: MonotonicTime?
    }

    /// Most packets kept since the last key frame.
    private static let groupLimit = 4_096
    /// Most frames that wait to be taken.
    private static let frameLimit = 1_000
    /// Shortest time between two requests for a key frame.
    private static let wishInterval = Duration.milliseconds(500)

    private let codec: VideoCodec
    private var assembler = FrameAssembler()
    private var clock = MediaClock(rate: 90_000)
    /// The epoch of `InputPacket`; time stamps restart when it changes.
    private var epoch: UInt32?
    /// The highest time stamp so far, and that of the last key frame.
    private var lastTimestamp: Int64?
    private var keyTimestamp: Int64?
    /// Most pictures that precede one in decoding order and follow it in display order; only for HEVC.
    private var reordered = 0
    /// Size of H.264 pictures from the latest entry point.
    private var resolution: VideoResolution?
    /// The latest parameter sets of H.264 in this epoch; encoders may send them once only.
    private var parameterSets: [UInt8] = []
    /// Whether the latest key frame of H.264 came without parameter sets, and none are known.
    private var lacksParameterSets = false
    private var frames: [Waiting] = []
    private var lastWish: MonotonicTime?
    /// Whether a key frame is needed to begin again.
    private var awaitsKeyFrame = false
    /// All packets from the last entry point on; empty if there were too many.
    private(set) var group: [InputPacket] = []
    /// Whether the pictures cannot be passed through.
    ///
    /// They are rotated, reordered (except HEVC), in several sizes, in another codec, or in a profile that few players
    /// support.
    private(set) var isUnfit = false

    /// - Parameter codec: H.264, HEVC, VP9 or AV1.
    init(_ codec: VideoCodec) {
        self.codec = codec
    }

    /// Processes a packet.
    mutating func receive(_ packet: InputPacket, at now: MonotonicTime) {
        keep(packet)
        guard packet.codec.video == codec else {
            isUnfit = true
            return
        }
        if packet.isEntryPoint || codec != .h264 {
            let info = try? VideoPayload.describe(codec, payload: packet.payload.span, marker: packet.marker)
            // With spatial layers players show the smallest, or all of them in sequence.
            guard info?.spatialLayer ?? 0 == 0 else {
                isUnfit = true
                return
            }
            resolution = info?.resolution ?? resolution
        }
        take(assembler.insert(packet, at: now))
    }

    /// Gives up frames that have been incomplete for too long.
    mutating func advance(to now: MonotonicTime) { take(assembler.advance(to: now)) }

    /// Adds a packet to the group; a new entry point begins another group.
    private mutating func keep(_ packet: InputPacket) {
        if packet.isEntryPoint,
            packet.timestamp != group.first?.timestamp || packet.epoch != group.first?.epoch
        {
            group = []
        } else if group.isEmpty || group.count >= Self.groupLimit {
            // A group without its beginning cannot be decoded.
            group = []
            guard packet.isEntryPoint else { return }
        }
        group.append(packet)
    }

    /// Checks frames and queues them.
    private mutating func take(_ assembled: [AssembledFrame]) {
        for frame in assembled {
            if frame.epoch != epoch {
                for index in frames.indices { frames[index].settled = time(of: frames[index]) }
                epoch = frame.epoch
                clock = MediaClock(rate: 90_000)
                (lastTimestamp, keyTimestamp) = (nil, nil)
                parameterSets = []
            }
            if frame.isKeyFrame { noteParameterSets(of: frame) }
            // Their packet was lost: another key frame brings them again.
            guard !lacksParameterSets else { continue }
            let timestamp = clock.extend(frame.timestamp)
            clock.note(timestamp, captured: frame.captured, arrival: frame.arrival)
            // Frames after a key frame must be shown after it, or players that begin there could not show them.
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

    /// Notes the parameter sets of a key frame of H.264.
    private mutating func noteParameterSets(of frame: AssembledFrame) {
        guard codec == .h264 else { return }
        parameterSets = StreamHeader.parameterSets(of: frame.bytes, after: parameterSets)
        lacksParameterSets = parameterSets.isEmpty
    }

    /// What players need to begin at a key frame; nil if they do not support the encoding.
    ///
    /// VP9 and AV1 have to be 8 bits, 4:2:0 and in color; HEVC has to be Main or Main 10.
    /// - Parameter frame: a key frame.
    private func header(of frame: AssembledFrame) -> Muxer.Video? {
        let header = codec == .h264 ? parameterSets : StreamHeader.header(codec, of: frame.bytes)
        var (size, reordered) = (resolution, 0)
        switch codec {
        case .h264: break
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

    /// Removes and returns the queued frames in decoding order, with their capture times.
    mutating func takeFrames() -> [PassedFrame] {
        defer { frames = [] }
        return frames.map(passed)
    }

    private func passed(_ frame: Waiting) -> PassedFrame {
        PassedFrame(bytes: frame.bytes, video: frame.video, time: time(of: frame))
    }

    /// The capture time, as accurately as the clock is known by now.
    ///
    /// Cached packets arrive all at the same moment, so their times become known only from the packets behind them.
    private func time(of frame: Waiting) -> MonotonicTime {
        frame.settled ?? clock.time(of: frame.timestamp) ?? .zero
    }

    /// Discards queued frames; the next ones have to begin with a key frame.
    mutating func beginAnew() {
        frames = []
        awaitsKeyFrame = true
    }

    /// The frames since the last key frame, once another frame follows it; nil before that.
    var beginning: [PassedFrame]? {
        guard let start = frames.lastIndex(where: { $0.video != nil }), start + 1 < frames.count else {
            return nil
        }
        return frames[start...].map(passed)
    }

    /// Whether to request a key frame from the publisher now, because nothing can be passed on without one.
    mutating func takeKeyFrameWish(at now: MonotonicTime) -> Bool {
        guard assembler.needsKeyFrame || awaitsKeyFrame || lacksParameterSets,
            lastWish.map({ now >= $0 + Self.wishInterval }) ?? true
        else { return false }
        lastWish = now
        return true
    }
}
