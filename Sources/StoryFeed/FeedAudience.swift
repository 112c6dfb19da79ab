import Base

/// Every session that watches, and the rule that one viewer holds two streams at most.
///
/// One value covers all feed sessions and the plain players, because the players count toward the rule as well. The
/// directives for older sessions that have to make room come before those of the session that needs the room.
/// Performed in that order, they keep the rule between any two of them.
///
/// The feed itself is not part of this type. Change the feed first, then report the event here, with a scene of the
/// changed feed.
package struct FeedAudience: Sendable {
    /// How many sessions may watch, and how feed sessions behave.
    package struct Configuration: Equatable, Sendable {
        /// Maximum number of feed sessions and players together.
        package var sessionLimit = 20_000
        /// Applies to every feed session, except for `preload`, which each client chooses.
        package var session = FeedSession.Configuration(preload: .eager)

        package init() {}
    }

    /// An action for one session; directives must be performed in the order in which they are returned.
    package struct Directive: Equatable, Sendable {
        /// The session whose worker or control channel performs the effect.
        package let session: SessionID
        /// The action to perform for it.
        package let effect: FeedEffect

        package init(session: SessionID, effect: FeedEffect) {
            self.session = session
            self.effect = effect
        }
    }

    /// One feed session or plain player.
    private struct Member: Sendable {
        let id: SessionID
        let viewer: FeedViewer
        /// Nil for a plain player, which holds one stream until it ends.
        var feed: FeedSession?
        /// Whether its client has been warned that it sends too many messages, so that it is not warned again.
        var isWarned = false
    }

    /// A feed session whose focus has to rest until a deadline before its neighbour is preloaded.
    private struct Settling: Sendable {
        let deadline: MonotonicTime
        let number: UInt64
    }

    private var configuration: Configuration
    /// Keyed by the session's number: the later a session began, the higher its number.
    private var members: [UInt64: Member] = [:]
    private var numbers: [SessionID: UInt64] = [:]
    private var lastNumber: UInt64 = 0
    private var attachments = ViewerAttachments()
    /// The numbers of the feed sessions to which each stream is attached.
    private var watchers: [StreamID: Set<UInt64>] = [:]
    /// The numbers of the feed sessions that await a stream: one to go live, or one that they may see.
    private var hungry: Set<UInt64> = []
    /// The numbers of the feed sessions whose neighbour found no room before and has some now.
    private var retrying: Set<UInt64> = []
    /// Sorted by deadline, because every session settles for the same time.
    ///
    /// An entry is void if its session has another deadline by now. The rate limit on a session's messages bounds the
    /// number of void entries.
    private var settling: [Settling] = []
    /// Index of the first entry of `settling` that is not done; the array is shortened only now and then.
    private var firstSettling = 0

    package init(_ configuration: Configuration = Configuration()) {
        self.configuration = configuration
    }

    /// Changes the limit for sessions that begin from now on; present sessions stay.
    package mutating func setSessionLimit(_ limit: Int) { configuration.sessionLimit = limit }

    /// The number of feed sessions and players.
    package var count: Int { members.count }

    /// Whether any feed session has this stream in a slot; plain players do not count.
    package func isWatched(_ stream: StreamID) -> Bool { watchers[stream] != nil }
    /// The number of streams that a viewer holds in all of their sessions.
    package func attachedCount(of viewer: FeedViewer) -> Int { attachments.count(of: viewer) }
    /// Nil for a plain player and for a session that does not exist or has ended.
    package func session(_ id: SessionID) -> FeedSession? { numbers[id].flatMap { members[$0]?.feed } }

    // MARK: Sessions

    /// Begins a feed session on the requested stream, or on the first one that the viewer may see.
    ///
    /// - Throws: `.full` at the session limit, and for an ID that is in use.
    package mutating func begin(
        _ id: SessionID, viewer: FeedViewer, preload: FeedPreload, on wish: StreamID?, in scene: FeedScene
    ) throws(FeedRefusal) -> [Directive] {
        var settings = configuration.session
        settings.preload = preload
        let (number, directives) = try enter(id, viewer, feed: FeedSession(viewer: viewer, settings))
        return directives + apply(to: number) { session, _ in session.start(on: wish, in: scene) }
    }

    /// Counts a player outside the feed, which holds one stream from now until `end`.
    ///
    /// - Throws: `.full` at the session limit, and for an ID that is in use.
    package mutating func beginPlayer(_ id: SessionID, viewer: FeedViewer) throws(FeedRefusal) -> [Directive]
    {
        let (number, directives) = try enter(id, viewer, feed: nil)
        return directives + attachments.hold(1, by: number, of: viewer).flatMap { dismiss($0) }
    }

    /// Registers a session under the next number.
    ///
    /// - Returns: its number, and the directives that end the viewer's oldest sessions beyond
    ///   `ViewerAttachments.sessionLimit`.
    private mutating func enter(
        _ id: SessionID, _ viewer: FeedViewer, feed: FeedSession?
    ) throws(FeedRefusal) -> (number: UInt64, [Directive]) {
        guard numbers[id] == nil, members.count < configuration.sessionLimit else { throw .full }
        lastNumber += 1
        let number = lastNumber
        let directives = attachments.enter(number, of: viewer).flatMap { dismiss($0) }
        members[number] = Member(id: id, viewer: viewer, feed: feed)
        numbers[id] = number
        if feed != nil { hungry.insert(number) }
        return (number, directives)
    }

    /// Ends a session whose client has left; does nothing for an unknown session.
    package mutating func end(_ id: SessionID) -> [Directive] {
        guard let number = numbers[id] else { return [] }
        return remove(number)
    }

    /// Ends a session because a newer one of the same viewer takes its place, and notifies its client.
    private mutating func dismiss(_ number: UInt64) -> [Directive] {
        guard let id = members[number]?.id else { return [] }
        return remove(number) + [.tell(.replaced), .close].map { Directive(session: id, effect: $0) }
    }

    private mutating func remove(_ number: UInt64) -> [Directive] {
        guard var member = members.removeValue(forKey: number) else { return [] }
        numbers[member.id] = nil
        hungry.remove(number)
        retrying.remove(number)
        attachments.leave(number, of: member.viewer)
        offerRoom(leftBy: number, of: member.viewer)
        for slot in member.feed?.slots ?? [] { unwatch(slot.stream, number) }
        return (member.feed?.end() ?? []).map { Directive(session: member.id, effect: $0) }
    }

    // MARK: Messages

    /// Handles a message that came over HTTP, where a refusal becomes the response.
    ///
    /// - Parameter isBusy: whether too many of the viewer's directives wait; the message is refused then.
    /// - Throws: `.noSession` for an unknown session or a plain player, and whatever the session refuses.
    package mutating func perform(
        _ message: FeedMessage, request: UInt32? = nil, for id: SessionID, in scene: FeedScene,
        isBusy: Bool = false
    ) throws(FeedRefusal) -> [Directive] {
        guard let number = numbers[id], members[number]?.feed != nil else { throw .noSession }
        var refusal: FeedRefusal?
        let directives = apply(to: number) { session, room in
            do throws(FeedRefusal) {
                return try session.receive(
                    message, request: request, in: scene, room: room, isBusy: isBusy)
            } catch {
                refusal = error
                return []
            }
        }
        if let refusal { throw refusal }
        return directives
    }

    /// Handles a message that came on the control channel, where a refusal is sent back as a notice.
    ///
    /// Of consecutive messages beyond the rate limit only the first is answered.
    /// - Parameter isBusy: whether too many of the viewer's directives wait; the message is refused then.
    package mutating func receive(
        _ message: FeedMessage, request: UInt32? = nil, from id: SessionID, in scene: FeedScene,
        isBusy: Bool = false
    ) -> [Directive] {
        guard let number = numbers[id] else { return [] }
        do throws(FeedRefusal) {
            let directives = try perform(message, request: request, for: id, in: scene, isBusy: isBusy)
            members[number]?.isWarned = false
            return directives
        } catch {
            guard error != .tooManyMessages || members[number]?.isWarned == false else { return [] }
            members[number]?.isWarned = error == .tooManyMessages
            let notice = FeedNotice.refused(message.kind, message.stream, error, request: request)
            return [Directive(session: id, effect: .tell(notice))]
        }
    }

    // MARK: What happens around

    /// Moves every session that watched a stream which has ended; the feed must have removed it before.
    package mutating func streamEnded(_ departure: StoryFeed.Departure, in scene: FeedScene) -> [Directive] {
        let ended = (stream: departure.rank.id, rank: departure.rank)
        return (watchers[ended.stream] ?? []).sorted().flatMap { number in
            apply(to: number) { session, _ in session.recheck(ended: ended, in: scene) }
        }
    }

    /// Offers a stream that has gone live to the sessions that await one; the feed must have added it before.
    package mutating func streamAppeared(in scene: FeedScene) -> [Directive] {
        hungry.sorted().flatMap { number in
            apply(to: number) { session, room in session.streamAppeared(in: scene, room: room) }
        }
    }

    /// Rechecks the sessions on a stream after a change of who may see it.
    ///
    /// Sessions that await a stream are asked as well, because some of their viewers may see this one now.
    package mutating func accessChanged(to stream: StreamID, in scene: FeedScene) -> [Directive] {
        let directives = (watchers[stream] ?? []).sorted().flatMap { number in
            apply(to: number) { session, _ in session.recheck(ended: nil, in: scene) }
        }
        return directives + streamAppeared(in: scene)
    }

    /// When `advance` should run next; may be earlier than needed, because void entries count.
    package var deadline: MonotonicTime? {
        guard retrying.isEmpty else { return .zero }
        return firstSettling < settling.count ? settling[firstSettling].deadline : nil
    }

    /// Preloads the neighbour of every session whose focus has settled by now.
    package mutating func advance(in scene: FeedScene) -> [Directive] {
        var directives: [Directive] = []
        for number in retrying.sorted() {
            directives += apply(to: number) { session, _ in
                session.roomAppeared(at: scene.now)
                return []
            }
        }
        retrying.removeAll()
        while firstSettling < settling.count, settling[firstSettling].deadline <= scene.now {
            let due = settling[firstSettling]
            firstSettling += 1
            guard members[due.number]?.feed?.deadline == due.deadline else { continue }
            directives += apply(to: due.number) { session, room in session.advance(in: scene, room: room) }
        }
        if firstSettling > 64, firstSettling * 2 > settling.count {
            settling.removeFirst(firstSettling)
            firstSettling = 0
        }
        return directives
    }

    // MARK: The rule

    /// Applies `body` to a feed session within the room that it has, and ends older sessions that have to make way.
    ///
    /// Also updates the indexes that depend on the session: `watchers`, `hungry` and `settling`.
    private mutating func apply(
        to number: UInt64, _ body: (inout FeedSession, _ room: Int) -> [FeedEffect]
    ) -> [Directive] {
        guard let member = members[number], var session = member.feed else { return [] }
        let room = attachments.room(for: number, of: member.viewer)
        // Newer sessions of this viewer hold all streams, so this one holds none and can never play again.
        guard room > 0 else { return dismiss(number) }
        let before = session.slots.map(\.stream)
        let deadline = session.deadline
        let effects = body(&session, room)
        members[number]?.feed = session

        let after = session.slots.map(\.stream)
        for stream in before where !after.contains(stream) { unwatch(stream, number) }
        for stream in after where !before.contains(stream) {
            watchers[stream, default: []].insert(number)
        }
        if session.isHungry { hungry.insert(number) } else { hungry.remove(number) }
        if let due = session.deadline, due != deadline {
            settling.append(Settling(deadline: due, number: number))
        }
        let gone = attachments.hold(session.attachedCount, by: number, of: member.viewer)
        return gone.flatMap { dismiss($0) }
            + effects.map { Directive(session: member.id, effect: $0) }
    }

    /// Lets those of a viewer's older sessions whose neighbour found no room try again, if there is room now.
    ///
    /// Only the end of a newer session leaves room: one that plays takes another stream when its own ends.
    private mutating func offerRoom(leftBy number: UInt64, of viewer: FeedViewer) {
        for older in attachments.sessions(olderThan: number, of: viewer)
        where members[older]?.feed?.awaitsRoom == true
            && attachments.room(for: older, of: viewer) >= ViewerAttachments.limit
        {
            retrying.insert(older)
        }
    }

    private mutating func unwatch(_ stream: StreamID, _ number: UInt64) {
        watchers[stream]?.remove(number)
        if watchers[stream]?.isEmpty == true { watchers[stream] = nil }
    }
}
