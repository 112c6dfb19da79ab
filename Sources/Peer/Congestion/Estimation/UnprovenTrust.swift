import Base

/// When a rate may be believed that nothing has shown: where there is nothing to try the path with, the way up is to
/// send it and see.
struct UnprovenTrust {
    private static let minimumPause = Duration.seconds(10)
    private static let maximumPause = Duration.seconds(120)
    /// How soon who says what they can take in has said that it was too much.
    static let usualTrial = Duration.seconds(5)

    private let trial: Duration
    private var last: MonotonicTime?
    /// When it is due.
    private(set) var next = MonotonicTime.zero
    private var pause = Self.minimumPause

    /// - Parameter trial: who falls sooner after it has been believed for nothing; it is believed no more often.
    init(trial: Duration = Self.usualTrial) {
        self.trial = trial
    }

    func isDue(at now: MonotonicTime) -> Bool { now >= next }

    /// Whether it is believed, and has not yet held for long.
    func isOnTrial(at now: MonotonicTime) -> Bool { last.map { now < $0 + trial } ?? false }

    /// It is believed from now on.
    mutating func begin(at now: MonotonicTime) {
        last = now
        next = now + trial
    }

    /// There is a pause from now on, whatever came before.
    mutating func rest(at now: MonotonicTime) {
        next = max(next, now + pause)
    }

    /// The path takes less: what was believed was wrong, or has held and the path has become worse since.
    mutating func noteFall(at now: MonotonicTime) {
        guard let last else { return }
        self.last = nil
        pause = now < last + trial ? min(pause * 2, Self.maximumPause) : Self.minimumPause
        next = now + pause
    }
}
