/// Splits a TCP stream into datagrams, each preceded by its length in two bytes.
///
/// Accepts the stream in pieces of any size, and passes each datagram on when its last byte has arrived.
/// - Source: RFC 4571 §2; RFC 6544 §3 (STUN, DTLS and media in the same frames).
package struct FrameReader: Sendable {
    /// Bytes in front of each datagram.
    package static let headerLength = 2
    /// Enough for WebRTC: browsers send datagrams below 1,300 bytes over TCP as well.
    package static let usualLimit = 2_048

    private let limit: Int
    /// The first byte of a length, while the second has not arrived.
    private var high: UInt8?
    /// The length of the frame being read; nil between frames.
    private var expected: Int?
    private var frame: [UInt8] = []

    /// - Parameter limit: bytes of a frame; a longer one ends the stream.
    package init(limit: Int = usualLimit) {
        self.limit = limit
    }

    /// Whether the stream may end here without truncating a frame.
    package var isBetweenFrames: Bool { high == nil && expected == nil }

    /// Reads the next piece of the stream.
    ///
    /// - Parameter visit: receives each complete datagram, and may change it. Empty ones are skipped.
    /// - Throws: if a frame is too long. Frames after it could not be found, so the stream must end.
    package mutating func read(
        _ bytes: ArraySlice<UInt8>, _ visit: (inout MutableSpan<UInt8>) -> Void
    ) throws(WireError) {
        var rest = bytes
        while let byte = rest.first {
            guard let length = expected else {
                rest = rest.dropFirst()
                try takeLength(byte)
                continue
            }
            let piece = rest.prefix(length - frame.count)
            frame.append(contentsOf: piece)
            rest = rest.dropFirst(piece.count)
            guard frame.count == length else { return }
            var datagram = frame.mutableSpan
            visit(&datagram)
            frame.removeAll(keepingCapacity: true)
            expected = nil
        }
    }

    private mutating func takeLength(_ byte: UInt8) throws(WireError) {
        guard let first = high else {
            high = byte
            return
        }
        high = nil
        let length = Int(first) << 8 | Int(byte)
        guard length <= limit else { throw .invalid(.frameLength) }
        if length > 0 { expected = length }
    }

    /// The two bytes before a datagram of `length` bytes; nil if it is too long for them.
    package static func header(length: Int) -> (UInt8, UInt8)? {
        guard let length = UInt16(exactly: length) else { return nil }
        return (UInt8(truncatingIfNeeded: length >> 8), UInt8(truncatingIfNeeded: length))
    }
}

extension WireError.Field {
    /// A frame longer than the reader's limit.
    package static var frameLength: Self { .init("frame.length") }
}
