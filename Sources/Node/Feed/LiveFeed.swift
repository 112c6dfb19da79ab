import Base
import Forwarding
import Stage
import StoryFeed
import Wire

/// The story feed of a node: its list, all who follow it, all who watch it, and what has to be done for them.
///
/// It is told what happens, with the time, and says what is to be done, in order. Nothing in here waits, and nothing
/// asks a clock, so that simulations drive the same.
struct LiveFeed {
    enum Action {
        /// To a worker, for one of its sessions. What it does not take is lost.
        case post(WorkerCommand, worker: Int, session: SessionID)
        /// A worker is to say when it has done everything before this; see `pass`.
        case fence(UInt64, worker: Int)
        /// All workers forget what was shown of a stream until now.
        case flush(StreamID)
        /// A session has no place any more.
        case close(SessionID, worker: Int)
        /// The same, once it has had time to receive what it was told.
        case dismiss(SessionID)
        /// A viewer is somewhere else now.
        case count(PresenceChange)
        /// A viewer wants other pictures, or none.
        case prefer(DeliveryPatch, SessionID)
    }

    /// A session that counts: of the feed, or a player outside it.
    private struct Member {
        let viewer: FeedViewer
        let worker: Int
        let isPlayer: Bool
    }

    private var desk: FeedDesk
    private var followers: FeedFollowers
    private var fences = FeedFences()
    private var members: [SessionID: Member] = [:]
    /// Where stages were told that viewers are.
    private var presences: [SessionID: StreamID] = [:]
    private let directory: StreamDirectory

    /// - Parameter tag: random; tells this process's cursors from others'.
    init(
        directory: StreamDirectory, sessionLimit: Int, weights: FeedWeights = FeedWeights(), tag: UInt32
    ) {
        self.directory = directory
        desk = FeedDesk(directory: directory, sessionLimit: sessionLimit, weights: weights, tag: tag)
        followers = FeedFollowers(directory: directory)
    }

    /// Who is in stays.
    mutating func setSessionLimit(_ limit: Int) { desk.setSessionLimit(limit) }

    /// Who a session's viewer is; those without a token are somebody else with each session.
    static func viewer(of id: SessionID, _ participant: ParticipantID?) -> FeedViewer {
        participant.map { .named($0) } ?? .anonymous(id)
    }

    // MARK: The list

    /// A part of the list for somebody.
    mutating func page(
        limit: Int, after cursor: FeedCursor?, for reader: FeedReader, at now: MonotonicTime
    ) throws(CursorRefusal) -> FeedPage {
        try desk.page(limit: limit, after: cursor, for: reader, at: now)
    }

    /// Takes in what is new about streams; nil for one that nobody knows any more.
    mutating func update(_ news: [StreamID: StreamSnapshot?], at now: MonotonicTime) -> [Action] {
        let outcome = desk.update(news, at: now)
        for stream in outcome.restricted { followers.accessChanged(to: stream) }
        var actions: [Action] = []
        for stream in outcome.appeared where directory[stream]?.isPublished == false {
            // What the host did backstage is not for those who come now.
            actions.append(.flush(stream))
        }
        return actions + take(outcome)
    }

    mutating func setPreview(_ preview: FeedPreview, of stream: StreamID) {
        followers.announce(desk.setPreview(preview, of: stream))
    }

    /// Whether a stream is live, as of the latest news.
    func isLive(_ stream: StreamID) -> Bool { desk.isLive(stream) }

    /// Whether somebody in the feed gets a stream.
    func isWatched(_ stream: StreamID) -> Bool { desk.audience.isWatched(stream) }

    // MARK: Who follows the list

    /// Begins to tell somebody of the list, with a snapshot.
    /// - Returns: the follower's number.
    mutating func follow(
        _ reader: FeedReader, limit: Int, until expiry: WallTime?, _ end: any SyncFollower,
        at now: MonotonicTime
    ) -> UInt64 {
        followers.add(end, for: reader, limit: limit, until: expiry, of: desk.feed, at: now)
    }

