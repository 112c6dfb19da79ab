extension WireError.Field {
    /// The first bytes belong to no protocol that may share a TCP port.
    static let streamOpening = WireError.Field("stream.opening")
}

/// The protocol of a TCP connection on a port shared by several, recognized by the client's first bytes.
///
/// - Source: RFC 8489 §5 (STUN's cookie), RFC 4571 §2 (frames), RFC 7443 §2 and RFC 7301 §6 (names of protocols).
package enum StreamOpening: Equatable, Sendable {
    /// Unframed STUN, as sent by clients of TURN over TCP.
    case stun
    /// STUN in a frame, as in ICE over TCP.
    case framedSTUN
    /// TLS, with the application named by ALPN; nil if ALPN is absent or names neither.
    case tls(Application?)
    /// A letter: an HTTP request without TLS, or other text.
    case text

    /// The application protocol inside TLS.
    package enum Application: Equatable, Sendable {
        case turn, http
    }

    /// Bytes that are always enough for a decision.
    package static let longest = ClientHello.longestStream
    private static let cookie: UInt32 = 0x2112_A442
    private static let stunHead = 8
    private static let framedHead = 10

    /// Recognizes a stream by its beginning.
    /// - Returns: nil while more bytes are needed.
    /// - Throws: for a stream of no known protocol.
    package init?(_ stream: Span<UInt8>) throws(WireError) {
        guard !stream.isEmpty else { return nil }
        switch try stream.uint8(at: 0) {
        case ClientHello.recordType:
            guard let hello = try ClientHello(startOf: stream) else { return nil }
            self = .tls(Self.application(of: hello))
        case 0x41...0x5A, 0x61...0x7A:
            self = .text
        // The first byte of a STUN type is below 4, and so is the first byte of the length of a framed check.
        case 0...3:
            guard stream.count >= Self.stunHead else { return nil }
            if try stream.uint32(at: 4) == Self.cookie {
                self = .stun
                return
            }
            guard stream.count >= Self.framedHead else { return nil }
            guard try stream.uint32(at: 6) == Self.cookie, try stream.uint8(at: 2) <= 3 else {
                throw .invalid(.streamOpening)
            }
            self = .framedSTUN
        default:
            throw .invalid(.streamOpening)
        }
    }

    /// How many bytes of a stream there have to be before looking at it again can recognize it.
    ///
    /// That it is none of these protocols may show earlier, but is of no use to anyone.
    /// - Parameter stream: its beginning, which did not suffice.
    /// - Returns: more than `stream` has, but at most `longest`.
    package static func needed(after stream: Span<UInt8>) -> Int {
        guard (try? stream.uint8(at: 0)) == ClientHello.recordType else { return stream.count + 1 }
        return ClientHello.needed(after: stream)
    }

    /// Whether decrypted bytes from TLS are TURN's; everything else is left to the HTTP parser.
    /// - Parameter first: their first byte.
    package static func isSTUN(first: UInt8) -> Bool { first <= 3 }

    /// coturn's client lists HTTP before TURN, and no HTTP client lists TURN, so TURN takes precedence.
    private static func application(of hello: ClientHello) -> Application? {
        let names = hello.protocols.map { String(decoding: $0, as: UTF8.self) }
        if names.contains(where: { ["stun.turn", "stun.nat-discovery"].contains($0) }) { return .turn }
        return names.contains { ["h2", "http/1.1", "http/1.0"].contains($0) } ? .http : nil
    }
}
