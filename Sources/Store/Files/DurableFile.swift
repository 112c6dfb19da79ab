import Glibc

/// Files that are replaced as a whole: whatever ends the process or the machine, such a file holds what it held before
/// or all of what is new.
///
/// Waits for the disk: to be called on a queue, never on an actor.
package enum DurableFile {
    /// Makes a folder, unless it is there; whoever runs the server may look into it, and nobody else.
    package static func makeFolder(_ path: String) throws(FileError) {
        guard unsafe mkdir(path, 0o700) == 0 || errno == EEXIST else { throw FileError(code: errno) }
    }

    /// Replaces a file, or makes it; returns once that is durable.
    ///
    /// The new file is written beside the old one, under its name behind a dot, and is then given the name: a crash
    /// leaves a draft at most.
    /// - Parameter folder: has to be there.
    package static func replace(_ name: String, in folder: String, with bytes: [UInt8]) throws(FileError) {
        let draft = "\(folder)/.\(name)"
        do throws(FileError) {
            try write(bytes, to: draft)
            guard unsafe rename(draft, "\(folder)/\(name)") == 0 else { throw FileError(code: errno) }
        } catch {
            unsafe unlink(draft)
            throw error
        }
        try sync(folder)
    }

    /// Removes a file; returns once that is durable, at once where there is none.
    package static func remove(_ name: String, from folder: String) throws(FileError) {
        guard unsafe unlink("\(folder)/\(name)") == 0 else {
            guard errno == ENOENT else { throw FileError(code: errno) }
            return
        }
        try sync(folder)
    }

    /// Makes durable which files a folder has.
    package static func sync(_ folder: String) throws(FileError) {
        let descriptor = unsafe open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw FileError(code: errno) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw FileError(code: errno) }
    }

    private static func write(_ bytes: [UInt8], to path: String) throws(FileError) {
        let descriptor = unsafe open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw FileError(code: errno) }
        defer { close(descriptor) }
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes {
                unsafe Glibc.write(descriptor, $0.baseAddress, $0.count)
            }
            guard count > 0 else { throw FileError(code: count == 0 ? ENOSPC : errno) }
            rest = rest.dropFirst(count)
        }
        guard fsync(descriptor) == 0 else { throw FileError(code: errno) }
    }
}

/// Why the system did not do what was asked of a file.
package struct FileError: Error, Equatable {
    /// As `errno` has it.
    package let code: CInt

    package init(code: CInt) {
        self.code = code
    }

    /// In English.
    package var text: String { unsafe String(cString: strerror(code)) }

    /// Whether there is no space left, or none that this process may take.
    package var isFull: Bool { [ENOSPC, EDQUOT, EFBIG].contains(code) }
}
