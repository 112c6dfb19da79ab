import Base
import Foundation
import Store
import Testing

@testable import rostrum

private func withDirectory(_ body: (String) async throws -> Void) async throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: "rostrum-draft-\(UUID())").path
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

private func names(in folder: String) throws -> Set<String> {
    Set(try FileManager.default.contentsOfDirectory(atPath: folder))
}

@Suite struct `A backup` {
    private static let secret = "0123456789abcdef0123456789abcdef"

    /// An empty store, and one recording.
    private func makeData(_ directory: String) async throws {
        let store = try await SQLiteStore.open(
            SQLiteSettings(directory: directory + "/data"), log: .silent)
        await store.close()
        let entry =
            #"{"id":"abc","stream":"talk","part":1,"state":"ended","startedAt":1,"milliseconds":5,"size":7}"#
        try write(entry, directory + "/data/recordings/talk/abc.json")
        try write("a film", directory + "/data/recordings/talk/abc.webm")
    }

    /// Makes a backup of the data in a directory, as `b` in it.
    private func backup(
        _ directory: String, _ more: String..., environment: [String: String] = [:], file: String? = nil
    ) throws -> String {
        let flags = try OptionValues.parse(
            arguments: [directory + "/b", "--data", directory + "/data"] + more,
            options: BackupCommand.flags, operand: BackupCommand.operand
        ).values
        let server = try OptionValues.parse(environment: environment).overridden(by: flags)
        return try BackupCommand(flags, server: server, file: file).run(now: WallTime(milliseconds: 0))
    }

    private func complaint(_ body: () throws -> String) -> String {
        do { return "no complaint, but " + (try body()) } catch { return "\(error)" }
    }

    private func check(_ directory: String) throws -> String {
        let flags = try OptionValues.parse(
            arguments: [directory + "/b", "--check"], options: RestoreCommand.flags,
            operand: RestoreCommand.operand
        ).values
        return try RestoreCommand(flags, server: flags).run()
    }

    /// A manifest lists no hidden file, so that a backup with one could never be restored.
    @Test func `has no place for what a crash or a person left among recordings`() async throws {
        try await withDirectory { directory in
            try await makeData(directory)
            for name in [".def.json", "my copy.json", "x.json.json", "def.JSON", ".json", "é.json"] {
                try write("{}", directory + "/data/recordings/talk/" + name)
            }
            try write("{}", directory + "/data/recordings/my shows/def.json")
            let told = try backup(directory, "--recordings")
            #expect(told.contains("with recordings: 3 files"))
            #expect(try names(in: directory + "/b/data/recordings/talk") == ["abc.json", "abc.webm"])
            #expect(try check(directory).contains("is complete"))
        }
    }

