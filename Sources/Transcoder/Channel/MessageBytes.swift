import Base
import Wire

/// Serializes the fields of a message.
///
/// Numbers are big-endian and of fixed size. Bytes and texts follow their length in four bytes.
package struct MessageWriter {
    /// The bytes written so far.
    package private(set) var bytes: [UInt8] = []

    package init() {}

    /// Swaps buffers with the caller, to append to existing bytes without copying them.
    mutating func exchange(_ other: inout [UInt8]) { swap(&bytes, &other) }

    package mutating func write(_ value: UInt8) { bytes.append(value) }
    /// One byte: 1 for true, 0 for false.
    package mutating func write(_ value: Bool) { bytes.append(value ? 1 : 0) }
    /// Two bytes, big-endian like all numbers.
    package mutating func write(_ value: UInt16) { write(UInt64(value), length: 2) }
    package mutating func write(_ value: UInt32) { write(UInt64(value), length: 4) }
    package mutating func write(_ value: UInt64) { write(value, length: 8) }
    package mutating func write(_ value: Int64) { write(UInt64(bitPattern: value), length: 8) }

    /// In nanoseconds; the smallest number stands for nil.
    package mutating func write(_ time: MonotonicTime?) { write(time?.nanoseconds ?? .min) }

    /// The bytes after their length in four bytes.
    package mutating func write(_ value: [UInt8]) {
        write(UInt32(clamping: value.count))
        bytes += value
    }

    /// The bytes after their length in four bytes.
    package mutating func write(_ value: Span<UInt8>) {
        write(UInt32(clamping: value.count))
        bytes.append(value)
    }

    /// UTF-8 after its length in bytes.
    package mutating func write(_ text: String) { write(Array(text.utf8)) }

    private mutating func write(_ value: UInt64, length: Int) {
        for index in (0..<length).reversed() { bytes.append(UInt8(truncatingIfNeeded: value >> (8 * index))) }
    }
}

/// Parses what `MessageWriter` wrote.
///
/// All input is hostile: the other end may be a transcoder that an attacker has taken over.
package struct MessageReader {
    private let bytes: [UInt8]
    private var place: Int
    private let end: Int

    /// - Parameter bytes: the body of one message.
    package init(_ bytes: [UInt8]) {
        self.init(bytes, 0..<bytes.count)
    }

    /// - Parameter range: the body within `bytes`, which are shared and not copied.
    init(_ bytes: [UInt8], _ range: Range<Int>) {
        self.bytes = bytes
        place = range.lowerBound
        end = min(range.upperBound, bytes.count)
    }

    /// Whether all bytes have been read.
    package var isAtEnd: Bool { place >= end }

    /// Reads one byte.
    /// - Throws: `.truncated` at the end, like all readers here.
    package mutating func uint8() throws(WireError) -> UInt8 { UInt8(truncatingIfNeeded: try number(1)) }
    package mutating func bool() throws(WireError) -> Bool { try uint8() != 0 }
    package mutating func uint16() throws(WireError) -> UInt16 { UInt16(truncatingIfNeeded: try number(2)) }
    package mutating func uint32() throws(WireError) -> UInt32 { UInt32(truncatingIfNeeded: try number(4)) }
    package mutating func uint64() throws(WireError) -> UInt64 { try number(8) }
    package mutating func int64() throws(WireError) -> Int64 { Int64(bitPattern: try number(8)) }

    /// Nil for an unknown time.
    package mutating func time() throws(WireError) -> MonotonicTime? {
        let nanoseconds = try int64()
        return nanoseconds == .min ? nil : MonotonicTime(nanoseconds: nanoseconds)
    }

    /// Reads bytes after their length.
    /// - Parameter limit: most bytes that are accepted.
    /// - Throws: `.truncated` for a longer array, and for one that exceeds the message.
    package mutating func array(limit: Int = TranscoderChannel.messageLimit) throws(WireError) -> [UInt8] {
        let count = Int(try uint32())
        guard count <= limit, count <= end - place else { throw .truncated }
        defer { place += count }
        return Array(bytes[place..<(place + count)])
    }

    /// Reads UTF-8 after its length; invalid bytes are replaced.
    /// - Parameter limit: most bytes that are accepted.
    package mutating func text(limit: Int = 4_096) throws(WireError) -> String {
        String(decoding: try array(limit: limit), as: UTF8.self)
    }

    /// Reads a big-endian number of `length` bytes.
    private mutating func number(_ length: Int) throws(WireError) -> UInt64 {
        guard end - place >= length else { throw .truncated }
        var value: UInt64 = 0
        for _ in 0..<length {
            value = value << 8 | UInt64(bytes[place])
            place += 1
        }
        return value
    }
}
