import COpenSSL

/// The digest of a certificate, by which an offer or answer pins the other side's key.
///
/// - Source: RFC 8122 §5. Deviates in that SHA-1 and SHA-224 are not taken: a key is pinned by nothing weaker than
///   SHA-256, which every browser uses.
package struct CertificateFingerprint: Hashable, Sendable {
    /// The names are those of SDP.
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

    /// The digest that `bytes` was made with.
    package let algorithm: Algorithm
    /// As many as `algorithm.length` says.
    package let bytes: [UInt8]

    /// - Returns: nil if the number of bytes is not the algorithm's.
    package init?(algorithm: Algorithm, bytes: [UInt8]) {
        guard bytes.count == algorithm.length else { return nil }
        self.algorithm = algorithm
        self.bytes = bytes
    }

    /// - Parameter name: as in SDP, such as `sha-256`.
    /// - Returns: nil for an algorithm that is not known here, or a wrong number of bytes.
    package init?(algorithm name: String, bytes: [UInt8]) {
        guard let algorithm = Algorithm(rawValue: name.lowercased()) else { return nil }
        self.init(algorithm: algorithm, bytes: bytes)
    }

    /// - Parameter certificate: X.509 in DER.
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
