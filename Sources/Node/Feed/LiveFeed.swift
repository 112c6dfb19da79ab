import Base
import Forwarding
import Stage
import StoryFeed
import Wire

/// The story feed of a node: its list, its followers, its viewers, and what has to be done for them.
///
/// Pure: it is notified of events with their time, and returns actions, to be performed in order. It awaits nothing
/// and reads no clock, so simulations drive it as the node does.
struct LiveFeed {
    /// What has to be done, in order.
    enum Action {
        /// Post a command to a session's worker; a command that the worker does not accept is lost.
        case post(WorkerCommand, worker: Int, session: SessionID)
        /// Ask a worker to report when it has performed everything before this; see `pass`.
        case fence(UInt64, worker: Int)
        /// Make all workers forget the media of a stream that came before this.
        case flush(StreamID)
        /// End a session that has lost its place.
        case close(SessionID, worker: Int)
        /// End a session that has lost its place, after a delay in which its client can receive the reason.
        case dismiss(SessionID)
        /// A viewer has moved to another stream.
        case count(PresenceChange)
        /// A viewer has changed its preferences for pictures.
        case prefer(DeliveryPatch, SessionID)
    }

    /// A session that counts toward the limits: a feed session, or a player outside the feed.
    private struct Member {
        let viewer: FeedViewer
        let worker: Int
        let isPlayer: Bool
    }

    private var desk: FeedDesk
    private var followers: FeedFollowers
    private var fences: FeedFences
    private var members: [SessionID: Member] = [:]
    /// The stream in which each viewer was last reported to be present.
    private var presences: [SessionID: StreamID] = [:]
    private let directory: StreamDirectory

    /// - Parameters:
    ///   - weights: how much each criterion counts in the order of the list.
    ///   - tag: a random number by which cursors of this process differ from those of others.
    ///   - waitingLimit: directives behind fences, from which on viewers who wait get no further messages in.
    init(
        directory: StreamDirectory, sessionLimit: Int, weights: FeedWeights = FeedWeights(), tag: UInt32,
        waitingLimit: Int = FeedFences.usualLimit
    ) {
        self.directory = directory
        fences = FeedFences(limit: waitingLimit)
        desk = FeedDesk(directory: directory, sessionLimit: sessionLimit, weights: weights, tag: tag)
        followers = FeedFollowers(directory: directory)
    }

    /// Applies to sessions that begin from now on; present sessions stay.
    mutating func setSessionLimit(_ limit: Int) { desk.setSessionLimit(limit) }

    /// The viewer of a session; without a token, each session is a viewer of its own.
    static func viewer(of id: SessionID, _ participant: ParticipantID?) -> FeedViewer {
        participant.map { .named($0) } ?? .anonymous(id)
    }

    // MARK: The list

    /// A page of the list, without streams that the reader may not see.
    mutating func page(
        limit: Int, after cursor: FeedCursor?, for reader: FeedReader, at now: MonotonicTime
    ) throws(CursorRefusal) -> FeedPage {
        try desk.page(limit: limit, after: cursor, for: reader, at: now)
    }

    /// Handles news of streams; nil for a stream that is no longer known.
    mutating func update(_ news: [StreamID: StreamSnapshot?], at now: MonotonicTime) -> [Action] {
        let outcome = desk.update(news, at: now)
        for stream in outcome.restricted { followers.accessChanged(to: stream) }
        for (stream, participants) in outcome.unbanned {
            followers.accessRestored(to: stream, for: participants)
        }
        var actions: [Action] = []
        for stream in outcome.appeared where directory[stream]?.isPublished == false {
            // What was sent backstage must not be shown to viewers. A published stream has no backstage.
            actions.append(.flush(stream))
        }
        return actions + take(outcome)
    }

    mutating func setPreview(_ preview: FeedPreview, of stream: StreamID) {
        followers.announce(desk.setPreview(preview, of: stream))
    }

    /// Whether a stream is live as of its latest news.
    func isLive(_ stream: StreamID) -> Bool { desk.isLive(stream) }

    /// Whether a feed session receives a stream.
    func isWatched(_ stream: StreamID) -> Bool { desk.audience.isWatched(stream) }

    // MARK: Who follows the list

    /// Adds a follower of the list and sends it a snapshot.
    /// - Parameters:
    ///   - limit: the number of streams in a snapshot.
    ///   - expiry: when the follower's token expires; nil for never.
    /// - Returns: the follower's number.
    mutating func follow(
        _ reader: FeedReader, limit: Int, until expiry: WallTime?, _ end: any SyncFollower,
        at now: MonotonicTime
    ) -> UInt64 {
        followers.add(end, for: reader, limit: limit, until: expiry, of: desk.feed, at: now)
    }

    /// Makes a follower receive the changes of further streams.
    mutating func watch(_ streams: [StreamID], by number: UInt64) {
        followers.watch(streams, by: number, of: desk.feed)
    }

    mutating func unfollow(_ number: UInt64) { followers.remove(number) }

    mutating func closeFollowers(_ reason: SyncClose) { followers.closeAll(reason) }

    // MARK: Sessions

    /// Admits a feed session and chooses the stream it begins with.
    /// - Parameter mids: the pairs of m-lines, one per seat, in the order of the offer.
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

