import Base

/// How a composition does, as metrics show it.
package struct CompositionStatus: Equatable, Sendable, Codable {
    /// Over the time since the last status.
    package var framesPerSecond = 0.0
    /// What load leaves of the settings.
    package var targetFramesPerSecond = 0
    /// In pixels; less than the settings under load.
    package var width = 0
    /// In pixels.
    package var height = 0
    /// How much was given up because of overload; 0 for nothing.
    package var level = 0
    /// On stage, seen or not.
    package var speakers = 0
    /// Of processor time for one picture, everything included.
    package var millisecondsPerFrame = 0.0
    /// Of processor time, in the time since the last status.
    package var load = 0.0
    /// From the last packet of a speaker's frame to the composed frame that shows it, encoded.
    package var latencyMedianMilliseconds = 0.0
    /// The 95th percentile of the same.
    package var latencyHighMilliseconds = 0.0
    /// After which time speakers are shown, for the sake of sync.
    package var delayMilliseconds = 0
    /// Of what was encoded, over the time since the last status, in bits a second.
    package var bitrate = 0
    /// Since the composition began.
    package var keyFrames: UInt64 = 0
    /// Pictures whose time was over.
    package var skippedFrames: UInt64 = 0
    /// Samples that were made up, for packets that did not come in time.
    package var concealedSamples: UInt64 = 0
    /// Packets whose time in the mix was over.
    package var lateAudioPackets: UInt64 = 0
    /// Packets of an input that the scene does not name.
    package var strayPackets: UInt64 = 0
    /// Refused by a decoder.
    package var undecodablePackets: UInt64 = 0

    package init() {}
}

/// Counts what a composition does between two looks.
struct CompositionMeter {
    var keyFrames: UInt64 = 0
    var strayPackets: UInt64 = 0
    var undecodablePackets: UInt64 = 0
    private var frames = 0
    private var bytes = 0
    private var cost = Duration.zero
    private var since: MonotonicTime?
    /// Of pictures that are being drawn.
    private var waits: [Duration] = []
    private var latencies: [Double] = []

    private static let latencyLimit = 1_024

    mutating func noteFrame(bytes count: Int) {
        frames += 1
        bytes += count
    }

    mutating func notePicture(waited: Duration) {
        if waits.count < Self.latencyLimit { waits.append(waited) }
    }

    mutating func finish(cost spent: Duration) {
        cost += spent
        for wait in waits where latencies.count < Self.latencyLimit {
            latencies.append(Double((wait + spent).wholeNanoseconds) / 1e6)
        }
        waits.removeAll(keepingCapacity: true)
    }

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
