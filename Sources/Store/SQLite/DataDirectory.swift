import Glibc

/// The directory that holds what must outlive a restart, held by one process at a time.
///
/// The lock is the kernel's (`flock`), so it goes with the process however that ends. The file's text, the process'
/// number, is only for people.
struct DataDirectory: ~Copyable {
    let path: String
    /// Whether others than its owner may look into it: it was there before, with other rights.
    let isOpenToOthers: Bool
    private let lock: CInt

    static let lockName = "rostrum.lock"

    /// - Parameter isForRestore: whether a restore is to fill it, so that what an earlier one has left is no hindrance.
    init(path: String, isForRestore: Bool = false) throws(StoreOpenError) {
        // 0700: it holds names of people and what they do.
        guard Self.create(path) else {
            throw StoreOpenError(
                "cannot make the directory \(path) for the data: \(Self.reason); name another with --data")
        }
        let lock = unsafe open(path + "/" + Self.lockName, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
        guard lock >= 0 else {
            throw StoreOpenError(
                "cannot write in \(path), where the data is to be kept: \(Self.reason); make it writable for user "
                    + "\(getuid()), or name another directory with --data")
        }
        guard Self.acquire(lock) else {
            let holder = Self.text(of: lock)
            close(lock)
            throw StoreOpenError(
                "the data in \(path) is in use by another server"
                    + (holder.isEmpty ? "" : " (process \(holder))")
                    + "; end that one, or give this one another --data")
        }
        guard isForRestore || !UnfinishedRestore(of: path).isUnfinished else {
            close(lock)
            throw StoreOpenError(
                "a restore of the data in \(path) was not finished: run `rostrum restore` again, or name another "
                    + "directory with --data")
        }
        if !isForRestore { UnfinishedRestore(of: path).removeFolder() }
        var status = stat()
        isOpenToOthers = unsafe stat(path, &status) == 0 && status.st_mode & 0o077 != 0
        // A restore by root must not keep the server's user out.
        if isForRestore, geteuid() == 0 { fchown(lock, status.st_uid, status.st_gid) }
        self.lock = lock
        self.path = Self.absolute(path)
        let number = Array("\(getpid())\n".utf8)
        // What cannot be written here cannot be told to people, no more.
        _ = ftruncate(lock, 0)
        _ = unsafe pwrite(lock, number, number.count, 0)
    }

    deinit {
        close(lock)
    }

    /// Lets nobody else read a file in it, whatever rights the directory and older files have.
    ///
    /// Before SQLite opens it: what it makes beside the file, it gives the same rights (sqlite.org/wal.html).
    func reserve(_ file: String) {
        let descriptor = unsafe open(path + "/" + file, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return }
        // Somebody else's file stays as it is; SQLite says so if it cannot use it.
        _ = fchmod(descriptor, 0o600)
        close(descriptor)
        for suffix in ["-wal", "-shm"] { _ = unsafe chmod(path + "/" + file + suffix, 0o600) }
    }

    /// Whoever is just ending is waited for: a process that was begun a moment ago holds what the one that began it had
    /// open, until it runs a program of its own.
    private static func acquire(_ lock: CInt) -> Bool {
        for _ in 0..<50 {
            if flock(lock, LOCK_EX | LOCK_NB) == 0 { return true }
            usleep(20_000)
        }
        return flock(lock, LOCK_EX | LOCK_NB) == 0
    }

    private static var reason: String { unsafe String(cString: strerror(errno)) }

    /// Makes the directory, and those above it that are missing.
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

    private static func text(of file: CInt) -> String {
        var bytes = [UInt8](repeating: 0, count: 20)
        let count = unsafe pread(file, &bytes, bytes.count, 0)
        guard count > 0 else { return "" }
        return String(decoding: bytes.prefix(count).prefix { $0 > 0x20 }, as: UTF8.self)
    }
}
