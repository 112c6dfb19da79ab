import Base
import Testing

@testable import Store

@Suite struct Archives {
    /// By numbers: 1 is of second 1, and so on; every third is for one reader alone.
    private static func entries(_ numbers: ClosedRange<Int>) -> [ArchiveEntry] {
        numbers.map { number in
            ArchiveEntry(
                number: number, writtenAt: Int64(number) * 1_000, reader: number % 3 == 0 ? "bob" : nil,
                bytes: [UInt8(number)])
        }
    }

    private static func query(_ limit: Int = 99, _ body: (inout ArchiveQuery) -> Void = { _ in })
        -> ArchiveQuery
    {
        var query = ArchiveQuery(limit: limit)
        body(&query)
        return query
    }

    @Test(arguments: StoreUnderTest.allCases)
    func `are read in pages from either end, by those who may`(_ kind: StoreUnderTest) async throws {
        try await kind.run { store in
            var commit = creation("a")
            commit.archive.entries = Self.entries(1...9)
            try await store.commit(commit)
            try await store.commit(creation("b"))
            for (query, expected) in [
                (Self.query(), [1, 2, 4, 5, 7, 8]), (Self.query { $0.readers = .all }, Array(1...9)),
                (Self.query { $0.readers = .everybody(or: "bob") }, Array(1...9)),
                (Self.query { $0.readers = .everybody(or: "cid") }, [1, 2, 4, 5, 7, 8]),
                (Self.query(2), [1, 2]), (Self.query(2) { $0.isNewestFirst = true }, [8, 7]),
                (Self.query(2) { $0.after = 2 }, [4, 5]),
                (Self.query(2) { ($0.before, $0.isNewestFirst) = (5, true) }, [4, 2]),
                (Self.query { ($0.after, $0.before) = (4, 8) }, [5, 7]),
                (Self.query { $0.written = 2_000..<7_000 }, [2, 4, 5]), (Self.query(0), []),
                (Self.query(-1), []),
            ] as [(ArchiveQuery, [UInt8])] {
                #expect(try await store.archive(of: stream("a"), query) == expected.map { [$0] }, "\(query)")
            }
            for other in ["b", "c"] {
                #expect(try await store.archive(of: stream(other), Self.query()).isEmpty)
            }
            #expect(try await store.archived(of: stream("a"), writtenBefore: 4_000) == 3)
            #expect(try await store.archived(of: stream("b"), writtenBefore: 4_000) == 0)
        }
    }

    @Test(arguments: StoreUnderTest.allCases)
    func `lose what is taken out, what is too old, and all with their stream`(_ kind: StoreUnderTest)
        async throws
    {
        try await kind.run { store in
            func numbers() async throws -> [UInt8] {
                try await store.archive(of: stream("a"), Self.query { $0.readers = .all }).flatMap(\.self)
            }
            var commit = creation("a")
            commit.archive.entries = Self.entries(1...5)
            try await store.commit(commit)
            var next = StreamCommit(stream: stream("a"), basis: 1, records: [[2]])
            next.archive.entries = Self.entries(6...8)
            next.archive.removed = [4, 7, 40]
            next.archive.expiry = 2_000
            // What is refused changes nothing.
            var late = next
            late.records = [[3]]
            try await store.commit(next)
            late.archive.removed = [5]
            await #expect(throws: StoreError.conflict(current: 2)) { try await store.commit(late) }
            #expect(try await numbers() == [2, 3, 5, 6, 8])
            var anew = StreamCommit(stream: stream("a"), basis: 2, records: [[4]])
            anew.clearsLedger = true
            anew.archive.entries = Self.entries(1...2)
            anew.listing = listing("a", state: "ended", endedAt: 5)
            try await store.commit(anew)
            #expect(try await numbers() == [1, 2])
            #expect(try await store.forget([stream("a")], endedBefore: 6) == [stream("a")])
            #expect(try await numbers() == [])
        }
    }

    @Test(arguments: StoreUnderTest.allCases)
    func `have a bound, beyond which the first ones go`(_ kind: StoreUnderTest) async throws {
        try await kind.run { store in
            var commit = creation("a")
            commit.archive.entries = Self.entries(1...3)
            try await store.commit(commit)
            var next = StreamCommit(stream: stream("a"), basis: 1, records: [[2]])
            next.archive.entries = [ArchiveEntry(number: ArchiveChange.limit + 2, writtenAt: 1, bytes: [99])]
            try await store.commit(next)
            #expect(
                try await store.archive(of: stream("a"), Self.query { $0.readers = .all }) == [[3], [99]])
        }
    }

    @Test func `are there after a restart`() async throws {
        try await withDirectory { directory in
            for isAgain in [false, true] {
                let store = try await SQLiteStore.open(SQLiteSettings(directory: directory), log: .silent)
                if !isAgain {
                    var commit = creation("a")
                    commit.archive.entries = Self.entries(1...2)
                    try await store.commit(commit)
                }
                #expect(try await store.archive(of: stream("a"), Self.query()) == [[1], [2]])
                await store.close()
            }
        }
    }
}
