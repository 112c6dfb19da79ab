import Base
import Foundation
import Recordings
import Store

/// `rostrum backup`: copies what a server must not lose, whether or not it is running.
///
/// Everything that was durable when the backup began is in it. A later commit is in it completely or not at all.
struct BackupCommand: Sendable {
    /// The backup's directory, which must not exist yet or must be empty.
    private let directory: String
    /// The server's data directory.
    private let data: String
    private let hasRecordings: Bool
    /// Files with settings, by their name in the backup.
    private let settings: [(name: String, path: String)]
    /// The source of the secret if it is not in any copied file, so that the operator keeps it elsewhere; nil if it is.
    private let missing: String?

    /// The argument without a name.
    static let operand = Option("to", .text, "DIRECTORY")
    /// The flags of this command, besides the server's.
    static let options: [Option] = [
        Option(
            "recordings", .toggle, "", "Copy recordings too; of one in progress, what there is so far.")
    ]
    /// All flags of `rostrum backup`, with the server's options that say where its data and settings are.
    static let flags =
        options + Option.all.filter { ["data", "config", "secret-file", "dev"].contains($0.name) }

    /// In bytes: the server's recordings leave as much of its disk free, so a backup on the same disk does too.
    private static let reserve = RecordingSettings(directory: "").reserve

    /// - Parameters:
    ///   - values: flags.
    ///   - server: the server's options of all sources, without the content of its secret file.
    ///   - file: the configuration file that was read; nil if none was.
    init(_ values: OptionValues, server: OptionValues, file: String?) throws(ConfigurationError) {
        guard let directory = values[Self.operand.name]?.texts.first else {
            throw ConfigurationError(
                "a directory is missing: rostrum backup DIRECTORY, one that does not exist yet")
        }
        self.directory = Self.withoutSlashes(directory)
        data = try Self.dataDirectory(server)
        hasRecordings = try values.toggle("recordings") ?? false
        let secret = server["secret"]
        var secretFile = server["secret-file"]?.texts.first
        // The server does not read that file if the secret is set directly, so it need not exist.
        if secret != nil, let path = secretFile, access(path, F_OK) != 0 { secretFile = nil }
        settings = [("rostrum.toml", file), ("secret", secretFile)].compactMap { name, path in
            path.map { (name, $0) }
        }
        // "line …" is a place in the configuration file, which is copied.
        missing = secret?.place.hasPrefix("line ") ?? true ? nil : secret?.origin
    }

    /// Without slashes at the end: names such as `DIRECTORY.partial` are made by appending to it.
    static func withoutSlashes(_ path: String) -> String {
        var path = path
        while path.count > 1, path.hasSuffix("/") { path.removeLast() }
        return path
    }

    /// The server's data directory, by the same rule as for `rostrum serve`.
    /// - Throws: in development without `--data`, when nothing is kept.
    static func dataDirectory(_ server: OptionValues) throws(ConfigurationError) -> String {
        if let directory = server["data"]?.texts.first { return withoutSlashes(directory) }
        guard try server.toggle("dev") != true else {
            throw ConfigurationError("with --dev nothing is kept: give the directory with --data")
        }
        return "data"
    }

    /// Makes the backup, or leaves nothing behind if it fails.
    /// - Returns: a summary for an operator.
    func run(now: WallTime) throws(BackupFailure) -> String {
        let draft = try BackupDraft(of: directory)
        let manifest: BackupManifest
        do throws(BackupFailure) {
            manifest = try fill(draft, at: now)
            try draft.finish(manifest)
        } catch {
            draft.abandon()
            throw error
        }
        return summary(of: manifest)
    }

    /// Copies everything into the draft.
    private func fill(_ draft: borrowing BackupDraft, at now: WallTime) throws(BackupFailure)
        -> BackupManifest
    {
        try checkRoom(for: draft.path)
        var files: [BackupManifest.File] = []
        let folder = try draft.folder("data")
        let schema: Int
        do throws(StoreOpenError) {
            schema = try StoreCopy.make(of: data, at: "\(folder)/\(StoreCopy.fileName)")
        } catch {
            throw BackupFailure(error.description)
        }
        // Read again rather than digested while it was copied: SQLite writes the copy itself.
        guard let store = try FileCopy.content(of: "\(folder)/\(StoreCopy.fileName)") else {
            throw BackupFailure("the copy of the store has disappeared")
        }
        files.append(BackupManifest.File(BackupManifest.store, store))
        files += try draft.copyPictures(from: "\(data)/pause-pictures")
        if hasRecordings { files += try draft.copyRecordings(from: "\(data)/recordings") }
        files += try draft.copySettings(settings)
        return BackupManifest(schema: schema, createdAt: now, recordings: hasRecordings, files: files)
    }

    /// Refuses a backup for which the disk has no room, so that it does not fill the disk that the server writes to.
    ///
    /// An estimate: the files may grow until they are copied.
    private func checkRoom(for target: String) throws(BackupFailure) {
        // Links and special files are not copied, so only regular files count.
        func size(_ path: String) -> Int64 {
            let names = (try? FileManager.default.subpathsOfDirectory(atPath: path)) ?? []
            return names.reduce(0) { sum, name in
                var status = stat()
                let isFile = lstat("\(path)/\(name)", &status) == 0 && status.st_mode & S_IFMT == S_IFREG
                return isFile ? sum + Int64(status.st_size) : sum
            }
        }
        var status = stat()
        var needed: Int64 = stat("\(data)/\(StoreCopy.fileName)", &status) == 0 ? Int64(status.st_size) : 0
        needed += size("\(data)/pause-pictures") + (hasRecordings ? size("\(data)/recordings") : 0)
        var other = stat()
        // An unknown amount of free space does not prevent a backup.
        let isSameDisk =
            stat(data, &status) == 0 && stat(target, &other) == 0 && status.st_dev == other.st_dev
        if isSameDisk { needed += Self.reserve }
        guard let free = FileCopy.freeBytes(at: target), free < needed else { return }
        throw BackupFailure(
            "not enough disk space: the backup needs \(needed >> 20) MB"
                + (isSameDisk ? ", including what must stay free for the server" : "")
                + ", but only \(free >> 20) MB are free")
    }

    /// What the backup contains, whether it contains secrets, and what is missing from it.
    private func summary(of manifest: BackupManifest) -> String {
        let bytes = manifest.files.reduce(0) { $0 + $1.bytes }
        var text =
            "\(directory) holds the data of \(data) as of \(manifest.createdAt), "
            + "\(hasRecordings ? "with" : "without") recordings: \(manifest.files.count) files, \(bytes >> 10) kB\n"
        let names = manifest.files.filter { $0.path.hasPrefix("settings/") }.compactMap(\.origin)
        if !names.isEmpty {
            text += "contains secrets, so keep it private: \(names.joined(separator: ", "))\n"
        }
        if let missing {
            text += "does not contain the key that signs tokens, which comes from \(missing): keep that too\n"
        }
        return text
    }
}

extension BackupManifest.File {
    /// The entry of a file that was just copied.
    init(_ path: String, _ content: FileCopy.Content, origin: String? = nil) {
        self.init(path: path, bytes: content.bytes, sha256: content.sha256, origin: origin)
    }
}
