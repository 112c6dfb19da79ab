import Base
import Foundation
import Recordings

/// A backup that is being made, beside the place where it will be: a backup that is there is whole.
struct BackupDraft: ~Copyable {
    /// Of the draft.
    let path: String
    private let target: String
    /// Held while it is being made, so that a draft of one that was killed is known.
    private let lock: CInt

    /// How often a recording that changed meanwhile is copied anew.
    private static let tries = 5

    /// - Parameter target: of the backup; nothing may be there but an empty directory.
    init(of target: String) throws(BackupFailure) {
        let path = target + ".partial"
        if let names = try? FileManager.default.contentsOfDirectory(atPath: target) {
            guard names.isEmpty else {
                throw BackupFailure(
                    "there is something in \(target) already: name a directory that is not there yet")
            }
        } else if access(target, F_OK) == 0 {
            throw BackupFailure("\(target) is no directory: name one that is not there yet")
        }
        try FileCopy.makeFolder(path)
        let lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard lock >= 0 else { throw FileCopy.failure("open", path) }
        guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
            close(lock)
            throw BackupFailure("another backup to \(target) is under way")
        }
        // Of one that was killed.
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

    /// Makes it a backup.
    func finish(_ manifest: BackupManifest) throws(BackupFailure) {
        _ = try FileCopy.write(Array(manifest.bytes), BackupManifest.name, in: path)
        try FileCopy.sync(path)
        guard rename(path, target) == 0 else { throw FileCopy.failure("make", target) }
        let descriptor = open(FileCopy.folder(of: target), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }

    /// Leaves nothing behind.
    func abandon() {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// A folder in it, made if need be.
    func folder(_ name: String) throws(BackupFailure) -> String {
        var folder = path
        for part in name.split(separator: "/") {
            folder += "/\(part)"
            try FileCopy.makeFolder(folder)
        }
        return folder
    }

    // MARK: What there is beside the store

    func copySettings(_ settings: [(name: String, path: String)]) throws(BackupFailure)
        -> [BackupManifest.File]
    {
        var files: [BackupManifest.File] = []
        // An empty file that stands for none, such as /dev/null, need not be kept.
        for (name, path) in settings {
            let real = URL(filePath: path).resolvingSymlinksInPath()
            guard real.isFile else { continue }
            let folder = try folder("settings")
            guard let content = try FileCopy.copy(real.path, to: "\(folder)/\(name)") else {
                throw FileCopy.failure("read", path, ENOENT)
            }
            files.append(BackupManifest.File("settings/\(name)", content, origin: path))
        }
        return files
    }

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

    func copyRecordings(from source: String) throws(BackupFailure) -> [BackupManifest.File] {
        var files: [BackupManifest.File] = []
        for stream in Self.names(in: source) where StreamID(stream) != nil {
            for name in Self.names(in: "\(source)/\(stream)") where name.hasSuffix(".json") {
                files += try copyRecording("\(stream)/\(name.dropLast(5))", from: source)
            }
        }
        return files
    }

    /// Of one that is under way, what was written so far: like after a crash, a server mends the end when it starts.
    private func copyRecording(_ name: String, from source: String) throws(BackupFailure)
        -> [BackupManifest.File]
    {
        let folder = try folder("data/recordings/\(name.prefix { $0 != "/" })")
        let id = name.drop { $0 != "/" }.dropFirst()
        let base = "\(folder)/\(id)"
        for attempt in 1...Self.tries {
            var files: [BackupManifest.File] = []
            guard let before = FileManager.default.contents(atPath: "\(source)/\(name).json") else {
                return []
            }
            for container in ["webm", "mp4"] {
                unlink("\(base).\(container)")
                guard
                    let content = try FileCopy.copy(
                        "\(source)/\(name).\(container)", to: "\(base).\(container)")
                else { continue }
                files.append(BackupManifest.File("data/recordings/\(name).\(container)", content))
            }
            let after = FileManager.default.contents(atPath: "\(source)/\(name).json")
            // It ended meanwhile, or was deleted.
            guard after == before || attempt == Self.tries && after != nil else { continue }
            let entry = try FileCopy.write(Array(before), "\(id).json", in: folder)
            return files + [BackupManifest.File("data/recordings/\(name).json", entry)]
        }
        for container in ["webm", "mp4"] { unlink("\(base).\(container)") }
        return []
    }

    private static func names(in folder: String) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).sorted()
    }
}

extension URL {
    fileprivate var isFile: Bool {
        (try? resourceValues(forKeys: [.isRegularFileKey]))?.isRegularFile ?? false
    }
}
