import Base
import Forwarding
import Stage
import StoryFeed
import Wire

/// The story feed: its list, its sessions, and what has to be done for them.
extension Node {
    // MARK: The list

    /// A part of the feed for somebody.
    package func feedPage(
        limit: Int, after cursor: FeedCursor?, for reader: FeedReader
    ) throws(CursorRefusal) -> FeedPage {
        try feedDesk.page(limit: limit, after: cursor, for: reader, at: now().elapsed)
    }

    /// Tells the feed of a new preview picture.
    package func setPreview(_ preview: FeedPreview, of stream: StreamID) {
        announceFeed(feedDesk.setPreview(preview, of: stream))
    }

    /// Takes in what stages told of themselves since the last time.
    func takeFeedNews() {
        let news = directory.takeNews()
        guard !news.isEmpty else { return }
        let outcome = feedDesk.update(news, at: now().elapsed)
        for stream in outcome.restricted { feedFollowers.accessChanged(to: stream) }
        for stream in outcome.appeared where directory[stream]?.isPublished == false {
            // What the host did backstage is not for those who come now.
            for worker in workers { _ = worker.post(.flush(stream)) }
        }
        carryOut(outcome)
        // Whether it is live, what its card says, whose camera is off, and whether it is to be recorded.
        for stream in news.keys where streams[stream] != nil || pauses.file(of: stream) != nil {
            programmeChanged(in: stream)
        }
    }

    private func carryOut(_ outcome: FeedDesk.Outcome) {
        announceFeed(outcome.changes)
        carryOut(outcome.directives)
    }

    func announceFeed(_ changes: [FeedChange]) {
        feedFollowers.announce(changes)
        scheduleFeed()
    }

    /// Begins to tell somebody of the list.
    package func followFeed(
        _ reader: FeedReader, limit: Int, until expiry: WallTime?, _ end: any SyncFollower
    ) -> FeedFollowing {
        let number = feedFollowers.add(
            end, for: reader, limit: limit, until: expiry, of: feedDesk.feed, at: now().elapsed)
        scheduleFeed()
        return FeedFollowing(
            watch: { [weak self] streams in await self?.watchFeed(streams, by: number) },
            stop: { [weak self] in await self?.unfollowFeed(number) })
    }

    private func watchFeed(_ streams: [StreamID], by number: UInt64) {
        feedFollowers.watch(streams, by: number, of: feedDesk.feed)
    }

    private func unfollowFeed(_ number: UInt64) {
        feedFollowers.remove(number)
    }

    // MARK: Time

    func scheduleFeed() {
        let deadlines = [feedDesk.deadline, feedFollowers.deadline].compactMap(\.self)
        guard !isStopping, let deadline = deadlines.min() else { return }
        feedTimer.set(to: deadline, at: now().elapsed) { [weak self] in await self?.advanceFeed() }
    }

    private func advanceFeed() {
        feedTimer.clear()
        let moment = now()
        carryOut(feedDesk.advance(to: moment.elapsed))
        feedFollowers.advance(to: moment, of: feedDesk.feed)
        scheduleFeed()
    }

    // MARK: Sessions

    static func identity(of id: SessionID, _ participant: ParticipantID?) -> FeedViewer {
        participant.map { .named($0) } ?? .anonymous(id)
    }

    /// A session that its worker knows by now.
    func enterFeed(_ id: SessionID, _ wish: FeedWish, _ mids: [(audio: String, video: String)])
        throws(FeedRefusal)
    {
        let viewer = Self.identity(of: id, wish.reader.sender?.id)
        let place = FeedPlace(viewer: viewer, reader: wish.reader, mids: mids)
        carryOut(
            try feedDesk.enter(
                id, place, preload: wish.preload, on: wish.stream, at: now().elapsed))
    }

    /// A player outside the feed counts as well.
    func enterPlayer(_ id: SessionID, _ request: SessionRequest) throws(FeedRefusal) {
        let viewer = Self.identity(of: id, request.participant)
        carryOut(try feedDesk.enterPlayer(id, of: viewer))
    }

    /// A session has ended; it may have been in the feed, or count there.
    func leaveFeed(_ id: SessionID) {
        updatePresence(of: id, in: nil)
        carryOut(feedDesk.leave(id))
    }

    /// Does what somebody asked for over HTTP.
    /// - Returns: all slots, as they are now.
    package func perform(_ message: FeedMessage, in id: SessionID) throws(FeedRefusal) -> JSON {
        let now = now().elapsed
        let directives = try feedDesk.perform(message, for: id, at: now)
        carryOut(directives, requested: now)
        guard let place = feedDesk.places[id] else { throw .noSession }
        return .object([
            "slots": FeedNotice.json(feedDesk.audience.session(id)?.slots ?? [], place)
        ])
    }

