import Base
import COpenSSL

/// The kind of packets that session keys are for.
enum SRTPPurpose {
    case media, control

    /// The first of three labels: encryption key, authentication key, salt (RFC 3711 §4.3.2).
    var firstLabel: UInt8 {
        self == .media ? 0 : 3
    }
}

/// The session keys of one direction of SRTP or SRTCP, ready for use.
///
/// It owns an OpenSSL cipher context, which is allocated on first use: a viewer never sends RTP, so it needs none for
/// that direction. If the processor has vector instructions for it, it also has the state of this package's AES-GCM,
/// which encrypts media in a quarter of the time, or has the state of this package's counter mode instead of the
/// context. It is not copyable, because a second owner would free the handles twice.
/// - Source: RFC 3711 §4 (transforms, key derivation), RFC 6188 §3 (derivation with AES-256), RFC 7714 §8, §9, §11.
@safe struct SRTPTransform: ~Copyable {
    // Contains up to three handles, allocated when keys are installed and freed in `deinit`. C keeps no pointer to a
    // packet beyond a call, and writes only where callers have checked that there is room.
    private var keys = unsafe rostrum_srtp_keys()
    let profile: SRTPProfile
    private let mayUseVectors: Bool

    /// - Parameter mayUseVectors: false uses OpenSSL for everything, for tests that compare.
    init(_ profile: SRTPProfile, mayUseVectors: Bool = true) {
        self.profile = profile
        self.mayUseVectors = mayUseVectors
    }

    /// Whether media is encrypted by this package's AES-GCM or counter mode.
    var usesVectors: Bool { unsafe keys.sealer != nil || keys.stream != nil }

    /// The memory of the key that encrypting reads; nil until there is a key.
    var cacheHint: CacheHint? {
        if let sealer = unsafe keys.sealer { return CacheHint(address: UInt(bitPattern: sealer), bytes: 512) }
        if let stream = unsafe keys.stream { return CacheHint(address: UInt(bitPattern: stream), bytes: 192) }
        return unsafe keys.cipher.map { CacheHint(address: UInt(bitPattern: $0), bytes: 192) }
    }

    deinit {
        unsafe EVP_CIPHER_CTX_free(keys.cipher)
        unsafe rostrum_gcm_sealer_free(keys.sealer)
        unsafe rostrum_ctr_free(keys.stream)
    }

    /// Whether session keys are installed.
    var isKeyed: Bool {
        unsafe keys.cipher != nil || keys.stream != nil
    }

    private var isAEAD: Bool {
        profile.isAEAD
    }

    /// Derives the session keys from the master key.
    ///
    /// - Parameter isSealing: true to encrypt, false to decrypt.
    mutating func key(with master: SRTPKeys, for purpose: SRTPPurpose, isSealing: Bool) throws(SRTPError) {
        let (key, salt) = (master.masterKey, master.masterSalt)
        let label = purpose.firstLabel
        let encryptionKey = try SRTPKeyDerivation.derive(
            profile.keyLength, label: label, key: key, salt: salt)
        try install(
            encryption: encryptionKey,
            authentication: SRTPKeyDerivation.derive(20, label: label + 1, key: key, salt: salt),
            salt: SRTPKeyDerivation.derive(profile.saltLength, label: label + 2, key: key, salt: salt),
            isSealing: isSealing)
        if isAEAD, isSealing, purpose == .media, mayUseVectors {
            // Null if the processor lacks the instructions; then the OpenSSL cipher encrypts.
            unsafe encryptionKey.withBytes {
                unsafe keys.sealer = unsafe rostrum_gcm_sealer_make($0.baseAddress, $0.count)
            }
        }
    }

    /// Installs session keys; fails if there are some already.
    ///
    /// - Parameter authentication: not used by AES-GCM.
    mutating func install(
        encryption: SecretBytes, authentication: SecretBytes, salt: SecretBytes, isSealing: Bool
    ) throws(SRTPError) {
        guard encryption.count == profile.keyLength, salt.count == profile.saltLength, !isKeyed else {
            throw .library(0)
        }
        // Null if the processor lacks the instructions.
        if !isAEAD, mayUseVectors {
            unsafe encryption.withBytes { unsafe keys.stream = unsafe rostrum_ctr_make($0.baseAddress) }
        }
        if unsafe keys.stream == nil {
            unsafe keys.cipher = unsafe try makeCipher(encryption, isSealing: isSealing)
        }
        if !isAEAD {
            unsafe authentication.withBytes {
                unsafe rostrum_hmac_sha1_init(&keys.authentication, $0.baseAddress, $0.count)
            }
        }
        unsafe salt.withBytes { salt in
            unsafe withUnsafeMutableBytes(of: &keys.iv_mask) { mask in
                for unsafe(index, byte) in unsafe salt.enumerated() { unsafe mask[index] = byte }
            }
        }
        unsafe keys.iv_offset = isAEAD ? 2 : 4
    }

    /// An OpenSSL context with the key; the caller owns it.
    private func makeCipher(_ key: SecretBytes, isSealing: Bool) throws(SRTPError) -> OpaquePointer {
        let cipher: OpaquePointer? =
            switch profile {
            case .aes128CMHMACSHA1_80: unsafe EVP_aes_128_ctr()
            case .aeadAES128GCM: unsafe EVP_aes_128_gcm()
            case .aeadAES256GCM: unsafe EVP_aes_256_gcm()
            }
        guard let context = unsafe EVP_CIPHER_CTX_new() else { throw .library(0) }
        var isKeyed = false
        unsafe key.withBytes {
            isKeyed =
                unsafe EVP_CipherInit_ex2(context, cipher, $0.baseAddress, nil, isSealing ? 1 : 0, nil) == 1
        }
        guard isKeyed else {
            unsafe EVP_CIPHER_CTX_free(context)
            throw .library(0)
        }
        return unsafe context
    }

