import Base
import Foundation
import Store
import TestSupport
import Testing

@testable import rostrum

private func withDirectory(_ body: (String) async throws -> Void) async throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: "rostrum-backup-\(UUID())").path
    try FileManager.default.createDirectory(
        atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    defer { try? FileManager.default.removeItem(atPath: directory) }
    try await body(directory)
}

private func write(_ text: String, _ path: String) throws {
    try FileManager.default.createDirectory(
        atPath: FileCopy.folder(of: path), withIntermediateDirectories: true)
    try Data(text.utf8).write(to: URL(filePath: path))
}

private func text(_ path: String) throws -> String { try String(contentsOfFile: path, encoding: .utf8) }

@Suite struct `rostrum backup and restore` {
    private let now = WallTime(milliseconds: 1_800_000_000_000)

    private func backup(_ arguments: [String], file: String? = nil) throws -> String {
        let flags = try OptionValues.parse(
            arguments: arguments, options: BackupCommand.flags, operand: BackupCommand.operand
        ).values
        return try BackupCommand(flags, server: flags, file: file).run(now: now)
    }

    private func restore(_ arguments: [String]) throws -> String {
        let flags = try OptionValues.parse(
            arguments: arguments, options: RestoreCommand.flags, operand: RestoreCommand.operand
        ).values
        return try RestoreCommand(flags, server: flags).run()
    }

    private func complaint(_ body: () throws -> String) -> String {
        do { return "no complaint, but " + (try body()) } catch { return "\(error)" }
    }

    /// A server's data with a stream, a pause picture, a recording that ended and one that is under way.
    private func makeData(_ path: String) async throws {
        let store = try await SQLiteStore.open(SQLiteSettings(directory: path), log: .silent)
        let stream = try #require(StreamID("talk"))
        var commit = StreamCommit(stream: stream, basis: 0, records: [[1, 2, 3]])
        commit.listing = StreamListing(stream: stream, state: "live", host: "ann", createdAt: 1)
        try await store.commit(commit)
        await store.close()
        try write("a picture", path + "/pause-pictures/talk")
        try write("a draft", path + "/pause-pictures/.talk")
        for (id, state) in [("abc", "ended"), ("def-2", "recording")] {
            let entry =
                #"{"id":"\#(id)","stream":"talk","part":1,"state":"\#(state)","startedAt":1,"milliseconds":5,"size":7}"#
            try write(entry, path + "/recordings/talk/\(id).json")
            try write("a film of \(id)", path + "/recordings/talk/\(id).webm")
        }
    }

    @Test func `bring back all that there was, and let nobody else read it`() async throws {
        try await withDirectory { directory in
            try await makeData(directory + "/data")
            try write("0123456789abcdef0123456789abcdef\n", directory + "/secret")
            try write("key-id = \"main\"\n", directory + "/rostrum.toml")
            let told = try backup(
                [
                    directory + "/backup/", "--recordings", "--data", directory + "/data", "--secret-file",
                    directory + "/secret",
                ], file: directory + "/rostrum.toml")
            #expect(told.contains("as of \(now.text), with recordings: 8 files"))
            #expect(told.contains("contains secrets, so keep it private: \(directory)/rostrum.toml"))
            for name in try FileManager.default.subpathsOfDirectory(atPath: directory + "/backup") {
                let path = directory + "/backup/" + name
                let rights = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
                #expect((rights ?? 0o777) & 0o077 == 0, "\(name)")
            }
            #expect(try text(directory + "/backup/settings/secret").hasPrefix("0123456789"))
            #expect(try restore([directory + "/backup", "--check"]).contains("backup is complete"))
            let restored = try restore([directory + "/backup", "--data", directory + "/new"])
            #expect(restored.contains("settings/secret was \(directory)/secret"))
            let store = try await SQLiteStore.open(
                SQLiteSettings(directory: directory + "/new"), log: .silent)
            #expect(try await store.load(.all).map(\.records) == [[[1, 2, 3]]])
            await store.close()
            #expect(try text(directory + "/new/pause-pictures/talk") == "a picture")
            for id in ["abc", "def-2"] {
                #expect(try text(directory + "/new/recordings/talk/\(id).webm") == "a film of \(id)")
                let path = "/recordings/talk/\(id).json"
                #expect(try text(directory + "/new" + path) == text(directory + "/data" + path))
            }
        }
    }

