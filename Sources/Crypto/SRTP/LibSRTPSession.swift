import Base
import CSRTP

/// One direction of SRTP and SRTCP, implemented by libsrtp2.
///
/// This is the second engine: a reference for comparison, and a fallback if the first one proves wrong. It keeps the
/// roll-over counters itself, so packets must come in order, within its window.
/// - Source: libsrtp2 `srtp.h`.
@safe final class LibSRTPSession {
    /// Runs once per process, on first use, because `srtp_init` must not run twice.
    private static let initialization = srtp_init()

    // Freed in `deinit`. The library copies the keys and keeps no pointer to a packet.
    private let session: srtp_t

    /// - Throws: if libsrtp2 refuses.
    init(_ keys: SRTPKeys, isOutbound: Bool) throws(SRTPError) {
        try Self.check(Self.initialization)
        let profile =
            switch keys.profile {
            case .aes128CMHMACSHA1_80: srtp_profile_aes128_cm_sha1_80
            case .aeadAES128GCM: srtp_profile_aead_aes_128_gcm
            case .aeadAES256GCM: srtp_profile_aead_aes_256_gcm
            }
        var policy = unsafe srtp_policy_t()
        try unsafe Self.check(srtp_crypto_policy_set_from_profile_for_rtp(&policy.rtp, profile))
        try unsafe Self.check(srtp_crypto_policy_set_from_profile_for_rtcp(&policy.rtcp, profile))
        unsafe policy.ssrc.type = isOutbound ? ssrc_any_outbound : ssrc_any_inbound
        unsafe policy.window_size = UInt(ReplayWindow.capacity)
        // A packet that was requested by NACK may be sent again under its own SSRC and sequence number.
        unsafe policy.allow_repeat_tx = 1
        var session: srtp_t?
        var status = srtp_err_status_bad_param
        let (masterKey, masterSalt) = (keys.masterKey, keys.masterSalt)
        // libsrtp2 expects key and salt in one block; this copy is wiped when it is released.
        let together = unsafe SecretBytes(count: masterKey.count + masterSalt.count) { memory in
            unsafe masterKey.withBytes {
                for unsafe(index, byte) in unsafe $0.enumerated() { unsafe memory[index] = byte }
            }
            unsafe masterSalt.withBytes { salt in
                for unsafe(index, byte) in unsafe salt.enumerated() {
                    unsafe memory[masterKey.count + index] = byte
                }
            }
            unsafe policy.key = memory.baseAddress
            status = unsafe srtp_create(&session, &policy)
            return true
        }
        guard together != nil else { throw .library(0) }
        try Self.check(status)
        guard let session = unsafe session else { throw .library(0) }
        unsafe self.session = unsafe session
    }

    deinit {
        unsafe srtp_dealloc(session)
    }

    /// Copies `body` behind the first `prefix` bytes and encrypts; the caller has checked that everything fits.
    func protect(
        _ packet: inout MutableSpan<UInt8>, prefix: Int, body: Span<UInt8>
    ) throws(SRTPError) -> Int {
        for index in body.indices { packet[prefix + index] = body[index] }
        return try unsafe apply(srtp_protect, to: &packet, length: prefix + body.count)
    }

    /// Encrypts an RTCP compound in place.
    /// - Returns: the new length.
    func protectControl(_ packet: inout MutableSpan<UInt8>, length: Int) throws(SRTPError) -> Int {
        try unsafe apply(srtp_protect_rtcp, to: &packet, length: length)
    }

    /// Checks and decrypts an RTP packet in place.
    /// - Returns: the new length.
    func unprotect(_ packet: inout MutableSpan<UInt8>, length: Int) throws(SRTPError) -> Int {
        try unsafe apply(srtp_unprotect, to: &packet, length: length)
    }

    /// Checks and decrypts an RTCP compound in place.
    /// - Returns: the new length.
    func unprotectControl(_ packet: inout MutableSpan<UInt8>, length: Int) throws(SRTPError) -> Int {
        try unsafe apply(srtp_unprotect_rtcp, to: &packet, length: length)
    }

    /// Removes the state of a source.
    ///
    /// libsrtp2 expects the SSRC in network byte order.
    func forget(_ ssrc: UInt32) {
        unsafe srtp_remove_stream(session, ssrc.bigEndian)
    }

    private func apply(
        _ function: (srtp_t?, UnsafeMutableRawPointer?, UnsafeMutablePointer<CInt>?) -> srtp_err_status_t,
        to packet: inout MutableSpan<UInt8>, length: Int
    ) throws(SRTPError) -> Int {
        var size = CInt(truncatingIfNeeded: length)
        let status = unsafe packet.withUnsafeMutableBytes { unsafe function(session, $0.baseAddress, &size) }
        try Self.check(status)
        return Int(size)
    }

    /// Translates a status into an error.
    private static func check(_ status: srtp_err_status_t) throws(SRTPError) {
        switch status {
        case srtp_err_status_ok: return
        case srtp_err_status_auth_fail: throw .authenticationFailed
        case srtp_err_status_replay_fail, srtp_err_status_replay_old: throw .replayed
        case srtp_err_status_key_expired: throw .exhausted
        case srtp_err_status_parse_err, srtp_err_status_bad_param: throw .truncated
        default: throw .library(Int32(truncatingIfNeeded: status.rawValue))
        }
    }
}
