/// An encryption and authentication scheme for SRTP.
///
/// The raw value is the profile's number in the DTLS extension `use_srtp`.
/// - Source: RFC 5764 §4.1.2, RFC 7714 §14.2.
package enum SRTPProfile: UInt16, CaseIterable, Sendable {
    /// AES in counter mode with HMAC-SHA1 truncated to 80 bits; every WebRTC client supports it.
    case aes128CMHMACSHA1_80 = 0x0001
    case aeadAES128GCM = 0x0007
    case aeadAES256GCM = 0x0008

    /// In the order that a server prefers: AES-GCM costs less than counter mode with HMAC.
    package static let preference: [SRTPProfile] = [.aeadAES128GCM, .aeadAES256GCM, .aes128CMHMACSHA1_80]

    /// Bytes of the master key and of the encryption key.
    package var keyLength: Int {
        switch self {
        case .aes128CMHMACSHA1_80, .aeadAES128GCM: 16
        case .aeadAES256GCM: 32
        }
    }

    /// Bytes of the master salt and of the session salt.
    package var saltLength: Int {
        isAEAD ? 12 : 14
    }

    /// Bytes of the authentication tag, by which a protected RTP packet is longer.
    package var tagLength: Int {
        isAEAD ? 16 : 10
    }

    /// Bytes by which a protected RTCP packet is longer: the tag, and the word with E flag and index (RFC 3711 §3.4).
    package var controlOverhead: Int {
        tagLength + Self.controlIndexLength
    }

    /// Bytes of the word with E flag and index.
    static let controlIndexLength = 4

    var isAEAD: Bool {
        self != .aes128CMHMACSHA1_80
    }

    /// OpenSSL's name, for `SSL_CTX_set_tlsext_use_srtp`.
    package var openSSLName: String {
        switch self {
        case .aes128CMHMACSHA1_80: "SRTP_AES128_CM_SHA1_80"
        case .aeadAES128GCM: "SRTP_AEAD_AES_128_GCM"
        case .aeadAES256GCM: "SRTP_AEAD_AES_256_GCM"
        }
    }
}

/// The implementation that encrypts and decrypts; both produce the same bytes.
package enum SRTPEngine: String, CaseIterable, Sendable {
    /// This package's own, based on OpenSSL's ciphers.
    case openSSL = "openssl"
    /// The reference implementation; Debian builds it on NSS, which makes it ten times slower.
    case libsrtp2
}

/// Why a packet could not be protected or was not accepted.
package enum SRTPError: Error, Equatable, Sendable {
    /// Too short for its kind.
    case truncated
    /// The result does not fit into the buffer.
    case noRoom
    /// The tag is wrong: the packet is not from the peer, or was damaged.
    case authenticationFailed
    /// The packet was received before, or is older than the replay window.
    case replayed
    /// An RTCP packet without encryption, which the profiles here do not permit.
    case notEncrypted
    /// The packet indices are used up; new keys would be needed.
    case exhausted
    /// There are no keys yet.
    case notReady
    /// A cryptographic library refused; the number is libsrtp2's status, or 0.
    case library(Int32)
}