    /// Counts a player outside the feed toward the limits of sessions.
    mutating func enterPlayer(
        _ id: SessionID, _ participant: ParticipantID?, on worker: Int
    ) throws(FeedRefusal) -> [Action] {
        let viewer = Self.viewer(of: id, participant)
        let directives = try desk.enterPlayer(id, of: viewer)
        members[id] = Member(viewer: viewer, worker: worker, isPlayer: true)
        return take(directives)
    }

    /// Handles the end of a session; without effect for one that is not a member.
    mutating func leave(_ id: SessionID) -> [Action] {
        guard members[id] != nil else { return [] }
        let actions = setPresence(of: id, in: nil) + take(desk.leave(id))
        members[id] = nil
        return actions
    }

    /// Handles the end of a session's handshake, from which on its viewer is counted.
    mutating func connect(_ id: SessionID) -> [Action] {
        desk.setConnected(id)
        return updatePresence(of: id)
    }

    /// What each seat of a session has now.
    func slots(of id: SessionID) -> [FeedNotice.SlotState] { desk.audience.session(id)?.slots ?? [] }

    /// The stream that a session is on; nil if no stream is live, and for sessions outside the feed.
    func focus(of id: SessionID) -> StreamID? { desk.audience.session(id)?.focusedStream }

    // MARK: Messages

    /// Applies a message that came over HTTP.
    /// - Returns: the actions, and all slots as they are after them.
    mutating func perform(
        _ message: FeedMessage, request: UInt32?, in id: SessionID, at now: MonotonicTime
    ) throws(FeedRefusal) -> (actions: [Action], slots: JSON) {
        let directives = try desk.perform(message, request: request, for: id, isBusy: isBusy(id), at: now)
        let actions = take(directives, requested: now)
        guard let place = desk.places[id] else { throw .noSession }
        let notice = FeedNotice.slots(slots(of: id), request: desk.audience.session(id)?.request)
        return (actions, notice.answer(place))
    }

    /// Applies a message from a session's control channel, or answers why it is refused.
    mutating func receive(
        _ message: DataChannelMessage, from id: SessionID, at now: MonotonicTime
    ) -> [Action] {
        switch FeedControl(parsing: message) {
        case .ping: send(ControlReply(type: .pong).bytes, to: id)
        case .prefer(let patch): [.prefer(patch, id)]
        case .message(let message, let request):
            take(
                desk.receive(message, request: request, from: id, isBusy: isBusy(id), at: now),
                requested: now)
        case nil:
            send(ControlReply.error("malformed", "The server doesn't know this message.").bytes, to: id)
        }
    }

    /// Whether so much waits for a session's viewer that further messages are refused.
    private func isBusy(_ id: SessionID) -> Bool {
        members[id].map { !fences.hasRoom(for: $0.viewer) } ?? false
    }

    /// Sends a session its slots: its control channel has opened, or works again after messages were lost.
    func greet(_ id: SessionID) -> [Action] {
        guard let session = desk.audience.session(id) else { return [] }
        let notice = FeedNotice.slots(session.slots, request: session.request)
        return tell(notice, to: id) + (session.slots.isEmpty ? tell(.empty, to: id) : [])
    }

    /// Notifies a client that a stream's pictures begin in one of its seats.
    /// - Parameter timestamp: the RTP timestamp of the first picture, as it was sent.
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

    /// Announces the changes to followers, and performs the directives.
    private mutating func take(_ outcome: FeedDesk.Outcome) -> [Action] {
        followers.announce(outcome.changes)
        return take(outcome.directives)
    }

    /// Turns directives into actions, behind fences where order across workers matters, and updates the presence of
    /// each session that they concern.
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

    /// Releases what waited for a fence: the worker has passed it, or accepts no commands any more.
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

    /// Makes a connected viewer count in the stream it is on, and in no other.
    private mutating func setPresence(of id: SessionID, in stream: StreamID?) -> [Action] {
        guard let place = desk.places[id], place.isConnected, place.present != stream else { return [] }
        desk.setPresent(id, in: stream)
        let present = stream.map { PresenceChange.Place(stream: $0, sender: place.reader.sender(in: $0)) }
        return [.count(PresenceChange(session: id, place: present))]
    }

    /// The stream whose stage was last notified of a session; nil if there is none.
    func toldPresence(of id: SessionID) -> StreamID? { presences[id] }

    /// The viewers whom a stream's stage was last told are present, in an order that is the same in each run.
    func told(in stream: StreamID) -> [(session: SessionID, sender: Stage.Sender?)] {
        let present = presences.filter { $0.value == stream }.keys.sorted()
        return present.map { ($0, desk.places[$0]?.reader.sender(in: stream)) }
    }

    /// Notes that stages are notified of a change now.
    /// - Returns: the stream that the viewer has left; nil if there is none.
    mutating func tellPresence(_ change: PresenceChange) -> StreamID? {
        let new = change.place?.stream
        let old = presences[change.session]
        presences[change.session] = new
        return old == new ? nil : old
    }

    // MARK: Time

    /// When `advance` has something to do; nil if nothing is due.
    var deadline: MonotonicTime? {
        [desk.deadline, followers.deadline].compactMap(\.self).min()
    }

    mutating func advance(to now: Moment) -> [Action] {
        let actions = take(desk.advance(to: now.elapsed))
        followers.advance(to: now, of: desk.feed)
        return actions
    }

    // MARK: Statistics

    /// Totals since the start, and current numbers.
    var counters: FeedCounters {
        var counters = desk.counters
        counters.sessions = desk.places.count
        counters.followers = followers.count
        counters.streams = desk.feed.count
        return counters
    }
}
