/// The cipher suites of DTLS 1.2 that are accepted; the raw value is the IANA number.
///
/// - Source: RFC 8827 §6.5 (ECDHE-ECDSA-AES128-GCM is mandatory), RFC 5289, RFC 7905.
package enum DTLSCipherSuite: UInt16, CaseIterable, Sendable {
    case ecdsaAES128GCM = 0xC02B
    case rsaAES128GCM = 0xC02F
    case ecdsaChaCha20Poly1305 = 0xCCA9
    case rsaChaCha20Poly1305 = 0xCCA8

    /// All suites, the preferred one first: AES-GCM before ChaCha20-Poly1305.
    package static let preference: [DTLSCipherSuite] = [
        .ecdsaAES128GCM, .rsaAES128GCM, .ecdsaChaCha20Poly1305, .rsaChaCha20Poly1305,
    ]

    /// OpenSSL's name, for `SSL_CTX_set_cipher_list`.
    var openSSLName: String {
        switch self {
        case .ecdsaAES128GCM: "ECDHE-ECDSA-AES128-GCM-SHA256"
        case .rsaAES128GCM: "ECDHE-RSA-AES128-GCM-SHA256"
        case .ecdsaChaCha20Poly1305: "ECDHE-ECDSA-CHACHA20-POLY1305"
        case .rsaChaCha20Poly1305: "ECDHE-RSA-CHACHA20-POLY1305"
        }
    }

    var isAESGCM: Bool {
        self == .ecdsaAES128GCM || self == .rsaAES128GCM
    }

    var keyLength: Int {
        isAESGCM ? 16 : 32
    }

    /// Bytes of the nonce that come from the key block.
    var ivLength: Int {
        isAESGCM ? 4 : 12
    }

    /// Bytes of the nonce that each record contains.
    var explicitNonceLength: Int {
        isAESGCM ? 8 : 0
    }
}
