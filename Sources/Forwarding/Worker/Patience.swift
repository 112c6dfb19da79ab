import Base

/// How long packets may wait for others, by how much a worker has sent lately.
///
/// Browsers send a frame in bursts 5 ms apart: who waits a little longer than that sends two bursts at once. A worker
/// that is close to its limit waits for three, mostly a whole frame: that adds less than a queue would.
struct Patience {
    /// Between two bursts of a browser, in nanoseconds.
    static let burstInterval: Int64 = 5_000_000
    /// In nanoseconds: two bursts, and three.
    static let usual: Int64 = 5_300_000
    static let longest: Int64 = 10_600_000
    /// Packets a second that leave a worker idle: some five hundredths of a processor.
    static let idleRate = 15_000
    /// Packets a second from which on waiting is worth all of `usual`.
    static let busyRate = 45_000
    /// Packets a second from which on the wait grows further, and from which on it is `longest`.
    static let heavyRate = 110_000
    static let fullRate = 150_000

    /// A window is 2^26 ns long: two frames.
    private static let windowShift: Int64 = 26
    private var window: Int64 = 0
    private var count = 0
    /// Packets in a window, as of the last one that is over; half of it is history.
    private var average = 0

    mutating func add(_ packets: Int, at now: MonotonicTime) {
        advance(to: now)
        count += packets
    }

    /// In nanoseconds; 0 while the worker is idle.
    mutating func longestWait(at now: MonotonicTime) -> Int64 {
        advance(to: now)
        let rate = average * 1_000_000_000 >> Self.windowShift
        return Self.usual * Self.share(of: rate, from: Self.idleRate, to: Self.busyRate) / 1_000
            + (Self.longest - Self.usual) * Self.share(of: rate, from: Self.heavyRate, to: Self.fullRate)
            / 1_000
    }

    /// How far `rate` has come from one rate to another, in thousandths.
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

/// Over what time a source's frames come, from which follows what to wait for.
///
/// Where a frame takes longer than packets may wait, it leaves in several messages. Which packets go into the first of
/// them is free: as few as leave all the later messages full. So a frame of three bursts leaves as its first one, at
/// once, and then the other two together with the frame's end, instead of two bursts late and one alone.
struct FrameSpan {
    /// After so many nanoseconds without a packet a burst is over.
    static let gap: Int64 = 1_200_000
    /// Frames that take longer are pauses of the source.
    private static let longestSpan: Int64 = 100_000_000

    /// When the frame that is coming in began.
    private(set) var start = MonotonicTime.zero
    private(set) var lastArrival = MonotonicTime.zero
    private var isBetweenFrames = true
    /// In nanoseconds, from the first to the last packet of the latest frames; a quarter is the last one.
    private(set) var usual: Int64 = 0

    /// Notes a packet that came for the first time.
    mutating func note(marker: Bool, at now: MonotonicTime) {
        if isBetweenFrames { start = now }
        isBetweenFrames = marker
        lastArrival = now
        guard marker else { return }
        // A key frame is an exception: the frames after it are again as those before.
        let span = min(
            max(now.nanoseconds(since: start), 0), usual + Patience.burstInterval, Self.longestSpan)
        usual = (usual * 3 + span) / 4
    }

    /// When packets should leave that wait since `since`.
    func dueTime(since: MonotonicTime, longestWait: Int64) -> MonotonicTime {
        let latest = since.advanced(byNanoseconds: longestWait)
        // Only the first message of a frame may be short.
        guard since == start, !isBetweenFrames else { return latest }
        let first = firstBursts(longestWait: longestWait)
        guard first > 0 else { return latest }
        let lastBurst = start.advanced(byNanoseconds: (first - 1) * Patience.burstInterval)
        return min(latest, max(lastBurst, lastArrival).advanced(byNanoseconds: Self.gap))
    }

    /// How many bursts the first message should hold; 0 for as many as come in time.
    private func firstBursts(longestWait: Int64) -> Int64 {
        let bursts = (usual + Patience.burstInterval / 2) / Patience.burstInterval + 1
        let together = longestWait / Patience.burstInterval + 1
        return bursts > together ? bursts % together : 0
    }
}
