import Base
import Codecs
import Wire

/// Decodes the frames of one video source.
protocol AssembledFrameDecoder: AnyObject {
    /// Decodes a frame; nil if it shows no picture.
    func decode(_ frame: AssembledFrame) throws(CodecError) -> Picture?

    /// Decodes a frame, and returns a picture with its time, which may belong to an earlier frame.
    /// - Parameter timestamp: of the frame.
    func decode(
        _ frame: AssembledFrame, timestamp: Int64
    ) throws(CodecError) -> (picture: Picture, timestamp: Int64)?
}

extension AssembledFrameDecoder {
    func decode(
        _ frame: AssembledFrame, timestamp: Int64
    ) throws(CodecError) -> (picture: Picture, timestamp: Int64)? {
        try decode(frame).map { ($0, timestamp) }
    }
}

/// A decoder that needs only the bytes of a frame; implemented by the libraries, and by stubs in tests.
protocol PictureDecoder: AssembledFrameDecoder {
    /// Decodes a frame; nil if it shows no picture.
    func decode(_ frame: [UInt8]) throws(CodecError) -> Picture?
}

extension PictureDecoder {
    func decode(_ frame: AssembledFrame) throws(CodecError) -> Picture? { try decode(frame.bytes) }
}

extension VideoDecoder: PictureDecoder {}

/// One speaker's video: accepts packets as they arrive, and returns the picture for any point in time.
final class VideoInput {
    /// A decoded picture, when it was captured, and when its last packet arrived.
    private struct Shown {
        let picture: Picture
        let time: MonotonicTime
        let arrival: MonotonicTime
    }

    /// Most pictures that wait for their time; the oldest are dropped.
    private static let pictureLimit = 12
    /// Most frames that wait to be decoded: more than a cached group of pictures has.
    private static let backlogLimit = 600
    /// Shortest time between two requests for a key frame.
    private static let wishInterval = Duration.milliseconds(500)

    private let makeDecoder: (VideoCodec) -> (any AssembledFrameDecoder)?
    /// Applied to each decoded picture, before it is turned.
    private let resize: (Picture) throws(CodecError) -> Picture
    private var assembler = FrameAssembler()
    private var clock = MediaClock(rate: 90_000)
    private var decoder: (codec: VideoCodec, decoder: any AssembledFrameDecoder)?
    private var pictures: [Shown] = []
    /// Frames that arrived faster than they may be decoded, with their arrival.
    ///
    /// The pictures of forgotten ones are not shown, but later frames need them.
    private var backlog: [(frame: AssembledFrame, arrival: MonotonicTime, isForgotten: Bool)] = []
    /// Frames that may be decoded until the next call of `allow`.
    private var allowance = 4
    /// The epoch of `InputPacket`; time stamps restart when it changes.
    private var epoch: UInt32?
    /// Whether anything has arrived; a publisher who sends nothing is not asked for key frames.
    private var hasPackets = false
    /// The latest value of the video orientation extension.
    private var orientation: UInt8 = 0
    /// Whether decoding has to wait for a key frame, after a failure or an overflow.
    private var isBroken = false
    private var lastWish: MonotonicTime?
    /// Whether a key frame has to be requested.
    private(set) var wantsKeyFrame = false
    private(set) var decodedFrames: UInt64 = 0
    private(set) var failures: UInt64 = 0

    /// - Parameters:
    ///   - resize: applied to each decoded picture before anything else.
    ///   - makeDecoder: nil for a codec that cannot be decoded.
    init(
        resize: @escaping (Picture) throws(CodecError) -> Picture = { $0 },
        makeDecoder: @escaping (VideoCodec) -> (any AssembledFrameDecoder)?
    ) {
        self.makeDecoder = makeDecoder
        self.resize = resize
    }

    /// Processes a packet.
    /// - Returns: the delays since capture, in nanoseconds, of the frames that were decoded.
    func receive(_ packet: InputPacket, at now: MonotonicTime) -> [Int64] {
        hasPackets = true
        defer { wishIfNeeded(at: now) }
        enqueue(assembler.insert(packet, at: now), at: now)
        return decode()
    }

    /// Gives up frames that have been incomplete for too long.
    func advance(to now: MonotonicTime) {
        enqueue(assembler.advance(to: now), at: now)
        _ = decode()
        wishIfNeeded(at: now)
    }

