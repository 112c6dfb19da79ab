import Base
import Wire

/// Our end of a session's transport, as the answer describes it.
package struct LocalTransport: Sendable {
    /// Used by this session only; the ufrag also identifies its worker.
    package var credentials: ICECredentials
    /// Fingerprint of our DTLS certificate.
    package var fingerprint: SDPFingerprint
    /// All candidates: the answer contains `a=end-of-candidates`.
    package var candidates: [ICECandidate]

    /// - Parameters:
    ///   - udp: addresses to advertise, the preferred one first; never host names, which Firefox rejects.
    ///   - tcp: passive ICE-TCP addresses, which get lower priorities.
    package init(
        credentials: ICECredentials, fingerprint: SDPFingerprint, udp: [TransportAddress],
        tcp: [TransportAddress] = []
    ) {
        self.credentials = credentials
        self.fingerprint = fingerprint
        candidates =
            udp.enumerated().map { ICECandidate(host: $1, transport: .udp, index: $0) }
            + tcp.enumerated().map { ICECandidate(host: $1, transport: .tcp, index: $0) }
    }
}

extension ICECredentials {
    /// Generates a ufrag of 8 characters (47 bits) and a password of 24 (142 bits).
    ///
    /// - Source: RFC 8445 §5.3 requires 24 and 128 bits of randomness.
    package init(using random: inout some RandomNumberGenerator) {
        self.init(
            ufrag: .random(length: 8, using: &random), password: Secret(.random(length: 24, using: &random)))
    }
}

extension String {
    /// Returns random letters and digits, which are valid in a ufrag, a CNAME and an msid.
    package static func random(length: Int, using random: inout some RandomNumberGenerator) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)
        var text = ""
        for _ in 0..<length {
            let byte = alphabet[Int(truncatingIfNeeded: random.next() % UInt64(alphabet.count))]
            text.unicodeScalars.append(Unicode.Scalar(byte))
        }
        return text
    }
}
