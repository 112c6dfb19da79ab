import Base

/// Where a programme is sent by RTMP: `rtmp://host[:port]/application` or `rtmps://…`, without the stream key.
package struct RestreamAddress: Hashable, Sendable, CustomStringConvertible {
    /// Why a text is none.
    package enum Failure: Error, Equatable, Sendable {
        /// Neither `rtmp://` nor `rtmps://`.
        case scheme
        /// No host that there could be.
        case host
        /// A port that is none, or one below 1024 that is not 80 or 443.
        case port
        /// No application, or one with characters that have no place in it.
        case application
        /// A user or a password, a query or a fragment: what is secret belongs into the key.
        case secret
        case tooLong
    }

    /// In bytes.
    package static let lengthLimit = 500
    /// Of a stream key, in bytes.
    package static let keyLengthLimit = 2_000

    package let isSecure: Bool
    /// A name in lower case, or an address without brackets.
    package let host: String
    package let port: UInt16
    /// The path, without the slash before it.
    package let application: String

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
        let path = rest.dropFirst(authority.count + 1)
        application = String(path.last == "/" ? path.dropLast() : path)
        guard !application.isEmpty, application.utf8.allSatisfy(Self.isPlain) else { throw .application }
    }

    private static func authority(
        _ text: Substring, standardPort: UInt16
    ) throws(Failure) -> (host: String, port: UInt16) {
        guard text.first != "[" || text.contains("]") else { throw .host }
        var host = text
        var port = standardPort
        // A colon within brackets is no port's.
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

    /// - Source: RFC 1123 §2.1.
    private static func name(_ text: Substring) throws(Failure) -> String {
        let labels = text.split(separator: ".", omittingEmptySubsequences: false)
        guard (1...253).contains(text.utf8.count), labels.allSatisfy({ (1...63).contains($0.utf8.count) }),
            text.utf8.allSatisfy({ isLetterOrDigit($0) || $0 == 0x2D || $0 == 0x2E || $0 == 0x5F })
        else { throw .host }
        // What ends with a number is an address, of which there is one way to write it (RFC 6943 §3.1.1).
        if labels.last?.utf8.first.map({ (0x30...0x39).contains($0) }) ?? true, IPAddress(text) == nil {
            throw .host
        }
        return text.lowercased()
    }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
    }

    /// What paths hold without being written in another way (RFC 3986 §3.3).
    private static func isPlain(_ byte: UInt8) -> Bool {
        isLetterOrDigit(byte) || "-._~!$&'()*+,;=:@%/".utf8.contains(byte)
    }

    /// Whether a text may be a stream key.
    package static func isKey(_ text: String) -> Bool {
        (1...keyLengthLimit).contains(text.utf8.count) && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    }

    /// As it was given, in its shortest form; also the `tcUrl` of RTMP's `connect`.
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
