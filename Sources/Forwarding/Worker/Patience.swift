import Base

/// Determines how long packets may wait for others, by the worker's recent load.
///
/// Browsers send a frame in bursts 5 ms apart, so waiting a little longer than that sends two bursts together. A
/// worker close to its limit waits for three, which is mostly a whole frame: that adds less delay than a queue would.
struct Patience {
    /// Time between two bursts of a browser, in nanoseconds.
    static let burstInterval: Int64 = 5_000_000
    /// Waits for two and for three bursts, in nanoseconds.
    static let usual: Int64 = 5_300_000
    static let longest: Int64 = 10_600_000
    /// Packets per second up to which a worker counts as idle: about 5 % of a processor.
    static let idleRate = 15_000
    /// Packets per second from which packets wait for `usual`.
    static let busyRate = 45_000
    /// Packets per second from which the wait grows further, and from which it is `longest`.
    static let heavyRate = 110_000
    static let fullRate = 150_000

    /// A window is 2^26 ns (67 ms) long: two frames.
    private static let windowShift: Int64 = 26
    private var window: Int64 = 0
    private var count = 0
    /// Average number of packets per window; the last complete window counts for half.
    private var average = 0

    mutating func add(_ packets: Int, at now: MonotonicTime) {
        advance(to: now)
        count += packets
    }

    /// The longest wait now, in nanoseconds; 0 while the worker is idle.
    mutating func longestWait(at now: MonotonicTime) -> Int64 {
        advance(to: now)
        let rate = (average * 1_000_000_000) >> Self.windowShift
        return Self.usual * Self.share(of: rate, from: Self.idleRate, to: Self.busyRate) / 1_000
            + (Self.longest - Self.usual) * Self.share(of: rate, from: Self.heavyRate, to: Self.fullRate)
            / 1_000
    }

    /// The position of `rate` between two rates, in thousandths.
    private static func share(of rate: Int, from low: Int, to high: Int) -> Int64 {
        Int64(min(max(rate - low, 0), high - low) * 1_000 / (high - low))
    }

    private mutating func advance(to now: MonotonicTime) {
        let current = now.nanoseconds >> Self.windowShift
        guard current != window else { return }
        average = current == window + 1 ? (average + count) / 2 : 0
        window = current
        count = 0
    }
}

/// Measures how long a source's frames take to arrive, to decide what to wait for.
///
/// A frame that takes longer than packets may wait leaves in several messages. Which packets go into the first
/// message is free: it gets as few as leave all later ones full. So a frame of three bursts leaves as its first burst
/// immediately, then the other two together, instead of two bursts late and one alone.
struct FrameSpan {
    /// Time without a packet after which a burst is over, in nanoseconds.
    static let gap: Int64 = 1_200_000
    /// Longer frames are pauses of the source; in nanoseconds.
    private static let longestSpan: Int64 = 100_000_000

    /// When the present frame began to arrive.
    private(set) var start = MonotonicTime.zero
    private(set) var lastArrival = MonotonicTime.zero
    private var isBetweenFrames = true
    /// Average time from a frame's first to its last packet, in nanoseconds; the latest frame counts for a quarter.
    private(set) var usual: Int64 = 0

    /// Notes the time of a packet.
    mutating func note(marker: Bool, at now: MonotonicTime) {
        if isBetweenFrames { start = now }
        isBetweenFrames = marker
        lastArrival = now
        guard marker else { return }
        // A key frame is an exception, so its influence is limited: later frames take as long as earlier ones.
        let span = min(
            max(now.nanoseconds(since: start), 0), usual + Patience.burstInterval, Self.longestSpan)
        usual = (usual * 3 + span) / 4
    }

    /// When packets that have waited since `since` should be sent.
    /// - Parameter longestWait: in nanoseconds.
    func dueTime(since: MonotonicTime, longestWait: Int64) -> MonotonicTime {
        let latest = since.advanced(byNanoseconds: longestWait)
        // Only the first message of a frame may be short.
        guard since == start, !isBetweenFrames else { return latest }
        let first = firstBursts(longestWait: longestWait)
        guard first > 0 else { return latest }
        let lastBurst = start.advanced(byNanoseconds: (first - 1) * Patience.burstInterval)
        return min(latest, max(lastBurst, lastArrival).advanced(byNanoseconds: Self.gap))
    }

    /// Number of bursts in the first message; 0 for as many as arrive in time.
    private func firstBursts(longestWait: Int64) -> Int64 {
        let bursts = (usual + Patience.burstInterval / 2) / Patience.burstInterval + 1
        let together = longestWait / Patience.burstInterval + 1
        return bursts > together ? bursts % together : 0
    }
}