    @Test func `leave recordings out unless they are asked for`() async throws {
        try await withDirectory { directory in
            try await makeData(directory + "/data")
            #expect(
                try backup([directory + "/b", "--data", directory + "/data"]).contains(
                    "without recordings: 2 files"))
            #expect(!FileManager.default.fileExists(atPath: directory + "/b/data/recordings"))
        }
    }

    @Test func `write over nothing`() async throws {
        try await withDirectory { directory in
            try await makeData(directory + "/data")
            _ = try backup([directory + "/b", "--data", directory + "/data"])
            #expect(
                complaint { try backup([directory + "/b", "--data", directory + "/data"]) }
                    == "\(directory)/b is not empty: give a directory that does not exist yet")
            #expect(
                complaint { try restore([directory + "/b", "--data", directory + "/data"]) }
                    .hasPrefix(
                        "there is data in \(directory)/data already (pause-pictures, recordings, rostrum.db)")
            )
            let store = try await SQLiteStore.open(
                SQLiteSettings(directory: directory + "/data"), log: .silent)
            #expect(
                complaint { try restore([directory + "/b", "--data", directory + "/data"]) }
                    .hasPrefix("the data in \(directory)/data is in use by another server"))
            await store.close()
        }
    }

    @Test(arguments: ["data/rostrum.db", "data/pause-pictures/talk", "data/recordings/talk/abc.webm"])
    func `notice what is damaged or missing, and restore nothing of it`(_ name: String) async throws {
        try await withDirectory { directory in
            try await makeData(directory + "/data")
            let (backup, new) = (directory + "/b", directory + "/new")
            _ = try self.backup([backup, "--recordings", "--data", directory + "/data"])
            var bytes = try Data(contentsOf: URL(filePath: "\(backup)/\(name)"))
            bytes[bytes.count / 2] ^= 1
            try bytes.write(to: URL(filePath: "\(backup)/\(name)"))
            for arguments in [[backup, "--check"], [backup, "--data", new]] {
                #expect(
                    complaint { try restore(arguments) }
                        == "\(backup) is damaged: \(name) has changed since the backup was made")
            }
            try FileManager.default.removeItem(atPath: "\(backup)/\(name)")
            #expect(
                complaint { try restore([backup, "--data", new]) }
                    == "\(backup) is damaged: \(name) is missing")
            #expect(try FileManager.default.contentsOfDirectory(atPath: new) == ["rostrum.lock"])
        }
    }

    @Test func `say of whom a backup is that this program cannot use`() async throws {
        try await withDirectory { directory in
            try await makeData(directory + "/data")
            _ = try backup([directory + "/b", "--data", directory + "/data"])
            let path = directory + "/b/manifest.json"
            let manifest = try text(path)
            try write(manifest.replacing(#""schema" : 4"#, with: #""schema" : 9"#), path)
            #expect(
                complaint { try restore([directory + "/b", "--data", directory + "/new"]) }
                    .contains("was made by a newer Rostrum (\(Rostrum.version), schema 9; this is"))
            try write(manifest.replacing(#""format" : 1"#, with: #""format" : 2"#), path)
            #expect(
                complaint { try restore([directory + "/b", "--check"]) }.contains(
                    "format 2, this one reads 1"))
            try FileManager.default.removeItem(atPath: path)
            #expect(
                complaint { try restore([directory + "/b", "--check"]) }.contains(
                    "b is not a complete backup"))
            #expect(!FileManager.default.fileExists(atPath: directory + "/new"))
        }
    }

    @Test func `say what is missing, and where a key is that is in no file`() async throws {
        try await withDirectory { directory in
            #expect(complaint { try backup([]) }.contains("rostrum backup DIRECTORY"))
            #expect(complaint { try restore([]) }.contains("rostrum restore DIRECTORY"))
            #expect(
                complaint { try backup(["--dev", directory + "/b"]) }.contains(
                    "give the directory with --data")
            )
            #expect(complaint { try backup(["a", "b"]) }.contains("set more than once"))
            #expect(
                complaint { try backup([directory + "/b", "--data", directory]) }
                    .contains("there is no data in \(directory)"))
            #expect(try FileManager.default.contentsOfDirectory(atPath: directory).isEmpty)
            try await makeData(directory + "/data")
            let environment = try OptionValues.parse(environment: [
                "ROSTRUM_SECRET": "0123456789abcdef0123456789abcdef", "ROSTRUM_DATA": directory + "/data",
            ])
            let flags = try OptionValues.parse(
                arguments: [directory + "/b"], options: BackupCommand.flags, operand: BackupCommand.operand
            ).values
            #expect(
                try BackupCommand(flags, server: environment.overridden(by: flags), file: nil).run(now: now)
                    .contains("which comes from ROSTRUM_SECRET: keep that too"))
        }
    }
}

