import Base
import Wire

/// Our end of a session's transport, as its answer describes it.
package struct LocalTransport: Sendable {
    /// Of this session alone; the ufrag names its worker too.
    package var credentials: ICECredentials
    /// Of the certificate we show.
    package var fingerprint: SDPFingerprint
    /// All of them: the answer says `a=end-of-candidates`.
    package var candidates: [ICECandidate]

    /// - Parameters:
    ///   - udp: addresses to advertise, the preferred one first; never names, which Firefox rejects.
    ///   - tcp: passive ICE-TCP addresses, which rank below.
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
    /// Fresh ones: a ufrag of 8 characters (47 bits) and a password of 24 (142 bits).
    ///
    /// - Source: RFC 8445 §5.3 asks for 24 and 128 bits of randomness.
    package init(using random: inout some RandomNumberGenerator) {
        self.init(
            ufrag: .random(length: 8, using: &random), password: Secret(.random(length: 24, using: &random)))
    }
}

extension String {
    /// `length` random letters and digits, which may stand in a ufrag, a CNAME and an msid alike.
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
