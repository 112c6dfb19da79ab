import Base
import Synchronization
import Testing

@testable import Store

@Suite struct `A store that cannot do what it is asked` {
    /// The ledger refuses a key that is taken, when the listing, a record and an entry are already written.
    @Test func `keeps nothing of a commit that fails in the middle, and all of the others`() async throws {
        try await withDirectory { directory in
            let store = try await SQLiteStore.open(SQLiteSettings(directory: directory), log: .silent)
            try await store.outbox.setReceivers(["r"])
            var first = creation("a")
            first.ledger = [LedgerEntry(number: 1, key: "taken", bytes: [1])]
            try await store.commit(first)
            let before = try await store.load(.all)

            let key = IdempotencyKey(scope: "s", key: "k")
            var bad = StreamCommit(stream: stream("a"), basis: 1, records: [[2]])
            bad.listing = listing("a", state: "ended", endedAt: 5)
            bad.answer = (key, IdempotentAnswer(request: [], answer: [], expiresAt: 9_999))
            bad.events = [event(1)]
            bad.ledger = [
                LedgerEntry(number: 2, key: "free", bytes: [2]),
                LedgerEntry(number: 3, key: "taken", bytes: [3]),
            ]
            bad.archive.entries = [ArchiveEntry(number: 1, writtenAt: 1, bytes: [4])]
            let others = [
                commit("b", basis: 0, events: [event(2)]), commit("c", basis: 0, events: [event(3)]),
            ]
            let refusals = Mutex<[StreamID]>([])
            for commit in [others[0], bad, others[1]] {
                store.submit(commit) { outcome in
                    guard case .failure(let error) = outcome else { return }
                    guard case .unavailable = error else { return }
                    refusals.withLock { $0.append(commit.stream) }
                }
            }
            let stored = try await store.load(.all)
            #expect(refusals.withLock { $0 } == [stream("a")])
            #expect(stored.map(\.listing.stream) == ["a", "b", "c"].map { stream($0) })
            #expect(Array(stored.prefix(1)) == before)
            #expect(try await store.ledger(of: stream("a"), after: 0, limit: 9) == [[1]])
            #expect(try await store.ledgerEntry("free", of: stream("a")) == nil)
            #expect(try await store.archive(of: stream("a"), ArchiveQuery(limit: 9)) == [])
            #expect(try await store.answer(to: key, at: 0) == nil)
            // Counts and receivers are those of before as well.
            #expect(store.statistics.waitingEvents == 2)
            #expect(store.statistics.droppedEvents == 0)
            #expect(store.statistics.refusedUnavailable == 1)
            #expect(store.statistics.failure == nil)
            let due = try await store.outbox.due(for: "r", at: 0, limit: 9)
            #expect(due.map(\.event) == [event(2), event(3)])

            bad.ledger.removeLast()
            try await store.commit(bad)
            #expect(try await store.ledger(of: stream("a"), after: 0, limit: 9) == [[1], [2]])
            #expect(store.statistics.waitingEvents == 3)
            await store.close()
        }
    }

    @Test(arguments: StoreUnderTest.allCases)
    func `says which version there is, whatever a commit lacks`(_ kind: StoreUnderTest) async throws {
        try await kind.run { store in
            try await store.commit(creation("a", [[1], [2], [3]]))
            var commits = [
                StreamCommit(stream: stream("a"), basis: 0), StreamCommit(stream: stream("a"), basis: 0),
                StreamCommit(stream: stream("a"), basis: 0, records: [[1]]),
                StreamCommit(stream: stream("a"), basis: 4, records: [[1]]),
                StreamCommit(stream: stream("a"), basis: .max),
            ]
            commits[1].listing = listing("a")
            for commit in commits {
                await #expect(throws: StoreError.conflict(current: 3)) { try await store.commit(commit) }
            }
            for index in commits.indices {
                let other = StreamCommit(
                    stream: stream("b"), basis: commits[index].basis, records: commits[index].records)
                await #expect(throws: StoreError.conflict(current: 0)) { try await store.commit(other) }
            }
        }
    }

    @Test(arguments: StoreUnderTest.allCases)
    func `gives nothing where it is asked for less than nothing`(_ kind: StoreUnderTest) async throws {
        try await kind.run { store in
            try await store.outbox.setReceivers(["r"])
            var first = commit("a", basis: 0, events: [event(1), event(2)])
            first.listing = listing("a", state: "ended", endedAt: 5)
            first.ledger = [LedgerEntry(number: 1, key: "k", bytes: [1])]
            first.archive.entries = [ArchiveEntry(number: 1, writtenAt: 1, bytes: [4])]
            try await store.commit(first)
            for limit in [0, -1, .min] {
                #expect(try await store.ledger(of: stream("a"), after: 0, limit: limit) == [])
                #expect(try await store.archive(of: stream("a"), ArchiveQuery(limit: limit)) == [])
                #expect(try await store.ended(before: 9, after: nil, limit: limit) == [])
                #expect(try await store.outbox.due(for: "r", at: 0, limit: limit) == [])
                var query = StreamQuery()
                query.limit = limit
                #expect(try await store.list(query) == [])
            }
            #expect(try await store.ended(before: 9, after: nil, limit: 1).count == 1)
        }
    }
}

@Suite struct `The queue of a store` {
    private func job(_ bytes: Int) -> WriterQueue.Job {
        WriterQueue.Job(isWrite: true, bytes: bytes) { _ throws(DatabaseError) in
            return {}
        } refuse: { _ in
        }
    }

    @Test func `takes so many jobs`() {
        let queue = WriterQueue(limit: 3, bytes: 100)
        let refusals: [StoreError?] = (0..<5).map { _ in queue.add(job(0)) }
        #expect(refusals == [nil, nil, nil, .busy, .busy])
        #expect(queue.count == 3)
        #expect(queue.take().count == 3)
        #expect(queue.count == 0)
        #expect(queue.add(job(0)) == nil)
    }

    @Test func `takes so many bytes, and a job of more than those only alone`() {
        let queue = WriterQueue(limit: 100, bytes: 100)
        let first: [StoreError?] = [40, 60, 1].map { queue.add(job($0)) }
        #expect(first == [nil, nil, .busy])
        #expect(queue.take().map(\.bytes) == [40, 60])
        let second: [StoreError?] = [1, 500, 99].map { queue.add(job($0)) }
        #expect(second == [nil, .busy, nil])
        #expect(queue.take().map(\.bytes) == [1, 99])
        let third: [StoreError?] = [500, 1].map { queue.add(job($0)) }
        #expect(third == [nil, .busy])
        #expect(queue.take().map(\.bytes) == [500])
        #expect(queue.add(job(100)) == nil)
    }

    @Test func `gives out what it took before it was closed, and then nothing`() {
        let queue = WriterQueue(limit: 3, bytes: 100)
        #expect(queue.add(job(1)) == nil)
        queue.close()
        #expect(queue.add(job(2)) == StoreError.closed)
        #expect(queue.take().map(\.bytes) == [1])
        #expect(queue.take().isEmpty)
    }
}
