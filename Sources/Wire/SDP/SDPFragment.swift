/// The part of a description that trickles ICE candidates or restarts ICE.
///
/// The body of a WHIP or WHEP PATCH, media type `application/trickle-ice-sdpfrag`.
/// - Source: RFC 8840 §9, RFC 9725 §4.3.
package struct SDPFragment: Equatable, Sendable, SDPSection {
    /// Longest fragment accepted, in bytes: room for a hundred candidates.
    package static let maximumLength = 16_384

    /// Before the first m-line.
    package var attributes: [SDPAttribute]
    /// Pseudo m-lines: only `a=mid` and the ICE attributes in them count.
    package var media: [MediaDescription]

    package init(attributes: [SDPAttribute] = [], media: [MediaDescription] = []) {
        self.attributes = attributes
        self.media = media
    }

    /// - Throws: as `init(parsing:)` of bytes.
    package init(parsing text: String) throws(WireError) {
        try self.init(parsing: Array(text.utf8).span)
    }

    /// - Throws: `.truncated` if there is no line; `.invalid` naming what is wrong.
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

    /// The credentials the fragment is about: RFC 8840 puts them before the m-lines, RFC 9725 into one.
    package var credentials: ICECredentials? {
        if let iceCredentials { return iceCredentials }
        for description in media {
            if let credentials = description.iceCredentials { return credentials }
        }
        return nil
    }

    /// The candidates of all m-lines; all m-lines of ours share one transport.
    package var allCandidates: [ICECandidate] {
        candidates + media.flatMap(\.candidates)
    }

    /// Whether the sender has no more candidates.
    package var isComplete: Bool {
        isEndOfCandidates || media.contains(where: \.isEndOfCandidates)
    }
}
