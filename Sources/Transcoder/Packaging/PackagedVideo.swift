import Base
import Wire

/// Where a packaging's pictures come from: they are decoded, or passed on as they are, or both while that is tried.
struct PackagedVideo {
    /// What is passed on begins in the present, if it comes there within this time.
    private static let beginningPatience = Duration.milliseconds(500)
    /// A key frame to begin with is waited for so long.
    static let keyFramePatience = Duration.milliseconds(2_500)
    /// A newer key frame than the cached one is waited for so long: browsers send one in a tenth of that.
    private static let renewalPatience = Duration.seconds(1)

    let input: InputID
    private let passable: Set<VideoCodec>
    private let makeFrames: () -> VideoInput
    /// Nil while nothing is decoded.
    private(set) var frames: VideoInput?
    /// Nil while nothing is passed on, nor tried to be.
    private var passed: PassThrough?
    /// Whether there is a time line of it.
    private var isPassing = false
    /// When it was tried last.
    private var triedAt = MonotonicTime.zero
    /// Since when a newer key frame than the cached one is waited for; nil while none is.
    private var renewedAt: MonotonicTime?
    private var attempts = PassAttempts()

    /// - Parameter passable: what may go on as it is.
    init(_ input: InputID, passing passable: Set<VideoCodec>, makeFrames: @escaping () -> VideoInput) {
        self.input = input
        self.passable = passable
        self.makeFrames = makeFrames
    }

    /// Takes a packet in.
    /// - Returns: how long after their capture the frames came that were decoded, in nanoseconds.
    mutating func receive(_ packet: InputPacket, at now: MonotonicTime) -> [Int64] {
        attempts.note(packet, at: now)
        if passed == nil, let codec = packet.codec.video, passable.contains(codec), attempts.mayTry(at: now) {
            passed = PassThrough(codec)
            triedAt = now
        }
        passed?.receive(packet, at: now)
        // It has begun nothing that would have to end.
        if !isPassing, passed?.isUnfit == true {
            // The decoder gets this packet with its group.
            guard frames != nil else { return decode(at: now) }
            decode(at: now)
        }
        if passed == nil, frames == nil { frames = makeFrames() }
        return frames?.receive(packet, at: now) ?? []
    }

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

    /// What a time line of passed pictures begins with, a key frame first; nil where there is nothing yet.
    /// - Parameter delay: how long after its capture something is shown.
    mutating func takeBeginning(at now: MonotonicTime, delay: Duration) -> [PassedFrame]? {
        guard !isPassing, let beginning = passed?.beginning, let first = beginning.first?.time,
            let last = beginning.last?.time
        else { return nil }
        guard last + delay >= now || now >= triedAt + Self.beginningPatience else { return nil }
        let longest = Duration.milliseconds(PassedTimeline.longestSegment)
        let bytes = beginning.reduce(0) { $0 + $1.bytes.count }
        let milliseconds = Int((last - first).wholeNanoseconds / 1_000_000)
        guard last - first < longest, now - first < longest + Self.beginningPatience else {
            guard renewedAt == nil else {
                decode(at: now, because: .segment)
                return nil
            }
            passed?.beginAnew()
            renewedAt = now
            return nil
        }
        // What a publisher says of its clock need not be true.
        guard first <= now + Self.beginningPatience else {
            decode(at: now)
            return nil
        }
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

    /// What goes on with a time line of passed pictures; nil where that is over.
    mutating func takeFrames() -> [PassedFrame]? {
        guard isPassing, passed?.isUnfit == false else { return nil }
        return passed?.takeFrames() ?? []
    }

    /// Begins with the next key frame again.
    mutating func beginAnew(at now: MonotonicTime) {
        passed?.beginAnew()
        (isPassing, renewedAt) = (false, nil)
        triedAt = now
    }

    /// Passes nothing on for a while: pictures are decoded, from the last key frame on.
    /// - Parameter reason: nil for a fault that may be a single one.
    /// - Returns: as `receive` does.
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

    /// Whether its publisher should be asked for a key frame now.
    mutating func takeKeyFrameWish(at now: MonotonicTime) -> Bool {
        let isDecodersWish = frames?.takeKeyFrameWish() ?? false
        return passed?.takeKeyFrameWish(at: now) ?? false || isDecodersWish
    }
}

/// When a publisher's pictures are passed on, and when that is tried again after it did not go well.
struct PassAttempts {
    private static let shortestWait = Duration.seconds(30)
    /// After key frames that did not come when they were asked for: an encoder's settings seldom change.
    private static let settingsWait = Duration.seconds(600)
    private static let longestWait = Duration.seconds(1_800)
    /// So long without a fault, and the next one is the first again.
    private static let trustTime = Duration.seconds(300)
    private static let window = Duration.seconds(2)

    private var wait = Self.shortestWait
    private var retryAt: MonotonicTime?
    private var began: MonotonicTime?
    private var windowStart: MonotonicTime?
    private var windowBytes = 0
    /// In bits a second, lately; nil while that is not known.
    private(set) var bitrate: Int?

    /// Takes notice of a packet of video, whatever becomes of it.
    mutating func note(_ packet: InputPacket, at now: MonotonicTime) {
        let start = windowStart ?? now
        windowStart = start
        windowBytes += packet.payload.count
        guard now >= start + Self.window else { return }
        let milliseconds = max((now - start).wholeNanoseconds / 1_000_000, 1)
        bitrate = Int(clamping: Int64(windowBytes) * 8_000 / milliseconds)
        (windowStart, windowBytes) = (now, 0)
    }

    /// Whether it may be tried.
    func mayTry(at now: MonotonicTime) -> Bool {
        guard bitrate ?? 0 <= PassedTimeline.bitrateLimit else { return false }
        return retryAt.map { now >= $0 } ?? true
    }

    mutating func begin(at now: MonotonicTime) { began = now }

    /// It did not go well.
    mutating func fail(at now: MonotonicTime, because reason: PassedTimeline.Ending?) {
        if let began, now >= began + Self.trustTime { wait = Self.shortestWait }
        if reason == .segment { wait = max(wait, Self.settingsWait) }
        retryAt = now + wait
        wait = min(wait + wait + wait + wait, Self.longestWait)
        began = nil
    }
}
