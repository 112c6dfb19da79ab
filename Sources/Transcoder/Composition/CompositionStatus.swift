import Base

/// Measurements of a composition, for metrics and the API.
package struct CompositionStatus: Equatable, Sendable, Codable {
    /// Pictures encoded, over the interval since the last status.
    package var framesPerSecond = 0.0
    /// The rate that the overload level permits.
    package var targetFramesPerSecond = 0
    /// In pixels; smaller than the settings under load.
    package var width = 0
    /// In pixels.
    package var height = 0
    /// Index of the overload level; 0 without reductions.
    package var level = 0
    /// People on stage, including those without a tile.
    package var speakers = 0
    /// Mean cost of a picture in milliseconds, sound included.
    package var millisecondsPerFrame = 0.0
    /// Share of the interval spent on composing, 0 to 1.
    package var load = 0.0
    /// Median time from the last packet of a speaker's frame to the encoded picture that shows it.
    package var latencyMedianMilliseconds = 0.0
    /// The 95th percentile of the same time.
    package var latencyHighMilliseconds = 0.0
    /// Delay between capture and output, which keeps sound and pictures in sync.
    package var delayMilliseconds = 0
    /// Of the encoded pictures without their small copies, over the interval, in bits per second.
    package var bitrate = 0
    /// Key frames encoded since the composition began.
    package var keyFrames: UInt64 = 0
    /// Pictures skipped because their time had passed.
    package var skippedFrames: UInt64 = 0
    /// Samples concealed because their packets were late or lost.
    package var concealedSamples: UInt64 = 0
    /// Packets that arrived after their time in the mix.
    package var lateAudioPackets: UInt64 = 0
    /// Packets of inputs that the scene does not contain.
    package var strayPackets: UInt64 = 0
    /// Packets that could not be parsed.
    package var undecodablePackets: UInt64 = 0

    package init() {}
}

/// Accumulates the measurements between two statuses.
struct CompositionMeter {
    var keyFrames: UInt64 = 0
    var strayPackets: UInt64 = 0
    var undecodablePackets: UInt64 = 0
    private var frames = 0
    private var bytes = 0
    private var cost = Duration.zero
    private var since: MonotonicTime?
    /// Waits of the pictures in the composed picture under way.
    private var waits: [Duration] = []
    private var latencies: [Double] = []

    /// Most latencies that are kept per interval.
    private static let latencyLimit = 1_024

    mutating func noteFrame(bytes count: Int) {
        frames += 1
        bytes += count
    }

    /// - Parameter waited: from the picture's last packet until it was taken for composing.
    mutating func notePicture(waited: Duration) {
        if waits.count < Self.latencyLimit { waits.append(waited) }
    }

    /// Adds the time that one picture took; the latency of each picture in it includes that.
    mutating func finish(cost spent: Duration) {
        cost += spent
        for wait in waits where latencies.count < Self.latencyLimit {
            latencies.append(Double((wait + spent).wholeNanoseconds) / 1e6)
        }
        waits.removeAll(keepingCapacity: true)
    }

    /// Returns the measurements, and begins a new interval; key frames and bad packets are totals.
    mutating func takeStatus(at now: MonotonicTime) -> CompositionStatus {
        var status = CompositionStatus()
        let seconds = Double(now.nanoseconds(since: since ?? now)) / 1e9
        if seconds > 0 {
            status.framesPerSecond = Double(frames) / seconds
            status.bitrate = Int(Double(bytes) * 8 / seconds)
            status.load = Double(cost.wholeNanoseconds) / 1e9 / seconds
        }
        if frames > 0 { status.millisecondsPerFrame = Double(cost.wholeNanoseconds) / 1e6 / Double(frames) }
        latencies.sort()
        if !latencies.isEmpty {
            status.latencyMedianMilliseconds = latencies[latencies.count / 2]
            status.latencyHighMilliseconds = latencies[latencies.count * 95 / 100]
        }
        status.keyFrames = keyFrames
        status.strayPackets = strayPackets
        status.undecodablePackets = undecodablePackets
        (frames, bytes, cost, since) = (0, 0, .zero, now)
        latencies.removeAll(keepingCapacity: true)
        return status
    }
}
