import Base

/// What came of a publisher in the last seconds, and what to know of it.
package struct IngestReport: Equatable, Sendable {
    package var framesPerSecond = 0.0
    /// In bits a second.
    package var videoBitrate = 0
    /// In bits a second.
    package var audioBitrate = 0
    /// Between the latest two key frames, in milliseconds; nil before.
    package var keyFrameInterval: Int64?
    /// In the order in which they were found.
    package var notices: [IngestNotice] = []

    package init() {}
}

/// Measures what comes.
struct IngestMeter: Sendable {
    /// Between two reports.
    static let interval = Duration.seconds(2)

    private var since: MonotonicTime?
    private var frames = 0
    private var videoBytes = 0
    private var audioBytes = 0

    /// When a report is due; nil before it begins.
    var deadline: MonotonicTime? { since.map { $0 + Self.interval } }

    mutating func begin(at now: MonotonicTime) { self = IngestMeter(since: now) }

    mutating func noteVideo(bytes: Int, isFrame: Bool) {
        videoBytes += bytes
        if isFrame { frames += 1 }
    }

    mutating func noteAudio(bytes: Int) { audioBytes += bytes }

    /// - Returns: what was measured since the last report; nil before the next is due.
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
