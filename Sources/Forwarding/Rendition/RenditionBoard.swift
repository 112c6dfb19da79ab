import Base

/// Tracks whether viewers need a rendition of a track.
///
/// They repeat the request for as long as they need it. So a viewer who leaves needs no message, on whatever worker
/// it was.
struct RenditionDemand {
    /// How long it must be needed before it begins, because estimates of a path are poor in its first moments.
    static let trial = Duration.milliseconds(300)
    /// Requests are repeated more often than this; after a longer pause the trial begins again.
    static let pause = Duration.seconds(1)
    /// How long after the last request it ends; paths that recover often fail again.
    static let rest = Duration.seconds(10)

    /// When the present series of requests began.
    private var since: MonotonicTime
    /// When the latest request came.
    private var last: MonotonicTime
    private(set) var isWanted = false

    init(at now: MonotonicTime) {
        since = now
        last = now
    }

    /// Notes a viewer's request.
    /// - Returns: whether the rendition has to begin now.
    mutating func note(at now: MonotonicTime) -> Bool {
        if !isWanted, now > last + Self.pause { since = now }
        last = max(last, now)
        guard !isWanted, now >= since + Self.trial else { return false }
        isWanted = true
        return true
    }

    /// When the rendition ends, unless another request comes before.
    var deadline: MonotonicTime { last + Self.rest }
}

/// The tracks of a worker of which viewers need a rendition.
final class RenditionBoard {
    /// A change to report to control.
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

    /// At most one entry per track that is published here.
    private var entries: [TrackID: Entry] = [:]
    private var notices: [Notice] = []
    /// When the first entry may end; may be earlier than needed.
    private(set) var deadline: MonotonicTime?

    /// Notes that a viewer of some worker needs a rendition of a track that a session publishes.
    func note(_ track: PublishedTrack, of session: SessionID, at now: MonotonicTime) {
        let id = track.key.track
        var entry = entries[id] ?? Entry(session: session, track: track, demand: RenditionDemand(at: now))
        if entry.demand.note(at: now) {
            notices.append(Notice(session: session, track: track, isWanted: true))
        }
        entries[id] = entry
        deadline = min(deadline ?? .distantFuture, entry.demand.deadline)
    }

    /// Removes a track that has ended, or whose rendition is no longer needed.
    func forget(_ track: TrackID) {
        guard let entry = entries.removeValue(forKey: track), entry.demand.isWanted else { return }
        notices.append(Notice(session: entry.session, track: entry.track, isWanted: false))
    }

    /// Ends renditions that have not been needed for `RenditionDemand.rest`.
    func advance(to now: MonotonicTime) {
        guard let due = deadline, due <= now else { return }
        // Sorted, so that the order does not depend on hashing.
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
