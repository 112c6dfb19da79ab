import COpenSSL
import CSRTP

/// The cryptographic libraries that are installed on this machine.
package enum CryptoLibraries {
    /// Their names and versions, for operators.
    package static var versions: [(name: String, version: String)] {
        // Both strings belong to the libraries and stay valid.
        let ssl = unsafe OpenSSL_version(OPENSSL_VERSION_STRING).map { unsafe String(cString: $0) }
        // Such as `libsrtp2 2.5.0`.
        let srtp = unsafe srtp_get_version_string().map { unsafe String(cString: $0) }
        return [
            ("openssl", ssl ?? "unknown"),
            ("libsrtp2", srtp?.split(separator: " ").last.map(String.init) ?? "unknown"),
        ]
    }
}
