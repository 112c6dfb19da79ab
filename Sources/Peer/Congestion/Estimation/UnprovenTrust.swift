import Base

/// Decides when a rate may be believed without proof.
///
/// Where the path cannot be probed, sending the rate is the only way to find out.
struct UnprovenTrust {
    // Pause after a rate failed: at first, and at most; it doubles with each failure.
    private static let minimumPause = Duration.seconds(10)
    private static let maximumPause = Duration.seconds(120)
    /// How soon a receiver that sends REMB has reported that a rate was too much.
    static let usualTrial = Duration.seconds(5)

    private let trial: Duration
    private var last: MonotonicTime?
    /// When the next rate may be believed.
    private(set) var next = MonotonicTime.zero
    private var pause = Self.minimumPause

    /// - Parameter trial: how long a believed rate must hold; if the estimate falls sooner, the next pause is
    ///   longer.
    init(trial: Duration = Self.usualTrial) {
        self.trial = trial
    }

    func isDue(at now: MonotonicTime) -> Bool { now >= next }

    /// Whether a rate is believed that has not held for long enough yet.
    func isOnTrial(at now: MonotonicTime) -> Bool { last.map { now < $0 + trial } ?? false }

    /// Notes that a rate is believed from now on.
    mutating func begin(at now: MonotonicTime) {
        last = now
        next = now + trial
    }

    /// Starts a pause now, whatever came before.
    mutating func rest(at now: MonotonicTime) {
        next = max(next, now + pause)
    }

    /// Notes that the path takes less: the believed rate was wrong, or it held and the path has become worse since.
    mutating func noteFall(at now: MonotonicTime) {
        guard let last else { return }
        self.last = nil
        pause = now < last + trial ? min(pause * 2, Self.maximumPause) : Self.minimumPause
        next = now + pause
    }
}
