import COpenSSL

/// Unpredictable bytes from OpenSSL's generator.
package enum RandomBytes {
    /// - Parameter count: 0 to 65,536.
    /// - Throws: if the count is out of range or the generator fails.
    package static func make(_ count: Int) throws(CryptoError) -> [UInt8] {
        guard count >= 0, count <= 65_536 else { throw CryptoError("random bytes of that count") }
        var isMade = false
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            isMade = unsafe count == 0 || RAND_bytes(buffer.baseAddress, CInt(count)) == 1
            initialized = isMade ? count : 0
        }
        guard isMade else { throw CryptoError("RAND_bytes") }
        return bytes
    }
}

/// Comparison whose duration does not depend on where the first difference is.
package enum ConstantTime {
    /// Compares two values; the lengths are not secret, so different lengths return false immediately.
    package static func areEqual(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
        guard left.count == right.count else { return false }
        return unsafe left.withUnsafeBytes { left in
            unsafe right.withUnsafeBytes { right in
                unsafe left.isEmpty || CRYPTO_memcmp(left.baseAddress, right.baseAddress, left.count) == 0
            }
        }
    }
}
