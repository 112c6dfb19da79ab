import Glibc

/// The directory with everything that must outlive a restart, held by one process at a time.
///
/// The lock is an `flock`, which the kernel releases however the process ends. The process ID in the lock file is not
/// part of the lock: error messages and `rostrum doctor` report it.
struct DataDirectory: ~Copyable {
    /// Absolute, with symbolic links resolved.
    let path: String
    /// Whether other users have access: true only if the directory existed before, with such permissions.
    let isOpenToOthers: Bool
    private let lock: CInt

    static let lockName = "rostrum.lock"

    /// Creates the directory if necessary, and locks it.
    /// - Parameter isForRestore: whether a restore will fill it, in which case the rest of an earlier restore is
    ///   accepted.
    /// - Throws: if another process holds it, or if it cannot be written.
    init(path: String, isForRestore: Bool = false) throws(StoreOpenError) {
        // 0700, because it contains people's names and what they do.
        guard Self.create(path) else {
            throw StoreOpenError(
                "cannot create the data directory \(path): \(Self.reason); "
                    + "name another directory with --data")
        }
        let lock = unsafe open(path + "/" + Self.lockName, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
        guard lock >= 0 else {
            throw StoreOpenError(
                "cannot write to the data directory \(path): \(Self.reason); make it writable for user "
                    + "\(getuid()), or name another directory with --data")
        }
        guard Self.acquire(lock) else {
            let holder = Self.text(of: lock)
            close(lock)
            throw StoreOpenError(
                "the data in \(path) is in use by another server"
                    + (holder.isEmpty ? "" : " (process \(holder))")
                    + "; stop that server, or name another directory with --data")
        }
        guard isForRestore || !UnfinishedRestore(of: path).isUnfinished else {
            close(lock)
            throw StoreOpenError(
                "a restore into \(path) was not finished: run `rostrum restore` again, "
                    + "or name another directory with --data")
        }
        if !isForRestore { UnfinishedRestore(of: path).removeFolder() }
        var status = stat()
        isOpenToOthers = unsafe stat(path, &status) == 0 && status.st_mode & 0o077 != 0
        // After a restore by root, the lock file must not keep the server's user out.
        if isForRestore, geteuid() == 0 { fchown(lock, status.st_uid, status.st_gid) }
        self.lock = lock
        self.path = Self.absolute(path)
        let number = Array("\(getpid())\n".utf8)
        // Failures are ignored: the ID is information only.
        _ = ftruncate(lock, 0)
        _ = unsafe pwrite(lock, number, number.count, 0)
    }

    deinit {
        close(lock)
    }

    /// Makes a file in the directory private to its owner, whatever permissions the directory and older files have.
    ///
    /// Must be called before SQLite opens the file: SQLite gives its log and index the same permissions.
    /// - Source: sqlite.org/wal.html.
    func reserve(_ file: String) {
        let descriptor = unsafe open(path + "/" + file, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return }
        // Fails for another user's file, which then stays as it is; SQLite reports it if it cannot use the file.
        _ = fchmod(descriptor, 0o600)
        close(descriptor)
        for suffix in ["-wal", "-shm"] { _ = unsafe chmod(path + "/" + file + suffix, 0o600) }
    }

    /// Takes the lock, and waits up to a second for a process that is ending.
    ///
    /// A child process that was just started holds its parent's open files, including this lock, until it executes its
    /// own program.
    private static func acquire(_ lock: CInt) -> Bool {
        for _ in 0..<50 {
            if flock(lock, LOCK_EX | LOCK_NB) == 0 { return true }
            usleep(20_000)
        }
        return flock(lock, LOCK_EX | LOCK_NB) == 0
    }

    private static var reason: String { unsafe String(cString: strerror(errno)) }

    /// Creates the directory and all missing ones above it.
    /// - Returns: false on failure, with the reason in `errno`.
    private static func create(_ path: String) -> Bool {
        if unsafe mkdir(path, 0o700) == 0 { return true }
        if errno == EEXIST {
            var status = stat()
            guard unsafe stat(path, &status) == 0 else { return false }
            guard status.st_mode & S_IFMT == S_IFDIR else {
                errno = ENOTDIR
                return false
            }
            return true
        }
        guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash > path.startIndex else {
            return false
        }
        return unsafe create(String(path[..<slash])) && (mkdir(path, 0o700) == 0 || errno == EEXIST)
    }

    private static func absolute(_ path: String) -> String {
        guard let resolved = unsafe realpath(path, nil) else { return path }
        defer { unsafe free(resolved) }
        return unsafe String(cString: resolved)
    }

    /// The process ID in the lock file; empty if there is none.
    private static func text(of file: CInt) -> String {
        var bytes = [UInt8](repeating: 0, count: 20)
        let count = unsafe pread(file, &bytes, bytes.count, 0)
        guard count > 0 else { return "" }
        return String(decoding: bytes.prefix(count).prefix { $0 > 0x20 }, as: UTF8.self)
    }
}
