import Base

/// Everybody who watches, and the rule that each viewer holds two streams at most.
///
/// One place for all feed sessions, and for the plain players, which count as well. What a session wants is carried out
/// only after the older sessions that have to make room have let go, in the order of the directives; so the rule
/// holds between any two of them.
///
/// The feed itself is not in here: change the feed first, then say what happened with a scene of the changed feed.
package struct FeedAudience: Sendable {
    /// How many watch at most, and how their sessions behave.
    package struct Configuration: Equatable, Sendable {
        /// Feed sessions and players together.
        package var sessionLimit = 20_000
        /// `preload` is replaced by each client's own wish.
        package var session = FeedSession.Configuration(preload: .eager)

        package init() {}
    }

    /// Something to be done for one session; the order among all of them counts.
    package struct Directive: Equatable, Sendable {
        /// Whose worker or channel is meant.
        package let session: SessionID
        /// What to do there.
        package let effect: FeedEffect

        package init(session: SessionID, effect: FeedEffect) {
            self.session = session
            self.effect = effect
        }
    }

    private struct Member: Sendable {
        let id: SessionID
        let viewer: FeedViewer
        /// Nil for a plain player, which holds one stream until it ends.
        var feed: FeedSession?
        /// Whether it knows that it sends too much.
        var isWarned = false
    }

    private struct Settling: Sendable {
        let deadline: MonotonicTime
        let number: UInt64
    }

    private var configuration: Configuration
    /// By number: the later a session began, the higher.
    private var members: [UInt64: Member] = [:]
    private var numbers: [SessionID: UInt64] = [:]
    private var lastNumber: UInt64 = 0
    private var attachments = ViewerAttachments()
    /// The feed sessions that a stream is attached to.
    private var watchers: [StreamID: Set<UInt64>] = [:]
    /// The feed sessions that wait for a stream to go live.
    private var hungry: Set<UInt64> = []
    /// In the order of the deadlines, because all sessions settle equally long.
    ///
    /// An entry whose session has another deadline by now is void; a session's message rate bounds how many of those
    /// there are.
    private var settling: [Settling] = []
    private var firstSettling = 0

    package init(_ configuration: Configuration = Configuration()) {
        self.configuration = configuration
    }

    /// Who is in stays.
    package mutating func setSessionLimit(_ limit: Int) { configuration.sessionLimit = limit }

    /// Of feed sessions and players.
    package var count: Int { members.count }

    /// Whether any feed session has a stream in a slot.
    package func isWatched(_ stream: StreamID) -> Bool { watchers[stream] != nil }
    /// Streams that a viewer holds, over all sessions.
    package func attachedCount(of viewer: FeedViewer) -> Int { attachments.count(of: viewer) }
    /// Nil for a plain player and for a session that is not, or not any more.
    package func session(_ id: SessionID) -> FeedSession? { numbers[id].flatMap { members[$0]?.feed } }

    // MARK: Sessions

    /// Begins a feed session, on a stream or on the first one there is.
    package mutating func begin(
        _ id: SessionID, viewer: FeedViewer, preload: FeedPreload, on wish: StreamID?, in scene: FeedScene
    ) throws(FeedRefusal) -> [Directive] {
        var settings = configuration.session
        settings.preload = preload
        let (number, directives) = try enter(id, viewer, feed: FeedSession(viewer: viewer, settings))
        return directives + apply(to: number) { session, _ in session.start(on: wish, in: scene) }
    }

    /// Counts a player outside the feed, which holds one stream from now until `end`.
    package mutating func beginPlayer(_ id: SessionID, viewer: FeedViewer) throws(FeedRefusal) -> [Directive]
    {
        let (number, directives) = try enter(id, viewer, feed: nil)
        return directives + attachments.hold(1, by: number, of: viewer).flatMap { dismiss($0) }
    }

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

    /// Ends a session, whose client has gone; for one that is not any more, nothing happens.
    package mutating func end(_ id: SessionID) -> [Directive] {
        guard let number = numbers[id] else { return [] }
        return remove(number)
    }

    /// Tells a session that it is over, and ends it.
    private mutating func dismiss(_ number: UInt64) -> [Directive] {
        guard let id = members[number]?.id else { return [] }
        return remove(number) + [.tell(.replaced), .close].map { Directive(session: id, effect: $0) }
    }

    private mutating func remove(_ number: UInt64) -> [Directive] {
        guard var member = members.removeValue(forKey: number) else { return [] }
        numbers[member.id] = nil
        hungry.remove(number)
        attachments.leave(number, of: member.viewer)
        for slot in member.feed?.slots ?? [] { unwatch(slot.stream, number) }
        return (member.feed?.end() ?? []).map { Directive(session: member.id, effect: $0) }
    }

    // MARK: Messages

    /// Takes a message that came over HTTP, with a refusal as its answer.
    package mutating func perform(
        _ message: FeedMessage, request: UInt32? = nil, for id: SessionID, in scene: FeedScene
    ) throws(FeedRefusal) -> [Directive] {
        guard let number = numbers[id], members[number]?.feed != nil else { throw .noSession }
        var refusal: FeedRefusal?
        let directives = apply(to: number) { session, room in
            do throws(FeedRefusal) {
                return try session.receive(message, request: request, in: scene, room: room)
            } catch {
                refusal = error
                return []
            }
        }
        if let refusal { throw refusal }
        return directives
    }

    /// Takes a message that came on the control channel; a refusal goes back there.
    ///
    /// Of messages that are too many only the first is answered.
    package mutating func receive(
        _ message: FeedMessage, request: UInt32? = nil, from id: SessionID, in scene: FeedScene
    ) -> [Directive] {
        guard let number = numbers[id] else { return [] }
        do throws(FeedRefusal) {
            let directives = try perform(message, request: request, for: id, in: scene)
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

    /// A stream has ended; the feed knows it already.
    package mutating func streamEnded(_ departure: StoryFeed.Departure, in scene: FeedScene) -> [Directive] {
        let ended = (stream: departure.rank.id, rank: departure.rank)
        return (watchers[ended.stream] ?? []).sorted().flatMap { number in
            apply(to: number) { session, _ in session.recheck(ended: ended, in: scene) }
        }
    }

    /// A stream has gone live; the feed knows it already.
    package mutating func streamAppeared(in scene: FeedScene) -> [Directive] {
        hungry.sorted().flatMap { number in
            apply(to: number) { session, room in session.streamAppeared(in: scene, room: room) }
        }
    }

    /// Who may see a stream has changed.
    package mutating func accessChanged(to stream: StreamID, in scene: FeedScene) -> [Directive] {
        let directives = (watchers[stream] ?? []).sorted().flatMap { number in
            apply(to: number) { session, _ in session.recheck(ended: nil, in: scene) }
        }
        return directives + streamAppeared(in: scene)
    }

    /// When some session wants to preload; may be earlier than that.
    package var deadline: MonotonicTime? {
        firstSettling < settling.count ? settling[firstSettling].deadline : nil
    }

    /// Preloads for the sessions whose focus has settled by now.
    package mutating func advance(in scene: FeedScene) -> [Directive] {
        var directives: [Directive] = []
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

    /// Lets a session act within the room it has, and others make way for it.
    private mutating func apply(
        to number: UInt64, _ body: (inout FeedSession, _ room: Int) -> [FeedEffect]
    ) -> [Directive] {
        guard let member = members[number], var session = member.feed else { return [] }
        let room = attachments.room(for: number, of: member.viewer)
        // Newer sessions hold everything, so this one holds nothing, and can never play again.
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

    private mutating func unwatch(_ stream: StreamID, _ number: UInt64) {
        watchers[stream]?.remove(number)
        if watchers[stream]?.isEmpty == true { watchers[stream] = nil }
    }
}
