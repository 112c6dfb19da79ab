/// One `a=` line.
///
/// - Source: RFC 8866 §5.13.
package struct SDPAttribute: Equatable, Sendable {
    /// The part before the colon.
    package var name: Name
    /// Nil for a property attribute such as `a=rtcp-mux`.
    package var value: String?

    package init(_ name: Name, _ value: String? = nil) {
        self.name = name
        self.value = value
    }

    /// The name of an attribute; case matters.
    package struct Name: Hashable, Sendable, CustomStringConvertible {
        /// As written.
        package let description: String

        package init(_ name: String) {
            description = name
        }
    }
}

/// A line that is no attribute and has no property of its own, such as `c=` or `b=`.
package struct SDPField: Equatable, Sendable {
    /// The letter before the equals sign.
    package var letter: UInt8
    /// The text after the equals sign.
    package var value: String

    package init(_ letter: UInt8, _ value: String) {
        self.letter = letter
        self.value = value
    }
}

/// A part of a description that contains attributes: the session, an m-line, or a trickle fragment.
package protocol SDPSection {
    /// In the order in which they were received or will be sent.
    var attributes: [SDPAttribute] { get set }
}

extension SDPSection {
    /// Whether there is an attribute with this name, with or without a value.
    package func has(_ name: SDPAttribute.Name) -> Bool {
        attributes.contains { $0.name == name }
    }

    /// The value of the first attribute with this name; empty for a property attribute.
    package func first(_ name: SDPAttribute.Name) -> String? {
        attributes.first { $0.name == name }.map { $0.value ?? "" }
    }

    /// The values of all attributes with this name, in order.
    package func all(_ name: SDPAttribute.Name) -> [String] {
        attributes.compactMap { $0.name == name ? $0.value ?? "" : nil }
    }

    /// Appends an attribute.
    /// - Parameter value: nil for a property attribute.
    package mutating func append(_ name: SDPAttribute.Name, _ value: String? = nil) {
        attributes.append(SDPAttribute(name, value))
    }

    /// Parses all attributes with this name; throws an error for the first malformed one.
    func parsed<Value: SDPValue>(_ name: SDPAttribute.Name) throws(WireError) -> [Value] {
        var values: [Value] = []
        for attribute in attributes where attribute.name == name {
            values.append(try Value(parsing: attribute.value ?? ""))
        }
        return values
    }

    /// Parses the first attribute with this name, if there is one.
    func firstParsed<Value: SDPValue>(_ name: SDPAttribute.Name) throws(WireError) -> Value? {
        guard let text = first(name) else { return nil }
        return try Value(parsing: text)
    }
}

/// The parsed value of an attribute.
package protocol SDPValue: Equatable, Sendable {
    /// Parses the text after the colon.
    /// - Throws: `.invalid` with the field of the attribute.
    init(parsing text: String) throws(WireError)
    /// The value as written in a description.
    var text: String { get }
}

extension SDPAttribute.Name {
    /// RFC 9143 §6.
    package static var bundleOnly: Self { .init("bundle-only") }
    /// RFC 8839 §5.1.
    package static var candidate: Self { .init("candidate") }
    /// RFC 8840.
    package static var endOfCandidates: Self { .init("end-of-candidates") }
    /// RFC 8285 §5.
    package static var extmap: Self { .init("extmap") }
    /// RFC 8285 §6.
    package static var extmapAllowMixed: Self { .init("extmap-allow-mixed") }
    /// RFC 8122 §5.
    package static var fingerprint: Self { .init("fingerprint") }
    /// RFC 8866 §6.15.
    package static var fmtp: Self { .init("fmtp") }
    /// RFC 5888 §5.
    package static var group: Self { .init("group") }
    /// RFC 8839 §5.3.
    package static var iceLite: Self { .init("ice-lite") }
    /// RFC 8839 §5.6.
    package static var iceOptions: Self { .init("ice-options") }
    /// RFC 8839 §5.4.
    package static var icePassword: Self { .init("ice-pwd") }
    /// RFC 8839 §5.4.
    package static var iceUfrag: Self { .init("ice-ufrag") }
    /// RFC 8841 §6.
    package static var maxMessageSize: Self { .init("max-message-size") }
    /// RFC 5888 §4.
    package static var mid: Self { .init("mid") }
    /// RFC 8830 §2.
    package static var msid: Self { .init("msid") }
    /// From drafts before RFC 8830; browsers still write it.
    package static var msidSemantic: Self { .init("msid-semantic") }
    /// RFC 8851 §4.
    package static var rid: Self { .init("rid") }
    /// RFC 4585 §4.2.
    package static var rtcpFeedback: Self { .init("rtcp-fb") }
    /// RFC 5761 §5.1.1.
    package static var rtcpMux: Self { .init("rtcp-mux") }
    /// RFC 8858.
    package static var rtcpMuxOnly: Self { .init("rtcp-mux-only") }
    /// RFC 5506 §5.
    package static var rtcpReducedSize: Self { .init("rtcp-rsize") }
    /// RFC 8866 §6.6.
    package static var rtpmap: Self { .init("rtpmap") }
    /// RFC 8841 §5.
    package static var sctpPort: Self { .init("sctp-port") }
    /// RFC 4145 §4.
    package static var setup: Self { .init("setup") }
    /// RFC 8853 §5.1.
    package static var simulcast: Self { .init("simulcast") }
    /// RFC 5576 §4.1.
    package static var ssrc: Self { .init("ssrc") }
    /// RFC 5576 §4.2.
    package static var ssrcGroup: Self { .init("ssrc-group") }
}
