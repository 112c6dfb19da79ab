/// An element of an EBML document: its ID, and where in the file its data lies.
/// - Source: RFC 8794 §5 (element ID), §6 (element data size).
package struct EBMLElement: Equatable, Sendable {
    /// With its VINT_MARKER, as tables of elements print it.
    package let id: UInt32
    /// Offset in the file, in bytes.
    package let dataStart: Int64
    /// Offset in the file, in bytes; nil for an unknown size, which only master elements may have.
    package let end: Int64?

    /// Octets of the longest header: four of the ID, eight of the size.
    package static let longestHeader = 12
    /// Octets of the longest ID, unless a document says otherwise, which no Matroska document may.
    ///
    /// - Source: RFC 8794 §11.2.4 (EBMLMaxIDLength).
    private static let longestID = 4

    /// Parses the header.
    /// - Parameters:
    ///   - bytes: begin with the element; need not hold its data.
    ///   - start: where in the file they are.
    /// - Throws: `WireError.truncated` if the header goes on behind them; `.invalid` if it is none.
    package init(parsing bytes: Span<UInt8>, at start: Int64 = 0) throws(WireError) {
        let name = try EBMLVariableInteger(parsing: bytes)
        guard name.width <= Self.longestID else { throw .invalid(.ebmlElementID) }
        let size = try EBMLVariableInteger(parsing: bytes, at: name.width)
        id = UInt32(truncatingIfNeeded: name.marked)
        dataStart = start &+ Int64(name.width + size.width)
        guard !size.isAllOnes else {
            end = nil
            return
        }
        let (end, isTooFar) = dataStart.addingReportingOverflow(Int64(truncatingIfNeeded: size.value))
        guard !isTooFar else { throw .invalid(.ebmlDataSize) }
        self.end = end
    }

    /// The value of an Unsigned Integer Element; of the last eight octets, where there are more than it may have.
    ///
    /// - Source: RFC 8794 §7.2.
    package static func unsignedInteger(_ data: some BidirectionalCollection<UInt8>) -> UInt64 {
        data.suffix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }
}

/// A Variable-Size Integer.
/// - Source: RFC 8794 §4.
package struct EBMLVariableInteger: Equatable, Sendable {
    /// VINT_WIDTH and the marker, in octets: 1 to 8.
    package let width: Int
    /// VINT_DATA: below 2⁵⁶.
    package let value: UInt64

    /// - Throws: `WireError.truncated` if it goes on behind the bytes; `.invalid` if it had more than eight octets.
    package init(parsing bytes: Span<UInt8>, at offset: Int = 0) throws(WireError) {
        let first = try bytes.uint8(at: offset)
        width = first.leadingZeroBitCount + 1
        guard width <= 8 else { throw .invalid(.ebmlVariableInteger) }
        var value = UInt64(first) & ~(0x80 >> UInt64(width - 1))
        for index in 1..<width { value = try value << 8 | UInt64(bytes.uint8(at: offset &+ index)) }
        self.value = value
    }

    /// With the marker, as element IDs are written.
    package var marked: UInt64 { value | 1 << (7 * UInt64(width)) }

    /// As a size: unknown.
    package var isAllOnes: Bool { value == 1 << (7 * UInt64(width)) - 1 }
}

/// Elements of a file, one behind the other, as far as they are whole and say how long they are.
package struct EBMLElements: Sequence, IteratorProtocol {
    private let source: ByteSource
    private let end: Int64
    private var offset: Int64

    /// - Parameters:
    ///   - start: where the first one begins, in bytes.
    ///   - end: what goes on behind it is not whole.
    package init(in source: ByteSource, from start: Int64, to end: Int64) {
        self.source = source
        self.end = end
        offset = start
    }

    /// The next element; nil at the end, and where one is not all there.
    package mutating func next() -> EBMLElement? {
        guard offset < end, let element = source.element(at: offset), let next = element.end, next <= end
        else { return nil }
        offset = next
        return element
    }
}

extension ByteSource {
    /// The element that begins at an offset; nil where there is none, or not all of its header.
    package func element(at offset: Int64) -> EBMLElement? {
        let header = bytes(at: offset, count: EBMLElement.longestHeader)
        return try? EBMLElement(parsing: header.span, at: offset)
    }
}

extension WireError.Field {
    /// More than eight octets.
    package static var ebmlVariableInteger: Self { .init("ebml.vint") }
    /// More than four octets.
    package static var ebmlElementID: Self { .init("ebml.id") }
    /// An end beyond what offsets can say.
    package static var ebmlDataSize: Self { .init("ebml.size") }
}
