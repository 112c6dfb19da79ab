/// One `a=` line.
///
/// - Source: RFC 8866 §5.13.
package struct SDPAttribute: Equatable, Sendable {
    package var name: Name
    /// Nil for a property attribute such as `a=rtcp-mux`.
    package var value: String?

    package init(_ name: Name, _ value: String? = nil) {
        self.name = name
        self.value = value
    }

    /// The name of an attribute; names differ by case.
    package struct Name: Hashable, Sendable, CustomStringConvertible {
        package let description: String

        package init(_ name: String) {
            description = name
        }
    }
}

/// A line that is neither an attribute nor has a place of its own, such as `c=` or `b=`.
package struct SDPField: Equatable, Sendable {
    /// The letter before the equals sign.
    package var letter: UInt8
    package var value: String

    package init(_ letter: UInt8, _ value: String) {
        self.letter = letter
        self.value = value
    }
}

/// The parts of a description that hold attributes: the session, each m-line, a trickle fragment.
package protocol SDPSection {
    /// In the order in which they were received or shall be sent.
    var attributes: [SDPAttribute] { get set }
}

extension SDPSection {
    package func has(_ name: SDPAttribute.Name) -> Bool {
        attributes.contains { $0.name == name }
    }

    /// The value of the first attribute of that name; empty for a property attribute.
    package func first(_ name: SDPAttribute.Name) -> String? {
        attributes.first { $0.name == name }.map { $0.value ?? "" }
    }

    /// The values of all attributes of that name, in order.
    package func all(_ name: SDPAttribute.Name) -> [String] {
        attributes.compactMap { $0.name == name ? $0.value ?? "" : nil }
    }

    package mutating func append(_ name: SDPAttribute.Name, _ value: String? = nil) {
        attributes.append(SDPAttribute(name, value))
    }

    package mutating func removeAll(_ name: SDPAttribute.Name) {
        attributes.removeAll { $0.name == name }
    }

    /// Reads every attribute of that name as a `Value`; the first one malformed is thrown.
    func parsed<Value: SDPValue>(_ name: SDPAttribute.Name) throws(WireError) -> [Value] {
        var values: [Value] = []
        for attribute in attributes where attribute.name == name {
            values.append(try Value(parsing: attribute.value ?? ""))
        }
        return values
    }

    /// Reads the first attribute of that name, if there is one.
    func firstParsed<Value: SDPValue>(_ name: SDPAttribute.Name) throws(WireError) -> Value? {
        guard let text = first(name) else { return nil }
        return try Value(parsing: text)
    }
}

/// What stands after the colon of an attribute, in a form code can work with.
package protocol SDPValue: Equatable, Sendable {
    init(parsing text: String) throws(WireError)
    /// The value as it stands in a description.
    var text: String { get }
}

extension SDPAttribute.Name {
    package static var bundleOnly: Self { .init("bundle-only") }
    package static var candidate: Self { .init("candidate") }
    package static var endOfCandidates: Self { .init("end-of-candidates") }
    package static var extmap: Self { .init("extmap") }
    package static var extmapAllowMixed: Self { .init("extmap-allow-mixed") }
    package static var fingerprint: Self { .init("fingerprint") }
    package static var fmtp: Self { .init("fmtp") }
    package static var group: Self { .init("group") }
    package static var iceLite: Self { .init("ice-lite") }
    package static var iceOptions: Self { .init("ice-options") }
    package static var icePassword: Self { .init("ice-pwd") }
    package static var iceUfrag: Self { .init("ice-ufrag") }
    package static var maxMessageSize: Self { .init("max-message-size") }
    package static var mid: Self { .init("mid") }
    package static var msid: Self { .init("msid") }
    package static var msidSemantic: Self { .init("msid-semantic") }
    package static var rid: Self { .init("rid") }
    package static var rtcp: Self { .init("rtcp") }
    package static var rtcpFeedback: Self { .init("rtcp-fb") }
    package static var rtcpMux: Self { .init("rtcp-mux") }
    package static var rtcpMuxOnly: Self { .init("rtcp-mux-only") }
    package static var rtcpReducedSize: Self { .init("rtcp-rsize") }
    package static var rtpmap: Self { .init("rtpmap") }
    package static var sctpPort: Self { .init("sctp-port") }
    package static var setup: Self { .init("setup") }
    package static var simulcast: Self { .init("simulcast") }
    package static var ssrc: Self { .init("ssrc") }
    package static var ssrcGroup: Self { .init("ssrc-group") }
}
