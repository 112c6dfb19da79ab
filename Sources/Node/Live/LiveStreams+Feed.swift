import Base
import Forwarding
import Stage
import StoryFeed

/// What happens in the feed, and to its list.
extension LiveStreams {
    /// Takes in what is new about streams; nil for one that nobody knows any more.
    mutating func update(_ news: [StreamID: StreamSnapshot?], at now: MonotonicTime) -> [LiveAction] {
        let streams = news.keys.sorted { $0.description < $1.description }
        return inFeed(at: now) { $0.update(news, at: now) }
            + streams.flatMap { gates.update($0, at: now) }
            + streams.compactMap { updateDataAccess(of: $0, news[$0] ?? nil) }
    }

    /// Has workers hear what the audience of a stream has of data tracks, where that is new.
    private mutating func updateDataAccess(of stream: StreamID, _ snapshot: StreamSnapshot?) -> LiveAction? {
        let wanted = snapshot.flatMap { $0.state == .ended ? nil : $0.details.audienceData } ?? .nothing
        guard wanted != dataAccess[stream] ?? .nothing else { return nil }
        dataAccess[stream] = wanted == .nothing ? nil : wanted
        return .postToAll(.setDataAccess(stream, DataAccess(wanted)))
    }

    /// Does something in the feed.
    mutating func inFeed<Refusal: Error>(
        at now: MonotonicTime, _ body: (inout LiveFeed) throws(Refusal) -> [LiveFeed.Action]
    ) throws(Refusal) -> [LiveAction] {
        take(try body(&feed), at: now)
    }

    /// A viewer of the feed is somewhere else: stages hear who came and who went.
    mutating func take(_ change: PresenceChange) -> [LiveAction] {
        let left = feed.tellPresence(change)
        let (came, id) = (change.place, change.session)
        return [
            left.map { .notify(.disconnect(id), $0) },
            came.map { .notify(.connect($0.sender, id), $0.stream) },
        ].compactMap(\.self)
    }

    /// Does what somebody in the feed asked for over HTTP.
    /// - Returns: what follows, and all slots as they will be then.
    mutating func perform(
        _ message: FeedMessage, request: UInt32?, in id: SessionID, at now: MonotonicTime
    ) throws(FeedRefusal) -> (actions: [LiveAction], slots: JSON) {
        let (actions, slots) = try feed.perform(message, request: request, in: id, at: now)
        return (take(actions, at: now), slots)
    }

    /// Does something in the feed that nothing follows from.
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
