/// The header of an EBML element: its ID, and the place of its data in the file.
/// - Source: RFC 8794 §5 (element ID), §6 (element data size).
package struct EBMLElement: Equatable, Sendable {
    /// Includes the VINT_MARKER, as in published tables of elements.
    package let id: UInt32
    /// Offset in the file, in bytes.
    package let dataStart: Int64
    /// Offset in the file, in bytes; nil for an unknown size, which only master elements may have.
    package let end: Int64?

    /// Octets of the longest header: four for the ID, eight for the size.
    package static let longestHeader = 12
    /// Octets of the longest ID, unless a document declares otherwise, which Matroska does not allow.
    ///
    /// - Source: RFC 8794 §11.2.4 (EBMLMaxIDLength).
    private static let longestID = 4

    /// Parses the header.
    /// - Parameters:
    ///   - bytes: begin with the element; need not include its data.
    ///   - start: the offset of `bytes` in the file.
    /// - Throws: `WireError.truncated` if the header exceeds `bytes`; `.invalid` if it is malformed.
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

    /// Returns the value of an Unsigned Integer Element; only the last eight octets of a longer one count.
    ///
    /// - Source: RFC 8794 §7.2.
    package static func unsignedInteger(_ data: some BidirectionalCollection<UInt8>) -> UInt64 {
        data.suffix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }
}

/// A variable-size integer (VINT).
/// - Source: RFC 8794 §4.
package struct EBMLVariableInteger: Equatable, Sendable {
    /// VINT_WIDTH and marker, in octets: 1 to 8.
    package let width: Int
    /// VINT_DATA: below 2⁵⁶.
    package let value: UInt64

    /// Parses an integer.
    /// - Throws: `WireError.truncated` if it exceeds the bytes; `.invalid` if it is longer than eight octets.
    package init(parsing bytes: Span<UInt8>, at offset: Int = 0) throws(WireError) {
        let first = try bytes.uint8(at: offset)
        width = first.leadingZeroBitCount + 1
        guard width <= 8 else { throw .invalid(.ebmlVariableInteger) }
        var value = UInt64(first) & ~(0x80 >> UInt64(width - 1))
        for index in 1..<width { value = try value << 8 | UInt64(bytes.uint8(at: offset &+ index)) }
        self.value = value
    }

    /// The value with its marker, as element IDs are written.
    package var marked: UInt64 { value | 1 << (7 * UInt64(width)) }

    /// Whether all data bits are set; as a size this means unknown.
    package var isAllOnes: Bool { value == 1 << (7 * UInt64(width)) - 1 }
}

/// Iterates over consecutive elements of a file, up to one that is incomplete or of unknown size.
package struct EBMLElements: Sequence, IteratorProtocol {
    private let source: ByteSource
    private let end: Int64
    private var offset: Int64

    /// - Parameters:
    ///   - start: offset of the first element, in bytes.
    ///   - end: an element that exceeds this offset counts as incomplete.
    package init(in source: ByteSource, from start: Int64, to end: Int64) {
        self.source = source
        self.end = end
        offset = start
    }

    /// The next element; nil at the end, and for an incomplete element.
    package mutating func next() -> EBMLElement? {
        guard offset < end, let element = source.element(at: offset), let next = element.end, next <= end
        else { return nil }
        offset = next
        return element
    }
}

extension ByteSource {
    /// Parses the element header at an offset; nil if it is malformed or incomplete.
    package func element(at offset: Int64) -> EBMLElement? {
        let header = bytes(at: offset, count: EBMLElement.longestHeader)
        return try? EBMLElement(parsing: header.span, at: offset)
    }
}

extension WireError.Field {
    /// An integer of more than eight octets.
    package static var ebmlVariableInteger: Self { .init("ebml.vint") }
    /// An element ID of more than four octets.
    package static var ebmlElementID: Self { .init("ebml.id") }
    /// An element whose end exceeds the range of offsets.
    package static var ebmlDataSize: Self { .init("ebml.size") }
}
