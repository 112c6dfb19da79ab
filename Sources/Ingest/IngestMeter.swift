import Base

/// Measurements of a publisher's media over the last seconds, with all notices so far.
package struct IngestReport: Equatable, Sendable {
    /// Video frames received.
    package var framesPerSecond = 0.0
    /// In bits per second.
    package var videoBitrate = 0
    /// In bits per second.
    package var audioBitrate = 0
    /// Distance of the latest two key frames, in milliseconds; nil before the second.
    package var keyFrameInterval: Int64?
    /// In the order of their detection.
    package var notices: [IngestNotice] = []

    package init() {}
}

/// Measures frame rate and bit rates of what arrives; reports and resets every `interval`.
struct IngestMeter: Sendable {
    /// Time between two reports.
    static let interval = Duration.seconds(2)

    /// Start of the current interval; nil before the session begins.
    private var since: MonotonicTime?
    private var frames = 0
    private var videoBytes = 0
    private var audioBytes = 0

    /// When the next report is due; nil before the session begins.
    var deadline: MonotonicTime? { since.map { $0 + Self.interval } }

    /// Starts a new interval.
    mutating func begin(at now: MonotonicTime) { self = IngestMeter(since: now) }

    mutating func noteVideo(bytes: Int, isFrame: Bool) {
        videoBytes += bytes
        if isFrame { frames += 1 }
    }

    mutating func noteAudio(bytes: Int) { audioBytes += bytes }

    /// - Returns: the measurements since the last report; nil before the next one is due.
    mutating func takeReport(at now: MonotonicTime) -> IngestReport? {
        guard let since, now >= since + Self.interval else { return nil }
        let seconds = Double(now.nanoseconds(since: since)) / 1e9
        var report = IngestReport()
        report.framesPerSecond = Double(frames) / seconds
        report.videoBitrate = Int(Double(videoBytes) * 8 / seconds)
        report.audioBitrate = Int(Double(audioBytes) * 8 / seconds)
        begin(at: now)
        return report
    }
}
