import Base
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Store

@Suite struct `An error of SQLite` {
    @Test(
        arguments: [
            (13, "database or disk is full", 0, "the disk is full (database or disk is full, SQLite 13)"),
            (778, "disk I/O error", EROFS, "Read-only file system (disk I/O error, SQLite 778)"),
            (1_034, "disk I/O error", EIO, "Input/output error (disk I/O error, SQLite 1034)"),
            (
                14, "unable to open database file", EROFS,
                "Read-only file system (unable to open database file, SQLite 14)"
            ),
            (
                8, "attempt to write a readonly database", EROFS,
                "the data is read-only (attempt to write a readonly database, SQLite 8)"
            ),
            (
                5, "database is locked", EROFS,
                "another program has locked the data (database is locked, SQLite 5)"
            ),
            (266, "disk I/O error", 0, "disk I/O error (SQLite 266)"),
        ] as [(CInt, String, CInt, String)])
    func `says what is wrong with the disk`(code: CInt, message: String, cause: CInt, words: String) {
        #expect("\(DatabaseError(code: code, message: message, cause: cause))" == words)
    }

    @Test func `leaves what was refused in the log where the disk did not say that it has it`() {
        #expect(DatabaseError(code: 1_034, message: "").leavesTransactionInLog)
        for code in [10, 13, 522, 778] as [CInt] {
            #expect(!DatabaseError(code: code, message: "").leavesTransactionInLog)
        }
    }
}

