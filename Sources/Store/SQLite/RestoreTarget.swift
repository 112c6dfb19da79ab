import Foundation

/// A data directory while a restore fills it, during which no server may use it.
///
/// Restored files are collected in a staging directory inside it. Once all of them are complete and durable, they are
/// moved up, the store's file last, and the staging directory is removed. So a directory with a staging directory and
/// without the store's file is unfinished, and servers refuse it. The whole directory cannot be swapped by a rename
/// instead, because it may be a mount point.
package struct RestoreTarget: ~Copyable {
    /// The staging directory's name, which no part of the data uses.
    package static let stagingName = ".restore"

    /// The data directory, as an absolute path.
    package let path: String
    /// Where to put restored files; empty at first, and for its owner alone.
    package let staging: String
    /// Its lock keeps servers and other restores out.
    private let directory: DataDirectory

    /// Creates the directory if necessary, and locks it.
    /// - Throws: if a server is using it, or if it contains data already.
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
            // A server never starts in an unfinished directory, so everything in it comes from the earlier restore.
            if folder.isUnfinished { try folder.clear() }
            try DurableFile.makeFolder(staging)
        } catch {
            throw StoreOpenError(
                "cannot write to the data directory \(path): \(error.text); check the disk, or name another "
                    + "directory with --data")
        }
        self.path = directory.path
        self.staging = staging
        self.directory = directory
    }

    /// Deletes what was restored so far.
    package func abandon() {
        // If that fails, servers refuse the directory and the next restore tries again.
        try? UnfinishedRestore(of: path).clear()
    }

    /// Turns the restored files into the directory's data; all of them must be durable.
    package func finish() throws(FileError) {
        let names = UnfinishedRestore.names(in: staging)
        // Each rename is made durable before the next, so that the store's file never appears before other data.
        for name in names.filter({ $0 != StoreCopy.fileName }) + [StoreCopy.fileName] {
            try DurableFile.sync(path)
            guard unsafe rename("\(staging)/\(name)", "\(path)/\(name)") == 0 else {
                throw FileError(code: errno)
            }
        }
        try DurableFile.sync(path)
        // Only tidiness: with the store's file in place a staging directory that remains has no meaning.
        _ = unsafe rmdir(staging)
        try DurableFile.sync(path)
    }
}

/// What a killed restore left in a data directory.
struct UnfinishedRestore {
    private let path: String

    init(of path: String) {
        self.path = path
    }

    private var staging: String { path + "/" + RestoreTarget.stagingName }

    private func has(_ name: String) -> Bool { unsafe access("\(path)/\(name)", F_OK) == 0 }

    /// Whether a restore has begun and not all of its data is in place.
    var isUnfinished: Bool { has(RestoreTarget.stagingName) && !has(StoreCopy.fileName) }

    /// Names in the directory other than the lock, the staging directory, and what file systems create themselves.
    var others: [String] {
        Self.names(in: path).filter {
            ![DataDirectory.lockName, RestoreTarget.stagingName, "lost+found"].contains($0)
        }
    }

    /// Removes an empty staging directory that a finished restore left behind.
    func removeFolder() { if !isUnfinished { _ = unsafe rmdir(staging) } }

    /// Deletes everything that a restore put here.
    func clear() throws(FileError) {
        // The staging directory last: it marks the rest as unfinished, should this be interrupted.
        for name in others + [RestoreTarget.stagingName] where has(name) {
            do {
                try FileManager.default.removeItem(atPath: "\(path)/\(name)")
            } catch {
                // Foundation hides the `errno` behind errors of its own.
                throw FileError(code: EIO)
            }
        }
        try DurableFile.sync(path)
    }

    /// Sorted names in a directory; empty if it cannot be read.
    static func names(in folder: String) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).sorted()
    }
}
