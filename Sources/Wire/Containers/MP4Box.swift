/// A box of an MP4 file: its type, and where in the file its contents lie.
/// - Source: ISO/IEC 14496-12 §4.2 (object structure).
package struct MP4Box: Equatable, Sendable {
    /// Four characters.
    package let type: String
    /// Offset in the file, in bytes; the type is four bytes behind it.
    package let start: Int64
    /// Offset in the file, in bytes, of what stands behind size and type.
    package let bodyStart: Int64
    /// Offset in the file, in bytes.
    package let end: Int64

    /// Bytes of the longest header: with a `largesize`.
    package static let longestHeader = 16

    /// Parses the header.
    ///
    /// A box that goes on to the end of the file (size 0) is refused: those of our muxer say how long they are.
    /// - Parameters:
    ///   - bytes: begin with the box; need not hold its contents.
    ///   - start: where in the file they are.
    /// - Throws: `WireError.truncated` if the header goes on behind them; `.invalid` if the box is shorter than that.
    package init(parsing bytes: Span<UInt8>, at start: Int64 = 0) throws(WireError) {
        let size = try bytes.uint32(at: 0)
        type = String(decoding: try bytes.bytes(4..<8), as: UTF8.self)
        let hasLargeSize = size == 1
        let length = hasLargeSize ? try bytes.uint64(at: 8) : UInt64(size)
        let headerLength: Int64 = hasLargeSize ? 16 : 8
        guard let length = Int64(exactly: length), length >= headerLength else {
            throw .invalid(.mp4BoxSize)
        }
        let (end, isTooFar) = start.addingReportingOverflow(length)
        guard !isTooFar else { throw .invalid(.mp4BoxSize) }
        self.start = start
        self.end = end
        bodyStart = start + headerLength
    }
}

/// Boxes of a file, one behind the other, as far as they are whole.
package struct MP4Boxes: Sequence, IteratorProtocol {
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

    /// The next box; nil at the end, and where one is not all there.
    package mutating func next() -> MP4Box? {
        guard offset < end else { return nil }
        let header = source.bytes(at: offset, count: MP4Box.longestHeader)
        guard let box = try? MP4Box(parsing: header.span, at: offset), box.end <= end else { return nil }
        offset = box.end
        return box
    }
}

/// What is in a box: other boxes, or fields.
package struct MP4BoxBody: Equatable, Sendable {
    package let bytes: [UInt8]

    /// Boxes that are looked into are not longer, in bytes.
    private static let limit: Int64 = 4 << 20

    package init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Of a longer box than 4 MiB, the beginning.
    package init(of box: MP4Box, _ source: ByteSource) {
        bytes = source.bytes(at: box.bodyStart, count: Int(min(box.end - box.bodyStart, Self.limit)))
    }

    // MARK: Boxes

    /// What is in the boxes of a type.
    package func children(_ type: String) -> [MP4BoxBody] {
        let source = ByteSource(bytes)
        return MP4Boxes(in: source, from: 0, to: source.size).filter { $0.type == type }
            .map { MP4BoxBody(Array(bytes[Int($0.bodyStart)..<Int($0.end)])) }
    }

    /// What is in the first box of a type; nil if there is none.
    package subscript(_ type: String) -> MP4BoxBody? { children(type).first }

    // MARK: Fields

    /// Of a full box; nil if it is empty.
    package var version: UInt8? { bytes.first }

    /// Of a full box: 24 bits.
    package var flags: UInt64 { number(at: 1, count: 3) }

    /// A big-endian number; 0 where it is not all there.
    /// - Parameters: `offset`, `count`: in bytes; of more than eight, the last count.
    package func number(at offset: Int, count: Int) -> UInt64 {
        guard offset >= 0, count >= 0, offset <= bytes.count, count <= bytes.count - offset else { return 0 }
        return bytes[offset..<(offset + count)].reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// A number as long as the version of a full box has it: 64 bits in version 1, 32 bits before.
    package func versionedNumber(at offset: Int) -> UInt64 { number(at: offset, count: version == 1 ? 8 : 4) }
}

extension WireError.Field {
    /// Less than a header, to the end of the file, or an end beyond what offsets can say.
    package static var mp4BoxSize: Self { .init("mp4.size") }
}
