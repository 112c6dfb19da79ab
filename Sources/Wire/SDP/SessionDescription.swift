/// An SDP session description: an offer or an answer.
///
/// Keeps all lines in order, so that a parsed description can be written again. Typed accessors give their meaning,
/// and throw if a value is malformed.
/// - Source: RFC 8866; RFC 9429 §5 (what browsers put in).
package struct SessionDescription: Equatable, Sendable, SDPSection {
    /// Longest description accepted, in bytes; an offer of Chrome takes about 5 kB for each pair of audio and
    /// video.
    package static let maximumLength = 65_536
    /// More lines are refused with `sdpLineCount`.
    package static let maximumLineCount = 5_000
    /// More m-lines are refused with `sdpMediaCount`.
    package static let maximumMediaCount = 32

    /// The value of `o=`.
    package var origin: String
    /// The value of `s=`.
    package var name: String
    /// Other lines such as `t=`, `c=` and `b=`, in order.
    package var fields: [SDPField]
    /// Attributes before the first m-line, which apply to all m-lines.
    package var attributes: [SDPAttribute]
    /// In order; an answer must keep the order of the offer (RFC 3264 §6).
    package var media: [MediaDescription]

    /// - Parameter origin: the value of `o=`, which has six parts.
    package init(
        origin: String,
        name: String = "-",
        fields: [SDPField] = [SDPField(UInt8(ascii: "t"), "0 0")],
        attributes: [SDPAttribute] = [],
        media: [MediaDescription] = []
    ) {
        self.origin = origin
        self.name = name
        self.fields = fields
        self.attributes = attributes
        self.media = media
    }

    /// - Throws: as `init(parsing:)` for bytes.
    package init(parsing text: String) throws(WireError) {
        try self.init(parsing: Array(text.utf8).span)
    }

    /// - Throws: `.truncated` if it ends within its first three lines; `.invalid` with the faulty field.
    package init(parsing bytes: Span<UInt8>) throws(WireError) {
        var lines = try SDPLines(bytes)
        guard let version = lines.take() else { throw .truncated }
        guard version == .init(letter: UInt8(ascii: "v"), value: "0") else { throw .invalid(.sdpVersion) }
        guard lines.peek() != nil else { throw .truncated }
        guard let origin = lines.take("o"), origin.utf8.split(separator: .space).count == 6 else {
            throw .invalid(.sdpOrigin)
        }
        guard lines.peek() != nil else { throw .truncated }
        guard let name = lines.take("s") else { throw .invalid(.sdpLine) }
        self.origin = origin
        self.name = name
        (fields, attributes) = try lines.takeSection()
        media = try lines.takeMedia()
    }

    /// The description as text, with CRLF line ends.
    package var text: String {
        var text = "v=0\r\no=\(origin)\r\ns=\(name)\r\n"
        text.append(fields: fields, attributes: attributes)
        text.append(media: media)
        return text
    }
}

extension String {
    mutating func append(fields: [SDPField], attributes: [SDPAttribute]) {
        for field in fields {
            unicodeScalars.append(Unicode.Scalar(field.letter))
            append("=\(field.value)\r\n")
        }
        for attribute in attributes {
            append("a=\(attribute.name)")
            if let value = attribute.value {
                append(":")
                append(value)
            }
            append("\r\n")
        }
    }

    mutating func append(media: [MediaDescription]) {
        for description in media {
            append("m=\(description.line)\r\n")
            append(fields: description.fields, attributes: description.attributes)
        }
    }
}
