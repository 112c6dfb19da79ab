import Base
import Foundation
import Store
import Testing

@testable import rostrum

/// A backup in a directory of its own, which a test changes before it is restored.
private struct Damage {
    /// The backup.
    let backup: String
    /// Where it is restored to; does not exist yet.
    let data: String

    /// Gives a backup with one picture and a secret.
    static func with(_ body: (Damage) throws -> Void) async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "rostrum-restore-\(UUID())")
            .path
        try FileManager.default.createDirectory(
            atPath: directory + "/data/pause-pictures", withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let store = try await SQLiteStore.open(
            SQLiteSettings(directory: directory + "/data"), log: .silent)
        await store.close()
        try Data("a picture".utf8).write(to: URL(filePath: directory + "/data/pause-pictures/talk"))
        try Data("0123456789abcdef0123456789abcdef\n".utf8).write(to: URL(filePath: directory + "/secret"))
        let flags = try OptionValues.parse(
            arguments: [
                directory + "/b", "--data", directory + "/data", "--secret-file", directory + "/secret",
            ], options: BackupCommand.flags, operand: BackupCommand.operand
        ).values
        _ = try BackupCommand(flags, server: flags, file: nil).run(now: WallTime(milliseconds: 0))
        try body(Damage(backup: directory + "/b", data: directory + "/new"))
    }

    /// What the command says, of success or of failure.
    func restore(_ more: String...) -> String {
        do {
            let flags = try OptionValues.parse(
                arguments: [backup, "--data", data] + more, options: RestoreCommand.flags,
                operand: RestoreCommand.operand
            ).values
            return try RestoreCommand(flags, server: flags).run()
        } catch {
            return "\(error)"
        }
    }

    /// Replaces the list of files.
    func list(_ change: (inout [BackupManifest.File]) -> Void) throws {
        var files = try BackupManifest.read(in: backup).files
        change(&files)
        let manifest = BackupManifest(
            schema: StoreCopy.schema, createdAt: WallTime(milliseconds: 0), recordings: false, files: files)
        try manifest.bytes.write(to: URL(filePath: backup + "/" + BackupManifest.name))
    }

    /// Names in the directory that was restored to.
    var restored: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: data)) ?? []).sorted()
    }
}

@Suite struct `A restore` {
    private let whole = ["pause-pictures", "rostrum.db", "rostrum.lock"]

    @Test func `leaves settings in the backup, and needs none of them`() async throws {
        try await Damage.with { damage in
            let secret = damage.backup + "/settings/secret"
            try FileManager.default.removeItem(atPath: secret)
            let missing = "\(damage.backup) is damaged: settings/secret is missing"
            #expect(damage.restore("--check") == missing)
            #expect(!FileManager.default.fileExists(atPath: damage.data))
            let told = damage.restore()
            #expect(told.contains("\(secret) was "), "\(told)")
            #expect(damage.restored == whole)
        }
    }

