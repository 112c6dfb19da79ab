import Base

/// The identity of a viewer, for the rule that one viewer holds two streams at most.
package enum FeedViewer: Hashable, Sendable {
    case named(ParticipantID)
    /// A viewer without a token; each of their sessions counts as a separate viewer.
    case anonymous(SessionID)
}

/// The number of streams that each viewer holds in all sessions, feed sessions and plain players alike.
///
/// The limit is two. A session that wants more than is left displaces the oldest sessions, and never one that is
/// newer than itself. So the device that a viewer picked up last wins, and two devices with one stream each do not
/// disturb each other.
package struct ViewerAttachments: Equatable, Sendable {
    /// Maximum number of streams of one viewer in all sessions.
    package static let limit = 2
    /// Maximum number of sessions of one viewer, including those that hold no stream.
    package static let sessionLimit = 4

    private struct Holding: Equatable, Sendable {
        /// Numbered in order of arrival; the lowest number is the oldest session.
        let session: UInt64
        var count: Int
    }

    /// Each viewer's sessions, the oldest first.
    private var holdings: [FeedViewer: [Holding]] = [:]

    package init() {}

    /// The number of streams that a viewer holds.
    package func count(of viewer: FeedViewer) -> Int {
        holdings[viewer, default: []].reduce(0) { $0 + $1.count }
    }

    /// Registers a new session, whose number must be higher than all others.
    /// - Returns: the sessions that have to end, the oldest first; they are no longer registered.
    mutating func enter(_ session: UInt64, of viewer: FeedViewer) -> [UInt64] {
        var list = holdings[viewer, default: []]
        list.append(Holding(session: session, count: 0))
        let gone = list.prefix(max(list.count - Self.sessionLimit, 0)).map(\.session)
        list.removeFirst(gone.count)
        holdings[viewer] = list
        return gone
    }

    mutating func leave(_ session: UInt64, of viewer: FeedViewer) {
        holdings[viewer]?.removeAll { $0.session == session }
        if holdings[viewer]?.isEmpty == true { holdings[viewer] = nil }
    }

    /// A viewer's sessions that are older than this one, the oldest first.
    func sessions(olderThan session: UInt64, of viewer: FeedViewer) -> [UInt64] {
        holdings[viewer, default: []].map(\.session).filter { $0 < session }
    }

    /// The number of streams that a session may hold: the limit less what the viewer's newer sessions hold.
    func room(for session: UInt64, of viewer: FeedViewer) -> Int {
        let newer = holdings[viewer, default: []].filter { $0.session > session }
        return max(Self.limit - newer.reduce(0) { $0 + $1.count }, 0)
    }

    /// Records how many streams a session holds now, which must be within its room.
    /// - Returns: the older sessions that have to end to keep the limit, the oldest first; they are no longer
    ///   registered.
    mutating func hold(_ count: Int, by session: UInt64, of viewer: FeedViewer) -> [UInt64] {
        guard var list = holdings[viewer], let index = list.firstIndex(where: { $0.session == session })
        else {
            return []
        }
        list[index].count = count
        var gone: [UInt64] = []
        var total = list.reduce(0) { $0 + $1.count }
        for holding in list where total > Self.limit && holding.session < session && holding.count > 0 {
            total -= holding.count
            gone.append(holding.session)
        }
        list.removeAll { gone.contains($0.session) }
        holdings[viewer] = list
        assert(total <= Self.limit, "a session holds more than its room")
        return gone
    }
}
