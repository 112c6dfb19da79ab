import Base

/// A TLS server's certificate with its chain, and its private key, in PEM as in files.
package struct TLSIdentity: Sendable {
    /// Most bytes of each file; certificates with their chains have about 10,000.
    package static let lengthLimit = 1 << 20

    let chain: [UInt8]
    let key: Secret<[UInt8]>

    /// Checks that certificate and key can be used together.
    /// - Throws: if either is not PEM, the key has a password, or it belongs to another certificate.
    package init(chain: [UInt8], key: [UInt8]) throws(CryptoError) {
        guard chain.count <= Self.lengthLimit, key.count <= Self.lengthLimit else {
            throw CryptoError("reading a certificate and its key")
        }
        self.chain = chain
        self.key = Secret(key)
        _ = try TLSConnection(self)
    }
}