    /// Permits this many frames to be decoded until the next call.
    ///
    /// A speaker who joins brings seconds of cached pictures at the same moment: decoding them all before the next
    /// composed picture would interrupt it for every viewer.
    func allow(_ frames: Int) {
        allowance = frames
        _ = decode()
    }

    private func enqueue(_ frames: [AssembledFrame], at now: MonotonicTime) {
        for frame in frames {
            // Frames before a key frame are not needed to decode it.
            if frame.isKeyFrame { backlog.removeAll(keepingCapacity: true) }
            backlog.append((frame, now, false))
        }
        guard backlog.count > Self.backlogLimit else { return }
        backlog.removeAll()
        isBroken = true
    }

    /// Decodes frames up to the allowance.
    private func decode() -> [Int64] {
        guard allowance > 0, !backlog.isEmpty else { return [] }
        let due = backlog.prefix(allowance)
        backlog.removeFirst(due.count)
        allowance -= due.count
        return due.compactMap { show($0.frame, at: $0.arrival, isForgotten: $0.isForgotten) }
    }

    private func wishIfNeeded(at now: MonotonicTime) {
        guard assembler.needsKeyFrame || isBroken, hasPackets else { return }
        if let lastWish, now < lastWish + Self.wishInterval { return }
        lastWish = now
        wantsKeyFrame = true
    }

    /// Returns whether a key frame has to be requested, and resets it.
    func takeKeyFrameWish() -> Bool {
        defer { wantsKeyFrame = false }
        return wantsKeyFrame
    }

    /// Decodes a frame and queues its picture.
    /// - Returns: the frame's delay since capture, in nanoseconds; nil if it was skipped or shows nothing.
    private func show(_ frame: AssembledFrame, at now: MonotonicTime, isForgotten: Bool) -> Int64? {
        if frame.epoch != epoch {
            epoch = frame.epoch
            clock = MediaClock(rate: 90_000)
        }
        if frame.isKeyFrame { isBroken = false }
        guard !isBroken else { return nil }
        let timestamp = clock.extend(frame.timestamp)
        clock.note(timestamp, captured: frame.captured, arrival: now)
        guard let time = clock.time(of: timestamp) else { return nil }
        do throws(CodecError) {
            // Noted even if the frame shows nothing, because later frames need not repeat it.
            orientation = frame.orientation ?? orientation
            let decoder = decoder(for: frame.codec)
            guard let (decoded, shown) = try decoder?.decode(frame, timestamp: timestamp) else { return nil }
            let turn = Picture.Turn(orientation: orientation)
            decodedFrames &+= 1
            guard !isForgotten else { return now.nanoseconds(since: time) }
            pictures.append(
                Shown(
                    picture: try resize(decoded).turned(turn).asVideo(), time: clock.time(of: shown) ?? time,
                    arrival: now))
            if pictures.count > Self.pictureLimit { pictures.removeFirst() }
        } catch {
            failures &+= 1
            isBroken = true
            self.decoder = nil
        }
        return now.nanoseconds(since: time)
    }

    /// The decoder for a codec; another codec replaces it.
    private func decoder(for codec: VideoCodec) -> (any AssembledFrameDecoder)? {
        if let decoder, decoder.codec == codec { return decoder.decoder }
        decoder = makeDecoder(codec).map { (codec, $0) }
        return decoder?.decoder
    }

    /// Whether a picture can be shown; not while a backlog is decoded, which would be seen as a fast replay.
    var hasPicture: Bool { !pictures.isEmpty && backlog.isEmpty }

    /// A picture, when it was captured, and when its last packet arrived.
    typealias Taken = (picture: Picture, captured: MonotonicTime, arrival: MonotonicTime)

    /// Takes the newest picture captured by `time`; nil if it was taken already.
    func takePicture(capturedBy time: MonotonicTime) -> Taken? {
        guard hasPicture, let index = pictures.lastIndex(where: { $0.time <= time }) else { return nil }
        let shown = pictures[index]
        pictures.removeSubrange(...index)
        return (shown.picture, shown.time, shown.arrival)
    }

    /// Drops all pictures that have arrived, decoded or not, which belong to a camera that was switched off.
    func forgetPictures() {
        pictures.removeAll()
        for index in backlog.indices { backlog[index].isForgotten = true }
    }

    /// Requests a key frame in place of pictures that were forgotten, if the publisher sends anything.
    func requestKeyFrame() {
        wantsKeyFrame = wantsKeyFrame || hasPackets
    }
}
