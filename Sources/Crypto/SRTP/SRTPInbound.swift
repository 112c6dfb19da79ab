import Wire

/// Verifies and decrypts the packets of one peer.
///
/// Session keys are derived when the first packet of a kind arrives. The window and counters of a source change only
/// after its packet has proven authentic. It is not copyable, because it owns the cipher contexts.
/// - Source: RFC 3711 §3.3 (RTP), §3.4 (RTCP); RFC 7714.
@safe package struct SRTPInbound: ~Copyable {
    /// Packets that were refused, since the start.
    package struct Counters: Equatable, Sendable {
        /// Packets that were received before, or are too old.
        ///
        /// They are not verified, because they are refused before that costly step.
        package var replayed: UInt64 = 0
        /// Packets with a wrong tag.
        package var unauthentic: UInt64 = 0
        /// Packets that are too short, and RTCP that is not encrypted.
        package var malformed: UInt64 = 0
    }

    /// The profile that was negotiated.
    package let profile: SRTPProfile
    private var keys: PendingSRTPKeys
    /// For RTP.
    private var media: SRTPTransform
    /// For RTCP.
    private var control: SRTPTransform
    private var mediaSources = ReplayTable()
    private var controlSources = ReplayTable()
    /// Nil unless libsrtp2 is the engine.
    private let library: LibSRTPSession?
    /// What was refused so far.
    package private(set) var counters = Counters()

    /// - Throws: only if libsrtp2 is the engine and refuses.
    package init(_ engine: SRTPEngine, _ keys: SRTPKeys) throws(SRTPError) {
        profile = keys.profile
        media = SRTPTransform(keys.profile)
        control = SRTPTransform(keys.profile)
        library = engine == .libsrtp2 ? try LibSRTPSession(keys, isOutbound: false) : nil
        self.keys = PendingSRTPKeys(engine == .libsrtp2 ? nil : keys)
    }

    /// RTP sources whose windows are kept; at most 64.
    package var sourceCount: Int {
        mediaSources.count
    }

    /// Hot path: verifies and decrypts an RTP packet in place.
    ///
    /// - Parameters:
    ///   - packet: its payload may be overwritten with garbage if this throws.
    ///   - length: bytes of `packet` in use.
    ///   - headerLength: `RTPHeader.length(of:)`.
    /// - Returns: the length without the tag.
    package mutating func unprotect(
        _ packet: inout MutableSpan<UInt8>, length: Int, headerLength: Int
    ) throws(SRTPError) -> Int {
        do {
            return try open(&packet, length: length, headerLength: headerLength)
        } catch {
            count(error)
            throw error
        }
    }

    /// Verifies and decrypts an RTCP compound in place.
    ///
    /// - Parameter length: bytes of `packet` in use.
    /// - Returns: the length without tag and index.
    package mutating func unprotectControl(
        _ packet: inout MutableSpan<UInt8>, length: Int
    ) throws(SRTPError) -> Int {
        do {
            return try openControl(&packet, length: length)
        } catch {
            count(error)
            throw error
        }
    }

    /// Verifies and decrypts in place a packet that may belong to another session.
    ///
    /// A packet of another session is left unchanged and not counted. For that it is copied first, which is why the
    /// hot path does not use this.
    /// - Parameter headerLength: of an RTP packet, `RTPHeader.length(of:)`; nil for an RTCP compound.
    /// - Returns: the length without tag and index; nil if the packet belongs to another session.
    package mutating func unprotectStray(_ packet: inout MutableSpan<UInt8>, headerLength: Int?) -> Int? {
        guard packet.count <= SRTPOutbound.maximumLength else { return nil }
        let before = packet.span.indices.map { packet[$0] }
        let length = packet.count
        do {
            guard let headerLength else { return try openControl(&packet, length: length) }
            return try open(&packet, length: length, headerLength: headerLength)
        } catch {
            for (index, byte) in before.enumerated() { packet[index] = byte }
            return nil
        }
    }

    private mutating func open(
        _ packet: inout MutableSpan<UInt8>, length: Int, headerLength: Int
    ) throws(SRTPError) -> Int {
        // The cheap checks come first. Nothing is recorded about a source before its packet has proven authentic.
        let plainLength = length &- profile.tagLength
        guard length <= packet.count, length <= SRTPOutbound.maximumLength, headerLength >= 12,
            headerLength <= plainLength,
            let sequenceNumber = try? packet.span.uint16(at: 2), let ssrc = try? packet.span.uint32(at: 8)
        else { throw .truncated }
        let index = mediaSources.index(of: sequenceNumber, ssrc: ssrc)
        // The 48 bits of a packet index are used up.
        guard index >> 48 == 0 else { throw .exhausted }
        if let library {
            let opened = try library.unprotect(&packet, length: length)
            if let forgotten = mediaSources.accept(index, ssrc: ssrc) { library.forget(forgotten) }
            return opened
        }
        guard mediaSources.admits(index, ssrc: ssrc) else { throw .replayed }
        if !media.isKeyed {
            try keys.derive(&media, for: .media, isLast: control.isKeyed, isSealing: false)
        }
        let isOpen = unsafe packet.withUnsafeMutableBufferPointer { packet in
            guard let packet = packet.baseAddress else { return false }
            return unsafe media.openMedia(
                packet, header: headerLength, length: plainLength, ssrc: ssrc, index: index)
        }
        guard isOpen else { throw .authenticationFailed }
        _ = mediaSources.accept(index, ssrc: ssrc)
        return plainLength
    }

    private mutating func openControl(
        _ packet: inout MutableSpan<UInt8>, length: Int
    ) throws(SRTPError) -> Int {
        let plainLength = length &- profile.controlOverhead
        // AES-GCM has the index word behind the tag, HMAC-SHA1 before it.
        let wordOffset = profile.isAEAD ? length &- SRTPProfile.controlIndexLength : plainLength
        guard length <= packet.count, length <= SRTPOutbound.maximumLength,
            plainLength >= SRTPTransform.controlHeader,
            let ssrc = try? packet.span.uint32(at: 4), let word = try? packet.span.uint32(at: wordOffset)
        else { throw .truncated }
        guard word >> 31 == 1 else { throw .notEncrypted }
        let index = word & 0x7FFF_FFFF
        if let library {
            let opened = try library.unprotectControl(&packet, length: length)
            if let forgotten = controlSources.accept(UInt64(index), ssrc: ssrc) { library.forget(forgotten) }
            return opened
        }
        guard controlSources.admits(UInt64(index), ssrc: ssrc) else { throw .replayed }
        if !control.isKeyed {
            try keys.derive(&control, for: .control, isLast: media.isKeyed, isSealing: false)
        }
        let isOpen = unsafe packet.withUnsafeMutableBufferPointer { packet in
            guard let packet = packet.baseAddress else { return false }
            return unsafe control.openControl(packet, length: plainLength, ssrc: ssrc, index: index)
        }
        guard isOpen else { throw .authenticationFailed }
        _ = controlSources.accept(UInt64(index), ssrc: ssrc)
        return plainLength
    }

    private mutating func count(_ error: SRTPError) {
        switch error {
        case .replayed: counters.replayed &+= 1
        case .authenticationFailed: counters.unauthentic &+= 1
        case .truncated, .noRoom, .notEncrypted, .exhausted, .notReady, .library: counters.malformed &+= 1
        }
    }
}
