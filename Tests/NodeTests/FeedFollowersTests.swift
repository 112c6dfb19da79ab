import Base
import Foundation
import Net
import Stage
import StoryFeed
import Synchronization
import Testing

@testable import Node

/// Reads at its own pace.
private final class Reader: SyncFollower {
    struct State {
        var texts: [String] = []
        var isSlow = false
        var closed: SyncClose?
    }

    let state = Mutex(State())

    func send(_ text: String) -> SyncDelivery {
        state.withLock { state in
            guard !state.isSlow else { return .full }
            state.texts.append(text)
            return .queued
        }
    }

    var isDrained: Bool { state.withLock { !$0.isSlow } }

    func close(_ reason: SyncClose) { state.withLock { $0.closed = reason } }

    func take() -> [JSON] {
        let texts = state.withLock { state in
            defer { state.texts = [] }
            return state.texts
        }
        return texts.compactMap { try? JSONDecoder().decode(JSON.self, from: Data($0.utf8)) }
    }
}

@Suite struct FollowersOfTheFeed {
    private let directory = StreamDirectory()
    private var desk: FeedDesk
    private var followers: FeedFollowers
    private var now = Moment(elapsed: .zero, wall: WallTime(milliseconds: 1_000))
    private let everything = FeedReader(scope: .all, sender: nil, standing: .all)

    init() {
        desk = FeedDesk(directory: directory, sessionLimit: 100, tag: 1)
        followers = FeedFollowers(directory: directory)
    }

