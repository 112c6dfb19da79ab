import Base

/// Schedules pictures or blocks of sound at an even rate, independent of input.
struct FrameClock {
    private let start: MonotonicTime
    private var count: Int64 = 0
    /// Turns per second; times are computed from it, so that 30 per second accumulate no rounding error.
    private(set) var perSecond: Int64
    /// Turns left out because their time had passed.
    private(set) var skipped: UInt64 = 0

    init(perSecond: Int64, from start: MonotonicTime) {
        self.start = start
        self.perSecond = max(perSecond, 1)
    }

    /// When the next turn is due.
    var next: MonotonicTime { start.advanced(byNanoseconds: offset(count)) }

    /// From the start to a turn, in nanoseconds.
    private func offset(_ count: Int64) -> Int64 {
        let (seconds, rest) = count.quotientAndRemainder(dividingBy: perSecond)
        return seconds &* 1_000_000_000 &+ rest &* 1_000_000_000 / perSecond
    }

    var interval: Duration { .nanoseconds(1_000_000_000 / perSecond) }

    /// Returns the turn that is due; nil if none is.
    ///
    /// Turns that are overdue by more than `patience` are skipped, except the latest one.
    mutating func takeDue(at now: MonotonicTime, patience: Duration) -> MonotonicTime? {
        guard now >= next else { return nil }
        while now >= next + patience, now >= start.advanced(byNanoseconds: offset(count + 1)) {
            count += 1
            skipped &+= 1
        }
        defer { count += 1 }
        return next
    }

    /// Changes the rate without moving the next turn.
    mutating func change(perSecond rate: Int64) {
        guard rate != perSecond else { return }
        let (skipped, next) = (skipped, next)
        self = FrameClock(perSecond: rate, from: next)
        self.skipped = skipped
    }
}

/// Reduces the cost of pictures under load: first fewer pictures per second, then smaller ones.
///
/// It is told the cost of each picture. It steps down as soon as one second was too expensive, before anything queues,
/// and up only after a long time with capacity to spare. If pictures are missed although they cost little, other
/// processes use the CPU: fewer pictures may help then, smaller ones do not.
struct OverloadGovernor {
    /// One step of the reduction.
    struct Level: Equatable {
        /// Of the pictures per second, in percent.
        let rate: Int
        /// Of width and height, in percent.
        let size: Int
    }

    static let levels = [
        Level(rate: 100, size: 100), Level(rate: 67, size: 100), Level(rate: 50, size: 100),
        Level(rate: 50, size: 75), Level(rate: 50, size: 50), Level(rate: 33, size: 50),
        Level(rate: 33, size: 25),
    ]
    /// Load above which quality is reduced, and below which it may be restored, as shares of real time.
    static let tooMuch = 0.85
    static let little = 0.45
    /// Pictures per second that may be missed without a reduction.
    private static let mayMiss = 5
    /// The last level that reduces only the rate.
    private static let lowestByRate = 2
    /// Interval over which the load is measured.
    private static let window = Duration.seconds(1)
    /// How long the load has to be low before quality is restored by one level.
    private static let patience = Duration.seconds(8)

    /// Of the current level in `levels`.
    private(set) var index = 0
    private var spent = Duration.zero
    private var missed = 0
    private var windowStart: MonotonicTime?
    private var calmSince: MonotonicTime?

    var level: Level { Self.levels[index] }

    /// Notes the time spent on composing since the last call.
    /// - Parameter missed: pictures skipped because their time had passed.
    /// - Returns: whether the level changed.
    mutating func note(_ cost: Duration, missed: Int, at now: MonotonicTime) -> Bool {
        spent += cost
        self.missed += missed
        guard let start = windowStart else {
            windowStart = now
            return false
        }
        let elapsed = now - start
        guard elapsed >= Self.window else { return false }
        let load = Double(spent.wholeNanoseconds) / Double(max(elapsed.wholeNanoseconds, 1))
        let hasMissed = self.missed > Self.mayMiss
        (spent, self.missed, windowStart) = (.zero, 0, now)
        let lowest = load > Self.little ? Self.levels.count - 1 : Self.lowestByRate
        if (load > Self.tooMuch || hasMissed), index < lowest {
            index += 1
            calmSince = nil
            return true
        }
        guard load < Self.little, !hasMissed else {
            calmSince = nil
            return false
        }
        guard let since = calmSince else {
            calmSince = now
            return false
        }
        guard index > 0, now >= since + Self.patience else { return false }
        index -= 1
        calmSince = nil
        return true
    }
}
