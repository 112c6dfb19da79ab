import Base
import Wire

/// Writes the numbers and texts of a message.
package struct MessageWriter {
    /// What was written so far.
    package private(set) var bytes: [UInt8] = []

    package init() {}

    /// Goes on behind bytes that are there, without copying them.
    mutating func exchange(_ other: inout [UInt8]) { swap(&bytes, &other) }

    package mutating func write(_ value: UInt8) { bytes.append(value) }
    /// One byte.
    package mutating func write(_ value: Bool) { bytes.append(value ? 1 : 0) }
    /// Big-endian, as all numbers here.
    package mutating func write(_ value: UInt16) { write(UInt64(value), length: 2) }
    package mutating func write(_ value: UInt32) { write(UInt64(value), length: 4) }
    package mutating func write(_ value: UInt64) { write(value, length: 8) }
    package mutating func write(_ value: Int64) { write(UInt64(bitPattern: value), length: 8) }

    /// - Parameter time: nil where it is not known.
    package mutating func write(_ time: MonotonicTime?) { write(time?.nanoseconds ?? .min) }

    /// Bytes after their number.
    package mutating func write(_ value: [UInt8]) {
        write(UInt32(clamping: value.count))
        bytes += value
    }

    /// Four bytes of length, then the bytes.
    package mutating func write(_ value: Span<UInt8>) {
        write(UInt32(clamping: value.count))
        bytes.append(value)
    }

    /// As bytes of UTF-8 after their number.
    package mutating func write(_ text: String) { write(Array(text.utf8)) }

    private mutating func write(_ value: UInt64, length: Int) {
        for index in (0..<length).reversed() { bytes.append(UInt8(truncatingIfNeeded: value >> (8 * index))) }
    }
}

/// Reads what `MessageWriter` wrote; trusts nothing, because the other end may have been taken over.
package struct MessageReader {
    private let bytes: [UInt8]
    private var place: Int
    private let end: Int

    /// - Parameter bytes: one message's body.
    package init(_ bytes: [UInt8]) {
        self.init(bytes, 0..<bytes.count)
    }

    init(_ bytes: [UInt8], _ range: Range<Int>) {
        self.bytes = bytes
        place = range.lowerBound
        end = min(range.upperBound, bytes.count)
    }

    /// Whether everything was read.
    package var isAtEnd: Bool { place >= end }

    /// - Throws: `.truncated` at the end, as all of these.
    package mutating func uint8() throws(WireError) -> UInt8 { UInt8(truncatingIfNeeded: try number(1)) }
    package mutating func bool() throws(WireError) -> Bool { try uint8() != 0 }
    package mutating func uint16() throws(WireError) -> UInt16 { UInt16(truncatingIfNeeded: try number(2)) }
    package mutating func uint32() throws(WireError) -> UInt32 { UInt32(truncatingIfNeeded: try number(4)) }
    package mutating func uint64() throws(WireError) -> UInt64 { try number(8) }
    package mutating func int64() throws(WireError) -> Int64 { Int64(bitPattern: try number(8)) }

    /// Nil for a time that is not known.
    package mutating func time() throws(WireError) -> MonotonicTime? {
        let nanoseconds = try int64()
        return nanoseconds == .min ? nil : MonotonicTime(nanoseconds: nanoseconds)
    }

    /// - Parameter limit: what the sender may have meant at most.
    package mutating func array(limit: Int = TranscoderChannel.messageLimit) throws(WireError) -> [UInt8] {
        let count = Int(try uint32())
        guard count <= limit, count <= end - place else { throw .truncated }
        defer { place += count }
        return Array(bytes[place..<(place + count)])
    }

    /// - Parameter limit: in bytes; those that are no UTF-8 are replaced.
    package mutating func text(limit: Int = 4_096) throws(WireError) -> String {
        String(decoding: try array(limit: limit), as: UTF8.self)
    }

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
