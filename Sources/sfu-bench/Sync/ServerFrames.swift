/// The frames that a WebSocket server sends, found in what was read.
/// - Source: RFC 6455 §5.2.
struct ServerFrames {
    enum Kind: UInt8 {
        case text = 1
        case close = 8
        case ping = 9
        case pong = 10
    }

    struct Frame {
        /// Nil for what we have no use for.
        let kind: Kind?
        let payload: Range<Int>
    }

    /// Longer messages than any stream's snapshot.
    static let longest = 4 << 20

    enum Failure: Error {
        case tooLong
    }

    /// The frame that begins at `offset`; nil while it is not complete.
    static func frame(in bytes: Span<UInt8>, at offset: Int) throws(Failure) -> Frame? {
        guard bytes.count - offset >= 2 else { return nil }
        var length = Int(bytes[offset + 1] & 0x7F)
        var start = offset + 2
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

    /// A frame of a client, masked with zeros: what it says is no secret, and goes through no proxy.
    static func clientFrame(_ kind: Kind, _ payload: [UInt8]) -> [UInt8] {
        // Control frames have at most 125 bytes, and we say nothing that is longer.
        [0x80 | kind.rawValue, 0x80 | UInt8(clamping: min(payload.count, 125)), 0, 0, 0, 0]
            + payload.prefix(125)
    }
}

extension Span<UInt8> {
    /// Whether a part of it holds these bytes.
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