    /// Tells a follower of these streams, too.
    mutating func watch(_ streams: [StreamID], by number: UInt64) {
        followers.watch(streams, by: number, of: desk.feed)
    }

    mutating func unfollow(_ number: UInt64) { followers.remove(number) }

    mutating func closeFollowers(_ reason: SyncClose) { followers.closeAll(reason) }

    // MARK: Sessions

    /// A session that its worker knows by now.
    /// - Parameter mids: each pair of m-lines, audio and video, in the order of the offer.
    mutating func enter(
        _ id: SessionID, _ wish: FeedWish, _ mids: [(audio: String, video: String)], on worker: Int,
        at now: MonotonicTime
    ) throws(FeedRefusal) -> [Action] {
        let viewer = Self.viewer(of: id, wish.reader.sender?.id)
        let place = FeedPlace(viewer: viewer, reader: wish.reader, mids: mids)
        let directives = try desk.enter(id, place, preload: wish.preload, on: wish.stream, at: now)
        members[id] = Member(viewer: viewer, worker: worker, isPlayer: false)
        return take(directives)
    }

    /// A player outside the feed counts as well.
    mutating func enterPlayer(
        _ id: SessionID, _ participant: ParticipantID?, on worker: Int
    ) throws(FeedRefusal) -> [Action] {
        let viewer = Self.viewer(of: id, participant)
        let directives = try desk.enterPlayer(id, of: viewer)
        members[id] = Member(viewer: viewer, worker: worker, isPlayer: true)
        return take(directives)
    }

    /// A session has ended.
    mutating func leave(_ id: SessionID) -> [Action] {
        guard members[id] != nil else { return [] }
        let actions = setPresence(of: id, in: nil) + take(desk.leave(id))
        members[id] = nil
        return actions
    }

    /// A session's handshake is done.
    mutating func connect(_ id: SessionID) -> [Action] {
        desk.setConnected(id)
        return updatePresence(of: id)
    }

    /// What each place of a session has now.
    func slots(of id: SessionID) -> [FeedNotice.SlotState] { desk.audience.session(id)?.slots ?? [] }

    /// The stream in view of a session; nil where nobody is live, and for other sessions than the feed's.
    func focus(of id: SessionID) -> StreamID? { desk.audience.session(id)?.focusedStream }

    // MARK: Messages

    /// Does what somebody asked for over HTTP.
    /// - Returns: what is to be done, and all slots as they will be then.
    mutating func perform(
        _ message: FeedMessage, request: UInt32?, in id: SessionID, at now: MonotonicTime
    ) throws(FeedRefusal) -> (actions: [Action], slots: JSON) {
        let directives = try desk.perform(message, request: request, for: id, at: now)
        let actions = take(directives, requested: now)
        guard let place = desk.places[id] else { throw .noSession }
        let notice = FeedNotice.slots(slots(of: id), request: desk.audience.session(id)?.request)
        return (actions, notice.answer(place))
    }

    /// Does what a session's client said on its control channel, or refuses it.
    mutating func receive(
        _ message: DataChannelMessage, from id: SessionID, at now: MonotonicTime
    ) -> [Action] {
        switch FeedControl(parsing: message) {
        case .ping: send(ControlReply(type: .pong).bytes, to: id)
        case .prefer(let patch): [.prefer(patch, id)]
        case .message(let message, let request):
            take(desk.receive(message, request: request, from: id, at: now), requested: now)
        case nil:
            send(ControlReply.error("malformed", "This is no message that this server knows.").bytes, to: id)
        }
    }

    /// A session's control channel has opened, or works again after messages were lost: it is told where it is.
    func greet(_ id: SessionID) -> [Action] {
        guard let session = desk.audience.session(id) else { return [] }
        let notice = FeedNotice.slots(session.slots, request: session.request)
        return tell(notice, to: id) + (session.slots.isEmpty ? tell(.empty, to: id) : [])
    }

