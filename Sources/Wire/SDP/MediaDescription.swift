import Base

/// One m-line and the lines that belong to it.
///
/// - Source: RFC 8866 §5.14.
package struct MediaDescription: Equatable, Sendable, SDPSection {
    /// The media types that this server knows; `application` is for data channels.
    package enum MediaType: String, Sendable, Hashable {
        case audio, video, application
    }

    /// `audio`, `video`, `application`, or an unknown media type.
    package var media: String
    /// 0 if the m-line is rejected or, with `a=bundle-only`, has no transport of its own; other values have no
    /// meaning.
    package var port: UInt16
    /// Such as `UDP/TLS/RTP/SAVPF`.
    package var transport: String
    /// Payload types, or `webrtc-datachannel`.
    package var formats: [String]
    /// Other lines such as `c=` and `b=`, in order.
    package var fields: [SDPField] = []
    /// In order; session-level attributes are not repeated here.
    package var attributes: [SDPAttribute] = []

    /// Creates an m-line without further lines.
    package init(media: String, port: UInt16, transport: String, formats: [String]) {
        self.media = media
        self.port = port
        self.transport = transport
        self.formats = formats
    }

    /// Parses the value of an `m=` line.
    init(parsing line: String) throws(WireError) {
        var scanner = SDPScanner(line)
        guard let media = scanner.word().map({ String($0) }), media.isSDPToken(),
            let portText = scanner.word(), let transport = scanner.word()
        else { throw .invalid(.sdpMedia) }
        // The number of ports, as in `/2`, has no meaning with ICE.
        var ports = SDPScanner(String(portText))
        guard let port = UInt16(digits: ports.take(until: .slash)) else { throw .invalid(.sdpMedia) }
        var formats: [String] = []
        while let format = scanner.word() { formats.append(String(format)) }
        guard !formats.isEmpty else { throw .invalid(.sdpMedia) }
        self.init(media: media, port: port, transport: String(transport), formats: formats)
    }

    /// The value of the `m=` line.
    var line: String {
        "\(media) \(port) \(transport) \(formats.joined(separator: " "))"
    }

    /// Nil for an unknown media type.
    package var type: MediaType? { MediaType(rawValue: media) }

    /// What its RTP stream carries; nil for data channels and unknown media types.
    package var kind: MediaKind? { MediaKind(rawValue: media) }

    /// The formats as RTP payload types, without duplicates.
    package func payloadTypes() throws(WireError) -> [UInt8] {
        var types: [UInt8] = []
        var seen: Set<UInt8> = []
        for format in formats {
            let type = try payloadType(format[...])
            if seen.insert(type).inserted { types.append(type) }
        }
        return types
    }
}

/// Reads 0 to 127.
func payloadType(_ digits: Substring?) throws(WireError) -> UInt8 {
    guard let type = digits.flatMap({ UInt8(digits: $0) }), type < 128 else {
        throw .invalid(.sdpPayloadType)
    }
    return type
}

extension WireError.Field {
    /// Not a number from 0 to 127.
    package static var sdpPayloadType: Self { .init("sdp.payload-type") }
}
