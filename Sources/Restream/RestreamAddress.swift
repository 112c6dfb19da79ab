import Base

/// The address of an RTMP target: `rtmp://host[:port]/application` or `rtmps://…`, without the stream key.
///
/// Addresses are shown in the API and in logs, so anything that could be a secret is refused here.
package struct RestreamAddress: Hashable, Sendable, CustomStringConvertible {
    /// Why a text is not a valid address.
    package enum Failure: Error, Equatable, Sendable {
        /// Neither `rtmp://` nor `rtmps://`.
        case scheme
        /// The host is missing, or is neither a valid name nor a valid IP address.
        case host
        /// The port is not a number, or is below 1024 and neither 80 nor 443.
        case port
        /// The application is empty, or contains characters that a path cannot.
        case application
        /// The address has a user or password, a query or a fragment: secrets belong in the key.
        case secret
        /// Longer than `lengthLimit`.
        case tooLong
    }

    /// Longest address, in bytes.
    package static let lengthLimit = 500
    /// Longest stream key, in bytes.
    package static let keyLengthLimit = 2_000

    /// Whether the connection uses TLS (`rtmps`).
    package let isSecure: Bool
    /// A name in lower case, or an IP address without brackets.
    package let host: String
    /// 1935 for `rtmp` and 443 for `rtmps` unless the address names one.
    package let port: UInt16
    /// The path, without the leading slash and without trailing ones.
    package let application: String

    /// Parses an address.
    /// - Throws: the first part that is not valid, so that the API can name it.
    package init(_ text: String) throws(Failure) {
        guard text.utf8.count <= Self.lengthLimit else { throw .tooLong }
        guard let colon = text.firstRange(of: "://") else { throw .scheme }
        switch text[..<colon.lowerBound].lowercased() {
        case "rtmp": isSecure = false
        case "rtmps": isSecure = true
        default: throw .scheme
        }
        let rest = text[colon.upperBound...]
        guard !rest.contains(where: { $0 == "?" || $0 == "#" }) else { throw .secret }
        let authority = rest.prefix { $0 != "/" }
        guard !authority.contains("@") else { throw .secret }
        (host, port) = try Self.authority(authority, standardPort: isSecure ? 443 : 1_935)
        var path = rest.dropFirst(authority.count + 1)
        // All of them: addresses are stored as text, and reading one again must not shorten it once more.
        while path.last == "/" { path.removeLast() }
        application = String(path)
        guard !application.isEmpty, application.utf8.allSatisfy(Self.isPlain) else { throw .application }
    }

    /// Parses `host[:port]`.
    ///
    /// Ports below 1024 other than 80 and 443 are refused: hosts choose targets, and the server must not connect to
    /// other services (mail, SSH) for them.
    private static func authority(
        _ text: Substring, standardPort: UInt16
    ) throws(Failure) -> (host: String, port: UInt16) {
        guard text.first != "[" || text.contains("]") else { throw .host }
        var host = text
        var port = standardPort
        // A colon inside the brackets of an IPv6 address does not begin a port.
        if let colon = text.lastIndex(of: ":"), text.first != "[" || text[colon...].last != "]" {
            let digits = text[text.index(after: colon)...]
            host = text[..<colon]
            guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = UInt16(digits),
                number >= 1_024 || number == 80 || number == 443
            else { throw .port }
            port = number
        }
        if host.first == "[" {
            let inner = host.dropFirst().dropLast()
            guard host.last == "]", inner.contains(":"), let address = IPAddress(inner) else { throw .host }
            return (address.description, port)
        }
        return (try name(host), port)
    }

    /// Checks a host name, or an IPv4 address, and returns it in lower case.
    /// - Source: RFC 1123 §2.1.
    private static func name(_ text: Substring) throws(Failure) -> String {
        let labels = text.split(separator: ".", omittingEmptySubsequences: false)
        guard (1...253).contains(text.utf8.count), labels.allSatisfy({ (1...63).contains($0.utf8.count) }),
            text.utf8.allSatisfy({ isLetterOrDigit($0) || $0 == 0x2D || $0 == 0x2E || $0 == 0x5F })
        else { throw .host }
        // A host whose last label begins with a digit has to be an IPv4 address in the one canonical form: forms such
        // as `127.1` would be resolved differently by different libraries (RFC 6943 §3.1.1).
        if labels.last?.utf8.first.map({ (0x30...0x39).contains($0) }) ?? true, IPAddress(text) == nil {
            throw .host
        }
        return text.lowercased()
    }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
    }

    /// Whether a path may contain this byte without escaping it (RFC 3986 §3.3); `%` begins an escape.
    private static func isPlain(_ byte: UInt8) -> Bool {
        isLetterOrDigit(byte) || "-._~!$&'()*+,;=:@%/".utf8.contains(byte)
    }

    /// Whether a text is a valid stream key: printable ASCII without spaces, 1 to `keyLengthLimit` bytes.
    package static func isKey(_ text: String) -> Bool {
        (1...keyLengthLimit).contains(text.utf8.count) && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    }

    /// The normalized address, without a standard port; also the `tcUrl` of RTMP's `connect`.
    package var description: String {
        let name = host.contains(":") ? "[\(host)]" : host
        let isStandard = port == (isSecure ? 443 : 1_935)
        return "\(isSecure ? "rtmps" : "rtmp")://\(name)\(isStandard ? "" : ":\(port)")/\(application)"
    }
}

extension RestreamAddress: Codable {
    package init(from decoder: any Decoder) throws {
        self = try RestreamAddress(decoder.singleValueContainer().decode(String.self))
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}
