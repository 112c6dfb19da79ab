import Base
import Forwarding
import Stage
import StoryFeed

/// The feed: news of streams, and requests of feed viewers.
extension LiveStreams {
    /// Handles news of streams; nil for a stream that is no longer known.
    mutating func update(_ news: [StreamID: StreamSnapshot?], at now: MonotonicTime) -> [LiveAction] {
        let streams = news.keys.sorted { $0.description < $1.description }
        return inFeed(at: now) { $0.update(news, at: now) }
            + streams.flatMap { gates.update($0, at: now) }
            + streams.compactMap { updateDataAccess(of: $0, news[$0] ?? nil) }
    }

    /// Notifies workers if the audience's access to a stream's data tracks has changed.
    private mutating func updateDataAccess(of stream: StreamID, _ snapshot: StreamSnapshot?) -> LiveAction? {
        let wanted = snapshot.flatMap { $0.state == .ended ? nil : $0.details.audienceData } ?? .nothing
        guard wanted != dataAccess[stream] ?? .nothing else { return nil }
        dataAccess[stream] = wanted == .nothing ? nil : wanted
        return .postToAll(.setDataAccess(stream, DataAccess(wanted)))
    }

    /// Changes the feed and performs what follows.
    mutating func inFeed<Refusal: Error>(
        at now: MonotonicTime, _ body: (inout LiveFeed) throws(Refusal) -> [LiveFeed.Action]
    ) throws(Refusal) -> [LiveAction] {
        take(try body(&feed), at: now)
    }

    /// Notifies the stage that a feed viewer has left and the one that the viewer has come to.
    mutating func take(_ change: PresenceChange) -> [LiveAction] {
        // A viewer who went away and came back before the first change was delivered is where the stage has them: it
        // would count an anonymous viewer twice.
        guard feed.toldPresence(of: change.session) != change.place?.stream else { return [] }
        let left = feed.tellPresence(change)
        let (came, id) = (change.place, change.session)
        return [
            left.map { .notify(.disconnect(id), $0) },
            came.map { .notify(.connect($0.sender, id), $0.stream) },
        ].compactMap(\.self)
    }

    /// Applies a message that came over HTTP.
    /// - Returns: what follows, and all slots as they are after it.
    mutating func perform(
        _ message: FeedMessage, request: UInt32?, in id: SessionID, at now: MonotonicTime
    ) throws(FeedRefusal) -> (actions: [LiveAction], slots: JSON) {
        let (actions, slots) = try feed.perform(message, request: request, in: id, at: now)
        return (take(actions, at: now), slots)
    }

    /// Changes the feed where no action follows.
    mutating func withFeed<Result, Refusal: Error>(
        _ body: (inout LiveFeed) throws(Refusal) -> Result
    ) throws(Refusal) -> Result {
        try body(&feed)
    }
}

extension DataAccess {
    fileprivate init(_ setting: StageDetails.AudienceData) {
        self =
            switch setting {
            case .nothing: .nothing
            case .receive: .receive
            case .send: .send
            }
    }
}
