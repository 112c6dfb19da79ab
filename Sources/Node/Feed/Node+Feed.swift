import Base
import Forwarding
import Stage
import StoryFeed

/// The story feed: what is said of it from outside.
extension Node {
    // MARK: The list

    /// A part of the feed for somebody.
    package func feedPage(
        limit: Int, after cursor: FeedCursor?, for reader: FeedReader
    ) throws(CursorRefusal) -> FeedPage {
        let time = now().elapsed
        return try live.withFeed { feed throws(CursorRefusal) in
            try feed.page(limit: limit, after: cursor, for: reader, at: time)
        }
    }

    /// Tells the feed of a new preview picture.
    package func setPreview(_ preview: FeedPreview, of stream: StreamID) {
        live.withFeed { $0.setPreview(preview, of: stream) }
        scheduleFeed()
    }

    /// Takes in what stages told of themselves since the last time.
    func takeFeedNews() async {
        let news = directory.takeNews()
        guard !news.isEmpty else { return }
        let time = now().elapsed
        await perform(live.update(news, at: time))
        // Whether it is live, what its card says, whose camera is off, and whether it is to be recorded.
        for stream in news.keys where live[stream] != nil || live.productions.pauseFile(of: stream) != nil {
            programmeChanged(in: stream)
        }
    }

    /// Begins to tell somebody of the list.
    package func followFeed(
        _ reader: FeedReader, limit: Int, until expiry: WallTime?, _ end: any SyncFollower
    ) -> FeedFollowing {
        let time = now().elapsed
        let number = live.withFeed {
            $0.follow(reader, limit: limit, until: expiry, end, at: time)
        }
        scheduleFeed()
        return FeedFollowing(
            watch: { [weak self] streams in await self?.watchFeed(streams, by: number) },
            stop: { [weak self] in await self?.unfollowFeed(number) })
    }

    private func watchFeed(_ streams: [StreamID], by number: UInt64) {
        live.withFeed { $0.watch(streams, by: number) }
    }

    private func unfollowFeed(_ number: UInt64) { live.withFeed { $0.unfollow(number) } }

    // MARK: Sessions

    /// Does what somebody asked for over HTTP.
    /// - Parameter request: its number, if it has one.
    /// - Returns: all slots, as they are now.
    package func perform(
        _ message: FeedMessage, request: UInt32?, in id: SessionID
    ) async throws(FeedRefusal) -> JSON {
        let (actions, slots) = try live.perform(message, request: request, in: id, at: now().elapsed)
        await perform(actions)
        return slots
    }

    // MARK: Time

    func scheduleFeed() {
        guard !isStopping, let deadline = live.feed.deadline else { return }
        tasks.feedTimer.set(to: deadline, at: now().elapsed) { [weak self] in await self?.advanceFeed() }
    }

    private func advanceFeed() async {
        tasks.feedTimer.clear()
        let moment = now()
        await perform(live.inFeed(at: moment.elapsed) { $0.advance(to: moment) })
    }
}

/// Somebody who follows the list.
package struct FeedFollowing: Sendable {
    /// Tells them of these streams, too.
    package let watch: @Sendable ([StreamID]) async -> Void
    /// Ends the following; nothing is sent after it.
    package let stop: @Sendable () async -> Void
}