    private func id(_ name: String) throws -> StreamID { try #require(StreamID(name)) }

    private mutating func update(
        _ name: String, _ change: (inout StreamSnapshot) -> Void = { _ in }
    ) throws {
        let stream = try id(name)
        var snapshot = directory[stream] ?? StreamSnapshot(waitingFor: stream)
        snapshot.state = .live
        snapshot.createdAt = snapshot.createdAt ?? WallTime(milliseconds: 1)
        change(&snapshot)
        directory.update(snapshot)
        let outcome = desk.update(directory.takeNews(), at: now.elapsed)
        for stream in outcome.restricted { followers.accessChanged(to: stream) }
        followers.announce(outcome.changes)
    }

    private mutating func pass(_ time: Duration) {
        let milliseconds = time.wholeNanoseconds / 1_000_000
        now = Moment(
            elapsed: now.elapsed + time,
            wall: WallTime(milliseconds: now.wall.milliseconds + milliseconds))
        followers.announce(desk.advance(to: now.elapsed).changes)
        followers.advance(to: now, of: desk.feed)
    }

    private mutating func follow(_ reader: FeedReader? = nil, limit: Int = 20, until expiry: WallTime? = nil)
        -> (Reader, UInt64)
    {
        let end = Reader()
        let number = followers.add(
            end, for: reader ?? everything, limit: limit, until: expiry, of: desk.feed, at: now.elapsed)
        return (end, number)
    }

    private func ids(_ json: JSON?) -> [String] {
        guard case .array(let items) = json else { return [] }
        return items.compactMap { item in
            if case .string(let text) = item["id"] ?? item["item"]?["id"] ?? item { text } else { nil }
        }
    }

    @Test mutating func `begin with the head of the list, and hear of what goes live and ends`() throws {
        for name in ["a", "b", "c"] { try update(name) }
        let (reader, _) = follow(limit: 2)
        let snapshot = try #require(reader.take().first)
        #expect(snapshot["type"] == .string("snapshot"))
        #expect(ids(snapshot["items"]) == ["a", "b"])
        #expect(snapshot["count"] == .integer(3))

        try update("d") { $0.startedAt = WallTime(milliseconds: 10_000_000) }
        let added = try #require(reader.take().first)
        #expect(ids(added["added"]) == ["d"])
        guard case .array(let entries) = added["added"] else { throw CocoaError(.coderInvalidValue) }
        #expect(entries[0]["after"] == .null)

        try update("d") { $0.state = .ended }
        #expect(ids(reader.take().first?["ended"]) == ["d"])
        // It never heard of the third.
        try update("c") { $0.state = .ended }
        #expect(reader.take().isEmpty)
    }

    @Test mutating func `hear of viewers and titles only where they watch`() throws {
        for name in ["a", "b"] { try update(name) }
        let (head, _) = follow(limit: 1)
        let (both, number) = follow(limit: 1)
        followers.watch([try id("b"), try id("x")], by: number, of: desk.feed)
        _ = (head.take(), both.take())
        try update("b") { $0.viewers = 7 }
        pass(.seconds(3))
        #expect(head.take().isEmpty)
        #expect(both.take().first?["viewers"] == .object(["b": .integer(7)]))
        try update("b") { $0.details.title = "News" }
        #expect(head.take().isEmpty)
        #expect(ids(both.take().first?["edited"]) == ["b"])
    }

    @Test mutating func `get a new snapshot when they read too slowly`() throws {
        try update("a")
        let (reader, _) = follow()
        _ = reader.take()
        reader.state.withLock { $0.isSlow = true }
        for name in ["b", "c"] { try update(name) }
        reader.state.withLock { $0.isSlow = false }
        #expect(reader.take().isEmpty)
        pass(.seconds(5))
        let messages = reader.take()
        #expect(messages.first?["type"] == .string("snapshot"))
        #expect(ids(messages.first?["items"]) == ["a", "b", "c"])
    }

    @Test mutating func `are told of nothing they may not see`() throws {
        let bad = try #require(ParticipantID("bad"))
        let reader = FeedReader(
            scope: .all, sender: Stage.Sender(id: bad, authority: .viewer), standing: .all)
        try update("a")
        let (banned, _) = follow(reader)
        let (narrow, _) = follow(FeedReader(scope: .one(try id("b")), sender: nil, standing: .all))
        _ = banned.take()
        #expect(ids(narrow.take().first?["items"]) == [])
        try update("a") { $0.banned[bad] = WallTime(milliseconds: 1) }
        #expect(ids(banned.take().first?["ended"]) == ["a"])
        try update("a") { $0.details.title = "News" }
        #expect(banned.take().isEmpty)
        #expect(narrow.take().isEmpty)
        try update("b")
        #expect(ids(narrow.take().first?["added"]) == ["b"])
    }

    @Test mutating func `hear a heartbeat until their token ends`() throws {
        let (reader, _) = follow(until: WallTime(milliseconds: 9_000))
        _ = reader.take()
        pass(.seconds(5))
        #expect(reader.take().first?["type"] == .string("heartbeat"))
        pass(.seconds(5))
        #expect(reader.state.withLock { $0.closed } == .expired)
        #expect(followers.count == 0)
    }

    @Test mutating func `hear no more heartbeats because somebody else reads too slowly`() throws {
        try update("a")
        let (slow, _) = follow()
        let (reader, _) = follow()
        slow.state.withLock { $0.isSlow = true }
        try update("b")
        _ = reader.take()
        for _ in 0..<50 { pass(.milliseconds(100)) }
        #expect(reader.take().count == 1)
    }

    /// They were sent more streams than they can show, and the latest are what they show.
    @Test mutating func `watch five hundred streams at most, the latest ones`() throws {
        let (reader, _) = follow(limit: 1)
        for number in 0...FeedFollowers.watchLimit { try update("s\(number)") }
        _ = reader.take()
        var told: [[String]] = []
        for number in [0, 1, FeedFollowers.watchLimit] {
            try update("s\(number)") { $0.details.title = "News" }
            told.append(reader.take().flatMap { ids($0["edited"]) })
        }
        #expect(told == [[], ["s1"], ["s\(FeedFollowers.watchLimit)"]])
        // Nor are they told how many watch the one that was forgotten.
        try update("s0") { $0.viewers = 1 }
        pass(.seconds(3))
        #expect(reader.take().allSatisfy { $0["viewers"] == nil })
    }

    @Test mutating func `hear of a stream again that was forgotten, once they watch it`() throws {
        for name in ["a", "b"] { try update(name) }
        let (reader, number) = follow(limit: 2)
        _ = reader.take()
        try update("a") { $0.state = .ended }
        #expect(ids(reader.take().first?["ended"]) == ["a"])
        followers.watch([try id("a")], by: number, of: desk.feed)
        try update("a") { $0.state = .ended }
        #expect(reader.take().isEmpty, "it is not there to be watched")
        try update("a") { $0.createdAt = WallTime(milliseconds: 2) }
        #expect(ids(reader.take().first?["added"]) == ["a"])
        try update("a") { $0.details.title = "News" }
        #expect(ids(reader.take().first?["edited"]) == ["a"])
        followers.watch([try id("a"), try id("a")], by: number, of: desk.feed)
        try update("a") { $0.details.title = "More" }
        #expect(reader.take().map { ids($0["edited"]) } == [["a"]], "once, however often they ask")
    }

    @Test mutating func `are all sent away when the server stops, and told nothing then`() throws {
        try update("a")
        let (first, _) = follow()
        let (slow, number) = follow()
        slow.state.withLock { $0.isSlow = true }
        try update("b")
        for reader in [first, slow] { _ = reader.take() }
        followers.closeAll(.goingAway)
        for reader in [first, slow] { #expect(reader.state.withLock { $0.closed } == .goingAway) }
        #expect(followers.count == 0 && followers.deadline == nil)
        slow.state.withLock { $0.isSlow = false }
        try update("c")
        followers.watch([try id("c")], by: number, of: desk.feed)
        followers.remove(number)
        pass(.seconds(60))
        #expect(first.take().isEmpty && slow.take().isEmpty)
    }

    @Test mutating func `of ten thousand streams list twenty within 5 ms`() throws {
        var news: [StreamID: StreamSnapshot?] = [:]
        for number in 0..<10_000 {
            let stream = try id("s\(number)")
            var snapshot = StreamSnapshot(waitingFor: stream)
            snapshot.state = .live
            snapshot.viewers = number * 7_919 % 1_000
            snapshot.createdAt = WallTime(milliseconds: Int64(number))
            news[stream] = snapshot
        }
        _ = desk.update(news, at: now.elapsed)
        var cursor: FeedCursor?
        var best = Int64.max
        for _ in 0..<20 {
            let start = ProcessorClock.threadNanoseconds()
            let page = try desk.page(limit: 20, after: cursor, for: everything, at: now.elapsed)
            let text = JSON.array(page.entries.map { $0.item.json(position: $0.position) }).bytes
            best = min(best, ProcessorClock.threadNanoseconds() - start)
            #expect(page.entries.count == 20)
            #expect(text.count > 2_000)
            cursor = page.next
        }
        // The best of twenty, and of this thread's own time: what else the machine does is none of its business.
        #expect(best < 5_000_000)
    }
}
