import COpenSSL
import Wire

/// Reads a peer's encrypted alerts after the association's `SSL` was freed.
///
/// A connected `SSL` takes 75 kB, and would be kept for one message only: the close_notify by which the peer ends the
/// association. So the peer's record keys are derived once more, and this type decrypts alerts with them.
/// - Source: RFC 5246 §6.3 (keys), RFC 5288 §3 (AES-GCM), RFC 7905 §2 (ChaCha20-Poly1305), RFC 6347 §4.1.2.1.
struct DTLSAlertReader: Sendable {
    private static let tagLength = 16

    private let suite: DTLSCipherSuite
    /// The peer's write key and write IV.
    private let key: SecretBytes
    private let iv: SecretBytes

    /// - Parameter peer: the role of the other side, whose keys are derived.
    /// - Returns: nil unless the secrets have the lengths that TLS 1.2 prescribes.
    init?(
        _ suite: DTLSCipherSuite, masterSecret: SecretBytes, clientRandom: [UInt8], serverRandom: [UInt8],
        readingFrom peer: DTLSRole
    ) {
        guard masterSecret.count == 48, clientRandom.count == 32, serverRandom.count == 32 else { return nil }
        self.suite = suite
        let seed = Array("key expansion".utf8) + serverRandom + clientRandom
        let (keyLength, ivLength) = (suite.keyLength, suite.ivLength)
        let block = Self.expand(masterSecret, seed, to: 2 * (keyLength + ivLength))
        guard let block else { return nil }
        // The order in the key block: client key, server key, client IV, server IV.
        let keyStart = peer == .client ? 0 : keyLength
        let ivStart = 2 * keyLength + (peer == .client ? 0 : ivLength)
        guard let key = block.part(keyStart..<(keyStart + keyLength)),
            let iv = block.part(ivStart..<(ivStart + ivLength))
        else { return nil }
        (self.key, self.iv) = (key, iv)
    }

    /// P_SHA256, the pseudorandom function of TLS 1.2 (RFC 5246 §5).
    private static func expand(_ secret: SecretBytes, _ seed: [UInt8], to length: Int) -> SecretBytes? {
        unsafe SecretBytes(count: length) { block in
            var link = seed
            var filled = 0
            unsafe secret.withBytes { secret in
                while filled < length {
                    link = unsafe HMAC.sha256(key: secret.span, link.span)
                    var part = unsafe HMAC.sha256(key: secret.span, (link + seed).span)
                    for byte in part.prefix(length - filled) {
                        unsafe block[filled] = byte
                        filled += 1
                    }
                    unsafe part.withUnsafeMutableBytes { unsafe OPENSSL_cleanse($0.baseAddress, $0.count) }
                }
            }
            return true
        }
    }

    /// Whether `record` of `datagram` is an authentic alert that ends the association: a fatal one, or close_notify.
    func isClosing(_ record: DTLSRecord, in datagram: Span<UInt8>) -> Bool {
        guard record.type == .alert, record.epoch == 1, let alert = open(record, in: datagram),
            alert.count == 2
        else { return false }
        // Level fatal, or close_notify.
        return alert[0] == 2 || alert[1] == 0
    }

    /// Decrypts a record: an alert is short, so a longer body is refused.
    private func open(_ record: DTLSRecord, in datagram: Span<UInt8>) -> [UInt8]? {
        guard let header = try? datagram.bytes(record.range.lowerBound..<record.bodyRange.lowerBound),
            let body = try? datagram.bytes(record.bodyRange)
        else { return nil }
        let length = body.count - suite.explicitNonceLength - Self.tagLength
        guard length > 0, length <= 64 else { return nil }
        // Epoch and sequence number; part of the nonce or the additional data.
        let sequence = Array(header[3..<11])
        let nonce =
            suite.isAESGCM
            ? iv.exposed + body.prefix(suite.explicitNonceLength)
            : zip(iv.exposed, [0, 0, 0, 0] + sequence).map { $0 ^ $1 }
        var additional = sequence + header[0..<3]
        additional.append(bigEndian: UInt16(length))
        let sealed = Array(body[suite.explicitNonceLength...])
        return decrypt(sealed, length: length, nonce: nonce, additional: additional)
    }

    /// Decrypts and authenticates with OpenSSL; nil if the tag is wrong.
    private func decrypt(_ sealed: [UInt8], length: Int, nonce: [UInt8], additional: [UInt8]) -> [UInt8]? {
        guard let context = unsafe EVP_CIPHER_CTX_new() else { return nil }
        defer {
            unsafe EVP_CIPHER_CTX_free(context)
            ERR_clear_error()
        }
        let algorithm = unsafe suite.isAESGCM ? EVP_aes_128_gcm() : EVP_chacha20_poly1305()
        var tag = Array(sealed.suffix(Self.tagLength))
        var plain = [UInt8](repeating: 0, count: length)
        var written: CInt = 0
        var isKeyed = false
        unsafe key.withBytes {
            isKeyed = unsafe EVP_DecryptInit_ex(context, algorithm, nil, $0.baseAddress, nonce) == 1
        }
        guard isKeyed,
            unsafe EVP_DecryptUpdate(context, nil, &written, additional, CInt(additional.count)) == 1,
            unsafe EVP_DecryptUpdate(context, &plain, &written, sealed, CInt(length)) == 1,
            unsafe EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, CInt(Self.tagLength), &tag) == 1
        else { return nil }
        var rest: [UInt8] = [0]
        return unsafe EVP_DecryptFinal_ex(context, &rest, &written) == 1 ? plain : nil
    }
}
