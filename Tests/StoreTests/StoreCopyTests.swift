import Base
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Store

/// What writers share with who watches them.
private final class Progress: Sendable {
    /// Up to which version each stream's writer was told of its commits.
    let told = Watched<[String: UInt64]>([:])
    let isOver = Atomic(false)
}

@Suite(.timeLimit(.minutes(10))) struct `A copy of a store` {
    private func open(_ directory: String) async throws -> SQLiteStore {
        try await SQLiteStore.open(SQLiteSettings(directory: directory), log: .silent)
    }

    /// Makes a directory that holds nothing but a copy.
    private func copy(of data: String, to target: String) throws {
        try FileManager.default.createDirectory(atPath: target, withIntermediateDirectories: false)
        #expect(try StoreCopy.make(of: data, at: target + "/rostrum.db") == Schema.version)
    }

    /// Each copy is taken amid commits to four streams, none of which waits for it.
    @Test func `has all that was told before it began, and nothing half, while others write`() async throws {
        try await withDirectory { directory in
            let data = directory + "/data"
            let store = try await open(data)
            let names = ["a", "b", "c", "d"]
            let progress = Progress()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for name in names {
                    group.addTask {
                        var version: UInt64 = 0
                        while !progress.isOver.load(ordering: .relaxed), !Task.isCancelled {
                            var next = StreamCommit(
                                stream: stream(name), basis: version,
                                records: [[UInt8(version % 251)], [UInt8((version + 1) % 251)]])
                            if version == 0 { next.listing = listing(name) }
                            next.ledger = [
                                LedgerEntry(number: Int(version / 2) + 1, key: "k\(version)", bytes: [1])
                            ]
                            try await store.commit(next)
                            version += 2
                            progress.told.change { [version] in $0[name] = version }
                        }
                    }
                }
                for round in 0..<5 {
                    // Not before something more was told.
                    let before = progress.told.value.values.reduce(0, +)
                    try await progress.told.wait { $0.values.reduce(0, +) >= before + 40 }
                    let atLeast = progress.told.value
                    let target = directory + "/copy-\(round)"
                    try copy(of: data, to: target)
                    #expect(try FileManager.default.contentsOfDirectory(atPath: target) == ["rostrum.db"])
                    let copied = try await open(target)
                    for name in names {
                        let found = try await copied.load(.one(stream(name))).first
                        let version = found?.version ?? 0
                        #expect(version >= atLeast[name] ?? 0)
                        #expect(version % 2 == 0, "half of a commit")
                        #expect(found?.records ?? [] == (0..<version).map { [UInt8($0 % 251)] })
                        let ledger = try await copied.ledger(of: stream(name), after: 0, limit: .max)
                        #expect(ledger.count == Int(version / 2))
                    }
                    await copied.close()
                }
                progress.isOver.store(true, ordering: .relaxed)
                try await group.waitForAll()
            }
            await store.close()
        }
    }

    @Test func `can be made when no server runs, and is its owner's alone`() async throws {
        try await withDirectory { directory in
            let store = try await open(directory + "/data")
            try await store.commit(creation("a"))
            await store.close()
            try copy(of: directory + "/data", to: directory + "/copy")
            let attributes = try FileManager.default.attributesOfItem(atPath: directory + "/copy/rostrum.db")
            #expect(attributes[.posixPermissions] as? Int == 0o600)
            let copied = try await open(directory + "/copy")
            #expect(try await copied.load(.all).map(\.listing.stream) == [stream("a")])
            await copied.close()
        }
    }

    @Test func `is not made of what is none of ours, newer, damaged or not there`() async throws {
        try await withDirectory { directory in
            func complaint(_ name: String) -> String {
                do throws(StoreOpenError) {
                    _ = try StoreCopy.make(of: directory + "/" + name, at: directory + "/copy-of-\(name)")
                    return ""
                } catch {
                    return error.description
                }
            }
            #expect(complaint("none").contains("there is no data in \(directory)/none"))
            for (name, sql, words) in [
                ("newer", "PRAGMA user_version = 99", "written by a newer version of Rostrum (schema 99"),
                ("foreign", "PRAGMA application_id = 7", "not one of Rostrum's"),
            ] {
                let store = try await open(directory + "/" + name)
                await store.close()
                try Database(path: directory + "/\(name)/rostrum.db").execute(sql)
                #expect(complaint(name).contains(words), "\(complaint(name))")
            }
            try FileManager.default.createDirectory(
                atPath: directory + "/damaged", withIntermediateDirectories: false)
            try Data(repeating: 7, count: 9_000).write(to: URL(filePath: directory + "/damaged/rostrum.db"))
            #expect(complaint("damaged").contains("is damaged"))
        }
    }
}

