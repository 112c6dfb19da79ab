import Base
import Foundation
import Recordings

/// A backup while it is made, in a directory next to its final place.
///
/// The directory gets its final name only once everything in it is durable, so a backup under that name is complete. A
/// killed command leaves `DIRECTORY.partial`, which the next one to the same place empties.
struct BackupDraft: ~Copyable {
    /// The draft's directory.
    let path: String
    /// The final directory.
    private let target: String
    /// Descriptor with a `flock` that lasts as long as the draft, so that two commands cannot fill the same one.
    private let lock: CInt

    /// How often a recording is copied again if its entry changes meanwhile.
    private static let tries = 5

    /// Creates the draft, or takes over what a killed command left.
    /// - Parameter target: the backup's directory; it must not exist, or must be empty.
    /// - Throws: if the target is not empty, or if another backup to it is under way.
    init(of target: String) throws(BackupFailure) {
        let path = target + ".partial"
        if let names = try? FileManager.default.contentsOfDirectory(atPath: target) {
            guard names.isEmpty else {
                throw BackupFailure(
                    "\(target) is not empty: give a directory that does not exist yet")
            }
        } else if access(target, F_OK) == 0 {
            throw BackupFailure("\(target) is not a directory: give one that does not exist yet")
        }
        try FileCopy.makeFolder(path)
        let lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard lock >= 0 else { throw FileCopy.failure("open", path) }
        guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
            close(lock)
            throw BackupFailure("another backup to \(target) is in progress")
        }
        // With the lock held, anything in here is the rest of a killed command.
        for name in (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? [] {
            try? FileManager.default.removeItem(atPath: "\(path)/\(name)")
        }
        self.path = path
        self.target = target
        self.lock = lock
    }

    deinit {
        close(lock)
    }

    /// Turns the draft into a backup.
    ///
    /// The manifest is written last, and its presence marks a complete backup. Every directory is synchronized before
    /// the rename, and the parent directory after it.
    func finish(_ manifest: BackupManifest) throws(BackupFailure) {
        _ = try FileCopy.write(Array(manifest.bytes), BackupManifest.name, in: path)
        try FileCopy.sync(path)
        guard rename(path, target) == 0 else { throw FileCopy.failure("create", target) }
        // The rename has happened; if the parent cannot be opened, only its durability is uncertain.
        let descriptor = open(FileCopy.folder(of: target), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }

    /// Deletes the draft after a failure.
    func abandon() {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// Creates a directory in the draft if it is missing, with those above it.
    /// - Returns: its path.
    func folder(_ name: String) throws(BackupFailure) -> String {
        var folder = path
        for part in name.split(separator: "/") {
            folder += "/\(part)"
            try FileCopy.makeFolder(folder)
        }
        return folder
    }

    // MARK: What there is beside the store

    /// Copies configuration and secret; symbolic links to them are resolved.
    func copySettings(_ settings: [(name: String, path: String)]) throws(BackupFailure)
        -> [BackupManifest.File]
    {
        var files: [BackupManifest.File] = []
        for (name, path) in settings {
            // Of a secret that is missing the operator must know before the backup is needed.
            var status = stat()
            guard stat(path, &status) == 0 else { throw FileCopy.failure("read", path) }
            // What is not a regular file, such as /dev/null, means "no file" and is not copied.
            guard status.st_mode & S_IFMT == S_IFREG else { continue }
            let real = URL(filePath: path).resolvingSymlinksInPath().path
            let folder = try folder("settings")
            guard let content = try FileCopy.copy(real, to: "\(folder)/\(name)") else {
                throw FileCopy.failure("read", path, ENOENT)
            }
            files.append(BackupManifest.File("settings/\(name)", content, origin: path))
        }
        return files
    }

    /// Copies pause pictures; one that is deleted meanwhile is left out.
    func copyPictures(from source: String) throws(BackupFailure) -> [BackupManifest.File] {
        var files: [BackupManifest.File] = []
        for name in Self.names(in: source) where StreamID(name) != nil {
            let folder = try folder("data/pause-pictures")
            guard let content = try FileCopy.copy("\(source)/\(name)", to: "\(folder)/\(name)") else {
                continue
            }
            files.append(BackupManifest.File("data/pause-pictures/\(name)", content))
        }
        return files
    }

    /// Copies all recordings and clips, found by their entries (`.json`).
    func copyRecordings(from source: String) throws(BackupFailure) -> [BackupManifest.File] {
        var files: [BackupManifest.File] = []
        for stream in Self.names(in: source) where StreamID(stream) != nil {
            // Not the draft of an entry (`.ID.json`), or what is not the server's: no manifest can list them.
            let entries = Self.names(in: "\(source)/\(stream)").filter { name in
                name.hasSuffix(".json") && StreamID(name.dropLast(5)) != nil
            }
            for name in entries {
                files += try copyRecording("\(stream)/\(name.dropLast(5))", from: source)
            }
        }
        return files
    }

    /// Copies one recording with its entry.
    ///
    /// Of one that is under way the copy contains what was written so far; a server completes such a file at its next
    /// start, as after a crash. The entry is read before and after, because its state must match the file: an entry
    /// that says "ended" must not accompany a file without its end.
    /// - Returns: the copied files; empty if the recording was deleted meanwhile.
    private func copyRecording(_ name: String, from source: String) throws(BackupFailure)
        -> [BackupManifest.File]
    {
        let folder = try folder("data/recordings/\(name.prefix { $0 != "/" })")
        let id = name.drop { $0 != "/" }.dropFirst()
        let base = "\(folder)/\(id)"
        for attempt in 1...Self.tries {
            var files: [BackupManifest.File] = []
            guard let before = try FileCopy.bytes(of: "\(source)/\(name).json") else { return [] }
            // An earlier try may have copied it.
            for container in ["webm", "mp4"] {
                unlink("\(base).\(container)")
                guard
                    let content = try FileCopy.copy(
                        "\(source)/\(name).\(container)", to: "\(base).\(container)")
                else { continue }
                files.append(BackupManifest.File("data/recordings/\(name).\(container)", content))
            }
            let after = try FileCopy.bytes(of: "\(source)/\(name).json")
            // It ended or was deleted meanwhile. After the last try an entry that keeps changing is taken as it was.
            guard after == before || attempt == Self.tries && after != nil else { continue }
            let entry = try FileCopy.write(before, "\(id).json", in: folder)
            return files + [BackupManifest.File("data/recordings/\(name).json", entry)]
        }
        for container in ["webm", "mp4"] { unlink("\(base).\(container)") }
        return []
    }

    /// Sorted, so that manifests of the same data are the same; empty if the directory is missing.
    private static func names(in folder: String) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).sorted()
    }
}
