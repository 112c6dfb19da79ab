import Base

/// Whether viewers need a rendition of a track.
///
/// They say so again and again for as long as they do: who has gone need not say anything, on whatever worker it was.
struct RenditionDemand {
    /// It begins once it was needed for so long: what a path takes is not known in its first moments.
    static let trial = Duration.milliseconds(300)
    /// Who needs it says so more often than that.
    static let pause = Duration.seconds(1)
    /// So long after it was last needed it ends: paths recover and fail again.
    static let rest = Duration.seconds(10)

    private var since: MonotonicTime
    private var last: MonotonicTime
    private(set) var isWanted = false

    init(at now: MonotonicTime) {
        since = now
        last = now
    }

    /// A viewer needs it.
    /// - Returns: whether it is to begin now.
    mutating func note(at now: MonotonicTime) -> Bool {
        if !isWanted, now > last + Self.pause { since = now }
        last = max(last, now)
        guard !isWanted, now >= since + Self.trial else { return false }
        isWanted = true
        return true
    }

    /// When nobody needs it any more, unless somebody says so before.
    var deadline: MonotonicTime { last + Self.rest }
}

/// Of which tracks of a worker viewers need a rendition.
final class RenditionBoard {
    /// What control is to be told.
    struct Notice {
        let session: SessionID
        let track: PublishedTrack
        let isWanted: Bool
    }

    private struct Entry {
        let session: SessionID
        let track: PublishedTrack
        var demand: RenditionDemand
    }

    /// One for each track that is published here, at most.
    private var entries: [TrackID: Entry] = [:]
    private var notices: [Notice] = []
    /// When the first of them is over.
    private(set) var deadline: MonotonicTime?

    /// A viewer of some worker needs a rendition of what a session sends.
    func note(_ track: PublishedTrack, of session: SessionID, at now: MonotonicTime) {
        let id = track.key.track
        var entry = entries[id] ?? Entry(session: session, track: track, demand: RenditionDemand(at: now))
        if entry.demand.note(at: now) {
            notices.append(Notice(session: session, track: track, isWanted: true))
        }
        entries[id] = entry
        deadline = min(deadline ?? .distantFuture, entry.demand.deadline)
    }

    /// The track has ended.
    func forget(_ track: TrackID) {
        guard let entry = entries.removeValue(forKey: track), entry.demand.isWanted else { return }
        notices.append(Notice(session: entry.session, track: entry.track, isWanted: false))
    }

    /// Ends what nobody has needed for long.
    func advance(to now: MonotonicTime) {
        guard let due = deadline, due <= now else { return }
        // In an order that hashing has no part in.
        let over = entries.filter { $0.value.demand.deadline <= now }.keys
        for track in over.sorted(by: { $0.number < $1.number }) { forget(track) }
        deadline = entries.values.map(\.demand.deadline).min()
    }

    func takeNotices() -> [Notice] {
        guard !notices.isEmpty else { return [] }
        defer { notices.removeAll() }
        return notices
    }
}
