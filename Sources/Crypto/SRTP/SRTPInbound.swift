import Wire

/// Checks and decrypts what comes from one peer.
///
/// Keys are derived when the first packet of a kind comes. Windows and counters of a source change only after its
/// packet proved authentic. Not copyable, because it owns the cipher contexts.
/// - Source: RFC 3711 §3.3 (RTP), §3.4 (RTCP); RFC 7714.
@safe package struct SRTPInbound: ~Copyable {
    /// What was refused, since the start.
    package struct Counters: Equatable, Sendable {
        /// Came before, or too old.
        ///
        /// Not proved authentic: they are refused before the costly part.
        package var replayed: UInt64 = 0
        package var unauthentic: UInt64 = 0
        /// Too short, or RTCP that is not encrypted.
        package var malformed: UInt64 = 0
    }

    package let profile: SRTPProfile
    private var keys: PendingSRTPKeys
    private var media: SRTPTransform
    private var control: SRTPTransform
    private var mediaSources = ReplayTable()
    private var controlSources = ReplayTable()
    /// Set where libsrtp2 does the work.
    private let library: LibSRTPSession?
    package private(set) var counters = Counters()

    package init(_ engine: SRTPEngine, _ keys: SRTPKeys) throws(SRTPError) {
        profile = keys.profile
        media = SRTPTransform(keys.profile)
        control = SRTPTransform(keys.profile)
        library = engine == .libsrtp2 ? try LibSRTPSession(keys, isOutbound: false) : nil
        self.keys = PendingSRTPKeys(engine == .libsrtp2 ? nil : keys)
    }

    /// How many RTP sources are remembered; at most 64.
    package var sourceCount: Int {
        mediaSources.count
    }

    /// Hot path: checks and decrypts an RTP packet in place.
    ///
    /// - Parameters:
    ///   - packet: if this throws, its payload may have been overwritten with rubbish.
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

    /// Checks and decrypts a compound RTCP packet in place.
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

    /// Checks and decrypts in place a packet that may be somebody else's: that one is left as it came, and not counted.
    ///
    /// - Parameter headerLength: of an RTP packet, `RTPHeader.length(of:)`; nil for an RTCP compound.
    /// - Returns: the length without tag and index; nil for somebody else's.
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
        let plainLength = length &- profile.tagLength
        guard length <= packet.count, length <= SRTPOutbound.maximumLength, headerLength >= 12,
            headerLength <= plainLength,
            let sequenceNumber = try? packet.span.uint16(at: 2), let ssrc = try? packet.span.uint32(at: 8)
        else { throw .truncated }
        let index = mediaSources.index(of: sequenceNumber, ssrc: ssrc)
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