    @Test func `is not made without a secret that it should have`() async throws {
        try await withDirectory { directory in
            try await makeData(directory)
            let path = directory + "/secret"
            #expect(
                complaint { try backup(directory, "--secret-file", path) }
                    == "cannot read \(path): No such file or directory")
            #expect(
                complaint { try backup(directory, file: path) }
                    == "cannot read \(path): No such file or directory")
            // Nothing is left behind.
            #expect(try names(in: directory) == ["data"])
            // The server does not read that file if it has the secret itself.
            let told = try backup(
                directory, "--secret-file", path,
                environment: ["ROSTRUM_SECRET": Self.secret, "ROSTRUM_KEY_ID": "main"])
            #expect(told.contains("which comes from ROSTRUM_SECRET: keep that too"))
        }
    }

    @Test func `has settings behind links, and none that is no file`() async throws {
        try await withDirectory { directory in
            try await makeData(directory)
            try write(Self.secret, directory + "/real/secret")
            try FileManager.default.createSymbolicLink(
                atPath: directory + "/secret", withDestinationPath: "real/secret")
            let told = try backup(directory, "--secret-file", directory + "/secret", file: "/dev/null")
            #expect(told.contains("contains secrets, so keep it private: \(directory)/secret\n"))
            #expect(!told.contains("keep that too"))
            #expect(try names(in: directory + "/b/settings") == ["secret"])
            let copy = try String(contentsOfFile: directory + "/b/settings/secret", encoding: .utf8)
            #expect(copy == Self.secret)
            #expect(try check(directory).contains("is complete"))
        }
    }

    @Test func `says where the key is unless it has it`() async throws {
        try await withDirectory { directory in
            try await makeData(directory)
            let file = directory + "/rostrum.toml"
            let text = "key-id = \"main\"\nsecret = \"\(Self.secret)\"\n"
            try write(text, file)
            let flags = try OptionValues.parse(
                arguments: [directory + "/b", "--data", directory + "/data"], options: BackupCommand.flags,
                operand: BackupCommand.operand
            ).values
            let server = try OptionValues.parse(file: text, name: file).overridden(by: flags)
            let told = try BackupCommand(flags, server: server, file: file).run(
                now: WallTime(milliseconds: 0))
            #expect(told.contains("contains secrets, so keep it private: \(file)\n"))
            #expect(!told.contains("keep that too"))
        }
    }

    /// A link could lead to any file of the machine.
    @Test func `follows no link among the data`() async throws {
        try await withDirectory { directory in
            try await makeData(directory)
            try write("not for others", directory + "/private")
            try FileManager.default.createDirectory(
                atPath: directory + "/data/pause-pictures", withIntermediateDirectories: true)
            try FileManager.default.createSymbolicLink(
                atPath: directory + "/data/pause-pictures/talk", withDestinationPath: directory + "/private")
            #expect(
                complaint { try backup(directory) }.hasPrefix(
                    "cannot read \(directory)/data/pause-pictures/talk: "))
            #expect(try names(in: directory) == ["data", "private"])
        }
    }

    /// An entry that leads to another file would bring that into the backup, read by root.
    @Test func `follows no link of a recording, and waits for no pipe`() async throws {
        try await withDirectory { directory in
            try await makeData(directory)
            try write("not for others", directory + "/private")
            for name in ["recordings/talk/abc.json", "recordings/talk/abc.webm", "pause-pictures/talk"] {
                let path = directory + "/data/" + name
                let kept = FileManager.default.contents(atPath: path)
                try write("", path)
                unlink(path)
                try FileManager.default.createSymbolicLink(
                    atPath: path, withDestinationPath: directory + "/private")
                let linked = complaint { try backup(directory, "--recordings") }
                #expect(linked.hasPrefix("cannot read \(path): "), "\(linked)")
                unlink(path)
                try #require(mkfifo(path, 0o600) == 0)
                let piped = complaint { try backup(directory, "--recordings") }
                #expect(piped == "\(path) is not a regular file")
                unlink(path)
                // Nothing of what was copied before is left.
                #expect(try names(in: directory) == ["data", "private"])
                if let kept { try kept.write(to: URL(filePath: path)) }
            }
            let told = try backup(directory, "--recordings")
            #expect(told.contains("with recordings: 3 files"))
        }
    }

    @Test func `has a recording with all its films, or with none`() async throws {
        try await withDirectory { directory in
            try await makeData(directory)
            let folder = directory + "/data/recordings/talk"
            try write("another film", folder + "/abc.mp4")
            try write("a film without an entry", folder + "/def.webm")
            // Of this one there is no film yet.
            try write(#"{"id":"ghi","state":"recording"}"#, folder + "/ghi.json")
            let told = try backup(directory, "--recordings")
            #expect(told.contains("with recordings: 5 files"))
            #expect(
                try names(in: directory + "/b/data/recordings/talk")
                    == ["abc.json", "abc.mp4", "abc.webm", "ghi.json"])
            #expect(try check(directory).contains("is complete"))
        }
    }

    @Test func `has an entry as it was read, to its last byte`() async throws {
        try await withDirectory { directory in
            try await makeData(directory)
            let path = directory + "/data/recordings/talk/abc.json"
            for length in [0, 1, 1 << 20, 1 << 20 + 1] {
                let entry = Data((0..<length).map { UInt8(truncatingIfNeeded: $0 &* 7) })
                try entry.write(to: URL(filePath: path))
                let bytes = try #require(try FileCopy.bytes(of: path))
                #expect(bytes.elementsEqual(entry))
            }
            let missing = try FileCopy.bytes(of: path + "x")
            #expect(missing == nil)
        }
    }

    @Test func `takes over what a killed command left, but not what another fills`() async throws {
        try await withDirectory { directory in
            try await makeData(directory)
            try write("old", directory + "/b.partial/data/old")
            let other = open(directory + "/b.partial", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            try #require(other >= 0 && flock(other, LOCK_EX | LOCK_NB) == 0)
            #expect(complaint { try backup(directory) } == "another backup to \(directory)/b is in progress")
            #expect(try names(in: directory + "/b.partial/data") == ["old"])
            close(other)
            _ = try backup(directory)
            #expect(try names(in: directory) == ["b", "data"])
            #expect(try !names(in: directory + "/b/data").contains("old"))
        }
    }

    @Test func `may be made in an empty directory, but in no other`() async throws {
        try await withDirectory { directory in
            try await makeData(directory)
            try write("x", directory + "/b")
            #expect(complaint { try backup(directory) }.contains("/b is not a directory"))
            try FileManager.default.removeItem(atPath: directory + "/b")
            try FileManager.default.createDirectory(
                atPath: directory + "/b", withIntermediateDirectories: false)
            _ = try backup(directory)
            #expect(try check(directory).contains("is complete"))
        }
    }

    @Test(arguments: [
        ("a", "a"), ("a/", "a"), ("a//", "a"), ("/a/b/", "/a/b"), ("/", "/"), ("//", "/"), ("", ""),
    ])
    func `has a name without slashes at its end`(path: String, name: String) {
        #expect(BackupCommand.withoutSlashes(path) == name)
    }
}

@Suite struct `The copy of a file` {
    /// Digests by `sha256sum`.
    @Test(
        arguments: [
            (0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            (1, "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"),
            ((1 << 20) + 7, nil),
        ] as [(Int, String?)])
    func `is the file, however long`(length: Int, digest: String?) async throws {
        try await withDirectory { directory in
            let bytes = Data((0..<length).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ 120) })
            try bytes.write(to: URL(filePath: directory + "/a"))
            let copied = try #require(try FileCopy.copy(directory + "/a", to: directory + "/b"))
            #expect(try Data(contentsOf: URL(filePath: directory + "/b")) == bytes)
            #expect(copied.bytes == Int64(length))
            if let digest { #expect(copied.sha256 == digest) }
            #expect(try FileCopy.content(of: directory + "/b") == copied)
            #expect(copied.sha256.count == 64)
        }
    }

    @Test func `is none of what is no file, or over another one`() async throws {
        try await withDirectory { directory in
            #expect(try FileCopy.copy(directory + "/none", to: directory + "/b") == nil)
            #expect(try FileCopy.content(of: directory + "/none") == nil)
            #expect(throws: BackupFailure("\(directory) is not a regular file")) {
                try FileCopy.content(of: directory)
            }
            try write("a", directory + "/a")
            try write("b", directory + "/b")
            #expect(throws: BackupFailure.self) { try FileCopy.copy(directory + "/a", to: directory + "/b") }
            #expect(try String(contentsOfFile: directory + "/b", encoding: .utf8) == "b")
        }
    }
}
