import Base
import StoryFeed

/// A feed of streams `s1`, `s2` and so on in this order, and a time that tests move.
struct FeedRig {
    var feed: StoryFeed
    var now = MonotonicTime.zero
    /// What nobody may see.
    var hidden: Set<StreamID> = []

    init(streams: Int = 0, _ adjust: (inout StoryFeed.Configuration) -> Void = { _ in }) {
        var configuration = StoryFeed.Configuration(tag: 7)
        adjust(&configuration)
        feed = StoryFeed(configuration)
        for number in 0..<streams { _ = try? feed.goLive(Self.item(number + 1)) }
    }

    static func id(_ number: Int) -> StreamID {
        guard let id = StreamID("s\(number)") else { fatalError("no stream's name") }
        return id
    }

    /// Lower numbers are younger, so further ahead.
    static func item(_ number: Int, viewers: Int = 0) -> FeedItem {
        var item = FeedItem(
            id: id(number), startedAt: WallTime(milliseconds: Int64(1_000_000 - number) * 1_000_000))
        item.viewers = viewers
        return item
    }

    static func sessionID(_ number: UInt64) -> SessionID {
        var numbers = Numbers(number: number)
        return SessionID(using: &numbers)
    }

    private struct Numbers: RandomNumberGenerator {
        let number: UInt64
        mutating func next() -> UInt64 { number }
    }

    var order: [Int] { feed.streams.map { Int($0.description.dropFirst()) ?? 0 } }

    var scene: FeedScene {
        let hidden = hidden
        return FeedScene(feed: feed, now: now) { _, stream in !hidden.contains(stream) }
    }

    mutating func pass(_ interval: Duration) { now = now + interval }

    mutating func page(_ limit: Int, after cursor: FeedCursor? = nil) throws -> FeedPage {
        let hidden = hidden
        return try feed.page(limit: limit, after: cursor, at: now) { !hidden.contains($0) }
    }
}

extension FeedPage {
    var numbers: [Int] { entries.map { Int($0.item.id.description.dropFirst()) ?? 0 } }
}

extension StoryFeed {
    /// Pins a stream at a place, or unpins it, as an admin's `PATCH …/placement` does.
    mutating func pin(_ id: StreamID, at place: Int?) throws(Refusal) -> [FeedChange] {
        try edit(id) { $0.pinnedPlace = place }
    }

    /// Sets a stream's boost.
    mutating func boost(_ id: StreamID, by steps: Int) throws(Refusal) -> [FeedChange] {
        try edit(id) { $0.boost = steps }
    }

    private mutating func edit(_ id: StreamID, _ change: (inout FeedItem) -> Void) throws(Refusal)
        -> [FeedChange]
    {
        guard var item = item(id) else { throw .notLive }
        change(&item)
        return try edit(item)
    }
}
