// Attributes that describe payload types: rtpmap, fmtp, rtcp-fb.

/// `a=rtpmap`: the codec of a payload type.
///
/// - Source: RFC 8866 §6.6.
package struct RTPMap: SDPValue {
    /// 0 to 127.
    package var payloadType: UInt8
    /// Such as `opus`, `VP8` or `rtx`; must be compared with `matchesIgnoringCase`.
    package var encoding: String
    /// In hertz.
    package var clockRate: UInt32
    /// Number of audio channels, if given.
    package var channels: Int?

    package init(payloadType: UInt8, encoding: String, clockRate: UInt32, channels: Int? = nil) {
        self.payloadType = payloadType
        self.encoding = encoding
        self.clockRate = clockRate
        self.channels = channels
    }

    /// - Throws: `.invalid(.sdpRTPMap)` unless it is `TYPE NAME/RATE` or `TYPE NAME/RATE/CHANNELS`.
    package init(parsing text: String) throws(WireError) {
        var scanner = SDPScanner(text)
        payloadType = try Wire.payloadType(scanner.word())
        guard let codec = scanner.word() else { throw .invalid(.sdpRTPMap) }
        let parts = codec.parts(separatedBy: .slash)
        guard parts.count == 2 || parts.count == 3, let clockRate = UInt32(digits: parts[1]) else {
            throw .invalid(.sdpRTPMap)
        }
        encoding = String(parts[0])
        guard encoding.isSDPToken() else { throw .invalid(.sdpRTPMap) }
        self.clockRate = clockRate
        if parts.count == 3 {
            guard let channels = UInt8(digits: parts[2]) else { throw .invalid(.sdpRTPMap) }
            self.channels = Int(channels)
        }
    }

    package var text: String {
        "\(payloadType) \(encoding)/\(clockRate)" + (channels.map { "/\($0)" } ?? "")
    }
}

/// `a=fmtp`: the parameters of a payload type, such as `minptime=10;useinbandfec=1`.
///
/// - Source: RFC 8866 §6.15.
package struct FormatParameters: SDPValue {
    /// One parameter; the value is nil without an equals sign, as in `111/111` of RED.
    package struct Parameter: Equatable, Sendable {
        /// Such as `profile-level-id`; compared without regard to case.
        package var name: String
        /// As written, without surrounding spaces.
        package var value: String?

        package init(_ name: String, _ value: String? = nil) {
            self.name = name
            self.value = value
        }
    }

    /// 0 to 127.
    package var payloadType: UInt8
    /// In the order of the description; a name may occur twice.
    package var parameters: [Parameter]

    package init(payloadType: UInt8, parameters: [Parameter]) {
        self.payloadType = payloadType
        self.parameters = parameters
    }

    /// - Throws: `.invalid(.sdpPayloadType)`; any list of parameters is accepted.
    package init(parsing text: String) throws(WireError) {
        var scanner = SDPScanner(text)
        payloadType = try Wire.payloadType(scanner.word())
        parameters = Self.parameters(scanner)
    }

    /// Parses a list of `name=value` separated by semicolons, with or without surrounding spaces.
    package static func parameters(of text: String) -> [Parameter] {
        parameters(SDPScanner(text))
    }

    private static func parameters(_ start: SDPScanner) -> [Parameter] {
        var scanner = start
        var parameters: [Parameter] = []
        while !scanner.isAtEnd {
            var item = SDPScanner(String(scanner.take(until: .semicolon)))
            item.trimSpaces()
            guard !item.isAtEnd else { continue }
            let hasValue = item.rest.contains(.equals)
            let name = String(item.take(until: .equals))
            parameters.append(Parameter(name, hasValue ? item.remainder : nil))
        }
        return parameters
    }

    /// Writes `name=value`, separated by semicolons.
    package static func text(of parameters: [Parameter]) -> String {
        parameters.map { item in item.value.map { "\(item.name)=\($0)" } ?? item.name }.joined(separator: ";")
    }

    /// The value of a parameter; names are compared without regard to case.
    package subscript(name name: String) -> String? {
        parameters.first { $0.name.matchesIgnoringCase(name) }?.value
    }

    package var text: String { "\(payloadType) \(Self.text(of: parameters))" }
}

/// `a=rtcp-fb`: a kind of RTCP feedback that is allowed.
///
/// - Source: RFC 4585 §4.2, RFC 5104 §7.1.
package struct RTCPFeedback: SDPValue {
    /// Nil if it applies to every payload type of the m-line (`*`).
    package var payloadType: UInt8?
    /// Such as `nack`, `nack pli` or `transport-cc`.
    package var kind: String

    package init(payloadType: UInt8?, kind: String) {
        self.payloadType = payloadType
        self.kind = kind
    }

    /// - Throws: `.invalid` for a wrong payload type, or without a kind.
    package init(parsing text: String) throws(WireError) {
        var scanner = SDPScanner(text)
        let type = scanner.word()
        payloadType = type == "*" ? nil : try Wire.payloadType(type)
        var words: [String] = []
        while let word = scanner.word() { words.append(String(word)) }
        guard !words.isEmpty else { throw .invalid(.sdpFeedback) }
        kind = words.joined(separator: " ")
    }

    package var text: String { "\(payloadType.map { String($0) } ?? "*") \(kind)" }
}

extension MediaDescription {
    /// All `a=rtpmap` attributes.
    /// - Throws: an error for the first malformed one.
    package func rtpMaps() throws(WireError) -> [RTPMap] { try parsed(.rtpmap) }
    /// All `a=fmtp` attributes.
    /// - Throws: an error for the first with an invalid payload type.
    package func formatParameters() throws(WireError) -> [FormatParameters] { try parsed(.fmtp) }
    /// All `a=rtcp-fb` attributes.
    /// - Throws: an error for the first malformed one.
    package func feedback() throws(WireError) -> [RTCPFeedback] { try parsed(.rtcpFeedback) }

    /// Whether RTCP shares the port of RTP (RFC 5761, RFC 8858).
    package var isRTCPMultiplexed: Bool { has(.rtcpMux) || has(.rtcpMuxOnly) }
    /// Whether RTCP packets may be sent without a report (RFC 5506).
    package var allowsReducedSizeRTCP: Bool { has(.rtcpReducedSize) }
}

extension WireError.Field {
    /// An encoding name, clock rate or number of channels is missing or invalid.
    package static var sdpRTPMap: Self { .init("sdp.rtpmap") }
    /// An `a=rtcp-fb` without a kind of feedback.
    package static var sdpFeedback: Self { .init("sdp.rtcp-fb") }
}
