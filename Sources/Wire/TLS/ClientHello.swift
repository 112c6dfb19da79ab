extension WireError.Field {
    /// The first message of a TLS client is not a ClientHello, or is too long.
    static let clientHello = WireError.Field("tls.client-hello")
}

/// The first message of a TLS client, as far as it is needed to choose an application protocol.
///
/// The TLS implementation parses it again and validates the rest.
/// - Source: RFC 8446 §4.1.2 (message), §4.2 (extensions), §5.1 (records), §D.2 (older versions); RFC 7301 §3.1 (ALPN).
package struct ClientHello: Equatable, Sendable {
    /// Longest message in bytes, with its header; those of browsers have about 2,000.
    package static let longestMessage = 16_384
    /// The same with record headers: that many bytes contain a whole message, or one that is too long.
    package static let longestStream = longestMessage + 1_024

    private static let recordHead = 5
    private static let messageHead = 4
    /// The content type of handshake records.
    package static let recordType: UInt8 = 22
    private static let messageType: UInt8 = 1
    private static let alpnExtension: UInt16 = 16

    /// Protocol names (ALPN) in the client's order of preference; empty without the extension.
    package let protocols: [[UInt8]]

    /// Parses the beginning of a stream.
    /// - Returns: nil while the message is incomplete.
    /// - Throws: for anything but a ClientHello.
    package init?(startOf stream: Span<UInt8>) throws(WireError) {
        guard case .message(let message) = try Self.read(stream) else { return nil }
        protocols = try Self.protocols(in: message.span)
    }

    /// How many bytes of a stream there have to be before looking at it again can find a whole message.
    ///
    /// A client may send a message in thousands of pieces. To look at all of it again for each piece would cost the
    /// square of its length.
    /// - Parameter stream: the beginning of a stream, as far as it has arrived.
    /// - Returns: more than `stream` has while its message is incomplete, but at most `longestStream`.
    package static func needed(after stream: Span<UInt8>) -> Int {
        guard case .incomplete(let needed)? = try? read(stream) else { return stream.count }
        return min(needed, longestStream)
    }

    /// What the beginning of a stream contains.
    private enum Beginning {
        /// A whole message, without its header.
        case message([UInt8])
        /// A part of one, of which there is certainly no more than a part in fewer than `needed` bytes.
        case incomplete(needed: Int)
    }

    /// Joins the contents of records until a message is complete.
    private static func read(_ stream: Span<UInt8>) throws(WireError) -> Beginning {
        let count = min(stream.count, longestStream)
        var joined: [UInt8] = []
        var offset = 0
        // Of the message with its header, once its length is known; and of the present record.
        var (expected, recordEnd) = (0, 0)
        while offset < count {
            guard try stream.uint8(at: offset) == recordType else { throw .invalid(.clientHello) }
            // The first byte of the version is 3 in all versions of TLS.
            if offset + 1 < count, try stream.uint8(at: offset + 1) != 3 { throw .invalid(.clientHello) }
            guard offset + recordHead <= count else { break }
            let length = Int(try stream.uint16(at: offset + 3))
            guard (1...longestMessage).contains(length) else { throw .invalid(.clientHello) }
            let start = offset + recordHead
            recordEnd = start + length
            let end = min(recordEnd, count)
            joined += try stream.bytes(start..<end)
            offset = end
            if let first = joined.first, first != messageType { throw .invalid(.clientHello) }
            guard joined.count >= messageHead else { continue }
            expected = messageHead + Int(try joined.span.uint24(at: 1))
            guard expected <= longestMessage else { throw .invalid(.clientHello) }
            if joined.count >= expected { return .message(Array(joined[messageHead..<expected])) }
        }
        guard count < longestStream else { throw .invalid(.clientHello) }
        // Before its length is known, the message has a few bytes only, so each may be looked at.
        guard expected > 0 else { return .incomplete(needed: count + 1) }
        let missing = expected - joined.count
        // What the present record does not hold comes after the header of another, of which a part may be here.
        let isWithin = offset + missing <= recordEnd
        return .incomplete(needed: offset + missing + (isWithin ? 0 : recordHead))
    }

    /// Finds the ALPN names in a message.
    private static func protocols(in message: Span<UInt8>) throws(WireError) -> [[UInt8]] {
        // Skip version and random.
        var reader = Reader(offset: 2 + 32, end: message.count)
        _ = try reader.vector8(of: message)
        // Skip cipher suites.
        _ = try reader.vector16(of: message)
        // Skip compression methods.
        _ = try reader.vector8(of: message)
        // In TLS 1.2 the extensions may be absent.
        guard !reader.isAtEnd else { return [] }
        var extensions = try reader.vector16(of: message)
        guard reader.isAtEnd else { throw .invalid(.clientHello) }
        var found: [[UInt8]] = []
        while !extensions.isAtEnd {
            let type = try extensions.uint16(of: message)
            var body = try extensions.vector16(of: message)
            guard type == alpnExtension else { continue }
            guard found.isEmpty else { throw .invalid(.clientHello) }
            var names = try body.vector16(of: message)
            guard body.isAtEnd, !names.isAtEnd else { throw .invalid(.clientHello) }
            while !names.isAtEnd {
                let name = try names.vector8(of: message)
                guard !name.isAtEnd else { throw .invalid(.clientHello) }
                found.append(try message.bytes(name.offset..<name.end))
            }
        }
        return found
    }
}

/// The reading position in a message of vectors, each preceded by its length (RFC 8446 §3.4).
private struct Reader {
    private(set) var offset: Int
    let end: Int

    init(offset: Int, end: Int) {
        self.offset = offset
        self.end = end
    }

    var isAtEnd: Bool { offset == end }

    mutating func uint16(of message: Span<UInt8>) throws(WireError) -> UInt16 {
        guard offset + 2 <= end else { throw .truncated }
        defer { offset += 2 }
        return try message.uint16(at: offset)
    }

    /// Reads a vector with a length of one byte.
    /// - Returns: a reader for its contents.
    mutating func vector8(of message: Span<UInt8>) throws(WireError) -> Reader {
        guard offset < end else { throw .truncated }
        let length = Int(try message.uint8(at: offset))
        offset += 1
        return try content(length)
    }

    /// Reads a vector with a length of two bytes.
    /// - Returns: a reader for its contents.
    mutating func vector16(of message: Span<UInt8>) throws(WireError) -> Reader {
        try content(Int(try uint16(of: message)))
    }

    private mutating func content(_ length: Int) throws(WireError) -> Reader {
        guard length <= end - offset else { throw .truncated }
        defer { offset += length }
        return Reader(offset: offset, end: offset + length)
    }
}
