import Glibc

/// Files that are replaced as a whole: after a crash such a file has either its old content or all of the new one.
///
/// Every function waits for the disk: call them on a queue, never on an actor.
package enum DurableFile {
    /// Creates a directory for its owner alone, unless it exists.
    package static func makeFolder(_ path: String) throws(FileError) {
        guard unsafe mkdir(path, 0o700) == 0 || errno == EEXIST else { throw FileError(code: errno) }
    }

    /// Creates or replaces a file; returns once that is durable.
    ///
    /// The new content is written to a draft, named like the file with a dot in front, and the draft is then renamed
    /// over the file. A crash leaves at most a draft.
    /// - Parameter folder: must exist.
    package static func replace(_ name: String, in folder: String, with bytes: [UInt8]) throws(FileError) {
        // In the same directory, because a rename is atomic only within one file system.
        let draft = "\(folder)/.\(name)"
        do throws(FileError) {
            try write(bytes, to: draft)
            guard unsafe rename(draft, "\(folder)/\(name)") == 0 else { throw FileError(code: errno) }
        } catch {
            unsafe unlink(draft)
            throw error
        }
        // Without this a crash could undo the rename.
        try sync(folder)
    }

    /// Deletes a file; returns once that is durable, or immediately if the file does not exist.
    package static func remove(_ name: String, from folder: String) throws(FileError) {
        guard unsafe unlink("\(folder)/\(name)") == 0 else {
            guard errno == ENOENT else { throw FileError(code: errno) }
            return
        }
        try sync(folder)
    }

    /// Makes the names in a directory durable: what was created, renamed or deleted there.
    package static func sync(_ folder: String) throws(FileError) {
        let descriptor = unsafe open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw FileError(code: errno) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw FileError(code: errno) }
    }

    /// Writes a file for its owner alone, and waits until its content is durable.
    private static func write(_ bytes: [UInt8], to path: String) throws(FileError) {
        let descriptor = unsafe open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw FileError(code: errno) }
        defer { close(descriptor) }
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes {
                unsafe Glibc.write(descriptor, $0.baseAddress, $0.count)
            }
            // A write of zero bytes sets no `errno`; it can only mean that there is no space.
            guard count > 0 else { throw FileError(code: count == 0 ? ENOSPC : errno) }
            rest = rest.dropFirst(count)
        }
        guard fsync(descriptor) == 0 else { throw FileError(code: errno) }
    }
}

/// Why the system refused an operation on a file.
package struct FileError: Error, Equatable {
    /// An `errno`.
    package let code: CInt

    package init(code: CInt) {
        self.code = code
    }

    /// The system's description, in English.
    package var text: String { unsafe String(cString: strerror(code)) }

    /// Whether there is no space left, or none that this process may use (a quota, or RLIMIT_FSIZE).
    package var isFull: Bool { [ENOSPC, EDQUOT, EFBIG].contains(code) }
}
