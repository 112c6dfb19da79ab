import Base

/// Models what a player has loaded but not shown, and when that ran out; times are in nanoseconds.
///
/// It plays in real time. When the buffer is empty, playback stalls until more arrives, and stays later by that time.
/// The time line starts with the first media that was loaded, and has no gaps.
struct PlaybackBuffer: Equatable, Sendable {
    /// What the player does.
    private enum State: Equatable {
        /// Nothing can be shown yet.
        case loading
        case playing
        /// The buffer is empty, and more is to come.
        case standing
        /// Everything was shown, and nothing more comes.
        case over
    }

    /// Number and total duration of stalls.
    struct Stalls: Equatable, Sendable {
        var count = 0
        var nanoseconds: Int64 = 0
    }

    private var state = State.loading
    /// Duration of all media loaded so far.
    private(set) var end: Int64 = 0
    /// What is being shown, as of the last `advance`.
    private(set) var position: Int64 = 0
    /// The time of the last `advance`.
    private var now = MonotonicTime.zero
    /// Whether no more media will come.
    private var isComplete = false
    /// Since the last `takeStalls`.
    private var untold = Stalls()
    /// When the current stall began; nil if playback is not stalled.
    private(set) var standsSince: MonotonicTime?

    /// Sets where playback starts, if it has not started yet.
    /// - Parameter position: on the time line.
    mutating func begin(at position: Int64) {
        guard state == .loading else { return }
        self.position = position
    }

    var isPlaying: Bool { state == .playing }
    var isOver: Bool { state == .over }

    /// Adds loaded media, which starts playback or ends a stall.
    mutating func append(_ duration: Int64, at now: MonotonicTime) {
        advance(to: now)
        end += max(duration, 0)
        guard end > position else { return }
        switch state {
        case .loading: state = .playing
        case .standing:
            state = .playing
            standsSince = nil
        case .playing, .over: break
        }
    }

    /// Notes that no more media will come.
    mutating func finish(at now: MonotonicTime) {
        advance(to: now)
        isComplete = true
        // A player that stalled because nothing came had reached the end.
        if state == .standing || state == .loading { state = .over }
        standsSince = nil
    }

    /// Plays up to a moment; a time before the last one is ignored.
    mutating func advance(to now: MonotonicTime) {
        let passed = max(now.nanoseconds(since: self.now), 0)
        self.now = max(now, self.now)
        switch state {
        case .loading, .over: break
        case .standing: untold.nanoseconds += passed
        case .playing:
            let left = end - position
            position += min(passed, left)
            guard passed >= left else { return }
            guard !isComplete else {
                state = .over
                return
            }
            // A buffer that is empty at this very moment is not a stall yet.
            guard passed > left else { return }
            state = .standing
            // The stall began when the buffer ran out, not at this call.
            standsSince = self.now.advanced(byNanoseconds: left - passed)
            untold.count += 1
            untold.nanoseconds += passed - left
        }
    }

    /// Stalls since the last call; one that continues counts with its time only.
    mutating func takeStalls() -> Stalls {
        defer { untold = Stalls() }
        return untold
    }
}
