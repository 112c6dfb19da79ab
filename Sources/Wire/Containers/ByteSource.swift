/// The bytes of a file, read in pieces, so that a container can be parsed without loading all of it.
package struct ByteSource {
    /// Size of the file in bytes.
    package let size: Int64
    private let read: (_ offset: Int64, _ count: Int) -> [UInt8]

    /// - Parameters:
    ///   - size: of the file, in bytes.
    ///   - read: returns bytes from an offset on: fewer at the end of the file, none if it cannot be read.
    package init(size: Int64, read: @escaping (_ offset: Int64, _ count: Int) -> [UInt8]) {
        self.size = size
        self.read = read
    }

    /// Wraps a file that is in memory.
    package init(_ file: [UInt8]) {
        self.init(size: Int64(file.count)) { offset, count in
            guard offset < Int64(file.count) else { return [] }
            return Array(file[Int(offset)...].prefix(count))
        }
    }

    /// Reads bytes.
    /// - Returns: fewer than `count` bytes at the end of the file; none for an offset outside it.
    package func bytes(at offset: Int64, count: Int) -> [UInt8] {
        guard offset >= 0, count > 0 else { return [] }
        return read(offset, count)
    }
}
