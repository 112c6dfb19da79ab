import Base
import Wire

/// The video source of a packager: pictures are decoded, passed through unchanged, or both while pass-through is
/// tried.
struct PackagedVideo {
    /// How long pass-through waits for cached pictures to catch up with the present before it begins anyway.
    private static let beginningPatience = Duration.milliseconds(500)
    /// How long pass-through waits for its first key frame.
    static let keyFramePatience = Duration.milliseconds(2_500)
    /// How long pass-through waits for a key frame newer than the cached one; browsers send one within a tenth of
    /// that.
    private static let renewalPatience = Duration.seconds(1)

    let input: InputID
    /// Codecs that may be passed through.
    private let passable: Set<VideoCodec>
    private let makeFrames: () -> VideoInput
    /// The decoded pictures; nil while nothing is decoded.
    private(set) var frames: VideoInput?
    /// Nil while pass-through is neither active nor tried.
    private var passed: PassThrough?
    /// Whether a time line of passed pictures exists.
    private var isPassing = false
    /// When pass-through was last tried.
    private var triedAt = MonotonicTime.zero
    /// When a key frame newer than the cached one was requested; nil if none is awaited.
    private var renewedAt: MonotonicTime?
    private var attempts = PassAttempts()

    /// - Parameters:
    ///   - passable: codecs that may be passed through.
    ///   - makeFrames: creates the decoding input, on first use.
    init(_ input: InputID, passing passable: Set<VideoCodec>, makeFrames: @escaping () -> VideoInput) {
        self.input = input
        self.passable = passable
        self.makeFrames = makeFrames
    }

    /// Processes a packet.
    /// - Returns: the delays since capture, in nanoseconds, of the frames that were decoded.
    mutating func receive(_ packet: InputPacket, at now: MonotonicTime) -> [Int64] {
        attempts.note(packet, at: now)
        if passed == nil, let codec = packet.codec.video, passable.contains(codec), attempts.mayTry(at: now) {
            passed = PassThrough(codec)
            triedAt = now
        }
        passed?.receive(packet, at: now)
        // No time line exists yet, so there is none to end.
        if !isPassing, passed?.isUnfit == true {
            // The decoder receives this packet with the others of its group.
            guard frames != nil else { return decode(at: now) }
            decode(at: now)
        }
        if passed == nil, frames == nil { frames = makeFrames() }
        return frames?.receive(packet, at: now) ?? []
    }

    /// Gives up incomplete frames, and pass-through for which no key frame came in time.
    mutating func advance(to now: MonotonicTime) {
        passed?.advance(to: now)
        frames?.advance(to: now)
        guard passed != nil, !isPassing else { return }
        if let renewedAt {
            if now >= renewedAt + Self.renewalPatience { decode(at: now, because: .segment) }
        } else if now >= triedAt + Self.keyFramePatience {
            decode(at: now)
        }
    }

    /// The frames with which a time line of passed pictures begins, a key frame first; nil if it cannot begin yet.
    /// - Parameter delay: between capture and output.
    mutating func takeBeginning(at now: MonotonicTime, delay: Duration) -> [PassedFrame]? {
        guard !isPassing, let beginning = passed?.beginning, let first = beginning.first?.time,
            let last = beginning.last?.time
        else { return nil }
        // Cached pictures should first reach the present, so that the time line does not begin in the past.
        guard last + delay >= now || now >= triedAt + Self.beginningPatience else { return nil }
        let longest = Duration.milliseconds(PassedTimeline.longestSegment)
        let bytes = beginning.reduce(0) { $0 + $1.bytes.count }
        let milliseconds = Int((last - first).wholeNanoseconds / 1_000_000)
        // The first segment would be too long: begin with a newer key frame, or give up if one was awaited already.
        guard last - first < longest, now - first < longest + Self.beginningPatience else {
            guard renewedAt == nil else {
                decode(at: now, because: .segment)
                return nil
            }
            passed?.beginAnew()
            renewedAt = now
            return nil
        }
        // Capture times come from the publisher and may be wrong.
        guard first <= now + Self.beginningPatience else {
            decode(at: now)
            return nil
        }
        // The bit rate is meaningful only over a second or more.
        guard milliseconds < 1_000 || bytes * 8 / milliseconds <= PassedTimeline.bitrateLimit / 1_000 else {
            decode(at: now, because: .bitrate)
            return nil
        }
        _ = passed?.takeFrames()
        self.frames = nil
        (isPassing, renewedAt) = (true, nil)
        attempts.begin(at: now)
        return beginning
    }

