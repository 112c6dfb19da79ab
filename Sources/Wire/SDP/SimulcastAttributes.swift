// Attributes that describe simulcast: rid, simulcast.

/// `a=rid`: an RTP stream identified by the RtpStreamId header extension, and its restrictions.
///
/// - Source: RFC 8851 §4.
package struct StreamRestriction: SDPValue {
    /// From the side whose description contains it.
    package enum Direction: String, Sendable {
        case send, recv
    }

    /// The longest id accepted, in bytes; browsers use one to three.
    package static let maximumIDLength = 32

    /// Letters, digits, `-` and `_`: what the RtpStreamId extension carries.
    package var id: String
    /// Whether that side sends the stream or wants to receive it.
    package var direction: Direction
    /// Such as `pt=97,98` or `max-width=1280`.
    package var parameters: [FormatParameters.Parameter]

    package init(id: String, direction: Direction, parameters: [FormatParameters.Parameter] = []) {
        self.id = id
        self.direction = direction
        self.parameters = parameters
    }

    /// - Throws: `.invalid(.sdpRID)` if the id or the direction is missing or malformed.
    package init(parsing text: String) throws(WireError) {
        var scanner = SDPScanner(text)
        guard let id = scanner.word().map({ String($0) }), Self.isValid(id: id),
            let direction = scanner.word().flatMap({ Direction(rawValue: String($0)) })
        else { throw .invalid(.sdpRID) }
        self.id = id
        self.direction = direction
        parameters = FormatParameters.parameters(of: scanner.remainder)
    }

    package var text: String {
        let restrictions = FormatParameters.text(of: parameters)
        return "\(id) \(direction.rawValue)" + (restrictions.isEmpty ? "" : " \(restrictions)")
    }

    /// Letters, digits, `-` and `_`.
    static func isValid(id: String) -> Bool {
        let bytes = id.utf8
        guard (1...maximumIDLength).contains(bytes.count) else { return false }
        return bytes.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "_"): true
            default: false
            }
        }
    }
}

/// `a=simulcast`: the encodings of one source that are sent or received in parallel.
///
/// - Source: RFC 8853 §5.1.
package struct Simulcast: SDPValue {
    /// One way to send a simulcast stream.
    package struct Alternative: Equatable, Sendable {
        /// The id of an `a=rid` line.
        package var rid: String
        /// Whether it is initially paused (`~`).
        package var isPaused: Bool

        package init(_ rid: String, isPaused: Bool = false) {
            self.rid = rid
            self.isPaused = isPaused
        }
    }

    /// Simulcast streams in order of preference, each with its alternatives.
    package var send: [[Alternative]]
    /// The streams that the side accepts, in the same form.
    package var receive: [[Alternative]]

    package init(send: [[Alternative]] = [], receive: [[Alternative]] = []) {
        self.send = send
        self.receive = receive
    }

    /// - Throws: `.invalid(.sdpSimulcast)` if a list is missing or repeated, or contains an invalid id.
    package init(parsing text: String) throws(WireError) {
        self.init()
        var scanner = SDPScanner(text)
        while let direction = scanner.word() {
            guard let list = scanner.word() else { throw .invalid(.sdpSimulcast) }
            let streams = try Self.streams(list)
            switch String(direction) {
            case "send" where send.isEmpty: send = streams
            case "recv" where receive.isEmpty: receive = streams
            default: throw .invalid(.sdpSimulcast)
            }
        }
        guard !send.isEmpty || !receive.isEmpty else { throw .invalid(.sdpSimulcast) }
    }

    private static func streams(_ list: Substring) throws(WireError) -> [[Alternative]] {
        var streams: [[Alternative]] = []
        for stream in list.parts(separatedBy: .semicolon) {
            var alternatives: [Alternative] = []
            for item in stream.parts(separatedBy: .comma) {
                let isPaused = item.utf8.first == .tilde
                let rid = String(isPaused ? Substring(item.utf8.dropFirst()) : item)
                guard StreamRestriction.isValid(id: rid) else { throw .invalid(.sdpSimulcast) }
                alternatives.append(Alternative(rid, isPaused: isPaused))
            }
            streams.append(alternatives)
        }
        return streams
    }

    package var text: String {
        var parts: [String] = []
        for (name, streams) in [("send", send), ("recv", receive)] where !streams.isEmpty {
            let list = streams.map { $0.map { ($0.isPaused ? "~" : "") + $0.rid }.joined(separator: ",") }
            parts.append("\(name) \(list.joined(separator: ";"))")
        }
        return parts.joined(separator: " ")
    }
}

extension MediaDescription {
    /// The `a=rid` attributes of the m-line, in order.
    package func streamRestrictions() throws(WireError) -> [StreamRestriction] { try parsed(.rid) }
    /// The `a=simulcast` attribute; nil without one.
    package func simulcast() throws(WireError) -> Simulcast? { try firstParsed(.simulcast) }
}

extension WireError.Field {
    /// An `a=rid` without a valid id or direction.
    package static var sdpRID: Self { .init("sdp.rid") }
    /// An `a=simulcast` without streams, or with an invalid id.
    package static var sdpSimulcast: Self { .init("sdp.simulcast") }
}
