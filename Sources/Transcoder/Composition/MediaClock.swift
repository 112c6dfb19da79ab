import Base

/// Relates the RTP time stamps of one source to our clock.
///
/// Where the server knows from sender reports when something was captured, that counts; until then, whatever came
/// with the least delay. Follows a clock that runs faster or slower than ours.
struct MediaClock {
    /// Ticks a second.
    let rate: Int64
    private var lastTimestamp: UInt32?
    private var extended: Int64 = 0
    /// Our time at tick 0, in nanoseconds.
    private var origin: Int64?
    private var isCaptureKnown = false

    /// A larger difference is a clock that was set, not one that drifts.
    private static let step: Int64 = 150_000_000

    init(rate: Int64) {
        self.rate = rate
    }

    /// The time stamp without wrapping, as the one closest to the latest.
    mutating func extend(_ timestamp: UInt32) -> Int64 {
        guard let lastTimestamp else {
            self.lastTimestamp = timestamp
            extended = Int64(timestamp)
            return extended
        }
        let step = Int64(Int32(bitPattern: timestamp &- lastTimestamp))
        guard step > 0 else { return extended &+ step }
        extended &+= step
        self.lastTimestamp = timestamp
        return extended
    }

    /// Takes in when a packet was captured, if that is known, and when it came.
    mutating func note(_ timestamp: Int64, captured: MonotonicTime?, arrival: MonotonicTime) {
        let known = captured != nil
        guard known || !isCaptureKnown else { return }
        let observed = (captured ?? arrival).nanoseconds &- nanoseconds(timestamp)
        guard let origin, known == isCaptureKnown else {
            isCaptureKnown = known
            self.origin = observed
            return
        }
        let difference = observed &- origin
        if known {
            self.origin = difference.magnitude > UInt64(Self.step) ? observed : origin &+ difference / 32
        } else {
            // Whatever came faster than any before shows how fast it can be.
            self.origin =
                difference < 0 || difference > 2_000_000_000 ? observed : origin &+ difference / 1_024
        }
    }

    func time(of timestamp: Int64) -> MonotonicTime? {
        origin.map { MonotonicTime(nanoseconds: $0 &+ nanoseconds(timestamp)) }
    }

    /// The time stamp of what was captured at `time`.
    func timestamp(at time: MonotonicTime) -> Int64? {
        guard let origin else { return nil }
        let (seconds, rest) = (time.nanoseconds &- origin).quotientAndRemainder(dividingBy: 1_000_000_000)
        return seconds &* rate &+ rest &* rate / 1_000_000_000
    }

    private func nanoseconds(_ timestamp: Int64) -> Int64 {
        let (seconds, rest) = timestamp.quotientAndRemainder(dividingBy: rate)
        return seconds &* 1_000_000_000 &+ rest &* 1_000_000_000 / rate
    }
}

/// How long after its capture a speaker's media is shown: as long as nearly all of it takes to come.
///
/// Voice and picture share it, and are in sync because of that. Grows at once, and shrinks so slowly that nobody
/// hears it.
struct PlayoutDelay {
    static let shortest = Duration.milliseconds(30)
    static let longest = Duration.milliseconds(250)
    private static let binWidth: Int64 = 5_000_000
    private static let binCount = 64
    /// So much of what came is not waited for.
    private static let tail: Float = 0.03
    private static let forgetting: Float = 0.995

    private struct Histogram {
        var bins = [Float](repeating: 0, count: PlayoutDelay.binCount)
        var total: Float = 0

        mutating func add(_ nanoseconds: Int64) {
            for index in bins.indices { bins[index] *= PlayoutDelay.forgetting }
            let bin = Int(max(nanoseconds, 0) / PlayoutDelay.binWidth)
            bins[min(bin, bins.count - 1)] += 1
            total = total * PlayoutDelay.forgetting + 1
        }

        /// The upper end of the bin below which nearly all lies.
        var quantile: Int64 {
            guard total > 0 else { return 0 }
            var rest = total * PlayoutDelay.tail
            for index in bins.indices.reversed() {
                rest -= bins[index]
                if rest < 0 { return Int64(index + 1) * PlayoutDelay.binWidth }
            }
            return 0
        }
    }

    private var audio = Histogram()
    private var video = Histogram()
    private(set) var current = Self.shortest

    /// Notes how long after its capture something was there.
    mutating func noteAudio(_ lateness: Int64) {
        audio.add(lateness)
    }

    mutating func noteVideo(_ lateness: Int64) {
        // A picture that is very late is not waited for by the voice.
        if lateness < Self.longest.wholeNanoseconds { video.add(lateness) }
    }

    /// Takes a step towards what is needed; every 20 ms.
    mutating func advance() {
        // A block of 20 ms begins anywhere within a packet: it needs the packet after, too.
        let voice = audio.total > 0 ? audio.quantile + 22_000_000 : 0
        let picture = video.total > 0 ? video.quantile : 0
        let wanted = min(max(.nanoseconds(max(voice, picture)), Self.shortest), Self.longest)
        if wanted > current {
            current = wanted
        } else if wanted < current - .milliseconds(10) {
            current -= .microseconds(200)
        }
    }
}
