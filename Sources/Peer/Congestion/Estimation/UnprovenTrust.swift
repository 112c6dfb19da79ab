import Base

/// When a rate may be believed that nothing has shown: where there is nothing to try the path with, the way up is to
/// send it and see.
struct UnprovenTrust {
    private static let minimumPause = Duration.seconds(10)
    private static let maximumPause = Duration.seconds(120)
    /// Who falls sooner after it has been believed for nothing.
    private static let trial = Duration.seconds(5)

    private var last: MonotonicTime?
    private var next = MonotonicTime.zero
    private var pause = Self.minimumPause

    func isDue(at now: MonotonicTime) -> Bool { now >= next }

    /// It is believed from now on.
    mutating func begin(at now: MonotonicTime) {
        last = now
        next = now + Self.trial
    }

    /// The path takes less: what was believed was wrong, or has held and the path has become worse since.
    mutating func noteFall(at now: MonotonicTime) {
        guard let last else { return }
        self.last = nil
        pause = now < last + Self.trial ? min(pause * 2, Self.maximumPause) : Self.minimumPause
        next = now + pause
    }
}
