import Wire

/// Encrypts the packets for one peer.
///
/// Keys are derived on first use; after that nothing is allocated. It is not copyable, because two owners would
/// repeat the key stream of RTCP.
/// - Important: a packet index must be used only once per SSRC, unless the packet is identical byte for byte, header
///   included. If AES-GCM encrypts two different packets under one index, it reveals its authentication key (RFC 7714
///   §8.3).
/// - Source: RFC 3711 §3.3 (RTP), §3.4 (RTCP); RFC 7714.
@safe package struct SRTPOutbound: ~Copyable {
    /// Most bytes of a packet, tag included.
    package static let maximumLength = 65_535

    /// The profile that was negotiated.
    package let profile: SRTPProfile
    private var keys: PendingSRTPKeys
    /// For RTP.
    private var media: SRTPTransform
    /// For RTCP.
    private var control: SRTPTransform
    /// Nil unless libsrtp2 is the engine.
    private let library: LibSRTPSession?
    /// Index of the latest RTCP packet; 31 bits, shared by all local sources (RFC 3711 §3.4).
    private var controlIndex: UInt32 = 0

    /// - Throws: only if libsrtp2 is the engine and refuses.
    package init(_ engine: SRTPEngine, _ keys: SRTPKeys) throws(SRTPError) {
        profile = keys.profile
        media = SRTPTransform(keys.profile)
        control = SRTPTransform(keys.profile)
        library = engine == .libsrtp2 ? try LibSRTPSession(keys, isOutbound: true) : nil
        self.keys = PendingSRTPKeys(engine == .libsrtp2 ? nil : keys)
    }

    /// The memory that encrypting media reads besides this value; nil before the first packet.
    package var cacheHint: CacheHint? { media.cacheHint }

    /// Hot path: encrypts an RTP packet; its tag may be left for later.
    ///
    /// - Parameters:
    ///   - destination: contains the header, which stays unencrypted, and `prefixLength` bytes of payload behind it.
    ///   - body: the rest of the payload, which is read where it is; it must not overlap the destination.
    ///   - index: 48 bits, roll-over counter and sequence number, kept by the caller. libsrtp2 keeps its own and
    ///     needs packets in order, within 1,024.
    package mutating func encrypt(
        _ destination: inout MutableSpan<UInt8>, headerLength: Int, prefixLength: Int, body: Span<UInt8>,
        index: UInt64
    ) throws(SRTPError) -> EncryptedPacket {
        guard headerLength >= 12, prefixLength >= 0, headerLength <= Self.maximumLength,
            prefixLength <= Self.maximumLength
        else { throw .truncated }
        let length = headerLength &+ prefixLength &+ body.count &+ profile.tagLength
        guard length <= min(destination.count, Self.maximumLength) else { throw .noRoom }
        guard index >> 48 == 0 else { throw .exhausted }
        if let library {
            let length = try library.protect(&destination, prefix: headerLength &+ prefixLength, body: body)
            return EncryptedPacket(length: length)
        }
        if !media.isKeyed {
            try keys.derive(&media, for: .media, isLast: control.isKeyed, isSealing: true)
        }
        guard let ssrc = try? destination.span.uint32(at: 8) else { throw .truncated }
        let packet = unsafe destination.withUnsafeMutableBufferPointer { destination in
            unsafe body.withUnsafeBufferPointer { body in
                unsafe destination.baseAddress.flatMap { packet in
                    unsafe media.sealMedia(
                        packet, header: headerLength, inPlace: prefixLength, body: body, ssrc: ssrc,
                        index: index)
                }
            }
        }
        guard let packet else { throw .library(0) }
        return packet
    }

    /// Encrypts an RTP packet, including its tag.
    ///
    /// - Returns: the packet's length.
    package mutating func protect(
        _ destination: inout MutableSpan<UInt8>, headerLength: Int, prefixLength: Int, body: Span<UInt8>,
        index: UInt64
    ) throws(SRTPError) -> Int {
        let packet = try encrypt(
            &destination, headerLength: headerLength, prefixLength: prefixLength, body: body, index: index)
        return packet.complete(&destination)
    }

    /// Encrypts an RTCP compound in place.
    ///
    /// - Parameter length: bytes of `packet` in use; there must be room for `SRTPProfile.controlOverhead` more.
    /// - Returns: the new length.
    package mutating func protectControl(_ packet: inout MutableSpan<UInt8>, length: Int) throws(SRTPError)
        -> Int
    {
        guard length >= SRTPTransform.controlHeader, length <= packet.count else { throw .truncated }
        let protectedLength = length &+ profile.controlOverhead
        guard protectedLength <= min(packet.count, Self.maximumLength) else { throw .noRoom }
        if let library { return try library.protectControl(&packet, length: length) }
        // An index must not repeat, because the key stream depends on it.
        guard controlIndex < 1 << 31 - 1 else { throw .exhausted }
        if !control.isKeyed {
            try keys.derive(&control, for: .control, isLast: media.isKeyed, isSealing: true)
        }
        guard let ssrc = try? packet.span.uint32(at: 4) else { throw .truncated }
        controlIndex &+= 1
        let isSealed = unsafe packet.withUnsafeMutableBufferPointer { packet in
            guard let packet = packet.baseAddress else { return false }
            return unsafe control.sealControl(packet, length: length, ssrc: ssrc, index: controlIndex)
        }
        guard isSealed else { throw .library(0) }
        return protectedLength
    }
}
