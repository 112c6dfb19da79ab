import Base
import Codecs
import Wire

/// Turns the frames of one video source into pictures.
protocol AssembledFrameDecoder: AnyObject {
    /// Nil where the frame shows nothing.
    func decode(_ frame: AssembledFrame) throws(CodecError) -> Picture?

    /// The same, with the time of what is shown, which may be that of a frame that came earlier.
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

/// One that looks at nothing but their bytes; a library, or a test's stand-in.
protocol PictureDecoder: AssembledFrameDecoder {
    /// Nil where the frame shows nothing.
    func decode(_ frame: [UInt8]) throws(CodecError) -> Picture?
}

extension PictureDecoder {
    func decode(_ frame: AssembledFrame) throws(CodecError) -> Picture? { try decode(frame.bytes) }
}

extension VideoDecoder: PictureDecoder {}

/// One speaker's picture: packets in as they come, and at any time the picture of that time.
final class VideoInput {
    /// A picture and when it was captured.
    private struct Shown {
        let picture: Picture
        let time: MonotonicTime
        let arrival: MonotonicTime
    }

    /// Pictures that wait for their time.
    private static let pictureLimit = 12
    /// Frames that wait to be decoded: more than a cached group of pictures has.
    private static let backlogLimit = 600
    /// Between two wishes for a key frame.
    private static let wishInterval = Duration.milliseconds(500)

    private let makeDecoder: (VideoCodec) -> (any AssembledFrameDecoder)?
    private let resize: (Picture) throws(CodecError) -> Picture
    private var assembler = FrameAssembler()
    private var clock = MediaClock(rate: 90_000)
    private var decoder: (codec: VideoCodec, decoder: any AssembledFrameDecoder)?
    private var pictures: [Shown] = []
    /// Frames that came faster than they may be decoded, and when they came.
    private var backlog: [(frame: AssembledFrame, arrival: MonotonicTime)] = []
    private var allowance = 4
    /// Another one means that time stamps begin anew.
    private var epoch: UInt32?
    private var hasPackets = false
    /// The last value of the video orientation's element.
    private var orientation: UInt8 = 0
    /// What was decoded is not good to go on with.
    private var isBroken = false
    private var lastWish: MonotonicTime?
    private(set) var wantsKeyFrame = false
    private(set) var decodedFrames: UInt64 = 0
    private(set) var failures: UInt64 = 0

    /// - Parameter resize: what becomes of each picture before anything else.
    init(
        resize: @escaping (Picture) throws(CodecError) -> Picture = { $0 },
        makeDecoder: @escaping (VideoCodec) -> (any AssembledFrameDecoder)?
    ) {
        self.makeDecoder = makeDecoder
        self.resize = resize
    }

    /// Takes a packet in.
    /// - Returns: how long after their capture the frames came that became whole, in nanoseconds.
    func receive(_ packet: InputPacket, at now: MonotonicTime) -> [Int64] {
        hasPackets = true
        defer { wishIfNeeded(at: now) }
        enqueue(assembler.insert(packet, at: now), at: now)
        return decode()
    }

    func advance(to now: MonotonicTime) {
        enqueue(assembler.advance(to: now), at: now)
        _ = decode()
        wishIfNeeded(at: now)
    }

    /// Lets it decode so many frames until the next call.
    ///
    /// Whoever comes brings seconds of cached pictures at once: to decode them all before the next picture of all is
    /// drawn would stop it for everybody.
    func allow(_ frames: Int) {
        allowance = frames
        _ = decode()
    }

    private func enqueue(_ frames: [AssembledFrame], at now: MonotonicTime) {
        for frame in frames {
            // What would be decoded only to get here is not needed.
            if frame.isKeyFrame { backlog.removeAll(keepingCapacity: true) }
            backlog.append((frame, now))
        }
        guard backlog.count > Self.backlogLimit else { return }
        backlog.removeAll()
        isBroken = true
    }

    /// Decodes what it may.
    private func decode() -> [Int64] {
        guard allowance > 0, !backlog.isEmpty else { return [] }
        let due = backlog.prefix(allowance)
        backlog.removeFirst(due.count)
        allowance -= due.count
        return due.compactMap { show($0.frame, at: $0.arrival) }
    }

    private func wishIfNeeded(at now: MonotonicTime) {
        guard assembler.needsKeyFrame || isBroken, hasPackets else { return }
        if let lastWish, now < lastWish + Self.wishInterval { return }
        lastWish = now
        wantsKeyFrame = true
    }

    func takeKeyFrameWish() -> Bool {
        defer { wantsKeyFrame = false }
        return wantsKeyFrame
    }

    private func show(_ frame: AssembledFrame, at now: MonotonicTime) -> Int64? {
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
            // Also of a frame that shows nothing: the next ones need not tell it again.
            orientation = frame.orientation ?? orientation
            let decoder = decoder(for: frame.codec)
            guard let (decoded, shown) = try decoder?.decode(frame, timestamp: timestamp) else { return nil }
            let turn = Picture.Turn(orientation: orientation)
            decodedFrames &+= 1
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

    private func decoder(for codec: VideoCodec) -> (any AssembledFrameDecoder)? {
        if let decoder, decoder.codec == codec { return decoder.decoder }
        decoder = makeDecoder(codec).map { (codec, $0) }
        return decoder?.decoder
    }

    /// Whether there is anything to show: what is behind is not shown on its way to the present.
    var hasPicture: Bool { !pictures.isEmpty && backlog.isEmpty }

    /// A picture, when it was captured, and when its last packet came.
    typealias Taken = (picture: Picture, captured: MonotonicTime, arrival: MonotonicTime)

    /// The newest picture captured by `time`, if it was not taken before.
    func takePicture(capturedBy time: MonotonicTime) -> Taken? {
        guard hasPicture, let index = pictures.lastIndex(where: { $0.time <= time }) else { return nil }
        let shown = pictures[index]
        pictures.removeSubrange(...index)
        return (shown.picture, shown.time, shown.arrival)
    }

    /// What was decoded is of a camera that was switched off since.
    func forgetPictures() {
        pictures.removeAll()
    }
}
