import Base

/// When a server was not ready, by what it answered to one question after the other.
struct Outage: Equatable, Sendable {
    /// The first sign that it is being restarted.
    private(set) var noticed: MonotonicTime?
    /// When it was first not ready, and when it was ready again.
    private(set) var down: MonotonicTime?
    private(set) var up: MonotonicTime?
    /// A server that closed sessions and was ready all the time was restarted behind something that answers for it.
    static let hidden: Int64 = 2_000_000_000

    /// Takes an answer, or that there was none, to a question asked at some time.
    mutating func take(isReady: Bool, asked: MonotonicTime, answered: MonotonicTime) {
        guard up == nil else { return }
        if !isReady {
            noticed = noticed ?? answered
            down = down ?? answered
        } else if down != nil {
            up = answered
        } else if let noticed, asked.nanoseconds(since: noticed) > Self.hidden {
            (down, up) = (noticed, noticed)
        }
    }

    /// A client's session ended.
    mutating func sessionEnded(at now: MonotonicTime) {
        noticed = noticed ?? now
    }

    /// How long it was not ready, in milliseconds; nil while that is not known.
    var milliseconds: Double? {
        guard let down, let up else { return nil }
        return Double(up.nanoseconds(since: down)) / 1e6
    }
}
