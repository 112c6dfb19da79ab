import Crypto
import Foundation
import Store

/// Copies and digests files piece by piece; copies are durable when the functions return.
enum FileCopy {
    /// What a file contained when it was read.
    struct Content: Equatable, Sendable {
        let bytes: Int64
        /// In hexadecimal digits.
        let sha256: String
    }

    /// Bytes that are read at a time.
    private static let partSize = 1 << 20

    /// Copies a file up to the length that it has now; it may grow meanwhile.
    /// - Parameters:
    ///   - path: a regular file. Symbolic links are refused, so that no file outside the data gets into a backup.
    ///   - target: must not exist yet; only its owner may read it.
    /// - Returns: nil if the source does not exist.
    static func copy(_ path: String, to target: String) throws(BackupFailure) -> Content? {
        guard let source = try open(path) else { return nil }
        defer { close(source.descriptor) }
        let descriptor = Glibc.open(target, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure("create", target) }
        defer { close(descriptor) }
        let content = try read(source, of: path) { part throws(BackupFailure) in
            var place = 0
            while place < part.count {
                let count = part.withUnsafeBytes {
                    Glibc.write(descriptor, $0.baseAddress.map { $0 + place }, part.count - place)
                }
                if count < 0, errno == EINTR { continue }
                // A write of zero bytes sets no `errno`; it can only mean that there is no space.
                guard count > 0 else { throw failure("write", target, count == 0 ? ENOSPC : errno) }
                place += count
            }
        }
        guard fsync(descriptor) == 0 else { throw failure("write", target) }
        return content
    }

    /// Digests a file without copying it.
    /// - Returns: nil if the file does not exist.
    static func content(of path: String) throws(BackupFailure) -> Content? {
        guard let source = try open(path) else { return nil }
        defer { close(source.descriptor) }
        return try read(source, of: path) { _ throws(BackupFailure) in }
    }

    /// Reads a small file whole; symbolic links are refused, as by `copy`.
    /// - Parameter limit: most bytes to read; those after them are left out.
    /// - Returns: nil if the file does not exist.
    static func bytes(of path: String, limit: Int = .max) throws(BackupFailure) -> [UInt8]? {
        guard var source = try open(path) else { return nil }
        defer { close(source.descriptor) }
        source.size = min(source.size, Int64(limit))
        var bytes: [UInt8] = []
        _ = try read(source, of: path) { part throws(BackupFailure) in bytes += part }
        return bytes
    }

    /// Writes a small file in one piece.
    static func write(_ bytes: [UInt8], _ name: String, in folder: String) throws(BackupFailure) -> Content {
        do throws(FileError) {
            try DurableFile.replace(name, in: folder, with: bytes)
        } catch {
            throw failure("write", "\(folder)/\(name)", error.code)
        }
        do {
            var digest = try SHA256Digest()
            digest.update(bytes.span)
            return Content(bytes: Int64(bytes.count), sha256: hexadecimal(try digest.finish()))
        } catch {
            throw BackupFailure("OpenSSL cannot compute a SHA-256 digest")
        }
    }

    /// Creates a directory for its owner alone, unless it exists.
    static func makeFolder(_ path: String) throws(BackupFailure) {
        do throws(FileError) {
            try DurableFile.makeFolder(path)
        } catch {
            throw failure("create", path, error.code)
        }
    }

    /// Synchronizes a directory and all directories below it, so that the names in them survive a crash.
    ///
    /// Files are not synchronized here: `copy` and `write` have done that.
    static func sync(_ folder: String) throws(BackupFailure) {
        let names = (try? FileManager.default.subpathsOfDirectory(atPath: folder)) ?? []
        for path in names.map({ "\(folder)/\($0)" }) + [folder] {
            var isFolder: ObjCBool = false
            guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), isFolder.boolValue
            else { continue }
            do throws(FileError) {
                try DurableFile.sync(path)
            } catch {
                throw failure("write", path, error.code)
            }
        }
    }

    /// The parent directory of a path.
    ///
    /// Foundation's function for this traps on names of one letter.
    static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Bytes that an unprivileged process may still write at a path; nil if unknown.
    static func freeBytes(at path: String) -> Int64? {
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { return nil }
        return Int64(clamping: UInt64(status.f_bavail) &* UInt64(status.f_frsize))
    }

    /// - Parameters:
    ///   - verb: what could not be done to the path, such as `read`.
    ///   - code: an `errno`.
    static func failure(_ verb: String, _ path: String, _ code: CInt = errno) -> BackupFailure {
        BackupFailure("cannot \(verb) \(path): \(String(cString: strerror(code)))")
    }

    /// Opens a regular file to read.
    /// - Returns: nil if it does not exist.
    private static func open(_ path: String) throws(BackupFailure) -> (descriptor: CInt, size: Int64)? {
        // O_NOFOLLOW makes a symbolic link fail with ELOOP. Without O_NONBLOCK a pipe would keep this waiting for a
        // writer, before it can be refused.
        let descriptor = Glibc.open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else {
            guard errno == ENOENT else { throw failure("read", path) }
            return nil
        }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw BackupFailure("\(path) is not a regular file")
        }
        return (descriptor, Int64(status.st_size))
    }

    /// Reads a file up to the size that it had when it was opened, and digests it.
    /// - Parameter each: called with each piece, in order.
    /// - Returns: fewer bytes than that size if the file has been truncated meanwhile.
    private static func read(
        _ source: (descriptor: CInt, size: Int64), of path: String,
        each: (ArraySlice<UInt8>) throws(BackupFailure) -> Void
    ) throws(BackupFailure) -> Content {
        guard var digest = try? SHA256Digest() else {
            throw BackupFailure("OpenSSL cannot compute a SHA-256 digest")
        }
        var part = [UInt8](repeating: 0, count: partSize)
        var bytes: Int64 = 0
        while bytes < source.size {
            let wanted = Int(min(Int64(partSize), source.size - bytes))
            let count = Glibc.read(source.descriptor, &part, wanted)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw failure("read", path) }
            guard count > 0 else { break }
            digest.update(part.span.extracting(0..<count))
            try each(part[..<count])
            bytes += Int64(count)
        }
        guard let code = try? digest.finish() else {
            throw BackupFailure("OpenSSL cannot compute a SHA-256 digest")
        }
        return Content(bytes: bytes, sha256: hexadecimal(code))
    }

    private static func hexadecimal(_ bytes: [UInt8]) -> String {
        bytes.map { byte in
            let text = String(byte, radix: 16)
            return byte < 16 ? "0" + text : text
        }.joined()
    }
}
