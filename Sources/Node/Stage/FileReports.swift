import Base

/// Webhooks of recordings and clips that are complete, but whose webhooks the store has refused so far.
///
/// A disk that is full often refuses both: it ends a recording, and takes no webhook of that. Nothing else would
/// report the file later, so these wait here until the store takes them.
struct FileReports {
    /// How many of each kind wait at most: the oldest go first.
    static let limit = 1_000
    /// How long a store that refused is left alone at first.
    static let retryInterval = Duration.seconds(1)
    /// Refusals in a row after which it is left alone longer each time: each refusal is a line in the log.
    static let quickRetries = 5
    /// How long it is left alone at most.
    static let longestInterval = Duration.seconds(30)

    private var recordings: [JSON] = []
    private var clips: [JSON] = []
    private var retryAt: MonotonicTime?
    /// How often in a row the store has refused reports.
    private var refusals = 0

    var isEmpty: Bool { recordings.isEmpty && clips.isEmpty }

    /// When the reports are due again; nil if there are none.
    var deadline: MonotonicTime? { isEmpty ? nil : retryAt }

    /// Keeps the reports of batches that were refused, after those that wait already.
    mutating func keep(_ batches: [CommitBatch], at now: MonotonicTime) {
        guard batches.contains(where: { !$0.recordings.isEmpty || !$0.clips.isEmpty }) else { return }
        for batch in batches {
            recordings += batch.recordings
            clips += batch.clips
        }
        trim()
        // Bounded, so that nothing overflows.
        refusals = min(refusals + 1, Self.quickRetries + 5)
        let wait = Self.retryInterval * (1 << max(refusals - Self.quickRetries, 0))
        retryAt = now + min(wait, Self.longestInterval)
    }

    /// Takes over what waits elsewhere, to be stored soon.
    mutating func add(_ others: FileReports, at now: MonotonicTime) {
        recordings += others.recordings
        clips += others.clips
        trim()
        if !isEmpty { retryAt = now + Self.retryInterval }
    }

    private mutating func trim() {
        recordings.removeFirst(max(0, recordings.count - Self.limit))
        clips.removeFirst(max(0, clips.count - Self.limit))
    }

    /// Notes that the store has taken something, and may take the reports, too.
    mutating func noteStored(at now: MonotonicTime) {
        refusals = 0
        if let time = retryAt { retryAt = min(time, now + Self.retryInterval) }
    }

    /// Removes the reports; what the store does with them counts for those that come later.
    mutating func take() -> FileReports {
        defer { (recordings, clips, retryAt) = ([], [], nil) }
        return self
    }

    /// Moves the reports to a batch, before its own.
    mutating func move(to batch: inout CommitBatch) {
        batch.recordings = recordings + batch.recordings
        batch.clips = clips + batch.clips
        _ = take()
    }
}
