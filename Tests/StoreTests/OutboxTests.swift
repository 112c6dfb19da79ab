import Base
import Store
import Testing

@Suite struct `An outbox` {
    @Test(arguments: StoreUnderTest.allCases)
    func `keeps each event once for every receiver, in order`(_ kind: StoreUnderTest) async throws {
        try await kind.run { store in
            let outbox = store.outbox
            try await store.commit(commit("a", basis: 0, events: [event(0)]))
            try await outbox.setReceivers(["r1", "r2"])
            try await store.commit(commit("a", basis: 1, events: [event(1), event(2)]))
            try await store.commit(commit("b", basis: 0, events: [event(3)]))
            #expect(store.statistics.waitingEvents == 6)

            let heads = try await outbox.due(for: "r1", at: 0, limit: 10)
            #expect(
                heads.map { "\($0.receiver) \($0.stream) \($0.event.id)" } == ["r1 a evt-1", "r1 b evt-3"])
            #expect(try await outbox.due(for: "r1", at: 0, limit: 1).count == 1)
            let first = try #require(heads.first)
            #expect(first.event == event(1))
            try await outbox.settle([.delivered(first.number)])
            let next = try await outbox.due(for: "r1", at: 0, limit: 10)
            #expect(next.map(\.event.id) == ["evt-2", "evt-3"])
            let others = try await outbox.due(for: "r2", at: 0, limit: 10)
            #expect(others.map(\.event.id) == ["evt-1", "evt-3"])
            #expect(store.statistics.waitingEvents == 5)
        }
    }

    @Test(arguments: StoreUnderTest.allCases)
    func `lets a lane wait after a failure, and no other`(_ kind: StoreUnderTest) async throws {
        try await kind.run { store in
            let outbox = store.outbox
            try await outbox.setReceivers(["r"])
            try await store.commit(commit("a", basis: 0, events: [event(1), event(2)]))
            try await store.commit(commit("b", basis: 0, events: [event(3)]))
            let head = try #require(try await outbox.due(for: "r", at: 0, limit: 1).first)
            #expect(try await outbox.nextDue(for: "r", after: 100) == nil)
            try await outbox.settle([.failed(head.number, nextAttemptAt: 500)])
            #expect(try await outbox.due(for: "r", at: 499, limit: 9).map(\.event) == [event(3)])
            #expect(try await outbox.nextDue(for: "r", after: 100) == 500)
            #expect(try await outbox.nextDue(for: "r", after: 500) == nil)
            let again = try #require(
                try await outbox.due(for: "r", at: 500, limit: 9).first { $0.stream == stream("a") })
            #expect(again.event == event(1))
            #expect(again.attempts == 1)
            try await outbox.settle([.dropped(again.number)])
            let second = try #require(
                try await outbox.due(for: "r", at: 0, limit: 9).first { $0.stream == stream("a") })
            #expect(second.event == event(2))
            #expect(second.attempts == 0)
            #expect(store.statistics.droppedEvents == 1)
        }
    }

    /// As after a start with a clock that is years ahead, until the machine has asked for the time.
    @Test(arguments: StoreUnderTest.allCases)
    func `lets no lane wait longer than any delay when the clock was set back`(
        _ kind: StoreUnderTest
    ) async throws {
        try await kind.run { store in
            let outbox = store.outbox
            try await outbox.setReceivers(["r"])
            try await store.commit(commit("a", basis: 0, events: [event(1)]))
            try await store.commit(commit("b", basis: 0, events: [event(2)]))
            try await store.commit(commit("c", basis: 0, events: [event(3)]))
            let heads = try await outbox.due(for: "r", at: 0, limit: 9)
            let times = [OutboxLimits.longestDelay + 1_001, OutboxLimits.longestDelay + 1_000, 900]
            for (head, time) in zip(heads, times) {
                try await outbox.settle([.failed(head.number, nextAttemptAt: time)])
            }
            // The second may still wait at this time; the first was told to by another clock.
            let due = try await outbox.due(for: "r", at: 1_000, limit: 9)
            #expect(due.map(\.event) == [event(3), event(1)])
            #expect(try await outbox.due(for: "r", at: 1_000, limit: 1).map(\.event) == [event(3)])
            #expect(try await outbox.due(for: "r", at: 1_000, limit: 0) == [])
        }
    }

    @Test(arguments: StoreUnderTest.allCases)
    func `drops the oldest of a lane that is full, then the oldest of all`(
        _ kind: StoreUnderTest
    ) async throws {
        try await kind.run(limits: OutboxLimits(lane: 3, total: 4)) { store in
            let outbox = store.outbox
            try await outbox.setReceivers(["r"])
            try await store.commit(commit("a", basis: 0, events: (1...5).map { event($0) }))
            #expect(store.statistics.waitingEvents == 3)
            #expect(store.statistics.droppedEvents == 2)
            #expect(try await outbox.due(for: "r", at: 0, limit: 9).map(\.event) == [event(3)])
            try await store.commit(commit("b", basis: 0, events: [event(6), event(7)]))
            #expect(store.statistics.waitingEvents == 4)
            #expect(store.statistics.droppedEvents == 3)
            #expect(try await outbox.due(for: "r", at: 0, limit: 9).map(\.event) == [event(4), event(6)])
        }
    }

    @Test(arguments: StoreUnderTest.allCases)
    func `drops who came and went before all else`(_ kind: StoreUnderTest) async throws {
        try await kind.run(limits: OutboxLimits(lane: 3, total: 100)) { store in
            let outbox = store.outbox
            func passing(_ number: Int) -> OutboxEvent {
                let type = number % 2 == 0 ? "participant.left" : "participant.joined"
                return OutboxEvent(id: "evt-\(number)", type: type, committedAt: 1_000, body: [])
            }
            func drain() async throws -> [String] {
                var ids: [String] = []
                while let next = try await outbox.due(for: "r", at: .max, limit: 1).first {
                    ids.append(next.event.id)
                    try await outbox.settle([.delivered(next.number)])
                }
                return ids
            }
            try await outbox.setReceivers(["r"])
            let crowd = (2...50).map { passing($0) }
            try await store.commit(commit("a", basis: 0, events: [event(1)] + crowd + [event(51)]))
            #expect(store.statistics.waitingEvents == 3)
            #expect(store.statistics.droppedEvents == 48)
            #expect(try await drain() == ["evt-1", "evt-50", "evt-51"])
            // Where all count more, who comes is not told of; among those the oldest goes.
            let others = [event(1), event(2), event(3), passing(4), event(5)]
            try await store.commit(commit("a", basis: 1, events: others))
            #expect(try await drain() == ["evt-2", "evt-3", "evt-5"])
        }
    }

    @Test(arguments: StoreUnderTest.allCases)
    func `drops what waited for too long`(_ kind: StoreUnderTest) async throws {
        try await kind.run { store in
            let outbox = store.outbox
            try await outbox.setReceivers(["r"])
            let events = [event(1, committedAt: 10), event(2, committedAt: 20)]
            try await store.commit(commit("a", basis: 0, events: events))
            try await store.commit(commit("b", basis: 0, events: [event(3, committedAt: 5)]))
            #expect(try await outbox.drop(committedBefore: 20) == 2)
            #expect(try await outbox.due(for: "r", at: 0, limit: 9).map(\.event.id) == ["evt-2"])
            #expect(store.statistics.droppedEvents == 2)
            #expect(store.statistics.waitingEvents == 1)
        }
    }

    @Test(arguments: StoreUnderTest.allCases)
    func `forgets a receiver that is gone or was taken off the list`(_ kind: StoreUnderTest) async throws {
        try await kind.run { store in
            let outbox = store.outbox
            try await outbox.setReceivers(["r1", "r2", "r3"])
            try await store.commit(commit("a", basis: 0, events: [event(1)]))
            try await outbox.settle([.gone("r2")])
            for (receiver, count) in [("r1", 1), ("r2", 0), ("r3", 1)] {
                #expect(try await outbox.due(for: receiver, at: 0, limit: 9).count == count)
            }
            try await store.commit(commit("a", basis: 1, events: [event(2)]))
            #expect(store.statistics.waitingEvents == 4)
            try await outbox.setReceivers(["r3", "r4"])
            #expect(try await outbox.due(for: "r1", at: 0, limit: 9) == [])
            #expect(try await outbox.due(for: "r3", at: 0, limit: 9).map(\.receiver) == ["r3"])
            #expect(store.statistics.waitingEvents == 2)
            // What is unknown is nobody's business any more.
            try await outbox.settle([.delivered(999), .failed(999, nextAttemptAt: 1), .dropped(999)])
            #expect(store.statistics.waitingEvents == 2)
        }
    }

    @Test(arguments: StoreUnderTest.allCases)
    func `survives the stream it tells of`(_ kind: StoreUnderTest) async throws {
        try await kind.run { store in
            try await store.outbox.setReceivers(["r"])
            var only = commit("a", basis: 0, events: [event(1)])
            only.listing = listing("a", state: "ended", endedAt: 1)
            try await store.commit(only)
            #expect(try await store.forget([stream("a")], endedBefore: 2) == [stream("a")])
            #expect(try await store.outbox.due(for: "r", at: 0, limit: 9).map(\.stream) == [stream("a")])
        }
    }

    @Test(arguments: StoreUnderTest.allCases)
    func `tells of commits with events`(_ kind: StoreUnderTest) async throws {
        try await kind.run { store in
            try await store.outbox.setReceivers(["r"])
            try await store.commit(commit("a", basis: 0, events: [event(1)]))
            var changes = store.outbox.changes.makeAsyncIterator()
            #expect(await changes.next() != nil)
        }
    }
}
