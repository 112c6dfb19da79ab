import Base
import Foundation
import Store

/// What is in a backup, and by what program; `manifest.json` in its directory, written last.
struct BackupManifest: Codable, Equatable, Sendable {
    struct File: Codable, Equatable, Sendable {
        /// Below the backup's directory, such as `data/rostrum.db`.
        let path: String
        let bytes: Int64
        /// In hexadecimal digits, as `sha256sum` prints it.
        let sha256: String
        /// Where it was, for what is not put back by itself.
        var origin: String?
    }

    static let name = "manifest.json"
    /// What this program writes, and the latest that it reads.
    static let format = 1
    /// The store's file.
    static let store = "data/" + StoreCopy.fileName
    /// In bytes; a hundred thousand recordings take less.
    private static let sizeLimit = 64 << 20

    let format: Int
    /// The program's version.
    let rostrum: String
    let commit: String
    /// Of the store.
    let schema: Int
    /// RFC 3339, in UTC: all that was durable then is in the backup.
    let createdAt: String
    /// Whether recordings are in it.
    let recordings: Bool
    let files: [File]

    init(schema: Int, createdAt: WallTime, recordings: Bool, files: [File]) {
        format = Self.format
        rostrum = Rostrum.version
        commit = BuildInfo.commit
        self.schema = schema
        self.createdAt = createdAt.text
        self.recordings = recordings
        self.files = files
    }

    /// Reads what lies in a backup's directory.
    static func read(in directory: String) throws(BackupFailure) -> BackupManifest {
        let path = "\(directory)/\(name)"
        guard FileManager.default.fileExists(atPath: path) else {
            throw BackupFailure(
                "\(directory) is no backup: there is no \(name) in it, which is written when a backup is complete"
            )
        }
        guard let file = FileHandle(forReadingAtPath: path),
            let bytes = try? file.read(upToCount: sizeLimit + 1)
        else { throw BackupFailure("cannot read \(path)") }
        do throws(BackupFailure) {
            return try BackupManifest(parsing: bytes)
        } catch {
            throw BackupFailure("\(path) \(error)")
        }
    }

    /// - Throws: what is wrong with it, to be read after its name.
    init(parsing bytes: Data) throws(BackupFailure) {
        struct Version: Decodable { let format: Int }
        guard bytes.count <= Self.sizeLimit else { throw BackupFailure("is too large") }
        guard let version = try? JSONDecoder().decode(Version.self, from: bytes) else {
            throw BackupFailure("is damaged: it is no JSON object with a format")
        }
        guard version.format == Self.format else {
            throw BackupFailure(
                "was written by another Rostrum (format \(version.format), this one knows \(Self.format)); restore with "
                    + "that one")
        }
        do {
            self = try JSONDecoder().decode(BackupManifest.self, from: bytes)
        } catch {
            throw BackupFailure("is damaged: \(error)")
        }
        guard Set(files.map(\.path)).count == files.count, files.contains(where: { $0.path == Self.store })
        else { throw BackupFailure("is damaged: it names no \(Self.store), or something twice") }
        for file in files where !Self.isPlain(file.path) || file.bytes < 0 {
            throw BackupFailure("is damaged: it names a file \(file.path) of \(file.bytes) bytes")
        }
    }

    var bytes: Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return (try? encoder.encode(self)) ?? Data()
    }

    /// Whether a path leads to a place below the backup, and to none that this program would not use.
    private static func isPlain(_ path: String) -> Bool {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        let areNames = parts.allSatisfy { part in
            !part.isEmpty && !part.hasPrefix(".") && part.utf8.count <= 255
                && part.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
        }
        guard areNames, let first = parts.first else { return false }
        return first == "settings" && parts.count == 2 || first == "data" && (2...4).contains(parts.count)
    }
}

/// Why a backup could not be made or restored, in words for an operator.
struct BackupFailure: Error, Equatable, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
