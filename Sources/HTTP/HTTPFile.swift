import Dispatch
import Glibc

/// A range of a file as a response body, read in pieces as the client consumes it.
///
/// The descriptor stays open until the response is gone, so deleting or replacing the file does not disturb it.
package final class HTTPFile: Sendable, Equatable {
    /// Bytes per read: memory of one download, whatever the file's size.
    static let pieceLength = 256 << 10
    /// Reads run here and not on the service thread, so a slow disk delays downloads only.
    private static let queue = DispatchQueue(label: "http-files", attributes: .concurrent)

    /// Modifies bytes in place after they were read; must not change their number.
    package typealias Edit = @Sendable (_ bytes: inout [UInt8], _ offset: Int64) -> Void

    private let descriptor: CInt
    private let edit: Edit?
    let offset: Int
    let count: Int

    /// Size and modification time of the whole file at the moment of opening.
    package struct Size: Sendable {
        /// Of the whole file, not of the chosen part.
        package let bytes: Int
        /// Time of the last modification, in nanoseconds since 1970.
        package let changedAt: Int64
    }

    /// Opens a regular file and chooses the range to send.
    ///
    /// Symbolic links are refused (`O_NOFOLLOW`), so a link in the data folder cannot expose another file.
    /// - Parameters:
    ///   - edit: receives bytes as stored and their offset in the file; nil sends them unchanged.
    ///   - choose: returns the range to send for a file of this size; nil for none.
    /// - Returns: nil if there is no such regular file, or no range was chosen.
    package init?(path: String, edit: Edit? = nil, choose: (Size) -> Range<Int>?) {
        // Without O_NONBLOCK a pipe would keep the service thread waiting for a writer, before it can be refused.
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            let range = choose(
                Size(
                    bytes: Int(status.st_size),
                    changedAt: Int64(status.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(status.st_mtim.tv_nsec))
            )
        else {
            close(descriptor)
            return nil
        }
        self.descriptor = descriptor
        self.edit = edit
        offset = range.lowerBound
        count = range.count
    }

    deinit {
        close(descriptor)
    }

    package static func == (left: HTTPFile, right: HTTPFile) -> Bool { left === right }

    /// Reads the next piece, up to `pieceLength` bytes.
    /// - Parameters:
    ///   - place: offset within this range, not within the file.
    ///   - take: receives the bytes on a thread of the pool; an empty array if reading failed or the file has shrunk.
    func read(from place: Int, _ take: @escaping @Sendable ([UInt8]) -> Void) {
        Self.queue.async { [self] in
            let wanted = min(Self.pieceLength, count - place)
            guard wanted > 0 else { return take([]) }
            var bytes = unsafe [UInt8](unsafeUninitializedCapacity: wanted) { buffer, length in
                length = unsafe max(pread(descriptor, buffer.baseAddress, wanted, off_t(offset + place)), 0)
            }
            if let edit { edit(&bytes, Int64(offset + place)) }
            take(bytes)
        }
    }
}
