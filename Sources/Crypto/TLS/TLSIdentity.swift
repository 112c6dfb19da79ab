import Base

/// By what a TLS server is known: a certificate with its chain, and the key to it, as files hold them (PEM).
package struct TLSIdentity: Sendable {
    /// Of a file; certificates with their chains have some 10,000 bytes.
    package static let lengthLimit = 1 << 20

    let chain: [UInt8]
    let key: Secret<[UInt8]>

    /// - Throws: for what is no PEM, a key with a password, and a key of another certificate.
    package init(chain: [UInt8], key: [UInt8]) throws(CryptoError) {
        guard chain.count <= Self.lengthLimit, key.count <= Self.lengthLimit else {
            throw CryptoError("reading a certificate and its key")
        }
        self.chain = chain
        self.key = Secret(key)
        _ = try TLSConnection(self)
    }
}
