import COpenSSL
import Wire

/// Keyed message authentication codes (HMAC).
///
/// - Source: RFC 2104.
package enum HMAC {
    /// HMAC-SHA1.
    /// - Returns: 20 bytes.
    package static func sha1(key: Span<UInt8>, _ message: Span<UInt8>) -> [UInt8] {
        unsafe key.withUnsafeBufferPointer { key in
            unsafe message.withUnsafeBufferPointer { message in
                unsafe [UInt8](unsafeUninitializedCapacity: Int(SHA_DIGEST_LENGTH)) { code, count in
                    unsafe rostrum_hmac_sha1(
                        key.baseAddress, key.count, message.baseAddress, message.count, code.baseAddress)
                    count = Int(SHA_DIGEST_LENGTH)
                }
            }
        }
    }

    /// HMAC-SHA256.
    /// - Returns: 32 bytes.
    package static func sha256(key: Span<UInt8>, _ message: Span<UInt8>) -> [UInt8] {
        unsafe key.withUnsafeBufferPointer { key in
            unsafe message.withUnsafeBufferPointer { message in
                unsafe [UInt8](unsafeUninitializedCapacity: Int(SHA256_DIGEST_LENGTH)) { code, count in
                    unsafe rostrum_hmac_sha256(
                        key.baseAddress, key.count, message.baseAddress, message.count, code.baseAddress)
                    count = Int(SHA256_DIGEST_LENGTH)
                }
            }
        }
    }
}

/// Authenticates STUN messages with OpenSSL's SHA-1.
package struct OpenSSLAuthenticator: MessageAuthenticator {
    /// It has no state, so any number can be made.
    package init() {}

    /// - Returns: 20 bytes.
    package func hmacSHA1(key: Span<UInt8>, _ message: Span<UInt8>) -> [UInt8] {
        HMAC.sha1(key: key, message)
    }
}
