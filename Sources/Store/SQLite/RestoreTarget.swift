import Foundation

/// An empty data directory while it is being filled by a restore, which no server may use until all is there.
///
/// What is restored gathers in a folder of its own. Once it is complete and durable its parts are moved up, the
/// store's file last, and the folder goes: a directory that has the folder and no such file is unfinished, and servers
/// refuse it. The data itself may be a mount point, which nothing could be renamed over.
package struct RestoreTarget: ~Copyable {
    package static let stagingName = ".restore"

    package let path: String
    /// Where to put what is restored; empty, and nobody else may look into it.
    package let staging: String
    private let directory: DataDirectory

    /// Makes the directory if it is not there, and keeps servers out of it.
    /// - Throws: where a server is using it, or something is there already.
    package init(path: String) throws(StoreOpenError) {
        let directory = try DataDirectory(path: path, isForRestore: true)
        let staging = directory.path + "/" + Self.stagingName
        let folder = UnfinishedRestore(of: directory.path)
        let others = folder.others
        guard folder.isUnfinished || others.isEmpty else {
            throw StoreOpenError(
                "there is data in \(path) already (\(others.prefix(3).joined(separator: ", "))): move it away first, "
                    + "or name another directory with --data")
        }
        do throws(FileError) {
            // Nothing else can be in there than what an earlier restore did not finish.
            if folder.isUnfinished { try folder.clear() }
            try DurableFile.makeFolder(staging)
        } catch {
            throw StoreOpenError("cannot write in \(path): \(error.text)")
        }
        self.path = directory.path
        self.staging = staging
        self.directory = directory
    }

    /// Leaves the directory as empty as it was.
    package func abandon() {
        // Where that fails, servers refuse it, and the next restore tries again.
        try? UnfinishedRestore(of: path).clear()
    }

    /// Makes what was restored the directory's data; all of it has to be durable.
    package func finish() throws(FileError) {
        let names = UnfinishedRestore.names(in: staging)
        for name in names.filter({ $0 != StoreCopy.fileName }) + [StoreCopy.fileName] {
            try DurableFile.sync(path)
            guard unsafe rename("\(staging)/\(name)", "\(path)/\(name)") == 0 else {
                throw FileError(code: errno)
            }
        }
        try DurableFile.sync(path)
        _ = unsafe rmdir(staging)
        try DurableFile.sync(path)
    }
}

/// What a restore that was killed has left in a data directory.
struct UnfinishedRestore {
    private let path: String

    init(of path: String) {
        self.path = path
    }

    private var staging: String { path + "/" + RestoreTarget.stagingName }

    private func has(_ name: String) -> Bool { unsafe access("\(path)/\(name)", F_OK) == 0 }

    /// Whether a restore had begun, and not all of it is there.
    var isUnfinished: Bool { has(RestoreTarget.stagingName) && !has(StoreCopy.fileName) }

    /// What is in the directory beside the lock, a restore's folder, and what file systems put there.
    var others: [String] {
        Self.names(in: path).filter {
            ![DataDirectory.lockName, RestoreTarget.stagingName, "lost+found"].contains($0)
        }
    }

    /// Where all is in its place, the folder is what is left.
    func removeFolder() { if !isUnfinished { _ = unsafe rmdir(staging) } }

    /// Removes all that it put there.
    func clear() throws(FileError) {
        // Last the folder, by which it is known.
        for name in others + [RestoreTarget.stagingName] where has(name) {
            do {
                try FileManager.default.removeItem(atPath: "\(path)/\(name)")
            } catch {
                throw FileError(code: EIO)
            }
        }
        try DurableFile.sync(path)
    }

    static func names(in folder: String) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).sorted()
    }
}
