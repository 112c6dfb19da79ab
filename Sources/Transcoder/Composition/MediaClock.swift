import Base

/// Maps the RTP time stamps of one source to the server's clock.
///
/// Capture times from sender reports are preferred. Until the first report, the packet with the least delay is the
/// reference. The mapping follows a source whose clock runs faster or slower.
struct MediaClock {
    /// Ticks per second.
    let rate: Int64
    private var lastTimestamp: UInt32?
    /// `lastTimestamp` without its wrap.
    private var extended: Int64 = 0
    /// The server's time at tick 0, in nanoseconds; nil before the first packet.
    private var origin: Int64?
    /// Whether `origin` is based on capture times.
    private var isCaptureKnown = false

    /// Differences beyond this, in nanoseconds, are a clock that was set and not drift.
    private static let step: Int64 = 150_000_000

    init(rate: Int64) {
        self.rate = rate
    }

    /// Unwraps a time stamp of 32 bits, as the value closest to the latest one.
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

    /// Notes a packet's capture time, if known, and its arrival.
    mutating func note(_ timestamp: Int64, captured: MonotonicTime?, arrival: MonotonicTime) {
        let known = captured != nil
        // Arrivals are ignored once capture times are known: they are less accurate.
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
            // A packet with less delay than any before replaces the reference; the slow correction follows drift.
            self.origin =
                difference < 0 || difference > 2_000_000_000 ? observed : origin &+ difference / 1_024
        }
    }

    /// When something was captured; nil before the first packet.
    func time(of timestamp: Int64) -> MonotonicTime? {
        origin.map { MonotonicTime(nanoseconds: $0 &+ nanoseconds(timestamp)) }
    }

    /// The time stamp of media captured at `time`; nil before the first packet.
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

/// The delay between capture and output of one speaker's media: the time in which nearly all of it arrives.
///
/// Audio and video share one delay and are therefore in sync. It grows immediately, and shrinks slowly enough to be
/// inaudible.
struct PlayoutDelay {
    static let shortest = Duration.milliseconds(30)
    static let longest = Duration.milliseconds(250)
    /// Width of a histogram's bin, in nanoseconds.
    private static let binWidth: Int64 = 5_000_000
    private static let binCount = 64
    /// Share of the latest media that is not waited for.
    private static let tail: Float = 0.03
    /// Weight that older entries keep with each new one; about the last 200 count.
    private static let forgetting: Float = 0.995

    /// Delays of the latest packets or frames, older ones with less weight.
    private struct Histogram {
        var bins = [Float](repeating: 0, count: PlayoutDelay.binCount)
        var total: Float = 0

        mutating func add(_ nanoseconds: Int64) {
            for index in bins.indices { bins[index] *= PlayoutDelay.forgetting }
            let bin = Int(max(nanoseconds, 0) / PlayoutDelay.binWidth)
            bins[min(bin, bins.count - 1)] += 1
            total = total * PlayoutDelay.forgetting + 1
        }

        /// The delay below which nearly all entries lie, in nanoseconds; 0 without entries.
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
    /// The delay to apply now.
    private(set) var current = Self.shortest

    /// Notes the delay of a packet of sound, in nanoseconds since its capture.
    mutating func noteAudio(_ lateness: Int64) {
        audio.add(lateness)
    }

    /// Notes the delay of a frame, in nanoseconds since its capture.
    mutating func noteVideo(_ lateness: Int64) {
        // Sound does not wait for very late pictures.
        if lateness < Self.longest.wholeNanoseconds { video.add(lateness) }
    }

    /// Moves one step towards the needed delay; to be called every 20 ms.
    mutating func advance() {
        // A block of 20 ms may begin anywhere inside a packet and then needs the next packet as well.
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