    // MARK: RTP

    /// Encrypts the payload and appends the tag, or leaves it for later; the caller has checked that everything fits.
    /// - Parameters:
    ///   - packet: the header, and `inPlace` bytes of payload behind it.
    ///   - body: the rest of the payload, which is written behind those.
    /// - Returns: nil if OpenSSL fails.
    mutating func sealMedia(
        _ packet: UnsafeMutablePointer<UInt8>, header: Int, inPlace: Int, body: UnsafeBufferPointer<UInt8>,
        ssrc: UInt32, index: UInt64
    ) -> EncryptedPacket? {
        let payload = unsafe packet + header
        let end = header &+ inPlace &+ body.count
        let length = end &+ profile.tagLength
        if isAEAD {
            let isSealed = unsafe rostrum_srtp_gcm_seal(
                &keys, ssrc, index, packet, header, nil, 0, payload, inPlace, body.baseAddress, body.count,
                packet + end)
            return isSealed == 1 ? EncryptedPacket(length: length) : nil
        }
        guard
            unsafe rostrum_srtp_ctr_apply(&keys, ssrc, index, payload, inPlace, body.baseAddress, body.count)
                == 1
        else { return nil }
        let roc = UInt32(truncatingIfNeeded: index >> 16)
        // Processors that support the counter mode above also hash packets side by side, so the tag can wait.
        guard unsafe keys.stream == nil else {
            return unsafe EncryptedPacket(
                length: length, pendingTag: PendingTag(keys.authentication, rollOverCounter: roc, length: end)
            )
        }
        unsafe rostrum_srtp_sha1_80(&keys, packet, end, 1, roc, packet + end)
        return EncryptedPacket(length: length)
    }

    /// Verifies the tag, which follows `length` bytes, and decrypts the payload in place.
    /// - Returns: false if the tag is wrong.
    mutating func openMedia(
        _ packet: UnsafeMutablePointer<UInt8>, header: Int, length: Int, ssrc: UInt32, index: UInt64
    ) -> Bool {
        let payload = unsafe packet + header
        if isAEAD {
            return unsafe rostrum_srtp_gcm_open(
                &keys, ssrc, index, packet, header, nil, 0, payload, length &- header, packet + length) == 1
        }
        let roc = UInt32(truncatingIfNeeded: index >> 16)
        guard unsafe rostrum_srtp_sha1_80_matches(&keys, packet, length, 1, roc, packet + length) == 1 else {
            return false
        }
        return unsafe rostrum_srtp_ctr_apply(&keys, ssrc, index, payload, length &- header, nil, 0) == 1
    }

    // MARK: RTCP

    /// Bytes of an RTCP packet that stay unencrypted: its first header and the sender's SSRC.
    static let controlHeader = 8

    /// Encrypts an RTCP packet in place and appends tag and index word.
    /// - Parameter index: 31 bits.
    mutating func sealControl(
        _ packet: UnsafeMutablePointer<UInt8>, length: Int, ssrc: UInt32, index: UInt32
    ) -> Bool {
        let header = Self.controlHeader
        let word = index | 1 << 31
        if isAEAD {
            // The index word follows the tag and is authenticated with the header (RFC 7714 §9.2).
            let trailer = unsafe packet + length + ROSTRUM_GCM_TAG
            unsafe Self.store(word, to: trailer)
            return unsafe rostrum_srtp_gcm_seal(
                &keys, ssrc, UInt64(index), packet, header, trailer, 4, packet + header, length &- header,
                nil, 0,
                packet + length) == 1
        }
        guard
            unsafe rostrum_srtp_ctr_apply(
                &keys, ssrc, UInt64(index), packet + header, length &- header, nil, 0) == 1
        else { return false }
        unsafe Self.store(word, to: packet + length)
        unsafe rostrum_srtp_sha1_80(&keys, packet, length &+ 4, 0, 0, packet + length + 4)
        return true
    }

    /// Verifies and decrypts an RTCP packet of `length` bytes, without tag and index word.
    /// - Returns: false if the tag is wrong.
    mutating func openControl(
        _ packet: UnsafeMutablePointer<UInt8>, length: Int, ssrc: UInt32, index: UInt32
    ) -> Bool {
        let header = Self.controlHeader
        if isAEAD {
            let tag = unsafe packet + length
            return unsafe rostrum_srtp_gcm_open(
                &keys, ssrc, UInt64(index), packet, header, tag + ROSTRUM_GCM_TAG, 4,
                packet + header, length &- header, tag) == 1
        }
        guard unsafe rostrum_srtp_sha1_80_matches(&keys, packet, length &+ 4, 0, 0, packet + length + 4) == 1
        else {
            return false
        }
        return unsafe rostrum_srtp_ctr_apply(
            &keys, ssrc, UInt64(index), packet + header, length &- header, nil, 0) == 1
    }

    /// Writes a number in network byte order.
    private static func store(_ word: UInt32, to bytes: UnsafeMutablePointer<UInt8>) {
        for offset in 0..<4 {
            unsafe bytes[offset] = UInt8(truncatingIfNeeded: word >> UInt32(24 - 8 * offset))
        }
    }
}
