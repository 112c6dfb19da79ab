import Base
import Forwarding
import Stage
import StoryFeed

/// The story feed: what is said of it goes to `LiveFeed`, and what that wants is carried out here.
extension Node {
    // MARK: The list

    /// A part of the feed for somebody.
    package func feedPage(
        limit: Int, after cursor: FeedCursor?, for reader: FeedReader
    ) throws(CursorRefusal) -> FeedPage {
        try feed.page(limit: limit, after: cursor, for: reader, at: now().elapsed)
    }

    /// Tells the feed of a new preview picture.
    package func setPreview(_ preview: FeedPreview, of stream: StreamID) {
        feed.setPreview(preview, of: stream)
        scheduleFeed()
    }

    /// Takes in what stages told of themselves since the last time.
    func takeFeedNews() {
        let news = directory.takeNews()
        guard !news.isEmpty else { return }
        carryOut(feed.update(news, at: now().elapsed))
        // Whether it is live, what its card says, whose camera is off, and whether it is to be recorded.
        for stream in news.keys where streams[stream] != nil || pauses.file(of: stream) != nil {
            programmeChanged(in: stream)
        }
    }

    /// Begins to tell somebody of the list.
    package func followFeed(
        _ reader: FeedReader, limit: Int, until expiry: WallTime?, _ end: any SyncFollower
    ) -> FeedFollowing {
        let number = feed.follow(reader, limit: limit, until: expiry, end, at: now().elapsed)
        scheduleFeed()
        return FeedFollowing(
            watch: { [weak self] streams in await self?.watchFeed(streams, by: number) },
            stop: { [weak self] in await self?.unfollowFeed(number) })
    }

    private func watchFeed(_ streams: [StreamID], by number: UInt64) { feed.watch(streams, by: number) }

    private func unfollowFeed(_ number: UInt64) { feed.unfollow(number) }

    // MARK: Sessions

    /// Does what somebody asked for over HTTP.
    /// - Returns: all slots, as they are now.
    package func perform(_ message: FeedMessage, in id: SessionID) throws(FeedRefusal) -> JSON {
        let (actions, slots) = try feed.perform(message, in: id, at: now().elapsed)
        carryOut(actions)
        return slots
    }

    // MARK: What the feed wants

    func carryOut(_ actions: [LiveFeed.Action]) {
        for action in actions { carryOut(action) }
        scheduleFeed()
    }

    private func carryOut(_ action: LiveFeed.Action) {
        switch action {
        case .post(let command, let worker, let session):
            guard !workers[worker].post(command) else { return }
            log.error("worker.full", ["worker": worker, "session": session.label])
        case .fence(let number, let worker):
            // A worker that takes nothing any more sends nothing either.
            if !workers[worker].post(.fence(number)) { carryOut(feed.pass(number)) }
        case .flush(let stream):
            workers.post(.flush(stream))
        case .close(let session, let worker):
            _ = workers[worker].post(.close(session))
        case .dismiss(let session):
            let end = now().elapsed + Self.farewellTime
            sessions.update(session) { $0.closesAt = end }
        case .count(let change):
            inboxes.presence.put(change)
        }
    }

    /// Tells stages that somebody came or went.
    func carryOut(_ change: PresenceChange) async {
        let left = feed.tellPresence(change)
        if let left { await registry[left]?.disconnect(.session(change.session)) }
        guard let place = change.place else { return }
        await registry[place.stream]?.connect(place.sender, by: .session(change.session))
    }

    // MARK: Time

    private func scheduleFeed() {
        guard !isStopping, let deadline = feed.deadline else { return }
        tasks.feedTimer.set(to: deadline, at: now().elapsed) { [weak self] in await self?.advanceFeed() }
    }

    private func advanceFeed() {
        tasks.feedTimer.clear()
        carryOut(feed.advance(to: now()))
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
