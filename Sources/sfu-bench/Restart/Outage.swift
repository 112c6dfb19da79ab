import Base

/// When a server was not ready, according to a series of readiness checks.
struct Outage: Equatable, Sendable {
    /// The first sign of the restart: a failed check, or a session that ended.
    private(set) var noticed: MonotonicTime?
    /// When a check first failed, and when one succeeded again.
    private(set) var down: MonotonicTime?
    private(set) var up: MonotonicTime?
    /// The longest time without a failed check after a session ended, in nanoseconds.
    ///
    /// Beyond that, the server counts as restarted behind a proxy that answers the checks for it.
    static let hidden: Int64 = 2_000_000_000

    /// Takes the result of a check; a check without a response counts as not ready.
    mutating func take(isReady: Bool, asked: MonotonicTime, answered: MonotonicTime) {
        guard up == nil else { return }
        if !isReady {
            noticed = noticed ?? answered
            down = down ?? answered
        } else if down != nil {
            up = answered
        } else if let noticed, asked.nanoseconds(since: noticed) > Self.hidden {
            // No check failed: the restart counts as over when it was noticed.
            (down, up) = (noticed, noticed)
        }
    }

    /// Notes that a client's session ended.
    mutating func sessionEnded(at now: MonotonicTime) {
        noticed = noticed ?? now
    }

    /// How long the server was not ready, in milliseconds; nil while the outage goes on, or has not begun.
    var milliseconds: Double? {
        guard let down, let up else { return nil }
        return Double(up.nanoseconds(since: down)) / 1e6
    }
}