@Suite struct `A backup's manifest` {
    private let manifest = BackupManifest(
        schema: 3, createdAt: WallTime(milliseconds: 0), recordings: true,
        files: [
            BackupManifest.File(path: BackupManifest.store, bytes: 1, sha256: "00"),
            BackupManifest.File(
                path: "settings/secret", bytes: 2, sha256: "11", origin: "/etc/rostrum/secret"),
        ])

    private func complaint(_ bytes: Data) -> String {
        do throws(BackupFailure) {
            _ = try BackupManifest(parsing: bytes)
            return ""
        } catch {
            return error.description
        }
    }

    @Test func `is read as it was written, and none of its beginnings is`() throws {
        let bytes = manifest.bytes
        #expect(try BackupManifest(parsing: bytes) == manifest)
        for length in 0..<bytes.count { #expect(complaint(bytes.prefix(length)).contains("is damaged")) }
    }

    @Test func `is refused in words where it lacks something`() {
        let format = "\"format\":\(BackupManifest.format)"
        for text in ["{\(format)}", "{\(format),\"files\":1}"] {
            #expect(
                complaint(Data(text.utf8)) == "is damaged: a member is missing, or has the wrong type")
        }
    }

    @Test func `leads nowhere but into the backup`() throws {
        for path in [
            "../../etc/passwd", "/etc/passwd", "data/../../x", "data//x", "data/.restore", "data",
            "settings/a/b",
            "data/a/b/c/d", "other/x", "data/a\n", "", "data/" + String(repeating: "x", count: 300),
        ] {
            let other = BackupManifest(
                schema: 3, createdAt: WallTime(milliseconds: 0), recordings: false,
                files: manifest.files + [BackupManifest.File(path: path, bytes: 1, sha256: "")])
            #expect(complaint(other.bytes).contains("it lists a file"), "\(path)")
        }
        let twice = BackupManifest(
            schema: 3, createdAt: WallTime(milliseconds: 0), recordings: false,
            files: manifest.files + manifest.files)
        #expect(complaint(twice.bytes).contains("lists a file twice"))
    }

    @Test(arguments: 0..<50 as Range<UInt64>)
    func `may be anything at all`(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var bytes = manifest.bytes
        for _ in 0..<4 {
            bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next())
        }
        // Whatever it says, it says it in words.
        if let read = try? BackupManifest(parsing: bytes) { #expect(read.files.count == 2) }
        let noise = Data((0..<200).map { _ in UInt8(truncatingIfNeeded: random.next()) })
        #expect(complaint(noise).contains("is damaged"))
    }
}

@Test(arguments: [("b", "."), ("/b", "/"), ("a/b", "a"), ("/a/b", "/a"), (".", "."), ("/", "/")])
func `A path leads to the folder that it is in`(_ path: String, _ folder: String) {
    #expect(FileCopy.folder(of: path) == folder)
}

@Suite struct `Times as operators write them` {
    @Test(arguments: [("1", 1), ("45s", 45), ("90m", 5_400), ("12h", 43_200), ("30d", 2_592_000)])
    func `are seconds`(_ text: String, _ seconds: Int) {
        #expect(TimeSpan.seconds(text, longest: 2_592_000) == seconds)
    }

    @Test(arguments: [
        "", "d", "0", "-1d", "1.5h", "1w", "31d", "99999999999999999999d", "9223372036854775807d", "٣d",
    ])
    func `are nothing else`(_ text: String) { #expect(TimeSpan.seconds(text, longest: 2_592_000) == nil) }

    @Test(arguments: ["1s", "61s", "90m", "5h", "30d"])
    func `are said as they were written`(_ text: String) {
        #expect(TimeSpan.seconds(text, longest: .max).map(TimeSpan.text) == text)
    }
}
