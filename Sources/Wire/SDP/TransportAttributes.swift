// Attributes that describe the transport: ICE credentials, DTLS fingerprint and role, BUNDLE, SCTP.
import Base

/// `a=ice-ufrag` and `a=ice-pwd` of one side.
///
/// - Source: RFC 8839 §5.4.
package struct ICECredentials: Sendable {
    /// The server finds a session by the ufrag in its own credentials.
    package let ufrag: String
    /// The key of MESSAGE-INTEGRITY on checks to this side.
    package let password: Secret<String>

    package init(ufrag: String, password: Secret<String>) {
        self.ufrag = ufrag
        self.password = password
    }

    /// Whether the lengths are as RFC 8839 §5.4 requires: 4 to 256 and 22 to 256 bytes.
    ///
    /// Deviates from it in the characters, because some clients use more than letters, digits, `+` and `/`.
    package var isValid: Bool {
        (4...256).contains(ufrag.utf8.count) && (22...256).contains(password.exposed.utf8.count)
            && (ufrag + password.exposed).utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != .colon }
    }
}

extension ICECredentials: Equatable {
    package static func == (left: ICECredentials, right: ICECredentials) -> Bool {
        left.ufrag == right.ufrag && left.password.exposed == right.password.exposed
    }
}

/// `a=fingerprint`: the digest of the certificate that a side uses in its DTLS handshake.
///
/// - Source: RFC 8122 §5.
package struct SDPFingerprint: SDPValue, Hashable {
    /// In lower case, such as `sha-256`.
    package var algorithm: String
    /// The digest, at most 64 bytes.
    package var bytes: [UInt8]

    package init(algorithm: String, bytes: [UInt8]) {
        self.algorithm = algorithm
        self.bytes = bytes
    }

    /// - Throws: `.invalid(.sdpFingerprint)` for pairs that are not hexadecimal, or a length that does not match
    ///   the algorithm.
    package init(parsing text: String) throws(WireError) {
        var scanner = SDPScanner(text)
        guard let name = scanner.word(), let digits = scanner.word(), scanner.word() == nil else {
            throw .invalid(.sdpFingerprint)
        }
        algorithm = String(name).lowercased()
        bytes = []
        for pair in digits.parts(separatedBy: .colon) {
            // Checked first, because `UInt8` also accepts a sign.
            guard pair.utf8.count == 2, pair.allSatisfy(\.isHexDigit), bytes.count < 64,
                let byte = UInt8(pair, radix: 16)
            else { throw .invalid(.sdpFingerprint) }
            bytes.append(byte)
        }
        if let length = Self.length(of: algorithm), length != bytes.count { throw .invalid(.sdpFingerprint) }
    }

    package var text: String {
        let pairs = bytes.map { byte in
            let digits = String(byte, radix: 16, uppercase: true)
            return digits.utf8.count == 1 ? "0" + digits : digits
        }
        return "\(algorithm) \(pairs.joined(separator: ":"))"
    }

    /// Digest length in bytes; nil for an algorithm that is unknown or no longer secure.
    /// - Source: RFC 8122 §5 requires SHA-256; two certificates with the same SHA-1 digest can be made.
    package static func length(of algorithm: String) -> Int? {
        switch algorithm {
        case "sha-256": 32
        case "sha-384": 48
        case "sha-512": 64
        default: nil
        }
    }
}

/// `a=setup`: which side begins the DTLS handshake.
///
/// - Source: RFC 4145 §4, RFC 8842 §5.
package enum SetupRole: String, SDPValue {
    case active, passive, actpass, holdconn

    /// - Throws: `.invalid(.sdpSetup)` for an unknown role.
    package init(parsing text: String) throws(WireError) {
        guard let role = SetupRole(rawValue: text) else { throw .invalid(.sdpSetup) }
        self = role
    }

    package var text: String { rawValue }
}

/// `a=group`: related m-lines; those in a `BUNDLE` have one transport.
///
/// - Source: RFC 5888 §5, RFC 9143.
package struct MediaGroup: SDPValue {
    /// Such as `BUNDLE` or `LS`.
    package var semantics: String
    /// In a BUNDLE, the transport of the first one is used.
    package var mids: [String]

    package init(semantics: String, mids: [String]) {
        self.semantics = semantics
        self.mids = mids
    }

    /// - Throws: `.invalid(.sdpGroup)` without semantics; the list of mids may be empty.
    package init(parsing text: String) throws(WireError) {
        var scanner = SDPScanner(text)
        guard let semantics = scanner.word() else { throw .invalid(.sdpGroup) }
        self.semantics = String(semantics)
        mids = []
        while let mid = scanner.word() { mids.append(String(mid)) }
    }

    package var text: String { ([semantics] + mids).joined(separator: " ") }
}

extension SDPSection {
    /// Nil unless this section contains both ufrag and password.
    package var iceCredentials: ICECredentials? {
        guard let ufrag = first(.iceUfrag), let password = first(.icePassword) else { return nil }
        return ICECredentials(ufrag: ufrag, password: Secret(password))
    }

    /// Such as `trickle` and `ice2`; separated by spaces, or by commas as libdatachannel writes them.
    package var iceOptions: [String] {
        all(.iceOptions).flatMap { text in
            text.utf8.split { $0 == .space || $0 == .comma }.map { String(Substring($0)) }
        }
    }

    /// Whether this side only answers checks (RFC 8839 §5.3).
    package var isICELite: Bool { has(.iceLite) }
    /// Whether no further candidates are trickled.
    package var isEndOfCandidates: Bool { has(.endOfCandidates) }

    /// A side with several certificates, or several digests of one, has several.
    package func fingerprints() throws(WireError) -> [SDPFingerprint] { try parsed(.fingerprint) }
    /// Nil if the section has no `a=setup`.
    package func setup() throws(WireError) -> SetupRole? { try firstParsed(.setup) }
    /// All `a=group` attributes.
    /// - Throws: an error for the first one without semantics.
    package func groups() throws(WireError) -> [MediaGroup] { try parsed(.group) }

    /// Appends ufrag and password as two lines.
    package mutating func append(_ credentials: ICECredentials) {
        append(.iceUfrag, credentials.ufrag)
        append(.icePassword, credentials.password.exposed)
    }
}

extension MediaDescription {
    /// The SCTP port of data channels (RFC 8841 §5); nil if it is not given.
    package func sctpPort() throws(WireError) -> UInt16? {
        guard let text = first(.sctpPort) else { return nil }
        guard let port = UInt16(digits: text[...]) else { throw .invalid(.sdpSCTPPort) }
        return port
    }

    /// The longest message that this side accepts, in bytes; 0 for no limit, nil if it is not given (RFC 8841 §6).
    package func maximumMessageSize() throws(WireError) -> UInt64? {
        guard let text = first(.maxMessageSize) else { return nil }
        guard let size = UInt64(digits: text[...]) else { throw .invalid(.sdpMaximumMessageSize) }
        return size
    }
}

extension WireError.Field {
    /// Not `ALGORITHM PAIRS`, or a digest of the wrong length.
    package static var sdpFingerprint: Self { .init("sdp.fingerprint") }
    /// Not one of the four roles.
    package static var sdpSetup: Self { .init("sdp.setup") }
    /// A group without semantics.
    package static var sdpGroup: Self { .init("sdp.group") }
    /// Not a port number.
    package static var sdpSCTPPort: Self { .init("sdp.sctp-port") }
    /// Not a number.
    package static var sdpMaximumMessageSize: Self { .init("sdp.max-message-size") }
}
