import Base

/// When the next picture, or block of sound, is due: evenly, and independent of what comes in.
struct FrameClock {
    private let start: MonotonicTime
    private var count: Int64 = 0
    /// In nanoseconds a second, so that 30 a second need no rounding.
    private(set) var perSecond: Int64
    private(set) var skipped: UInt64 = 0

    init(perSecond: Int64, from start: MonotonicTime) {
        self.start = start
        self.perSecond = max(perSecond, 1)
    }

    var next: MonotonicTime { start.advanced(byNanoseconds: offset(count)) }

    private func offset(_ count: Int64) -> Int64 {
        let (seconds, rest) = count.quotientAndRemainder(dividingBy: perSecond)
        return seconds &* 1_000_000_000 &+ rest &* 1_000_000_000 / perSecond
    }

    var interval: Duration { .nanoseconds(1_000_000_000 / perSecond) }

    /// The turn that is due; turns that are over by more than `patience` are left out.
    mutating func takeDue(at now: MonotonicTime, patience: Duration) -> MonotonicTime? {
        guard now >= next else { return nil }
        while now >= next + patience, now >= start.advanced(byNanoseconds: offset(count + 1)) {
            count += 1
            skipped &+= 1
        }
        defer { count += 1 }
        return next
    }

    /// Goes on with another rate, at the same next turn.
    mutating func change(perSecond rate: Int64) {
        guard rate != perSecond else { return }
        let (skipped, next) = (skipped, next)
        self = FrameClock(perSecond: rate, from: next)
        self.skipped = skipped
    }
}

/// Decides how much of a picture can be afforded: fewer pictures a second first, then smaller ones.
///
/// Takes in what each picture cost. Steps down as soon as a second was too dear, before anything queues, and up again
/// only when there was room for long. Where pictures are missed although they cost little, others have the processor:
/// fewer pictures may help then, smaller ones do not.
struct OverloadGovernor {
    struct Level: Equatable {
        /// Of the pictures a second, in percent.
        let rate: Int
        /// Of width and height, in percent.
        let size: Int
    }

    static let levels = [
        Level(rate: 100, size: 100), Level(rate: 67, size: 100), Level(rate: 50, size: 100),
        Level(rate: 50, size: 75), Level(rate: 50, size: 50), Level(rate: 33, size: 50),
        Level(rate: 33, size: 25),
    ]
    /// Of the time between two pictures.
    static let tooMuch = 0.85
    static let little = 0.45
    /// Pictures in a second.
    private static let mayMiss = 5
    /// The last level that only makes fewer pictures.
    private static let lowestByRate = 2
    private static let window = Duration.seconds(1)
    private static let patience = Duration.seconds(8)

    private(set) var index = 0
    private var spent = Duration.zero
    private var missed = 0
    private var windowStart: MonotonicTime?
    private var calmSince: MonotonicTime?

    var level: Level { Self.levels[index] }

    /// Takes in that so much time went into composing since the last call.
    /// - Parameter missed: pictures that were left out because their time was over.
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