    func takeFeedControl(_ message: DataChannelMessage, from record: SessionRecord) {
        let now = now().elapsed
        switch FeedControl(parsing: message) {
        case .ping: tell(ControlReply(type: "pong"), to: record)
        case .message(let message):
            carryOut(feedDesk.receive(message, from: record.id, at: now), requested: now)
        case nil: tell(.error("malformed", "This is no message that this server knows."), to: record)
        }
    }

    /// The channel has opened, or works again after messages were lost: it is told where it is.
    func tellFeedState(to id: SessionID) {
        guard let session = feedDesk.audience.session(id) else { return }
        tell(.slots(session.slots), to: id)
        if session.slots.isEmpty { tell(.empty, to: id) }
    }

    func tell(_ notice: FeedNotice, to id: SessionID) {
        guard let record = sessions[id], let place = feedDesk.places[id] else { return }
        _ = workers[record.worker].post(.sendControl(id, .string(notice.json(place).bytes)))
    }

    // MARK: Directives

    /// Carries out what the feed wants, in order.
    /// - Parameter requested: when a viewer asked for it; nil if none did.
    func carryOut(_ directives: [FeedDesk.Directive], requested: MonotonicTime? = nil) {
        let steps = feedFences.append(directives, requested: requested) { [sessions, feedDesk] id in
            guard let record = sessions[id] else { return nil }
            let viewer = Self.identity(of: id, record.request.participant)
            let others = feedDesk.sessions(of: viewer).compactMap { sessions[$0]?.worker }
            return FeedFences.Place(worker: record.worker, viewer: viewer, others: Set(others))
        }
        carryOut(steps)
        var looked: Set<SessionID> = []
        for id in directives.map(\.session) where looked.insert(id).inserted {
            updatePresence(of: id, in: feedDesk.audience.session(id)?.focusedStream)
        }
        scheduleFeed()
    }

    private func carryOut(_ steps: [FeedFences.Step]) {
        for step in steps {
            switch step {
            case .perform(let directive, let requested):
                carryOut(directive.effect, of: directive.session, requested: requested)
            case .fence(let number, let worker):
                // A worker that takes nothing any more sends nothing either.
                if !workers[worker].post(.fence(number)) { passFence(number) }
            }
        }
    }

    /// A worker has let go of what it was told to: what waited for that is done.
    func passFence(_ number: UInt64) {
        carryOut(feedFences.pass(number))
    }

    private func carryOut(_ effect: FeedEffect, of id: SessionID, requested: MonotonicTime?) {
        guard let record = sessions[id] else { return }
        if let command = effect.command(to: id, requested: requested) {
            guard !workers[record.worker].post(command) else { return }
            return log.error("worker.full", ["worker": record.worker, "session": id.label])
        }
        switch effect {
        case .attach, .promote, .release: break
        case .tell(let notice): tell(notice, to: id)
        case .close:
            guard record.purpose == .feed else {
                _ = workers[record.worker].post(.close(id))
                return
            }
            // What it was told must arrive first.
            let end = now().elapsed + Self.farewellTime
            sessions.update(id) { $0.closesAt = end }
        }
    }

    // MARK: Presence

    func connectFeed(_ id: SessionID) {
        feedDesk.setConnected(id)
        updatePresence(of: id, in: feedDesk.audience.session(id)?.focusedStream)
    }

    /// Has a viewer counted in the stream they are on, and nowhere else.
    private func updatePresence(of id: SessionID, in stream: StreamID?) {
        guard let place = feedDesk.places[id], place.isConnected, place.present != stream else { return }
        feedDesk.setPresent(id, in: stream)
        let present = stream.map { PresenceChange.Place(stream: $0, sender: place.reader.sender(in: $0)) }
        inboxes.presence.put(PresenceChange(session: id, place: present))
    }

    /// Tells stages that somebody came or went.
    func carryOut(_ change: PresenceChange) async {
        let old = presences[change.session]
        presences[change.session] = change.place?.stream
        if let old, old != change.place?.stream { await hosts[old]?.disconnect(.session(change.session)) }
        guard let place = change.place else { return }
        await hosts[place.stream]?.connect(place.sender, by: .session(change.session))
    }

    /// Between the end of a session's place in the feed and of its connection.
    private static let farewellTime = Duration.seconds(1)
}

/// Somebody who follows the list.
package struct FeedFollowing: Sendable {
    /// Tells them of these streams, too.
    package let watch: @Sendable ([StreamID]) async -> Void
    /// Ends the following; nothing is sent after it.
    package let stop: @Sendable () async -> Void
}
