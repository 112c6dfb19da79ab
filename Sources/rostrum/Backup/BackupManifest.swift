import Base
import Foundation
import Store

/// The list of files in a backup and the version that made it: `manifest.json`, which is written last.
struct BackupManifest: Codable, Equatable, Sendable {
    /// One file of the backup.
    struct File: Codable, Equatable, Sendable {
        /// Relative to the backup's directory, such as `data/rostrum.db`.
        let path: String
        let bytes: Int64
        /// In hexadecimal digits, as `sha256sum` prints it.
        let sha256: String
        /// The original path of a setting, which is not restored automatically; nil for data.
        var origin: String?
    }

    static let name = "manifest.json"
    /// The version of the manifest's format that this program writes, and the only one that it reads.
    static let format = 1
    /// The path of the store's file.
    static let store = "data/" + StoreCopy.fileName
    /// In bytes; the manifest of a hundred thousand recordings is smaller.
    private static let sizeLimit = 64 << 20

    let format: Int
    /// The program's version.
    let rostrum: String
    /// The program's commit; `unknown` for some builds.
    let commit: String
    /// The version of the store's tables: a program restores its own and older ones.
    let schema: Int
    /// RFC 3339, in UTC: everything that was durable at this time is in the backup.
    let createdAt: String
    /// Whether recordings were requested.
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

    /// Reads and checks the manifest of a backup.
    /// - Throws: if the directory is not a complete backup.
    static func read(in directory: String) throws(BackupFailure) -> BackupManifest {
        let path = "\(directory)/\(name)"
        // One byte more than allowed, to detect a manifest that is too long.
        guard let bytes = try FileCopy.bytes(of: path, limit: sizeLimit + 1) else {
            throw BackupFailure(
                "\(directory) is not a complete backup: it has no \(name), which is written last"
            )
        }
        do throws(BackupFailure) {
            return try BackupManifest(parsing: Data(bytes))
        } catch {
            throw BackupFailure("\(path) \(error)")
        }
    }

    /// Checks everything that a restore relies on.
    /// - Throws: what is wrong, as the rest of a sentence that begins with the manifest's path.
    init(parsing bytes: Data) throws(BackupFailure) {
        struct Version: Decodable { let format: Int }
        guard bytes.count <= Self.sizeLimit else { throw BackupFailure("is too large") }
        // The format first: another version may lack members that this one needs.
        guard let version = try? JSONDecoder().decode(Version.self, from: bytes) else {
            throw BackupFailure("is damaged: it is not a JSON object with a format")
        }
        guard version.format == Self.format else {
            throw BackupFailure(
                "was written by another version of Rostrum (format \(version.format), this one reads "
                    + "\(Self.format)); restore it with that version")
        }
        // Foundation's error would show names of this program's types.
        guard let manifest = try? JSONDecoder().decode(BackupManifest.self, from: bytes) else {
            throw BackupFailure("is damaged: a member is missing, or has the wrong type")
        }
        self = manifest
        // A path that occurs twice would make one file replace the other.
        guard Set(files.map(\.path)).count == files.count, files.contains(where: { $0.path == Self.store })
        else { throw BackupFailure("is damaged: it does not list \(Self.store), or lists a file twice") }
        for file in files where !Self.isPlain(file.path) || file.bytes < 0 {
            throw BackupFailure("is damaged: it lists a file \(file.path) of \(file.bytes) bytes")
        }
    }

    /// The manifest as JSON, for people as well: indented, with sorted keys.
    var bytes: Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return (try? encoder.encode(self)) ?? Data()
    }

    /// Whether a path is one that a backup can contain.
    ///
    /// A manifest may come from anywhere. Without this check a path such as `data/../../etc/passwd` would lead a
    /// restore, which may run as root, out of the data directory.
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
