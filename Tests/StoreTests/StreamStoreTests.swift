import Base
import Store
import Synchronization
import Testing

@Suite struct `A stream store` {
    @Test(arguments: StoreUnderTest.allCases)
    func `gives back what was committed`(_ kind: StoreUnderTest) async throws {
        try await kind.run { store in
            try await store.commit(creation("a", [[1], [2, 2]]))
            try await store.commit(StreamCommit(stream: stream("a"), basis: 2, records: [[]]))
            let stored = try await store.load(.all)
            #expect(
                stored == [
                    StoredStream(
                        listing: listing("a"), version: 3, snapshot: nil, records: [[1], [2, 2], []])
                ])
        }
    }

    @Test(arguments: StoreUnderTest.allCases)
    func `lets a snapshot stand for all before it`(_ kind: StoreUnderTest) async throws {
        try await kind.run { store in
            try await store.commit(creation("a", [[1], [2]]))
            var second = StreamCommit(stream: stream("a"), basis: 2, records: [[3]])
            second.snapshot = [9, 9]
            try await store.commit(second)
            try await store.commit(StreamCommit(stream: stream("a"), basis: 3, records: [[4]]))
            let stored = try await store.load(.one(stream("a")))
            #expect(
                stored == [
                    StoredStream(listing: listing("a"), version: 4, snapshot: [9, 9], records: [[4]])
                ])
            var third = StreamCommit(stream: stream("a"), basis: 4)
            third.snapshot = [8]
            try await store.commit(third)
            let again = try await store.load(.one(stream("a")))
            #expect(again.first?.version == 4)
            #expect(again.first?.snapshot == [8])
            #expect(again.first?.records == [])
        }
    }

    @Test(arguments: StoreUnderTest.allCases)
    func `refuses a commit that builds on another version`(_ kind: StoreUnderTest) async throws {
        try await kind.run { store in
            try await store.commit(creation("a", [[1], [2]]))
            var late = StreamCommit(stream: stream("a"), basis: 1, records: [[7]])
            late.snapshot = [7]
            late.listing = listing("a", state: "ended")
            late.answer = (
                IdempotencyKey(scope: "s", key: "k"),
                IdempotentAnswer(request: [], answer: [], expiresAt: 9_999)
            )
            await #expect(throws: StoreError.conflict(current: 2)) { try await store.commit(late) }
            await #expect(throws: StoreError.conflict(current: 2)) {
                try await store.commit(creation("a"))
            }
            await #expect(throws: StoreError.conflict(current: 0)) {
                try await store.commit(StreamCommit(stream: stream("b"), basis: 1, records: [[1]]))
            }
            await #expect(throws: StoreError.conflict(current: 0)) {
                var empty = creation("b", [])
                empty.snapshot = [1]
                try await store.commit(empty)
            }
            let stored = try await store.load(.all)
            #expect(
                stored == [
                    StoredStream(listing: listing("a"), version: 2, snapshot: nil, records: [[1], [2]])
                ])
            let answer = try await store.answer(to: IdempotencyKey(scope: "s", key: "k"), at: 0)
            #expect(answer == nil)
            #expect(store.statistics.refusedConflict == 4)
        }
    }

    @Test(arguments: StoreUnderTest.allCases)
    func `keeps a ledger beside the state, until its stream goes`(_ kind: StoreUnderTest) async throws {
        try await kind.run { store in
            let entries = (1...5).map { LedgerEntry(number: $0, key: "k\($0)", bytes: [UInt8($0)]) }
            var first = creation("a")
            first.ledger = Array(entries.prefix(2))
            try await store.commit(first)
            try await store.commit(creation("b"))
            var second = StreamCommit(stream: stream("a"), basis: 1, records: [[2]])
            second.snapshot = [9]
            second.ledger = Array(entries.dropFirst(2))
            try await store.commit(second)
            #expect(try await store.ledger(of: stream("a"), after: 0, limit: 9) == [[1], [2], [3], [4], [5]])
            #expect(try await store.ledger(of: stream("a"), after: 2, limit: 2) == [[3], [4]])
            #expect(try await store.ledger(of: stream("b"), after: 0, limit: 9) == [])
            #expect(try await store.ledgerEntry("k4", of: stream("a")) == [4])
            #expect(try await store.ledgerEntry("k4", of: stream("b")) == nil)
            #expect(try await store.ledgerEntry("k6", of: stream("a")) == nil)
            // What is refused leaves nothing in it.
            var late = StreamCommit(stream: stream("a"), basis: 1, records: [[3]])
            late.ledger = [LedgerEntry(number: 6, key: "k6", bytes: [6])]
            await #expect(throws: StoreError.conflict(current: 2)) { try await store.commit(late) }
            #expect(try await store.ledgerEntry("k6", of: stream("a")) == nil)
            // Another programme under the same name.
            var anew = StreamCommit(stream: stream("a"), basis: 2, records: [[4]])
            anew.clearsLedger = true
            anew.ledger = [LedgerEntry(number: 1, key: "k1", bytes: [7])]
            anew.listing = listing("a", state: "ended", endedAt: 5)
            try await store.commit(anew)
            #expect(try await store.ledger(of: stream("a"), after: 0, limit: 9) == [[7]])
            #expect(try await store.forget([stream("a")], endedBefore: 6) == [stream("a")])
            #expect(try await store.ledger(of: stream("a"), after: 0, limit: 9) == [])
            try await store.commit(creation("a"))
            #expect(try await store.ledger(of: stream("a"), after: 0, limit: 9) == [])
        }
    }

    @Test(arguments: StoreUnderTest.allCases)
    func `keeps the order of what is submitted without waiting`(_ kind: StoreUnderTest) async throws {
        try await kind.run { store in
            let told = Mutex<[UInt64]>([])
            store.submit(creation("a", [[0]])) { _ in }
            for basis in 1..<200 as Range<UInt64> {
                let next = StreamCommit(
                    stream: stream("a"), basis: basis, records: [[UInt8(basis % 256)]])
                store.submit(next) { outcome in
                    if case .success = outcome { told.withLock { $0.append(basis) } }
                }
            }
            let stored = try await store.load(.one(stream("a")))
            #expect(stored.first?.version == 200)
            #expect(stored.first?.records == (0..<200).map { [UInt8($0 % 256)] })
            #expect(told.withLock { $0 } == Array(1..<200))
        }
    }

    @Test(arguments: StoreUnderTest.allCases)
    func `loads open streams without those that ended`(_ kind: StoreUnderTest) async throws {
        try await kind.run { store in
            try await store.commit(creation("b", createdAt: 2))
            try await store.commit(creation("a", createdAt: 3))
            var end = StreamCommit(stream: stream("b"), basis: 1, records: [[2]])
            end.listing = listing("b", state: "ended", createdAt: 2, endedAt: 5)
            try await store.commit(end)
            #expect(try await store.load(.open).map(\.listing.stream) == [stream("a")])
            #expect(try await store.load(.all).map(\.listing.stream) == [stream("b"), stream("a")])
            #expect(try await store.load(.one(stream("b"))).map(\.listing.endedAt) == [5])
            #expect(try await store.load(.one(stream("c"))) == [])
        }
    }

    @Test(arguments: StoreUnderTest.allCases)
    func `lists by state and host, newest first, page by page`(_ kind: StoreUnderTest) async throws {
        try await kind.run { store in
            for number in 0..<20 {
                var commit = creation("s\(10 + number)")
                commit.listing = listing(
                    "s\(10 + number)", state: number % 2 == 0 ? "live" : "ended",
                    host: number % 3 == 0 ? "ann" : "bob", createdAt: Int64(number / 2))
                try await store.commit(commit)
            }
            var query = StreamQuery()
            query.limit = 7
            var names: [String] = []
            while case let page = try await store.list(query), let last = page.last {
                names += page.map(\.stream.description)
                query.after = (last.createdAt, last.stream)
            }
            #expect(names == (0..<20).reversed().map { "s\(10 + $0)" })

            query = StreamQuery()
            query.states = ["ended", "backstage"]
            query.host = "ann"
            let ended = try await store.list(query)
            #expect(ended.map(\.stream.description) == ["s25", "s19", "s13"])
            #expect(ended.first == listing("s25", state: "ended", host: "ann", createdAt: 7))
        }
    }

    @Test(arguments: StoreUnderTest.allCases)
    func `remembers answers until they expire`(_ kind: StoreUnderTest) async throws {
        try await kind.run { store in
            let key = IdempotencyKey(scope: "ann POST /v1/streams", key: "k1")
            let value = IdempotentAnswer(request: [1], answer: [2, 3], expiresAt: 500)
            var first = creation("a")
            first.answer = (key, value)
            try await store.commit(first)
            #expect(try await store.answer(to: key, at: 499) == value)
            #expect(try await store.answer(to: key, at: 500) == nil)
            let other = IdempotencyKey(scope: "bob POST /v1/streams", key: "k1")
            #expect(try await store.answer(to: other, at: 1) == nil)
            try await store.purgeAnswers(at: 500)
            #expect(try await store.answer(to: key, at: 499) == nil)
        }
    }

    @Test(arguments: StoreUnderTest.allCases)
    func `lists what has ended in the order in which it did, part by part`(_ kind: StoreUnderTest)
        async throws
    {
        try await kind.run { store in
            for number in 0..<20 {
                var commit = creation("s\(10 + number)", createdAt: Int64(100 - number))
                let endedAt = number % 5 == 0 ? nil : Int64(number / 3)
                commit.listing = listing(
                    "s\(10 + number)", state: endedAt == nil ? "live" : "ended",
                    createdAt: Int64(100 - number), endedAt: endedAt)
                try await store.commit(commit)
            }
            var names: [String] = []
            var last: StreamListing?
            while case let part = try await store.ended(before: 5, after: last, limit: 3), !part.isEmpty {
                #expect(part.count <= 3)
                names += part.map(\.stream.description)
                last = part.last
            }
            #expect(names == (0..<15).filter { $0 % 5 != 0 }.map { "s\(10 + $0)" })
        }
    }

    @Test(arguments: StoreUnderTest.allCases)
    func `forgets streams that ended long ago`(_ kind: StoreUnderTest) async throws {
        try await kind.run { store in
            for (name, endedAt) in [("a", 10), ("b", 20), ("c", nil)] as [(String, Int64?)] {
                var commit = creation(name, [[1], [2]])
                commit.listing = listing(name, endedAt: endedAt)
                try await store.commit(commit)
            }
            let all = [stream("a"), stream("b"), stream("c"), stream("d")]
            #expect(try await store.forget(all, endedBefore: 20) == [stream("a")])
            #expect(try await store.load(.all).map(\.listing.stream) == [stream("b"), stream("c")])
            // The name is free again, and nothing of the past comes back.
            try await store.commit(creation("a", [[7]]))
            #expect(try await store.load(.one(stream("a"))).first?.records == [[7]])
        }
    }

    @Test(arguments: StoreUnderTest.allCases)
    func `refuses everything once it is closed`(_ kind: StoreUnderTest) async throws {
        try await kind.run { store in
            await store.close()
            await #expect(throws: StoreError.closed) { try await store.commit(creation("a")) }
            await #expect(throws: StoreError.closed) { _ = try await store.load(.all) }
            await #expect(throws: StoreError.closed) { try await store.outbox.setReceivers([]) }
        }
    }
}
