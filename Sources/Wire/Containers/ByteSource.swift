/// The bytes of a file, read piece by piece: a container's structure is found without all of it in memory.
package struct ByteSource {
    /// In bytes.
    package let size: Int64
    private let read: (_ offset: Int64, _ count: Int) -> [UInt8]

    /// - Parameters:
    ///   - size: of the file, in bytes.
    ///   - read: bytes from an offset on; fewer at the end of the file, none where it cannot be read.
    package init(size: Int64, read: @escaping (_ offset: Int64, _ count: Int) -> [UInt8]) {
        self.size = size
        self.read = read
    }

    /// A file that is in memory.
    package init(_ file: [UInt8]) {
        self.init(size: Int64(file.count)) { offset, count in
            guard offset < Int64(file.count) else { return [] }
            return Array(file[Int(offset)...].prefix(count))
        }
    }

    /// - Returns: fewer than `count` bytes where the file ends before; none for an offset outside of it.
    package func bytes(at offset: Int64, count: Int) -> [UInt8] {
        guard offset >= 0, count > 0 else { return [] }
        return read(offset, count)
    }
}
