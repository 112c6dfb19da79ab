import Base

/// Who watches, as far as the two-stream rule counts.
package enum FeedViewer: Hashable, Sendable {
    case named(ParticipantID)
    /// Somebody without a token: each session is somebody else.
    case anonymous(SessionID)
}

/// How many streams each viewer holds, over all sessions, feed sessions and plain players alike.
///
/// At most two. A session that wants more than is left drives out the oldest ones; a session never drives out
/// one that is newer than itself. So the device somebody took up last wins, and two devices on one stream each
/// do not disturb each other.
package struct ViewerAttachments: Equatable, Sendable {
    /// Streams of one viewer, over all sessions.
    package static let limit = 2
    /// Sessions of one viewer, idle ones included.
    package static let sessionLimit = 4

    private struct Holding: Equatable, Sendable {
        /// In order of arrival; the lowest number is the oldest session.
        let session: UInt64
        var count: Int
    }

    private var holdings: [FeedViewer: [Holding]] = [:]

    package init() {}

    /// Streams that a viewer holds.
    package func count(of viewer: FeedViewer) -> Int {
        holdings[viewer, default: []].reduce(0) { $0 + $1.count }
    }

    /// Enters a new session, which must be newer than all others.
    /// - Returns: the sessions that have to go, the oldest first; they are entered no more.
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

    /// How many streams a session may hold: what the viewer's newer sessions leave over.
    func room(for session: UInt64, of viewer: FeedViewer) -> Int {
        let newer = holdings[viewer, default: []].filter { $0.session > session }
        return max(Self.limit - newer.reduce(0) { $0 + $1.count }, 0)
    }

    /// Notes what a session holds now; must be within its room.
    /// - Returns: the sessions that have to go for it, the oldest first; they are entered no more.
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
