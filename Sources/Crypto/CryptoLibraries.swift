import COpenSSL
import CSRTP

/// What this target runs on, as it is found on this machine.
package enum CryptoLibraries {
    /// Names and versions.
    package static var versions: [(name: String, version: String)] {
        // Both are the libraries' own strings, which last.
        let ssl = unsafe OpenSSL_version(OPENSSL_VERSION_STRING).map { unsafe String(cString: $0) }
        // Such as `libsrtp2 2.5.0`.
        let srtp = unsafe srtp_get_version_string().map { unsafe String(cString: $0) }
        return [
            ("openssl", ssl ?? "unknown"),
            ("libsrtp2", srtp?.split(separator: " ").last.map(String.init) ?? "unknown"),
        ]
    }
}