@Suite struct `A directory that is being restored` {
    private func complaint(_ path: String) -> String {
        do throws(StoreOpenError) {
            _ = try RestoreTarget(path: path)
            return ""
        } catch {
            return error.description
        }
    }

    private func fill(_ target: borrowing RestoreTarget, from data: String) throws {
        try FileManager.default.createDirectory(
            atPath: target.staging + "/recordings", withIntermediateDirectories: true)
        _ = try StoreCopy.make(of: data, at: target.staging + "/rostrum.db")
    }

    private func makeData(_ path: String) async throws {
        let store = try await SQLiteStore.open(SQLiteSettings(directory: path), log: .silent)
        try await store.commit(creation("a"))
        await store.close()
    }

    @Test func `is a server's once all is there`() async throws {
        try await withDirectory { directory in
            try await makeData(directory + "/old")
            do {
                let target = try RestoreTarget(path: directory + "/new")
                try fill(target, from: directory + "/old")
                // No server has it before, and no second restore.
                #expect(complaint(directory + "/new").contains("in use by another server"))
                try target.finish()
            }
            let store = try await SQLiteStore.open(
                SQLiteSettings(directory: directory + "/new"), log: .silent)
            #expect(try await store.load(.all).count == 1)
            #expect(complaint(directory + "/new").contains("in use by another server (process \(getpid()))"))
            await store.close()
            let names = try FileManager.default.contentsOfDirectory(atPath: directory + "/new").sorted()
            #expect(names == ["recordings", "rostrum.db", "rostrum.lock"])
            #expect(
                complaint(directory + "/new").contains(
                    "there is data in \(directory)/new already (recordings"))
        }
    }

    /// As if the process had ended after `moved` of its parts were in their place.
    @Test(arguments: [[], ["recordings"]])
    func `is refused by servers while it is half there, and can be restored again`(_ moved: [String])
        async throws
    {
        try await withDirectory { directory in
            try await makeData(directory + "/old")
            let path = directory + "/new"
            do {
                let target = try RestoreTarget(path: path)
                try fill(target, from: directory + "/old")
                for name in moved {
                    try FileManager.default.moveItem(
                        atPath: target.staging + "/" + name, toPath: path + "/" + name)
                }
            }
            let error = await #expect(throws: StoreOpenError.self) {
                _ = try await SQLiteStore.open(SQLiteSettings(directory: path), log: .silent)
            }
            #expect(error?.description.contains("was not finished: run `rostrum restore` again") == true)
            let again = try RestoreTarget(path: path)
            #expect(try FileManager.default.contentsOfDirectory(atPath: again.staging).isEmpty)
            try fill(again, from: directory + "/old")
            try again.finish()
        }
    }

    @Test func `is taken by a server where nothing but the folder is left to remove`() async throws {
        try await withDirectory { directory in
            try await makeData(directory)
            try FileManager.default.createDirectory(
                atPath: directory + "/.restore", withIntermediateDirectories: false)
            let store = try await SQLiteStore.open(SQLiteSettings(directory: directory), log: .silent)
            #expect(!FileManager.default.fileExists(atPath: directory + "/.restore"))
            #expect(try await store.load(.all).count == 1)
            await store.close()
        }
    }

    @Test func `is as empty as before where the restore is given up`() async throws {
        try await withDirectory { directory in
            let path = directory + "/new"
            do {
                let target = try RestoreTarget(path: path)
                try Data([1]).write(to: URL(filePath: target.staging + "/rostrum.db"))
                target.abandon()
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: path) == ["rostrum.lock"])
            // A stranger's file is nobody's to write over.
            try Data([1]).write(to: URL(filePath: path + "/notes"))
            #expect(complaint(path).contains("there is data in \(path) already (notes)"))
        }
    }
}