@Suite(.timeLimit(.minutes(10))) struct `A store of SQLite` {
    @Test func `is the same after it was closed and opened`() async throws {
        try await withDirectory { directory in
            let settings = SQLiteSettings(directory: directory + "/new/data")
            let key = IdempotencyKey(scope: "s", key: "k")
            let answer = IdempotentAnswer(request: [1], answer: [], expiresAt: 10)
            let first = try await SQLiteStore.open(settings, log: .silent)
            try await first.outbox.setReceivers(["r"])
            var made = creation("a", [[1], [2]])
            made.answer = (key, answer)
            made.events = [event(1)]
            made.listing?.title = "Zoë's “show” \0 🎬"
            try await first.commit(made)
            let before = try await first.load(.all)
            await first.close()

            let second = try await SQLiteStore.open(settings, log: .silent)
            #expect(try await second.load(.all) == before)
            #expect(before.first?.listing.title == "Zoë's “show” \0 🎬")
            #expect(try await second.answer(to: key, at: 1) == answer)
            #expect(second.statistics.waitingEvents == 1)
            #expect(try await second.outbox.due(for: "r", at: 0, limit: 1).map(\.event) == [event(1)])
            await second.close()
        }
    }

    @Test func `says where the data is`() async throws {
        try await withDirectory { directory in
            let lines = Mutex<[String]>([])
            let log = Log(level: .info) { entry in lines.withLock { $0.append(entry.text) } }
            let store = try await SQLiteStore.open(SQLiteSettings(directory: directory), log: log)
            await store.close()
            #expect(lines.withLock { $0 } == ["info store store.open directory=\(store.directory) schema=4"])
        }
    }

    @Test func `is refused to a second process`() async throws {
        try await withDirectory { directory in
            let settings = SQLiteSettings(directory: directory)
            let store = try await SQLiteStore.open(settings, log: .silent)
            let error = await #expect(throws: StoreOpenError.self) {
                _ = try await SQLiteStore.open(settings, log: .silent)
            }
            #expect(error?.description.contains("in use by another server (process \(getpid()))") == true)
            await store.close()
            let next = try await SQLiteStore.open(settings, log: .silent)
            await next.close()
        }
    }

    @Test func `writes many commits at once`() async throws {
        try await withDirectory { directory in
            let store = try await SQLiteStore.open(SQLiteSettings(directory: directory), log: .silent)
            store.submit(creation("a")) { _ in }
            for basis in 1..<1_000 as Range<UInt64> {
                store.submit(StreamCommit(stream: stream("a"), basis: basis, records: [[1]])) { _ in }
            }
            #expect(try await store.load(.all).first?.version == 1_000)
            let statistics = store.statistics
            #expect(statistics.commits == 1_000)
            #expect(statistics.transactions < 500)
            await store.close()
        }
    }

    @Test func `is busy when too much waits, and loses nothing it took`() async throws {
        try await withDirectory { directory in
            var settings = SQLiteSettings(directory: directory)
            settings.queueLimit = 4
            let store = try await SQLiteStore.open(settings, log: .silent)
            let outcomes = Mutex<(taken: Int, busy: Int)>((0, 0))
            for number in 0..<2_000 {
                store.submit(creation("s\(number)", createdAt: Int64(number))) { outcome in
                    outcomes.withLock { outcomes in
                        switch outcome {
                        case .success: outcomes.taken += 1
                        case .failure(let error):
                            #expect(error == .busy)
                            outcomes.busy += 1
                        }
                    }
                }
            }
            await store.close()
            let (taken, busy) = outcomes.withLock { $0 }
            #expect(taken + busy == 2_000)
            #expect(busy > 0)
            #expect(store.statistics.refusedBusy == UInt64(busy))
            let again = try await SQLiteStore.open(settings, log: .silent)
            #expect(try await again.load(.all).count == taken)
            await again.close()
        }
    }

    @Test func `refuses commits while the disk is full, answers questions, and recovers by itself`()
        async throws
    {
        try await withDirectory { directory in
            var settings = SQLiteSettings(directory: directory)
            settings.pageLimit = 60
            let lines = Mutex<[String]>([])
            let log = Log(level: .info) { entry in lines.withLock { $0.append(entry.event) } }
            let store = try await SQLiteStore.open(settings, log: log)
            try await store.outbox.setReceivers(["r"])
            var version: UInt64 = 0
            var refusal: StoreError?
            while refusal == nil {
                var next = StreamCommit(
                    stream: stream("a"), basis: version, records: [[UInt8](repeating: 7, count: 9_000)])
                if version == 0 { next.listing = listing("a") }
                next.events = [event(Int(version))]
                do throws(StoreError) {
                    try await store.commit(next)
                    version += 1
                } catch {
                    refusal = error
                }
            }
            #expect(refusal == .unavailable("the disk is full"))
            #expect(version > 5)
            #expect(store.statistics.failure != nil)
            #expect(store.statistics.waitingEvents == Int(version))
            await #expect(throws: StoreError.unavailable("the disk is full")) { try await store.probe() }
            #expect(store.statistics.failure != nil)
            let stored = try await store.load(.all)
            #expect(stored.first?.version == version)
            #expect(stored.first?.records.count == Int(version))

            // A snapshot is small and gives room back.
            var relief = StreamCommit(stream: stream("a"), basis: version)
            relief.snapshot = [1]
            try await store.commit(relief)
            try await store.commit(
                StreamCommit(
                    stream: stream("a"), basis: version, records: [[UInt8](repeating: 7, count: 9_000)]))
            #expect(store.statistics.failure == nil)
            #expect(lines.withLock { $0 } == ["store.open", "store.unavailable", "store.recovered"])
            await store.close()
        }
    }

    @Test func `lets nobody else read its files, and says when the directory lets them look`() async throws {
        try await withDirectory { directory in
            func rights(_ name: String) throws -> Int? {
                try FileManager.default.attributesOfItem(atPath: directory + "/" + name)[.posixPermissions]
                    as? Int
            }
            for (given, warnings) in [(0o700, 0), (0o755, 1)] {
                try FileManager.default.createDirectory(
                    atPath: directory, withIntermediateDirectories: true,
                    attributes: [.posixPermissions: given])
                try FileManager.default.setAttributes([.posixPermissions: given], ofItemAtPath: directory)
                let lines = Mutex<[String]>([])
                let log = Log(level: .info) { entry in lines.withLock { $0.append(entry.event) } }
                let store = try await SQLiteStore.open(SQLiteSettings(directory: directory), log: log)
                try await store.commit(creation("s\(given)"))
                for file in ["rostrum.db", "rostrum.db-wal", "rostrum.db-shm"] {
                    #expect(try rights(file) == 0o600, "\(file)")
                }
                #expect(lines.withLock { $0.count { $0 == "store.open-to-others" } } == warnings)
                await store.close()
                // As an earlier version made it.
                try FileManager.default.setAttributes(
                    [.posixPermissions: 0o644], ofItemAtPath: directory + "/rostrum.db")
            }
        }
    }

    @Test func `recovers by a probe when nobody asks for anything, and keeps nothing of it`() async throws {
        try await withDirectory { directory in
            var settings = SQLiteSettings(directory: directory)
            settings.pageLimit = 60
            let store = try await SQLiteStore.open(settings, log: .silent)
            var large = creation("a")
            large.records = [[UInt8](repeating: 7, count: 300_000)]
            await #expect(throws: StoreError.unavailable("the disk is full")) {
                try await store.commit(large)
            }
            #expect(store.statistics.failure != nil)
            try await store.probe()
            #expect(store.statistics.failure == nil)
            await store.close()
            let again = try await SQLiteStore.open(settings, log: .silent)
            #expect(try await again.load(.all).isEmpty)
            #expect(try await again.answer(to: IdempotencyKey(scope: "probe", key: ""), at: -1) == nil)
            await again.close()
        }
    }

    @Test func `keeps what fits when one commit of many does not`() async throws {
        try await withDirectory { directory in
            var settings = SQLiteSettings(directory: directory)
            settings.pageLimit = 60
            let store = try await SQLiteStore.open(settings, log: .silent)
            let refused = Mutex<[StreamID]>([])
            for name in ["a", "b", "c"] {
                let size = name == "b" ? 500_000 : 100
                let commit = creation(name, [[UInt8](repeating: 1, count: size)])
                store.submit(commit) { outcome in
                    if case .failure = outcome { refused.withLock { $0.append(commit.stream) } }
                }
            }
            #expect(try await store.load(.all).map(\.listing.stream) == [stream("a"), stream("c")])
            #expect(refused.withLock { $0 } == [stream("b")])
            await store.close()
        }
    }

    @Test func `refuses commits while another program holds the file`() async throws {
        try await withDirectory { directory in
            var settings = SQLiteSettings(directory: directory)
            settings.patience = 10
            let store = try await SQLiteStore.open(settings, log: .silent)
            try await store.commit(creation("a"))
            let other = try Database(path: directory + "/rostrum.db")
            try other.execute("BEGIN IMMEDIATE")
            await #expect(throws: StoreError.self) {
                try await store.commit(StreamCommit(stream: stream("a"), basis: 1, records: [[1]]))
            }
            let refused = Mutex(0)
            for basis in 1..<50 as Range<UInt64> {
                store.submit(StreamCommit(stream: stream("a"), basis: basis, records: [[1]])) { outcome in
                    if case .failure = outcome { refused.withLock { $0 += 1 } }
                }
            }
            // Questions are answered meanwhile.
            #expect(try await store.load(.all).first?.version == 1)
            #expect(refused.withLock { $0 } == 49)
            try other.execute("ROLLBACK")
            try await store.commit(StreamCommit(stream: stream("a"), basis: 1, records: [[1]]))
            await store.close()
        }
    }

    @Test func `tells how long a write takes that does not come to its end`() async throws {
        try await withDirectory { directory in
            var settings = SQLiteSettings(directory: directory)
            settings.patience = 120_000
            // As often as it is asked for the time, so that the test is told when a write begins.
            let clock = Watched((time: ContinuousClock.now, asked: 0))
            let store = try await SQLiteStore.open(settings, log: .silent) {
                clock.change { clock in
                    clock.asked += 1
                    return clock.time
                }
            }
            try await store.commit(creation("a"))
            let before = store.statistics
            #expect(before.writing == .zero && before.writeTimes.count > 0)
            let other = try Database(path: directory + "/rostrum.db")
            try other.execute("BEGIN IMMEDIATE")
            let asked = clock.value.asked
            let commit = Task { try await store.commit(creation("b")) }
            try await clock.wait { $0.asked > asked }
            clock.change { $0.time += .milliseconds(1_500) }
            #expect(store.statistics.writing == .milliseconds(1_500))
            // It goes on, and nobody is told anything yet.
            clock.change { $0.time += .seconds(2) }
            #expect(store.statistics.writing == .milliseconds(3_500))
            #expect(store.statistics.writeTimes == before.writeTimes)
            try other.execute("ROLLBACK")
            try await commit.value
            #expect(store.statistics.writing == .zero)
            let writeTimes = store.statistics.writeTimes
            #expect(writeTimes.count == before.writeTimes.count + 1)
            #expect(writeTimes.nanoseconds - before.writeTimes.nanoseconds == 3_500_000_000)
            await store.close()
        }
    }

    @Test func `has nothing left of a stream that was forgotten`() async throws {
        try await withDirectory { directory in
            let store = try await SQLiteStore.open(SQLiteSettings(directory: directory), log: .silent)
            for name in ["gone", "kept"] {
                var commit = creation(name, [[1], [2]])
                commit.listing = listing(name, state: "ended", endedAt: 5)
                commit.ledger = [LedgerEntry(number: 1, key: "k", bytes: [1])]
                commit.archive.entries = [ArchiveEntry(number: 1, writtenAt: 1, bytes: [1])]
                try await store.commit(commit)
                var next = StreamCommit(stream: stream(name), basis: 2, records: [[3]])
                next.snapshot = [4]
                try await store.commit(next)
                try await store.commit(StreamCommit(stream: stream(name), basis: 3, records: [[5]]))
            }
            #expect(try await store.forget([stream("gone")], endedBefore: 6) == [stream("gone")])
            await store.close()
            let file = try Database(path: directory + "/rostrum.db")
            for table in ["streams", "records", "snapshots", "ledger", "archive"] {
                var count = Statement("SELECT COUNT(*) FROM \(table)", in: file)
                #expect(try count.rows { row throws(DatabaseError) in row.integer(0) } == [1], "\(table)")
            }
        }
    }
}
