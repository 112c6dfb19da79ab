/// A partial description that trickles ICE candidates or restarts ICE.
///
/// The body of a PATCH request in WHIP or WHEP, of media type `application/trickle-ice-sdpfrag`.
/// - Source: RFC 8840 §9, RFC 9725 §4.3.
package struct SDPFragment: Equatable, Sendable, SDPSection {
    /// Longest fragment accepted, in bytes: room for a hundred candidates.
    package static let maximumLength = 16_384

    /// Attributes before the first m-line.
    package var attributes: [SDPAttribute]
    /// Pseudo m-lines, of which only `a=mid` and the ICE attributes matter.
    package var media: [MediaDescription]

    package init(attributes: [SDPAttribute] = [], media: [MediaDescription] = []) {
        self.attributes = attributes
        self.media = media
    }

    /// - Throws: as `init(parsing:)` for bytes.
    package init(parsing text: String) throws(WireError) {
        try self.init(parsing: Array(text.utf8).span)
    }

    /// - Throws: `.truncated` if there is no line; `.invalid` with the faulty field.
    package init(parsing bytes: Span<UInt8>) throws(WireError) {
        var lines = try SDPLines(bytes, upTo: Self.maximumLength)
        guard lines.peek() != nil else { throw .truncated }
        let section = try lines.takeSection()
        guard section.fields.isEmpty else { throw .invalid(.sdpLine) }
        attributes = section.attributes
        media = try lines.takeMedia()
    }

    /// The fragment as text, with CRLF line ends.
    package var text: String {
        var text = ""
        text.append(fields: [], attributes: attributes)
        text.append(media: media)
        return text
    }

    /// The credentials in the fragment: RFC 8840 puts them before the m-lines, RFC 9725 into an m-line.
    package var credentials: ICECredentials? {
        if let iceCredentials { return iceCredentials }
        for description in media {
            if let credentials = description.iceCredentials { return credentials }
        }
        return nil
    }

    /// The candidates of all m-lines, which have one transport in this server.
    package var allCandidates: [ICECandidate] {
        candidates + media.flatMap(\.candidates)
    }

    /// Whether the sender has no further candidates.
    package var isComplete: Bool {
        isEndOfCandidates || media.contains(where: \.isEndOfCandidates)
    }
}
