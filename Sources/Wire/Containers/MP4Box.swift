/// The header of an MP4 box: its type, and the place of its contents in the file.
/// - Source: ISO/IEC 14496-12 §4.2 (object structure).
package struct MP4Box: Equatable, Sendable {
    /// Four characters, such as `moov`.
    package let type: String
    /// Offset in the file, in bytes; the type follows four bytes later.
    package let start: Int64
    /// Offset in the file, in bytes, of the contents after size and type.
    package let bodyStart: Int64
    /// Offset in the file, in bytes.
    package let end: Int64

    /// Bytes of the longest header, which has a `largesize`.
    package static let longestHeader = 16

    /// Parses the header.
    ///
    /// A box that extends to the end of the file (size 0) is refused: our muxer always writes sizes.
    /// - Parameters:
    ///   - bytes: begin with the box; need not include its contents.
    ///   - start: the offset of `bytes` in the file.
    /// - Throws: `WireError.truncated` if the header exceeds `bytes`; `.invalid` if the size is less than that of
    ///   the header, or too large.
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

/// Iterates over consecutive boxes of a file, up to an incomplete one.
package struct MP4Boxes: Sequence, IteratorProtocol {
    private let source: ByteSource
    private let end: Int64
    private var offset: Int64

    /// - Parameters:
    ///   - start: offset of the first box, in bytes.
    ///   - end: a box that exceeds this offset counts as incomplete.
    package init(in source: ByteSource, from start: Int64, to end: Int64) {
        self.source = source
        self.end = end
        offset = start
    }

    /// The next box; nil at the end, and for an incomplete box.
    package mutating func next() -> MP4Box? {
        guard offset < end else { return nil }
        let header = source.bytes(at: offset, count: MP4Box.longestHeader)
        guard let box = try? MP4Box(parsing: header.span, at: offset), box.end <= end else { return nil }
        offset = box.end
        return box
    }
}

/// The contents of a box: other boxes, or fields.
package struct MP4BoxBody: Equatable, Sendable {
    /// Without the box's header.
    package let bytes: [UInt8]

    /// Most bytes of a box that are read; the boxes that this server searches are not longer.
    private static let limit: Int64 = 4 << 20

    /// - Parameter bytes: without the box's header.
    package init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Reads a box's contents; of a box above 4 MiB only the beginning.
    package init(of box: MP4Box, _ source: ByteSource) {
        bytes = source.bytes(at: box.bodyStart, count: Int(min(box.end - box.bodyStart, Self.limit)))
    }

    // MARK: Boxes

    /// The contents of all boxes of a type.
    package func children(_ type: String) -> [MP4BoxBody] {
        let source = ByteSource(bytes)
        return MP4Boxes(in: source, from: 0, to: source.size).filter { $0.type == type }
            .map { MP4BoxBody(Array(bytes[Int($0.bodyStart)..<Int($0.end)])) }
    }

    /// The contents of the first box of a type; nil if there is none.
    package subscript(_ type: String) -> MP4BoxBody? { children(type).first }

    // MARK: Fields

    /// The version of a full box; nil if it is empty.
    package var version: UInt8? { bytes.first }

    /// The 24 flag bits of a full box.
    package var flags: UInt64 { number(at: 1, count: 3) }

    /// Reads a big-endian number; 0 if it exceeds the contents.
    /// - Parameters:
    ///   - offset: in bytes.
    ///   - count: in bytes; of more than eight, only the last eight determine the result.
    package func number(at offset: Int, count: Int) -> UInt64 {
        guard offset >= 0, count >= 0, offset <= bytes.count, count <= bytes.count - offset else { return 0 }
        return bytes[offset..<(offset + count)].reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Reads a number whose width depends on the version of the full box: 64 bits in version 1, else 32.
    package func versionedNumber(at offset: Int) -> UInt64 { number(at: offset, count: version == 1 ? 8 : 4) }
}

extension WireError.Field {
    /// A size below that of the header, to the end of the file, or beyond the range of offsets.
    package static var mp4BoxSize: Self { .init("mp4.size") }
}
