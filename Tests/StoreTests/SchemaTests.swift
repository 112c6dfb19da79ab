import Base
import Foundation
import TestSupport
import Testing

@testable import Store

@Suite struct `The schema of SQLite` {
    /// Makes the file as `version` of the program left it.
    private func make(version: Int, in directory: String, with sql: String = "") throws {
        let database = try Database(path: directory + "/rostrum.db")
        try Schema.migrate(database, steps: Array(Schema.steps.prefix(version)))
        try database.execute(sql)
    }

    private func refusal(in directory: String) async -> String? {
        do {
            let store = try await SQLiteStore.open(SQLiteSettings(directory: directory), log: .silent)
            await store.close()
            return nil
        } catch {
            return error.description
        }
    }

    @Test(arguments: 0...Schema.version)
    func `is brought up to date from every version`(_ version: Int) async throws {
        try await withDirectory { directory in
            let content = """
                INSERT INTO streams (version, id, state, host, title, created_at)
                    VALUES (2, 'a', 'live', 'ann', 'Title of a', 1000);
                INSERT INTO records (stream, version, bytes) VALUES (1, 1, x'01'), (1, 2, x'0202');
                """
            try make(version: version, in: directory, with: version == 0 ? "" : content)
            let store = try await SQLiteStore.open(SQLiteSettings(directory: directory), log: .silent)
            let stored = try await store.load(.all)
            #expect(stored.map(\.records) == (version == 0 ? [] : [[[1], [2, 2]]]))
            #expect(stored.map(\.listing) == (version == 0 ? [] : [listing("a")]))
            try await store.outbox.setReceivers(["r"])
            try await store.commit(commit("b", basis: 0, events: [event(1)]))
            #expect(try await store.outbox.due(for: "r", at: 0, limit: 9).count == 1)
            await store.close()
            #expect(await refusal(in: directory) == nil)
        }
    }

    @Test func `of a newer program is left alone`() async throws {
        try await withDirectory { directory in
            try make(version: Schema.version, in: directory, with: "PRAGMA user_version = 99")
            let refusal = try #require(await refusal(in: directory))
            #expect(refusal.contains("newer version of Rostrum"))
            #expect(refusal.contains("99"))
        }
    }

    @Test func `of another program is left alone`() async throws {
        try await withDirectory { directory in
            let database = try Database(path: directory + "/rostrum.db")
            try database.execute("CREATE TABLE songs (title TEXT)")
            #expect(await refusal(in: directory)?.contains("not one of Rostrum's") == true)
        }
    }

    /// No step makes such a version, so the file is not as this program left it.
    @Test(arguments: [-1, -7]) func `of a version below none is left alone`(version: Int) async throws {
        try await withDirectory { directory in
            try make(version: Schema.version, in: directory, with: "PRAGMA user_version = \(version)")
            #expect(await refusal(in: directory)?.contains("not one of Rostrum's") == true)
        }
    }

    /// As after an update whose disk filled up while the tables were changed.
    @Test(arguments: 1..<Schema.version)
    func `is as before where a step fails, and can be brought up to date later`(version: Int) async throws {
        try await withDirectory { directory in
            /// A connection of its own, which the failure ends as it does that of a server.
            func migrate(_ steps: [String]) throws -> Bool {
                let database = try Database(path: directory + "/rostrum.db")
                do throws(Schema.MigrationError) {
                    try Schema.migrate(database, steps: steps)
                    return true
                } catch {
                    return false
                }
            }
            func found() throws -> (version: Int, tables: [Int64]) {
                let database = try Database(path: directory + "/rostrum.db")
                var count = Statement(
                    "SELECT COUNT(*) FROM sqlite_schema WHERE name IN ('half', 'halves')", in: database)
                let tables = try count.rows { row throws(DatabaseError) in row.integer(0) }
                return (try Schema.version(of: database), tables)
            }
            let content = """
                INSERT INTO streams (version, id, state, host, title, created_at)
                    VALUES (1, 'a', 'live', 'ann', 'Title of a', 1000);
                INSERT INTO records (stream, version, bytes) VALUES (1, 1, x'01');
                """
            try make(version: version, in: directory, with: content)
            let half = """
                CREATE TABLE half (a);
                CREATE INDEX halves ON half (a);
                INSERT INTO nothing VALUES (1);
                """
            let steps = Array(Schema.steps.prefix(version)) + [half]
            for _ in 0..<2 {
                let isDone = try migrate(steps)
                #expect(!isDone)
                let (after, tables) = try found()
                #expect(after == version)
                #expect(tables == [0])
            }
            let store = try await SQLiteStore.open(SQLiteSettings(directory: directory), log: .silent)
            #expect(try await store.load(.all).map(\.listing) == [listing("a")])
            await store.close()
            let (last, _) = try found()
            #expect(last == Schema.version)
        }
    }

    @Test func `in a file that is no database is refused`() async throws {
        try await withDirectory { directory in
            let text = Data(String(repeating: "This is a letter, not a database.\n", count: 300).utf8)
            try text.write(to: URL(filePath: directory + "/rostrum.db"))
            let refusal = try #require(await refusal(in: directory))
            #expect(refusal.contains("is damaged"))
            // What is there is somebody's: it was not touched.
            #expect(try Data(contentsOf: URL(filePath: directory + "/rostrum.db")) == text)
        }
    }

    @Test(arguments: 0..<8)
    func `in a damaged file is refused in words, or read as it was`(_ seed: UInt64) async throws {
        try await withDirectory { directory in
            let settings = SQLiteSettings(directory: directory)
            let store = try await SQLiteStore.open(settings, log: .silent)
            for number in 0..<100 {
                try await store.commit(creation("s\(number)", [[UInt8](repeating: 3, count: 300)]))
            }
            let before = try await store.load(.all)
            await store.close()

            let url = URL(filePath: directory + "/rostrum.db")
            var bytes = try Data(contentsOf: url)
            var random = SeededGenerator(seed: seed)
            let start = Int(random.next() % UInt64(bytes.count - 4_096)) / 4_096 * 4_096
            for index in start..<(start + 4_096) { bytes[index] = UInt8(truncatingIfNeeded: random.next()) }
            try bytes.write(to: url)

            do {
                let damaged = try await SQLiteStore.open(settings, log: .silent)
                let after = try? await damaged.load(.all)
                #expect(after == nil || after == before)
                await damaged.close()
            } catch let error as StoreOpenError {
                #expect(error.description.contains("is damaged"))
            }
        }
    }

    @Test func `is not made where nothing can be written`() async throws {
        try await withDirectory { directory in
            try Data().write(to: URL(filePath: directory + "/file"))
            for path in [directory + "/file/data", directory + "/file", "/proc/self/data"] {
                let words = "cannot create the data directory \(path): "
                #expect(await refusal(in: path)?.contains(words) == true)
            }
        }
    }
}
