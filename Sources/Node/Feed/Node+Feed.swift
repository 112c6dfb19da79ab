import Base
import Forwarding
import Stage
import StoryFeed

/// The story feed: requests from outside, and its timer.
extension Node {
    // MARK: The list

    /// A page of the feed, without streams that the reader may not see.
    package func feedPage(
        limit: Int, after cursor: FeedCursor?, for reader: FeedReader
    ) throws(CursorRefusal) -> FeedPage {
        let time = now().elapsed
        return try live.withFeed { feed throws(CursorRefusal) in
            try feed.page(limit: limit, after: cursor, for: reader, at: time)
        }
    }

    /// Sets the preview that the feed shows for a stream.
    package func setPreview(_ preview: FeedPreview, of stream: StreamID) {
        live.withFeed { $0.setPreview(preview, of: stream) }
        scheduleFeed()
    }

    /// Handles the streams that have changed since the last call.
    func takeFeedNews() async {
        let news = directory.takeNews()
        guard !news.isEmpty else { return }
        let time = now().elapsed
        await perform(live.update(news, at: time))
        // Any of these may be new: whether it is live, its title, the host's camera, and whether it is to be
        // recorded.
        for stream in news.keys where live[stream] != nil || live.productions.pauseFile(of: stream) != nil {
            programmeChanged(in: stream)
        }
    }

    /// Starts to send the list's changes to a follower, beginning with a snapshot.
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

    /// Applies a message that came over HTTP.
    /// - Parameter request: the client's number for it; nil if it has none.
    /// - Returns: all slots, as they are after it.
    package func perform(
        _ message: FeedMessage, request: UInt32?, in id: SessionID
    ) async throws(FeedRefusal) -> JSON {
        let (actions, slots) = try live.perform(message, request: request, in: id, at: now().elapsed)
        await perform(actions)
        return slots
    }

    // MARK: Time

    /// Sets the timer to the feed's next deadline; to be called after every change of the feed.
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

/// A follower of the list, as its connection sees it.
package struct FeedFollowing: Sendable {
    /// Makes the follower receive the changes of further streams.
    package let watch: @Sendable ([StreamID]) async -> Void
    /// Ends it; nothing is sent afterwards.
    package let stop: @Sendable () async -> Void
}
