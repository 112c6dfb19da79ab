// Checked access to network bytes. A subscript of `Span` traps, and a trap ends the process for every client: code
// that reads untrusted bytes uses these readers, or calls `require` first.

extension Span where Element == UInt8 {
    /// Throws `WireError.truncated` unless there are at least `length` bytes.
    @inline(__always)
    package func require(_ length: Int) throws(WireError) {
        guard length >= 0, length <= count else { throw .truncated }
    }

    /// Throws `WireError.truncated` unless `range` lies inside; afterwards `extracting(range)` cannot trap.
    @inline(__always)
    package func require(_ range: Range<Int>) throws(WireError) {
        guard range.lowerBound >= 0, range.upperBound <= count else { throw .truncated }
    }

    /// Reads one byte.
    /// - Throws: `WireError.truncated` past the end.
    @inline(__always)
    package func uint8(at offset: Int) throws(WireError) -> UInt8 {
        guard offset >= 0, offset < count else { throw .truncated }
        return self[offset]
    }

    /// Reads big-endian, like every reader here.
    @inline(__always)
    package func uint16(at offset: Int) throws(WireError) -> UInt16 {
        guard offset >= 0, offset <= count &- 2 else { throw .truncated }
        return UInt16(self[offset]) << 8 | UInt16(self[offset &+ 1])
    }

    /// Reads three bytes into the low bits of the result.
    @inline(__always)
    package func uint24(at offset: Int) throws(WireError) -> UInt32 {
        guard offset >= 0, offset <= count &- 3 else { throw .truncated }
        return UInt32(self[offset]) << 16 | UInt32(self[offset &+ 1]) << 8 | UInt32(self[offset &+ 2])
    }

    /// Reads four bytes.
    /// - Throws: `WireError.truncated` if fewer are left.
    @inline(__always)
    package func uint32(at offset: Int) throws(WireError) -> UInt32 {
        guard offset >= 0, offset <= count &- 4 else { throw .truncated }
        return UInt32(self[offset]) << 24 | UInt32(self[offset &+ 1]) << 16
            | UInt32(self[offset &+ 2]) << 8 | UInt32(self[offset &+ 3])
    }

    /// Reads eight bytes.
    /// - Throws: `WireError.truncated` if fewer are left.
    @inline(__always)
    package func uint64(at offset: Int) throws(WireError) -> UInt64 {
        try UInt64(uint32(at: offset)) << 32 | UInt64(uint32(at: offset &+ 4))
    }

    /// Returns a copy of `range`, for values that outlive the packet.
    package func bytes(_ range: Range<Int>) throws(WireError) -> [UInt8] {
        try require(range)
        var copy: [UInt8] = []
        copy.append(extracting(range))
        return copy
    }
}

extension [UInt8] {
    /// Appends a copy of the borrowed bytes.
    ///
    /// Reserves capacity once instead of checking it for each byte, which takes ten times as long.
    package mutating func append(_ bytes: Span<UInt8>) {
        // The standard library writes the count even where nothing is added: for an empty array, into the one storage
        // that all empty arrays of all threads share.
        if bytes.isEmpty { return }
        append(addingCapacity: bytes.count) { output in
            for index in bytes.indices { output.append(bytes[index]) }
        }
    }

    /// Appends one byte several times, with one reservation of capacity.
    package mutating func append(repeating byte: UInt8, count: Int) {
        if count == 0 { return }
        append(addingCapacity: count) { $0.append(repeating: byte, count: count) }
    }
}

extension MutableSpan where Element == UInt8 {
    /// Writes one byte.
    /// - Throws: `WireError.noRoom` past the end.
    @inline(__always)
    package mutating func store(_ value: UInt8, at offset: Int) throws(WireError) {
        guard offset >= 0, offset < count else { throw .noRoom }
        self[offset] = value
    }

    /// Writes big-endian.
    @inline(__always)
    package mutating func store(_ value: UInt16, at offset: Int) throws(WireError) {
        guard offset >= 0, offset <= count &- 2 else { throw .noRoom }
        self[offset] = UInt8(truncatingIfNeeded: value >> 8)
        self[offset &+ 1] = UInt8(truncatingIfNeeded: value)
    }

    /// Writes big-endian.
    @inline(__always)
    package mutating func store(_ value: UInt32, at offset: Int) throws(WireError) {
        guard offset >= 0, offset <= count &- 4 else { throw .noRoom }
        self[offset] = UInt8(truncatingIfNeeded: value >> 24)
        self[offset &+ 1] = UInt8(truncatingIfNeeded: value >> 16)
        self[offset &+ 2] = UInt8(truncatingIfNeeded: value >> 8)
        self[offset &+ 3] = UInt8(truncatingIfNeeded: value)
    }

    /// Copies `source[range]` to `offset`.
    /// - Throws: `WireError.truncated` if the range exceeds the source, `.noRoom` if it does not fit.
    @inline(__always)
    package mutating func store(_ source: Span<UInt8>, _ range: Range<Int>, at offset: Int) throws(WireError)
    {
        guard range.lowerBound >= 0, range.upperBound <= source.count else { throw .truncated }
        guard offset >= 0, offset <= count &- range.count else { throw .noRoom }
        for index in 0..<range.count { self[offset &+ index] = source[range.lowerBound &+ index] }
    }
}

extension [UInt8] {
    /// Appends in network byte order.
    package mutating func append(bigEndian value: UInt16) {
        append(UInt8(truncatingIfNeeded: value >> 8))
        append(UInt8(truncatingIfNeeded: value))
    }

    /// Appends in network byte order.
    package mutating func append(bigEndian value: UInt32) {
        append(bigEndian: UInt16(truncatingIfNeeded: value >> 16))
        append(bigEndian: UInt16(truncatingIfNeeded: value))
    }

    /// Appends in network byte order.
    package mutating func append(bigEndian value: UInt64) {
        append(bigEndian: UInt32(truncatingIfNeeded: value >> 32))
        append(bigEndian: UInt32(truncatingIfNeeded: value))
    }
}
