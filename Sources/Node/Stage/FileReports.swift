import Base

/// Webhooks of recordings and clips that are complete, but whose webhooks the store has refused so far.
///
/// A disk that is full often refuses both: it ends a recording, and takes no webhook of that. Nothing else would
/// report the file later, so these wait here until the store takes them.
struct FileReports {
    /// How many of each kind wait at most: the oldest go first.
    static let limit = 1_000
    /// How long a store that refused is left alone.
    static let retryInterval = Duration.seconds(1)

    private var recordings: [JSON] = []
    private var clips: [JSON] = []
    private var retryAt: MonotonicTime?

    var isEmpty: Bool { recordings.isEmpty && clips.isEmpty }

    /// When the reports are due again; nil if there are none.
    var deadline: MonotonicTime? { isEmpty ? nil : retryAt }

    /// Keeps the reports of batches that were refused, after those that wait already.
    mutating func keep(_ batches: [CommitBatch], at now: MonotonicTime) {
        for batch in batches {
            recordings += batch.recordings
            clips += batch.clips
        }
        recordings.removeFirst(max(0, recordings.count - Self.limit))
        clips.removeFirst(max(0, clips.count - Self.limit))
        if !isEmpty { retryAt = now + Self.retryInterval }
    }

    /// Moves the reports to a batch, before its own.
    mutating func move(to batch: inout CommitBatch) {
        batch.recordings = recordings + batch.recordings
        batch.clips = clips + batch.clips
        self = FileReports()
    }
}