    /// A digest proves only that a file is what the manifest was made of.
    @Test(arguments: ["no store of anybody's", "SQLite format 3\0"])
    func `takes no store that is none, whatever its digest`(text: String) async throws {
        try await Damage.with { damage in
            let path = damage.backup + "/" + BackupManifest.store
            let kept = try #require(FileManager.default.contents(atPath: path))
            let list = try #require(
                FileManager.default.contents(atPath: damage.backup + "/" + BackupManifest.name))
            try Data(text.utf8).write(to: URL(filePath: path))
            let content = try #require(try FileCopy.content(of: path))
            try damage.list { files in
                files.removeAll { $0.path == BackupManifest.store }
                files.append(BackupManifest.File(BackupManifest.store, content))
            }
            for told in [damage.restore("--check"), damage.restore()] {
                #expect(!told.contains("is complete") && !told.contains("holds the data"), "\(told)")
            }
            #expect(damage.restored == ["rostrum.lock"])
            // A failure leaves nothing in the way of a good backup.
            try kept.write(to: URL(filePath: path))
            try list.write(to: URL(filePath: damage.backup + "/" + BackupManifest.name))
            let told = damage.restore()
            #expect(told.contains("holds the data"), "\(told)")
            #expect(damage.restored == whole)
        }
    }

    /// For SQLite a file of no bytes is a database without tables.
    @Test func `takes no store whose tables are others than its manifest says`() async throws {
        try await Damage.with { damage in
            let path = damage.backup + "/" + BackupManifest.store
            let manifest = URL(filePath: damage.backup + "/" + BackupManifest.name)
            let kept = try Data(contentsOf: manifest)
            let older = BackupManifest(
                schema: StoreCopy.schema - 1, createdAt: WallTime(milliseconds: 0), recordings: false,
                files: try BackupManifest.read(in: damage.backup).files)
            try older.bytes.write(to: manifest)
            let tables = "\(damage.backup) is damaged: \(BackupManifest.store) has tables of schema"
            for told in [damage.restore("--check"), damage.restore()] {
                #expect(told.hasPrefix("\(tables) \(StoreCopy.schema), but"), "\(told)")
            }
            try kept.write(to: manifest)
            try Data().write(to: URL(filePath: path))
            let content = try #require(try FileCopy.content(of: path))
            try damage.list { files in
                files.removeAll { $0.path == BackupManifest.store }
                files.append(BackupManifest.File(BackupManifest.store, content))
            }
            for told in [damage.restore("--check"), damage.restore()] {
                #expect(told.hasPrefix("\(tables) 0, but"), "\(told)")
            }
            #expect(damage.restored == ["rostrum.lock"])
        }
    }

    /// A pipe would keep whoever opens it waiting for a writer.
    @Test(.timeLimit(.minutes(1))) func `reads no manifest that is no file`() async throws {
        try await Damage.with { damage in
            let path = damage.backup + "/" + BackupManifest.name
            unlink(path)
            try #require(mkfifo(path, 0o600) == 0)
            for told in [damage.restore("--check"), damage.restore()] {
                #expect(told == "\(path) is not a regular file")
            }
            #expect(damage.restored.isEmpty)
        }
    }

    @Test(arguments: ["", "a pictur", "a picture of more"])
    func `takes no file that has become shorter or longer`(text: String) async throws {
        try await Damage.with { damage in
            let path = damage.backup + "/data/pause-pictures/talk"
            try Data(text.utf8).write(to: URL(filePath: path))
            let changed = "data/pause-pictures/talk has changed since the backup was made"
            for told in [damage.restore("--check"), damage.restore()] {
                #expect(told == "\(damage.backup) is damaged: \(changed)")
            }
            #expect(damage.restored == ["rostrum.lock"])
        }
    }

    @Test func `takes nothing that is no file`() async throws {
        try await Damage.with { damage in
            let path = damage.backup + "/data/pause-pictures/talk"
            unlink(path)
            try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "/etc/hostname")
            #expect(damage.restore().hasPrefix("cannot read \(path): "))
            unlink(path)
            try #require(mkfifo(path, 0o600) == 0)
            #expect(damage.restore() == "\(path) is not a regular file")
            unlink(path)
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
            #expect(damage.restore() == "\(path) is not a regular file")
            #expect(damage.restored == ["rostrum.lock"])
        }
    }

    /// Sizes come from the manifest, and so from anywhere.
    @Test func `has room for what it is told, or says that it has not`() async throws {
        func file(_ name: String) -> BackupManifest.File {
            BackupManifest.File(path: "data/pause-pictures/" + name, bytes: .max, sha256: "00")
        }
        try await Damage.with { damage in
            try damage.list { $0.append(file("a")) }
            let told = damage.restore()
            // With the other files, one is more than there are numbers for.
            #expect(told == "\(damage.backup) is damaged: data/pause-pictures/a is missing")
            try damage.list { $0 = $0.filter { $0.bytes < 1_000_000_000 } + [file("b"), file("c")] }
            #expect(damage.restore() == "\(damage.backup) is damaged: data/pause-pictures/b is missing")
            let huge = BackupManifest.File(path: "data/pause-pictures/d", bytes: 1 << 60, sha256: "00")
            try damage.list { $0 = $0.filter { $0.bytes < 1_000_000_000 } + [huge] }
            #expect(damage.restore().hasPrefix("not enough disk space in \(damage.data): needs "))
            #expect(damage.restored == ["rostrum.lock"])
        }
    }

    /// One file cannot be in another.
    @Test func `fails where a file is said to be a folder`() async throws {
        try await Damage.with { damage in
            try damage.list { files in
                files.append(
                    BackupManifest.File(path: BackupManifest.store + "/more", bytes: 1, sha256: "00"))
            }
            let told = damage.restore()
            #expect(!told.contains("holds the data"), "\(told)")
            #expect(damage.restored == ["rostrum.lock"])
        }
    }
}
