// Attributes that describe the RTP streams of an m-line: direction, extmap, msid, ssrc, ssrc-group.

/// The direction of media, from the side whose description contains it.
package enum MediaDirection: String, Sendable, Hashable {
    case sendrecv, sendonly, recvonly, inactive

    /// - Parameter sends: from the side whose description contains it, as `receives`.
    package init(sends: Bool, receives: Bool) {
        self = sends ? (receives ? .sendrecv : .sendonly) : (receives ? .recvonly : .inactive)
    }

    /// Whether the side that declares it sends.
    package var sends: Bool { self == .sendrecv || self == .sendonly }
    /// Whether the side that declares it receives.
    package var receives: Bool { self == .sendrecv || self == .recvonly }
    /// The same direction from the other side.
    package var reversed: MediaDirection { MediaDirection(sends: receives, receives: sends) }
}

extension SDPSection {
    /// The direction in this section; nil if there is none.
    package var direction: MediaDirection? {
        for attribute in attributes where attribute.value == nil {
            if let direction = MediaDirection(rawValue: attribute.name.description) { return direction }
        }
        return nil
    }
}

/// `a=extmap`: the id of an RTP header extension.
///
/// - Source: RFC 8285 §5.
package struct ExtensionMap: SDPValue {
    /// 1 to 14 fit the one-byte form, up to 255 the two-byte form; an answer must replace 4,096 to 4,351.
    package var id: UInt16
    /// Nil for the direction of the m-line.
    package var direction: MediaDirection?
    /// Identifies the extension; `RTPExtensionURI` lists known ones.
    package var uri: String
    /// Extension attributes, which no known extension has.
    package var parameters: String?

    package init(id: UInt16, direction: MediaDirection? = nil, uri: String, parameters: String? = nil) {
        self.id = id
        self.direction = direction
        self.uri = uri
        self.parameters = parameters
    }

    /// - Throws: `.invalid(.sdpExtensionMap)` if the id, direction or URI is missing or invalid.
    package init(parsing text: String) throws(WireError) {
        var scanner = SDPScanner(text)
        guard var head = scanner.word().map({ SDPScanner(String($0)) }), let uri = scanner.word(),
            let id = UInt16(digits: head.take(until: .slash)),
            (1...255).contains(id) || (4_096...4_351).contains(id)
        else { throw .invalid(.sdpExtensionMap) }
        self.id = id
        self.uri = String(uri)
        if !head.isAtEnd {
            guard let direction = MediaDirection(rawValue: head.remainder) else {
                throw .invalid(.sdpExtensionMap)
            }
            self.direction = direction
        }
        scanner.skipSpaces()
        if !scanner.isAtEnd { parameters = scanner.remainder }
    }

    package var text: String {
        "\(id)" + (direction.map { "/\($0.rawValue)" } ?? "") + " \(uri)"
            + (parameters.map { " \($0)" } ?? "")
    }
}

/// `a=msid`: the MediaStream and track of the browser API that an m-line carries.
///
/// - Source: RFC 8830 §2.
package struct MediaStreamIdentifier: SDPValue {
    /// `-` for a track that belongs to no MediaStream.
    package var stream: String
    /// Nil if only the MediaStream is given.
    package var track: String?

    package init(stream: String, track: String?) {
        self.stream = stream
        self.track = track
    }

    /// - Throws: `.invalid(.sdpMSID)` without a stream, or with more than two words.
    package init(parsing text: String) throws(WireError) {
        var scanner = SDPScanner(text)
        guard let stream = scanner.word() else { throw .invalid(.sdpMSID) }
        self.stream = String(stream)
        track = scanner.word().map { String($0) }
        guard scanner.word() == nil else { throw .invalid(.sdpMSID) }
    }

    package var text: String { track.map { "\(stream) \($0)" } ?? stream }
}

/// `a=ssrc`: one attribute of an RTP stream.
///
/// - Source: RFC 5576 §4.1.
package struct SourceAttribute: SDPValue {
    /// The RTP stream.
    package var ssrc: UInt32
    /// Such as `cname` or `msid`.
    package var name: String
    /// Nil for a property attribute.
    package var value: String?

    package init(ssrc: UInt32, name: String, value: String?) {
        self.ssrc = ssrc
        self.name = name
        self.value = value
    }

    /// - Throws: `.invalid(.sdpSSRC)` without an SSRC and an attribute.
    package init(parsing text: String) throws(WireError) {
        var scanner = SDPScanner(text)
        guard let ssrc = scanner.word().flatMap({ UInt32(digits: $0) }) else { throw .invalid(.sdpSSRC) }
        scanner.skipSpaces()
        let hasValue = scanner.rest.contains(.colon)
        self.ssrc = ssrc
        name = String(scanner.take(until: .colon))
        guard !name.isEmpty else { throw .invalid(.sdpSSRC) }
        value = hasValue ? scanner.remainder : nil
    }

    package var text: String { "\(ssrc) \(name)" + (value.map { ":\($0)" } ?? "") }
}

/// `a=ssrc-group`: related RTP streams; `FID` relates a stream and its RTX.
///
/// - Source: RFC 5576 §4.2.
package struct SourceGroup: SDPValue {
    /// Such as `FID`, or `SIM` for simulcast without RIDs.
    package var semantics: String
    /// Their order depends on the semantics: in `FID`, media precedes RTX.
    package var ssrcs: [UInt32]

    package init(semantics: String, ssrcs: [UInt32]) {
        self.semantics = semantics
        self.ssrcs = ssrcs
    }

    /// - Throws: `.invalid(.sdpSSRCGroup)` without semantics, or with an invalid SSRC.
    package init(parsing text: String) throws(WireError) {
        var scanner = SDPScanner(text)
        guard let semantics = scanner.word() else { throw .invalid(.sdpSSRCGroup) }
        self.semantics = String(semantics)
        ssrcs = []
        while let word = scanner.word() {
            guard let ssrc = UInt32(digits: word) else { throw .invalid(.sdpSSRCGroup) }
            ssrcs.append(ssrc)
        }
    }

    package var text: String { ([semantics] + ssrcs.map { String($0) }).joined(separator: " ") }
}

extension SDPSection {
    /// Session-level or m-line-level header extensions.
    package func extensionMaps() throws(WireError) -> [ExtensionMap] { try parsed(.extmap) }
    /// Whether one- and two-byte header extensions may be mixed in one RTP stream (RFC 8285 §4.1.2).
    package var allowsMixedExtensions: Bool { has(.extmapAllowMixed) }
}

extension MediaDescription {
    /// Identifies the m-line in its description, and in the MID extension of packets.
    package var mid: String? { first(.mid) }
    /// One for each MediaStream that contains the track.
    package func msids() throws(WireError) -> [MediaStreamIdentifier] { try parsed(.msid) }
    /// In order; one stream has several attributes.
    package func sourceAttributes() throws(WireError) -> [SourceAttribute] { try parsed(.ssrc) }
    /// The `a=ssrc-group` attributes, in order.
    package func sourceGroups() throws(WireError) -> [SourceGroup] { try parsed(.ssrcGroup) }
}

extension WireError.Field {
    /// An id, direction or URI that is missing or invalid.
    package static var sdpExtensionMap: Self { .init("sdp.extmap") }
    /// No stream, or more words than stream and track.
    package static var sdpMSID: Self { .init("sdp.msid") }
    /// No SSRC, or no attribute after it.
    package static var sdpSSRC: Self { .init("sdp.ssrc") }
    /// No semantics, or an invalid SSRC.
    package static var sdpSSRCGroup: Self { .init("sdp.ssrc-group") }
}