    /// A stream's pictures begin in a session's pair of m-lines.
    /// - Parameter timestamp: of the first picture's packets, as they were sent.
    func began(_ stream: StreamID, timestamp: UInt32, pair: Int, of id: SessionID) -> [Action] {
        guard let slot = FeedSlot(rawValue: pair) else { return [] }
        return tell(.begun(slot, stream, timestamp: timestamp), to: id)
    }

    private func tell(_ notice: FeedNotice, to id: SessionID) -> [Action] {
        desk.places[id].map { send(notice.json($0).bytes, to: id) } ?? []
    }

    private func send(_ text: [UInt8], to id: SessionID) -> [Action] {
        members[id].map { [.post(.sendControl(id, .string(text)), worker: $0.worker, session: id)] } ?? []
    }

    // MARK: Directives

    private mutating func take(_ outcome: FeedDesk.Outcome) -> [Action] {
        followers.announce(outcome.changes)
        return take(outcome.directives)
    }

    /// - Parameter requested: when a viewer asked for it; nil if none did.
    private mutating func take(
        _ directives: [FeedDesk.Directive], requested: MonotonicTime? = nil
    ) -> [Action] {
        let steps = fences.append(directives, requested: requested) { [members, desk] id in
            guard let member = members[id] else { return nil }
            let others = desk.sessions(of: member.viewer).compactMap { members[$0]?.worker }
            return FeedFences.Place(worker: member.worker, viewer: member.viewer, others: Set(others))
        }
        var actions = steps.flatMap(action(of:))
        var looked: Set<SessionID> = []
        for id in directives.map(\.session) where looked.insert(id).inserted {
            actions += updatePresence(of: id)
        }
        return actions
    }

    /// A worker has let go of what it was told to, or takes nothing any more: what waited for that is to be done.
    mutating func pass(_ fence: UInt64) -> [Action] {
        fences.pass(fence).flatMap(action(of:))
    }

    private func action(of step: FeedFences.Step) -> [Action] {
        switch step {
        case .fence(let number, let worker): [.fence(number, worker: worker)]
        case .perform(let directive, let requested): action(of: directive, requested: requested)
        }
    }

    private func action(of directive: FeedDesk.Directive, requested: MonotonicTime?) -> [Action] {
        let id = directive.session
        guard let member = members[id] else { return [] }
        if let command = directive.effect.command(to: id, requested: requested) {
            return [.post(command, worker: member.worker, session: id)]
        }
        return switch directive.effect {
        case .attach, .promote, .release: []
        case .tell(let notice): tell(notice, to: id)
        case .close: [member.isPlayer ? .close(id, worker: member.worker) : .dismiss(id)]
        }
    }

    // MARK: Presence

    private mutating func updatePresence(of id: SessionID) -> [Action] {
        setPresence(of: id, in: focus(of: id))
    }

    /// Has a viewer counted in the stream they are on, and nowhere else.
    private mutating func setPresence(of id: SessionID, in stream: StreamID?) -> [Action] {
        guard let place = desk.places[id], place.isConnected, place.present != stream else { return [] }
        desk.setPresent(id, in: stream)
        let present = stream.map { PresenceChange.Place(stream: $0, sender: place.reader.sender(in: $0)) }
        return [.count(PresenceChange(session: id, place: present))]
    }

    /// Stages are told of a change now.
    /// - Returns: the stream that the viewer has left for it, if any.
    mutating func tellPresence(_ change: PresenceChange) -> StreamID? {
        let new = change.place?.stream
        let old = presences[change.session]
        presences[change.session] = new
        return old == new ? nil : old
    }

    // MARK: Time

    var deadline: MonotonicTime? {
        [desk.deadline, followers.deadline].compactMap(\.self).min()
    }

    mutating func advance(to now: Moment) -> [Action] {
        let actions = take(desk.advance(to: now.elapsed))
        followers.advance(to: now, of: desk.feed)
        return actions
    }

    // MARK: Statistics

    /// Totals since the start, and how many there are now.
    var counters: FeedCounters {
        var counters = desk.counters
        counters.sessions = desk.places.count
        counters.followers = followers.count
        counters.streams = desk.feed.count
        return counters
    }
}
