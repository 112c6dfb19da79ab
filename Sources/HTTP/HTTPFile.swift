import Dispatch
import Glibc

/// A part of a file that is sent, read piece by piece as the client takes it.
package final class HTTPFile: Sendable, Equatable {
    /// Read at a time.
    static let pieceLength = 256 << 10
    /// A disk that is slow holds up files, and nothing else.
    private static let queue = DispatchQueue(label: "http-files", attributes: .concurrent)

    /// Changes bytes that were read, not how many there are.
    package typealias Edit = @Sendable (_ bytes: inout [UInt8], _ offset: Int64) -> Void

    private let descriptor: CInt
    private let edit: Edit?
    let offset: Int
    let count: Int

    /// Of the whole file, when it was opened.
    package struct Size: Sendable {
        /// Of the whole file.
        package let bytes: Int
        /// In nanoseconds since 1970.
        package let changedAt: Int64
    }

    /// - Parameters:
    ///   - edit: is given bytes as they lie in the file, and where in it; nil for what is sent as it is.
    ///   - choose: which part of a file of that size is meant; nil for none.
    /// - Returns: nil if there is no such file, or no part was chosen.
    package init?(path: String, edit: Edit? = nil, choose: (Size) -> Range<Int>?) {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
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

    /// Reads what comes behind `place` of this part.
    /// - Parameter take: gets the bytes, on some thread; none if they cannot be read.
    func read(from place: Int, _ take: @escaping @Sendable ([UInt8]) -> Void) {
        Self.queue.async { [self] in
            let wanted = min(Self.pieceLength, count - place)
            var bytes = unsafe [UInt8](unsafeUninitializedCapacity: max(wanted, 0)) { buffer, length in
                length = unsafe max(
                    pread(descriptor, buffer.baseAddress, max(wanted, 0), off_t(offset + place)), 0)
            }
            if let edit { edit(&bytes, Int64(offset + place)) }
            take(bytes)
        }
    }
}
