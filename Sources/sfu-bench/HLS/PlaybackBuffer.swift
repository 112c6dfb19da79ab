import Base

/// What a player has loaded and not shown yet, and when that ran out; in nanoseconds.
///
/// Shows in real time: where nothing is left it stands still until more comes, and stays as much later from then on.
/// Its time line begins with the first thing that is loaded, and has no gaps.
struct PlaybackBuffer: Equatable, Sendable {
    private enum State: Equatable {
        case loading
        case playing
        case standing
        /// All of it was shown, and nothing more comes.
        case over
    }

    /// How often and for how long it stood still.
    struct Stalls: Equatable, Sendable {
        var count = 0
        var nanoseconds: Int64 = 0
    }

    private var state = State.loading
    /// How much was loaded.
    private(set) var end: Int64 = 0
    /// What is shown, as of the last `advance`.
    private(set) var position: Int64 = 0
    private var now = MonotonicTime.zero
    private var isComplete = false
    private var untold = Stalls()
    /// Since when it stands still; nil while it does not.
    private(set) var standsSince: MonotonicTime?

    /// - Parameter position: where on the time line it begins to show.
    mutating func begin(at position: Int64) {
        guard state == .loading else { return }
        self.position = position
    }

    var isPlaying: Bool { state == .playing }
    var isOver: Bool { state == .over }

    /// More was loaded.
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

    /// Nothing more comes.
    mutating func finish(at now: MonotonicTime) {
        advance(to: now)
        isComplete = true
        // What stood still because nothing came was at its end.
        if state == .standing || state == .loading { state = .over }
        standsSince = nil
    }

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
            // Exactly at the end nothing is missing yet.
            guard passed > left else { return }
            state = .standing
            standsSince = self.now.advanced(byNanoseconds: left - passed)
            untold.count += 1
            untold.nanoseconds += passed - left
        }
    }

    /// What was not told before.
    mutating func takeStalls() -> Stalls {
        defer { untold = Stalls() }
        return untold
    }
}
