/// Parses the frames of a WebSocket server, and makes those of a client.
/// - Source: RFC 6455 §5.2.
struct ServerFrames {
    /// Opcodes of the frames that are used.
    enum Kind: UInt8 {
        case text = 1
        case close = 8
        case ping = 9
        case pong = 10
    }

    struct Frame {
        /// Nil for any other opcode.
        let kind: Kind?
        /// Where the payload lies in the bytes that were parsed; servers do not mask it.
        let payload: Range<Int>
    }

    /// In bytes; no snapshot of a stream is longer.
    static let longest = 4 << 20

    enum Failure: Error {
        case tooLong
    }

    /// The frame that begins at `offset`; nil if it is incomplete.
    ///
    /// Messages are assumed not to be fragmented.
    static func frame(in bytes: Span<UInt8>, at offset: Int) throws(Failure) -> Frame? {
        guard bytes.count - offset >= 2 else { return nil }
        var length = Int(bytes[offset + 1] & 0x7F)
        var start = offset + 2
        // 126 and 127 announce a length of 16 or 64 bits.
        let extra = length == 126 ? 2 : length == 127 ? 8 : 0
        if extra > 0 {
            guard bytes.count - start >= extra else { return nil }
            var value: UInt64 = 0
            for index in start..<start + extra { value = value << 8 | UInt64(bytes[index]) }
            guard value <= UInt64(longest) else { throw .tooLong }
            length = Int(value)
            start += extra
        }
        guard bytes.count - start >= length else { return nil }
        return Frame(kind: Kind(rawValue: bytes[offset] & 0x0F), payload: start..<start + length)
    }

    /// A client's frame, masked with zeros.
    ///
    /// Masking protects proxies, of which there is none here; with a key of zeros the payload stays as it is.
    static func clientFrame(_ kind: Kind, _ payload: [UInt8]) -> [UInt8] {
        // 125 bytes suffice: control frames may not be longer, and no message of this tool is.
        [0x80 | kind.rawValue, 0x80 | UInt8(clamping: min(payload.count, 125)), 0, 0, 0, 0]
            + payload.prefix(125)
    }
}

extension Span<UInt8> {
    /// Whether a range contains these bytes.
    ///
    /// Cheaper than parsing JSON, which thousands of followers would each need for every message.
    func contains(_ pattern: [UInt8], in range: Range<Int>) -> Bool {
        extracting(range).withUnsafeBytes { bytes in
            guard let first = pattern.first, bytes.count >= pattern.count else { return pattern.isEmpty }
            var rest = bytes[...(bytes.count - pattern.count)]
            while let index = rest.firstIndex(of: first) {
                if bytes[index..<index + pattern.count].elementsEqual(pattern) { return true }
                rest = rest[(index + 1)...]
            }
            return false
        }
    }
}