    /// The next frames of a time line of passed pictures; nil if pass-through has ended.
    mutating func takeFrames() -> [PassedFrame]? {
        guard isPassing, passed?.isUnfit == false else { return nil }
        return passed?.takeFrames() ?? []
    }

    /// Ends the time line of passed pictures; the next key frame begins another.
    mutating func beginAnew(at now: MonotonicTime) {
        passed?.beginAnew()
        (isPassing, renewedAt) = (false, nil)
        triedAt = now
    }

    /// Ends pass-through for a while: pictures are decoded, from the last key frame on.
    /// - Parameter reason: nil for a fault that may not recur.
    /// - Returns: the delays since capture, in nanoseconds, of the frames that were decoded.
    @discardableResult
    mutating func decode(at now: MonotonicTime, because reason: PassedTimeline.Ending? = nil) -> [Int64] {
        attempts.fail(at: now, because: reason)
        (isPassing, renewedAt) = (false, nil)
        let group = passed?.group ?? []
        passed = nil
        guard frames == nil else { return [] }
        let frames = makeFrames()
        self.frames = frames
        return group.flatMap { frames.receive($0, at: now) }
    }

    /// Whether to request a key frame from the publisher now; resets the request.
    mutating func takeKeyFrameWish(at now: MonotonicTime) -> Bool {
        // Both are read, because reading resets them.
        let isDecodersWish = frames?.takeKeyFrameWish() ?? false
        return passed?.takeKeyFrameWish(at: now) ?? false || isDecodersWish
    }
}

/// Decides when pass-through is tried, and how long to wait after a failure.
struct PassAttempts {
    /// Wait after the first failure; four times as long after each further one.
    private static let shortestWait = Duration.seconds(30)
    /// Shortest wait after requested key frames did not arrive: encoder settings seldom change.
    private static let settingsWait = Duration.seconds(600)
    /// Longest wait.
    private static let longestWait = Duration.seconds(1_800)
    /// Duration of pass-through after which an earlier failure no longer counts.
    private static let trustTime = Duration.seconds(300)
    /// Interval over which the bit rate is measured.
    private static let window = Duration.seconds(2)

    private var wait = Self.shortestWait
    /// Earliest next attempt; nil before the first failure.
    private var retryAt: MonotonicTime?
    /// When the current pass-through began; nil without one.
    private var began: MonotonicTime?
    private var windowStart: MonotonicTime?
    private var windowBytes = 0
    /// Bit rate of the last interval in bits per second; nil before the end of the first.
    private(set) var bitrate: Int?

    /// Measures a packet of video, whether or not it is passed through.
    mutating func note(_ packet: InputPacket, at now: MonotonicTime) {
        let start = windowStart ?? now
        windowStart = start
        windowBytes += packet.payload.count
        guard now >= start + Self.window else { return }
        let milliseconds = max((now - start).wholeNanoseconds / 1_000_000, 1)
        bitrate = Int(clamping: Int64(windowBytes) * 8_000 / milliseconds)
        (windowStart, windowBytes) = (now, 0)
    }

    /// Whether pass-through may be tried now: the bit rate is acceptable, and the wait is over.
    func mayTry(at now: MonotonicTime) -> Bool {
        guard bitrate ?? 0 <= PassedTimeline.bitrateLimit else { return false }
        return retryAt.map { now >= $0 } ?? true
    }

    /// Notes that pass-through has begun.
    mutating func begin(at now: MonotonicTime) { began = now }

    /// Notes that pass-through has failed, and sets the next attempt.
    mutating func fail(at now: MonotonicTime, because reason: PassedTimeline.Ending?) {
        if let began, now >= began + Self.trustTime { wait = Self.shortestWait }
        if reason == .segment { wait = max(wait, Self.settingsWait) }
        retryAt = now + wait
        wait = min(wait + wait + wait + wait, Self.longestWait)
        began = nil
    }
}
