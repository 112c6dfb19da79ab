import COpenSSL

/// The digest of a certificate, by which SDP pins the key of the other side.
///
/// - Source: RFC 8122 §5. Deviates in that SHA-1 and SHA-224 are refused: SHA-256 is the weakest digest that pins a
///   key here, and every browser uses it.
package struct CertificateFingerprint: Hashable, Sendable {
    /// Digest algorithms, with their names in SDP.
    package enum Algorithm: String, CaseIterable, Sendable {
        case sha256 = "sha-256"
        case sha384 = "sha-384"
        case sha512 = "sha-512"

        /// Digest length in bytes.
        package var length: Int {
            switch self {
            case .sha256: 32
            case .sha384: 48
            case .sha512: 64
            }
        }

        private var digest: OpaquePointer? {
            switch self {
            case .sha256: unsafe EVP_sha256()
            case .sha384: unsafe EVP_sha384()
            case .sha512: unsafe EVP_sha512()
            }
        }

        /// The digest of an `X509 *`.
        func digest(of certificate: OpaquePointer) -> [UInt8]? {
            var bytes = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
            var count: CUnsignedInt = 0
            guard unsafe X509_digest(certificate, digest, &bytes, &count) == 1, count == length else {
                return nil
            }
            return Array(bytes.prefix(length))
        }

        /// The digest of a certificate in DER.
        func digest(of certificate: [UInt8]) -> [UInt8]? {
            var bytes = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
            var count: CUnsignedInt = 0
            guard unsafe EVP_Digest(certificate, certificate.count, &bytes, &count, digest, nil) == 1,
                count == length
            else { return nil }
            return Array(bytes.prefix(length))
        }
    }

    /// The algorithm of the digest.
    package let algorithm: Algorithm
    /// The digest, of `algorithm.length` bytes.
    package let bytes: [UInt8]

    /// - Returns: nil if the number of bytes does not fit the algorithm.
    package init?(algorithm: Algorithm, bytes: [UInt8]) {
        guard bytes.count == algorithm.length else { return nil }
        self.algorithm = algorithm
        self.bytes = bytes
    }

    /// - Parameter name: as in SDP, such as `sha-256`; upper or lower case.
    /// - Returns: nil if the algorithm is unknown or the number of bytes does not fit it.
    package init?(algorithm name: String, bytes: [UInt8]) {
        guard let algorithm = Algorithm(rawValue: name.lowercased()) else { return nil }
        self.init(algorithm: algorithm, bytes: bytes)
    }

    /// Computes the fingerprint of a certificate.
    /// - Parameter certificate: X.509 in DER.
    /// - Returns: nil if OpenSSL fails.
    package init?(of certificate: [UInt8], algorithm: Algorithm) {
        guard let bytes = algorithm.digest(of: certificate) else { return nil }
        self.init(algorithm: algorithm, bytes: bytes)
    }

    /// Whether this is the fingerprint of `certificate`, an `X509 *`.
    func matches(_ certificate: OpaquePointer) -> Bool {
        guard let digest = unsafe algorithm.digest(of: certificate) else { return false }
        return ConstantTime.areEqual(digest.span, bytes.span)
    }
}
