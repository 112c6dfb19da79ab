import Base
import Forwarding
import Stage
import StoryFeed
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Node

@Suite struct `The feed of a node` {
    private let directory = StreamDirectory()
    private var feed: LiveFeed
    private let shows: [StreamID]
    private let ann: ParticipantID
    private let now = MonotonicTime(nanoseconds: 1_000_000_000)

    init() throws {
        feed = LiveFeed(directory: directory, sessionLimit: 100, tag: 1)
        shows = try ["one", "two"].map { try #require(StreamID($0)) }
        ann = try #require(ParticipantID("ann"))
    }

    private mutating func goLive(isPublished: Bool = true) -> [String] {
        for (number, show) in shows.enumerated() {
            var snapshot = StreamSnapshot(waitingFor: show)
            snapshot.state = .live
            snapshot.isPublished = isPublished
            snapshot.createdAt = WallTime(milliseconds: 1_000 - Int64(number))
            directory.update(snapshot)
        }
        return words(feed.update(directory.takeNews(), at: now))
    }

    private func session(_ number: UInt64) -> SessionID {
        var numbers = SeededGenerator(seed: number)
        return SessionID(using: &numbers)
    }

    private mutating func enter(
        _ number: UInt64, as participant: ParticipantID? = nil, on stream: StreamID? = nil, worker: Int = 0
    ) throws -> [String] {
        let sender = participant.map { Stage.Sender(id: $0, authority: .viewer) }
        let wish = FeedWish(
            reader: FeedReader(scope: .all, sender: sender, standing: .all), stream: stream,
            preload: .onSwipe)
        return words(
            try feed.enter(
                session(number), wish, [("a", "b"), ("c", "d")], on: worker, at: now))
    }

    private mutating func say(_ text: String, _ number: UInt64) -> [String] {
        words(feed.receive(.string(Array(text.utf8)), from: session(number), at: now))
    }

    /// Actions as words, sessions by their numbers.
    private func words(_ actions: [LiveFeed.Action]) -> [String] {
        let numbers = Dictionary(uniqueKeysWithValues: (1...9).map { (session($0), $0) })
        return actions.map { action in
            switch action {
            case .post(.seat(let id, let pair, let stream, _, _), let worker, _):
                "\(numbers[id] ?? 0) on \(worker): pair \(pair) \(stream?.description ?? "empty")"
            case .post(.sendControl(let id, let message), let worker, _):
                "\(numbers[id] ?? 0) on \(worker): \(Self.type(of: message))"
            case .post(_, let worker, let id): "\(numbers[id] ?? 0) on \(worker): something else"
            case .fence(let number, let worker): "fence \(number) on \(worker)"
            case .flush(let stream): "flush \(stream)"
            case .close(let id, let worker): "close \(numbers[id] ?? 0) on \(worker)"
            case .dismiss(let id): "dismiss \(numbers[id] ?? 0)"
            case .prefer(_, let id): "prefer \(numbers[id] ?? 0)"
            case .count(let change):
                "count \(numbers[change.session] ?? 0) in \(change.place?.stream.description ?? "nothing")"
            }
        }
    }

    /// The member `type` of a message in JSON.
    private static func type(of message: DataChannelMessage) -> String {
        let text = String(decoding: message.bytes, as: UTF8.self)
        return text.split(separator: #""type":""#).last?.split(separator: "\"").first.map(String.init) ?? text
    }

    @Test mutating func `forgets what was shown backstage, and nothing of streams that encoders publish`() {
        #expect(goLive(isPublished: true) == [])
        directory.remove(shows[0])
        directory.remove(shows[1])
        #expect(words(feed.update(directory.takeNews(), at: now)) == [])
        #expect(goLive(isPublished: false) == ["flush one", "flush two"])
    }

    @Test mutating func `seats a viewer, tells the client, and counts it once its handshake is done`() throws
    {
        _ = goLive()
        #expect(try enter(1) == ["1 on 0: pair 0 one", "1 on 0: slots"])
        #expect(words(feed.connect(session(1))) == ["count 1 in one"])
        #expect(words(feed.greet(session(1))) == ["1 on 0: slots"])
        #expect(words(feed.began(shows[0], timestamp: 7, pair: 0, of: session(1))) == ["1 on 0: begun"])
        let swipe = say(#"{"type":"focus","stream":"two"}"#, 1)
        #expect(swipe.contains("1 on 0: pair 1 two"))
        #expect(swipe.last == "count 1 in two")
        #expect(words(feed.leave(session(1))).first == "count 1 in nothing")
        #expect(words(feed.leave(session(1))) == [])
        #expect(words(feed.connect(session(1))) == [])
        #expect(words(feed.greet(session(1))) == [])
    }

    @Test mutating func `answers what it does not know, and nobody who is not there`() throws {
        _ = goLive()
        _ = try enter(1)
        #expect(say(#"{"type":"ping"}"#, 1) == ["1 on 0: pong"])
        #expect(say("{", 1) == ["1 on 0: error"])
        #expect(say(#"{"type":"focus"}"#, 1) == ["1 on 0: error"])
        #expect(say(#"{"type":"ping"}"#, 2) == [])
        #expect(words(feed.began(shows[0], timestamp: 7, pair: 9, of: session(1))) == [])
    }

    /// What a client is told in answer to a message, word for word.
    private mutating func answers(to text: String, _ number: UInt64) -> [String] {
        texts(feed.receive(.string(Array(text.utf8)), from: session(number), at: now))
    }

    private func texts(_ actions: [LiveFeed.Action]) -> [String] {
        actions.compactMap { action in
            guard case .post(.sendControl(_, let message), _, _) = action else { return nil }
            return String(decoding: message.bytes, as: UTF8.self)
        }
    }

    @Test mutating func `slots name the latest request that they take into account`() throws {
        _ = goLive()
        _ = try enter(1)
        #expect(texts(feed.greet(session(1))).allSatisfy { !$0.contains("request") })
        let plain = answers(to: #"{"type":"peek","stream":"two"}"#, 1)
        #expect(plain.count == 1 && !plain[0].contains("request"))
        let focus = #"{"type":"focus","stream":"two","request":4}"#
        let changed = answers(to: focus, 1)
        #expect(changed.count == 1 && changed[0].hasPrefix(#"{"request":4,"slots":["#))
        // It changes nothing, and is answered.
        #expect(answers(to: focus, 1) == changed)
        #expect(texts(feed.greet(session(1))) == changed)
        #expect(
            answers(to: #"{"type":"peek","stream":"none","request":5}"#, 1) == [
                #"{"message":"peek","reason":"not-live","request":5,"stream":"none","type":"refused"}"#
            ])
        let answer = try feed.perform(.release(nil), request: 9, in: session(1), at: now)
        #expect(answer.slots["request"] == .integer(9) && answer.slots["type"] == nil)
        #expect(texts(answer.actions).first?.hasPrefix(#"{"request":9,"slots":["#) == true)
    }

    @Test mutating func `lets a viewer's newer session wait until the older one's worker has let go`() throws
    {
        _ = goLive()
        #expect(try enter(1, as: ann, worker: 0) == ["1 on 0: pair 0 one", "1 on 0: slots"])
        #expect(try enter(2, as: ann, on: shows[1], worker: 1) == ["fence 1 on 0"])
        #expect(words(feed.pass(1)) == ["2 on 1: pair 0 two", "2 on 1: slots"])
        #expect(words(feed.pass(1)) == [])
        // Each has one of the two streams that a viewer may hold.
        let third = try enter(3, as: ann, on: shows[0], worker: 1)
        #expect(third == ["1 on 0: pair 0 empty", "1 on 0: replaced", "dismiss 1", "fence 2 on 0"])
        #expect(words(feed.leave(session(1))) == [])
        #expect(words(feed.pass(2)) == ["3 on 1: pair 0 one", "3 on 1: slots"])
    }

    /// A later answer must not come before an earlier one, or the client would believe the earlier one.
    @Test mutating func `refuses messages while too much waits, and says so when it is their turn`() throws {
        feed = LiveFeed(directory: directory, sessionLimit: 100, tag: 1, waitingLimit: 2)
        _ = goLive()
        _ = try enter(1, as: ann, worker: 0)
        #expect(try enter(2, as: ann, on: shows[1], worker: 1) == ["fence 1 on 0"])
        let focus = #"{"type":"focus","stream":"one"}"#
        for _ in 0..<3 { #expect(say(focus, 2) == []) }
        #expect(throws: FeedRefusal.tooManyMessages) {
            _ = try feed.perform(.release(nil), request: nil, in: session(2), at: now)
        }
        // Of a run of messages the first is answered.
        #expect(words(feed.pass(1)) == ["2 on 1: pair 0 two", "2 on 1: slots", "2 on 1: refused"])
        #expect(say(#"{"type":"ping"}"#, 2) == ["2 on 1: pong"])
        #expect(feed.focus(of: session(2)) == shows[1])
    }

    @Test mutating func `closes a viewer's oldest player when there is one too many`() throws {
        #expect(words(try feed.enterPlayer(session(1), ann, on: 1)) == [])
        #expect(words(try feed.enterPlayer(session(2), ann, on: 0)) == [])
        let third = words(try feed.enterPlayer(session(3), ann, on: 0))
        #expect(third == ["close 1 on 1"])
        // Strangers are somebody else with each session.
        for number in UInt64(4)...9 {
            #expect(words(try feed.enterPlayer(session(number), nil, on: 0)) == [])
        }
    }

    @Test mutating func `the stage that was told of a viewer last is remembered`() {
        func change(_ stream: StreamID?) -> PresenceChange {
            PresenceChange(
                session: session(1),
                place: stream.map { PresenceChange.Place(stream: $0, sender: nil) })
        }
        #expect(feed.tellPresence(change(shows[0])) == nil)
        #expect(feed.tellPresence(change(shows[0])) == nil)
        #expect(feed.tellPresence(change(shows[1])) == shows[0])
        #expect(feed.tellPresence(change(nil)) == shows[1])
        #expect(feed.tellPresence(change(nil)) == nil)
    }

    /// The stream `one`, with these people banned.
    private mutating func ban(_ participants: [ParticipantID]) throws {
        var snapshot = try #require(directory[shows[0]])
        snapshot.banned = [:]
        for participant in participants { snapshot.banned[participant] = WallTime(milliseconds: 1) }
        directory.update(snapshot)
        _ = feed.update(directory.takeNews(), at: now)
    }

    /// Their list has one stream more then, of which they were not told when it went live.
    @Test mutating func `tells those whose ban is lifted, and nobody else, to read the list again`() throws {
        _ = goLive()
        let eve = try #require(ParticipantID("eve"))
        let readers = [ann, eve, nil].map { (id: ParticipantID?) in
            FeedReader(
                scope: .all, sender: id.map { Stage.Sender(id: $0, authority: .viewer) }, standing: .all)
        }
        let followers = readers.map { _ in TestFollower() }
        for (reader, follower) in zip(readers, followers) {
            _ = feed.follow(reader, limit: 9, until: nil, follower, at: now)
        }
        func news() -> [JSON?] {
            followers.map { follower in
                let messages = follower.state.withLock { $0.messages }
                follower.forget()
                return messages.last.map { $0["reordered"] ?? $0["ended"] ?? .null }
            }
        }
        #expect(news() == [.null, .null, .null], "a snapshot each")
        let gone = JSON.array([.string("one")])
        try ban([ann, eve])
        #expect(news() == [gone, gone, nil])
        try ban([ann])
        #expect(news() == [nil, .bool(true), nil])
        let short = try feed.page(limit: 9, after: nil, for: readers[0], at: now)
        let whole = try feed.page(limit: 9, after: nil, for: readers[1], at: now)
        #expect(short.entries.map(\.item.id) == [shows[1]] && whole.entries.map(\.item.id) == shows)
        try ban([])
        #expect(news() == [.bool(true), nil, nil])
    }

    /// Their pages may have named it so lately that they are not heard when they name it again.
    @Test mutating func `tells those whose ban is lifted of what changes in the stream`() throws {
        _ = goLive()
        let reader = FeedReader(
            scope: .all, sender: Stage.Sender(id: ann, authority: .viewer), standing: .all)
        let follower = TestFollower()
        _ = feed.follow(reader, limit: 9, until: nil, follower, at: now)
        try ban([ann])
        try ban([])
        follower.forget()
        var snapshot = try #require(directory[shows[0]])
        snapshot.details.title = "News"
        directory.update(snapshot)
        _ = feed.update(directory.takeNews(), at: now)
        let edited = follower.state.withLock { $0.messages }.last?["edited"]
        #expect(edited != nil)
    }
}
