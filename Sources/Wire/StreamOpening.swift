extension WireError.Field {
    /// What comes first is of no protocol that shares a TCP port.
    static let streamOpening = WireError.Field("stream.opening")
}

/// What a TCP connection is for that several protocols may share a port with, by what its client sends first.
///
/// - Source: RFC 8489 §5 (STUN's cookie), RFC 4571 §2 (frames), RFC 7443 §2 and RFC 7301 §6 (names of protocols).
package enum StreamOpening: Equatable, Sendable {
    /// STUN as it is, as clients of TURN over TCP send it.
    case stun
    /// STUN in a frame, as ICE over TCP has it.
    case framedSTUN
    /// TLS, for what the names of protocols say; nil where they say nothing, or there are none.
    case tls(Application?)
    /// A letter: a request of HTTP in the clear, or what else is text.
    case text

    /// What TLS is for.
    package enum Application: Equatable, Sendable {
        case turn, http
    }

    /// So many bytes are enough to tell.
    package static let longest = ClientHello.longestStream
    private static let cookie: UInt32 = 0x2112_A442
    private static let stunHead = 8
    private static let framedHead = 10

    /// - Returns: nil while more has to come.
    /// - Throws: for what is none of these.
    package init?(_ stream: Span<UInt8>) throws(WireError) {
        guard !stream.isEmpty else { return nil }
        switch try stream.uint8(at: 0) {
        case ClientHello.recordType:
            guard let hello = try ClientHello(startOf: stream) else { return nil }
            self = .tls(Self.application(of: hello))
        case 0x41...0x5A, 0x61...0x7A:
            self = .text
        // The first byte of STUN's type is below 4, and so is that of a check's length in a frame.
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

    /// Whether plain bytes out of TLS are TURN's; all else is for HTTP to judge.
    /// - Parameter first: of the bytes.
    package static func isSTUN(first: UInt8) -> Bool { first <= 3 }

    /// coturn's client names HTTP before TURN; nobody who comes for HTTP names TURN.
    private static func application(of hello: ClientHello) -> Application? {
        let names = hello.protocols.map { String(decoding: $0, as: UTF8.self) }
        if names.contains(where: { ["stun.turn", "stun.nat-discovery"].contains($0) }) { return .turn }
        return names.contains { ["h2", "http/1.1", "http/1.0"].contains($0) } ? .http : nil
    }
}
