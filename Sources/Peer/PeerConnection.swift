import Base
import Crypto
import SCTP
import Wire

/// The server's end of one peer connection: ICE-lite, DTLS, SRTP and data channels.
///
/// Receives datagrams and the time, sends through a `DatagramSink`, and reports what happened through
/// `takeEvents()`. Tracks and slots are unknown at this level: it decrypts what arrives and encrypts what leaves.
/// Belongs to one worker thread.
/// - Source: RFC 8827 §6.5 (DTLS-SRTP), RFC 5764, RFC 8445.
package final class PeerConnection {
    /// How far the connection has come; a state never returns to an earlier one.
    package enum State: Equatable, Sendable {
        /// ICE or DTLS is not finished, or no address is proven.
        case connecting
        case connected
        case closed(CloseReason)
    }

    /// Why a connection closed, as logs and metrics name it.
    package enum CloseReason: String, Sendable {
        /// This server ended it.
        case ended
        /// Another publisher took over the stream.
        case replaced
        /// The peer sent close_notify or a fatal alert.
        case closedByPeer
        /// No authentic datagram arrived within the consent timeout (RFC 7675 §5.1).
        case consentLost
        /// The DTLS handshake failed, or the certificate does not match the offer's fingerprints.
        case handshakeFailed
        /// The connection was not established in time.
        case timedOut
    }

    /// What happened on the connection, reported in order.
    package enum Event: Equatable, Sendable {
        /// This address passed a check: its datagrams belong to this session.
        case admitted(TransportAddress)
        /// This address was dropped: the limit of addresses was reached, or its TCP connection closed.
        case dismissed(TransportAddress)
        /// Checks with this local ufrag are no longer answered, after an ICE restart.
        case retired(ufrag: String)
        /// Media may be encrypted and sent from now on; the profile is nil for an ingested stream, which has no
        /// peer.
        case connected(SRTPProfile?)
        case closed(CloseReason)
        case dataChannel(DataChannelEvent)
    }

    /// What all connections of a worker have in common.
    package struct Environment {
        /// Certificate, ciphers and profiles.
        package let dtls: DTLSContext
        /// Which implementation encrypts and decrypts media.
        package let engine: SRTPEngine
        /// Consent and connect timeouts.
        package let ice: ICELiteAgent.Configuration
        /// The clock that drives SCTP's timers.
        package let timeline: SCTPTimeline

        package init(
            dtls: DTLSContext, engine: SRTPEngine = .openSSL,
            ice: ICELiteAgent.Configuration = ICELiteAgent.Configuration(), timeline: SCTPTimeline = .system
        ) {
            self.dtls = dtls
            self.engine = engine
            self.ice = ice
            self.timeline = timeline
        }
    }

    /// Time limit from the offer to `.connected`; a longer `ICELiteAgent.Configuration.connectTimeout` replaces it.
    private static let connectTimeout = Duration.seconds(30)
    private static let authenticator = OpenSSLAuthenticator()

    // These two are declared first because they are read for every packet that is sent; see `cacheHints`.
    /// Where media is sent; nil until an address is proven, and while the client has none left.
    package private(set) var remoteAddress: TransportAddress?
    private var outbound: SRTPOutbound?
    /// Media may flow while this is `.connected`.
    package private(set) var state = State.connecting
    private var ice: ICELiteAgent
    private let dtls: DTLSEndpoint
    private let role: DTLSRole
    private var inbound: SRTPInbound?
    private let engine: SRTPEngine
    private let channelPlan: DataChannelPlan?
    private let timeline: SCTPTimeline
    /// Nil if the offer has no data channels, and until DTLS is done.
    private var channels: DataChannelEndpoint?
    private let connectDeadline: MonotonicTime
    /// Whether there is no remote peer: see `SessionPlan.isIngested`.
    private let isIngested: Bool
    private var route = HandshakeRoute()
    /// Keys of a completed handshake, until an address is proven.
    private var keys: SRTPKeyingMaterial?
    private var events: [Event] = []

    /// Starts a connection for one offer and answer.
    /// - Parameters:
    ///   - plan: what offer and answer agreed on: fingerprints, remote credentials, data channels.
    ///   - localCredentials: the ufrag and password in the answer.
    package init(
        plan: SessionPlan, localCredentials: ICECredentials, environment: Environment, at now: MonotonicTime
    ) {
        ice = ICELiteAgent(
            credentials: localCredentials, remote: plan.remoteCredentials, configuration: environment.ice,
            at: now)
        role = plan.beginsHandshake ? .client : .server
        dtls = DTLSEndpoint(
            context: environment.dtls, role: role,
            expectedFingerprints: plan.fingerprints.compactMap {
                CertificateFingerprint(algorithm: $0.algorithm, bytes: $0.bytes)
            })
        engine = environment.engine
        channelPlan = plan.dataChannel
        timeline = environment.timeline
        connectDeadline = now + max(Self.connectTimeout, environment.ice.connectTimeout)
        isIngested = plan.isIngested
        guard isIngested else { return }
        state = .connected
        events.append(.connected(nil))
    }

    /// Whether the connection is over: it neither sends nor decrypts any more.
    package var isClosed: Bool {
        if case .closed = state { true } else { false }
    }

    /// The ufrags by which a worker assigns a check to this connection: one, or two during an ICE restart.
    package var localUfrags: [String] { ice.localUfrags }

    /// The addresses by which a worker assigns any other datagram to this connection; at most 8.
    package var addresses: [TransportAddress] { ice.addresses }

    /// When an authentic check or packet last came from this address.
    /// - Returns: nil for an address that is not known, or not proven while another is selected, and once closed.
    package func lastHeard(from address: TransportAddress) -> MonotonicTime? {
        isClosed ? nil : ice.lastHeard(from: address)
    }

    /// Removes and returns what happened since the last call.
    package func takeEvents() -> [Event] {
        guard !events.isEmpty else { return [] }
        defer { events.removeAll() }
        return events
    }

    // MARK: Connecting

    /// Answers a connectivity check that carries a local ufrag, or processes the response to a request of ours.
    package func receiveCheck(
        _ datagram: Span<UInt8>, from source: TransportAddress, at now: MonotonicTime,
        using random: inout some RandomNumberGenerator, into sink: inout some DatagramSink & ~Copyable
    ) {
        guard !isClosed, !isIngested else { return }
        do {
            let effects = try ice.receive(
                datagram, from: source, at: now, authenticator: Self.authenticator, using: &random)
            perform(effects, at: now, into: &sink)
        } catch {
            guard let answer = error.answer else { return }
            sink.append(answer, to: source)
        }
    }

    /// Handles an authentic packet from an unknown address: asks that address whether the client is there
    /// now.
    package func noteStray(
        from source: TransportAddress, at now: MonotonicTime, using random: inout some RandomNumberGenerator,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        guard !isClosed else { return }
        let effects = ice.noteStray(
            from: source, at: now, authenticator: Self.authenticator, using: &random)
        perform(effects, at: now, into: &sink)
    }

    /// Processes a DTLS record, of the handshake or after it.
    package func receiveHandshake(
        _ datagram: Span<UInt8>, from source: TransportAddress, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        guard !isClosed else { return }
        if route.origin == nil { route.origin = source }
        // A record does not renew consent: any host can send records with the source address of an admitted one.
        perform(dtls.receive(datagram, at: now), at: now, into: &sink)
    }

    /// Drops an address whose TCP connection closed; the consent timeout decides later whether the client is gone
    /// too.
    package func lose(
        _ address: TransportAddress, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) {
        guard !isClosed else { return }
        perform(ice.lose(address, at: now), at: now, into: &sink)
        if route.origin == address { route.origin = nil }
    }

    /// Replaces the ICE credentials of both sides; addresses and keys remain (RFC 8445 §2.4).
    package func restartICE(
        _ credentials: ICECredentials, remote: ICECredentials, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        guard !isClosed, !isIngested else { return }
        perform(ice.restart(with: credentials, remote: remote), at: now, into: &sink)
    }

    private func perform(
        _ effects: [ICELiteAgent.Effect], at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        for effect in effects {
            switch effect {
            case .send(let bytes, let destination): sink.append(bytes, to: destination)
            case .admit(let address): events.append(.admitted(address))
            case .dismiss(let address): events.append(.dismissed(address))
            case .retire(let ufrag): events.append(.retired(ufrag: ufrag))
            case .nominate(let address): remoteAddress = address
            case .abandon: remoteAddress = nil
            case .consentLost: end(because: .consentLost)
            }
        }
        beginHandshakeIfReady(at: now, into: &sink)
        connectIfReady(at: now, into: &sink)
    }

    /// Begins the handshake, if that is our part, once the client has nominated an address.
    private func beginHandshakeIfReady(
        at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) {
        guard role == .client, state == .connecting, ice.nominated != nil else { return }
        // Nothing happens after the first time.
        let effects = dtls.start(at: now)
        if !effects.isEmpty { perform(effects, at: now, into: &sink) }
    }

    private func perform(
        _ effects: [DTLSEndpoint.Effect], at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        for effect in effects {
            switch effect {
            case .send(let bytes):
                guard let address = ice.nominated ?? route.origin,
                    route.take(address, isProven: ice.isProven(address))
                else { continue }
                sink.append(bytes, to: address)
            case .connected(let keys):
                self.keys = keys
                perform(ice.noteHandshake(through: route.only, at: now), at: now, into: &sink)
            case .applicationData(let bytes): withChannels(into: &sink) { $0.receive(bytes.span, at: now) }
            case .closed(.closedByPeer): end(because: .closedByPeer)
            case .closed(.timedOut): end(because: .timedOut)
            case .closed: end(because: .handshakeFailed)
            }
        }
    }

    /// Moves to `.connected` once there are keys and a proven address.
    private func connectIfReady(at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable) {
        guard state == .connecting, remoteAddress != nil, let keys else { return }
        self.keys = nil
        do {
            inbound = try SRTPInbound(engine, keys.inbound(as: role))
            outbound = try SRTPOutbound(engine, keys.outbound(as: role))
        } catch {
            return end(because: .handshakeFailed)
        }
        state = .connected
        events.append(.connected(keys.profile))
        guard let channelPlan else {
            // Frees about 75 kB a session: without data channels, a close is all that DTLS still has to handle.
            return dtls.releaseHandshake()
        }
        // Media continues without data channels if the process has reached its limit of SCTP associations.
        channels = try? DataChannelEndpoint(plan: channelPlan, role: role, timeline: timeline, at: now)
        withChannels(into: &sink) { _ in }
    }

    private func end(because reason: CloseReason) {
        guard !isClosed else { return }
        state = .closed(reason)
        keys = nil
        channels = nil
        events.append(.closed(reason))
    }

    // MARK: Time

    /// When `advance` must be called next.
    package var deadline: MonotonicTime {
        switch state {
        case .connecting:
            min(connectDeadline, ice.deadline ?? .distantFuture, dtls.deadline ?? .distantFuture)
        case .connected where isIngested: .distantFuture
        case .connected:
            min(
                ice.deadline ?? .distantFuture, dtls.deadline ?? .distantFuture,
                channels?.deadline ?? .distantFuture)
        case .closed: .distantFuture
        }
    }

    /// Handles what is due: timeouts, DTLS and SCTP retransmissions, requests to new addresses, lost consent.
    package func advance(
        to now: MonotonicTime, using random: inout some RandomNumberGenerator,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        guard !isClosed, !isIngested else { return }
        if state == .connecting, now >= connectDeadline { return end(because: .timedOut) }
        if let due = dtls.deadline, now >= due { perform(dtls.advance(to: now), at: now, into: &sink) }
        if let due = ice.deadline, now >= due {
            let effects = ice.advance(to: now, authenticator: Self.authenticator, using: &random)
            perform(effects, at: now, into: &sink)
        }
        if let due = channels?.deadline, now >= due { withChannels(into: &sink) { $0.advance(to: now) } }
    }

    /// Closes the connection from this side with a DTLS close_notify.
    ///
    /// Reports no event: the caller knows the reason. Pending events are dropped.
    package func close(
        because reason: CloseReason, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) {
        guard !isClosed else { return }
        channels = nil
        perform(dtls.close(), at: now, into: &sink)
        state = .closed(reason)
        events.removeAll()
    }

    // MARK: Data channels

    /// The label, subprotocol and reliability of a usable channel; nil if there is none with this number.
    package func dataChannel(_ stream: UInt16) -> DataChannelOpen? { channels?.description(of: stream) }

    /// Whether channels can be opened: the offer has data channels, and the SCTP association is established.
    package var hasDataChannels: Bool { channels?.isEstablished ?? false }

    /// Opens a channel; messages may be sent on it immediately.
    /// - Returns: its SCTP stream.
    package func openDataChannel(
        _ open: DataChannelOpen, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) throws(DataChannelError) -> UInt16 {
        let stream = try channels?.open(open, at: now)
        withChannels(into: &sink) { _ in }
        guard let stream else { throw .noChannel }
        return stream
    }

    /// Sends a message on a channel.
    /// - Throws: `.noChannel`, `.tooLong`, or `.bufferFull` if the channel's queue is full.
    package func send(
        _ message: DataChannelMessage, on stream: UInt16, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) throws(DataChannelError) {
        guard let channels else { throw .noChannel }
        try channels.send(message, on: stream, at: now)
        withChannels(into: &sink) { _ in }
    }

    /// Closes the channel once everything sent on it has arrived.
    package func closeDataChannel(
        _ stream: UInt16, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) {
        withChannels(into: &sink) { $0.close(stream, at: now) }
    }

    /// Bytes queued on a channel that the peer has not acknowledged.
    package func buffered(_ stream: UInt16) -> Int { channels?.buffered(stream) ?? 0 }

    /// Calls `body`, then collects the events and sends the packets that resulted.
    private func withChannels(
        into sink: inout some DatagramSink & ~Copyable, _ body: (DataChannelEndpoint) -> Void
    ) {
        guard let channels else { return }
        body(channels)
        for event in channels.takeEvents() { events.append(.dataChannel(event)) }
        guard let remoteAddress else { return }
        for packet in channels.takeOutput() {
            for case .send(let bytes) in dtls.send(packet.span) { sink.append(bytes, to: remoteAddress) }
        }
    }

    // MARK: Media

    /// Decrypts an RTP packet in place; an authentic one shows that the peer is alive.
    /// - Returns: the length without the authentication tag.
    package func unprotect(
        _ packet: inout MutableSpan<UInt8>, from source: TransportAddress, at now: MonotonicTime
    ) throws(SRTPError) -> Int {
        let headerLength: Int
        do throws(WireError) {
            headerLength = try RTPHeader.length(of: packet.span)
        } catch {
            throw .truncated
        }
        guard let length = try inbound?.unprotect(&packet, length: packet.count, headerLength: headerLength)
        else {
            throw .notReady
        }
        follow(source, at: now)
        return length
    }

    /// Decrypts an RTCP compound packet in place.
    /// - Returns: the length without tag and index.
    package func unprotectControl(
        _ packet: inout MutableSpan<UInt8>, from source: TransportAddress, at now: MonotonicTime
    ) throws(SRTPError) -> Int {
        guard let length = try inbound?.unprotectControl(&packet, length: packet.count) else {
            throw .notReady
        }
        follow(source, at: now)
        return length
    }

    /// Tries to decrypt in place a packet from an address that no session is known to use.
    /// - Returns: the length without what SRTP added; nil for a packet of another session, which is left unchanged.
    package func unprotectStray(_ packet: inout MutableSpan<UInt8>, _ kind: DatagramKind) -> Int? {
        guard kind == .rtp else { return inbound?.unprotectStray(&packet, headerLength: nil) }
        guard let length = try? RTPHeader.length(of: packet.span) else { return nil }
        return inbound?.unprotectStray(&packet, headerLength: length)
    }

    /// When the client last proved that it is there.
    package var lastHeard: MonotonicTime { ice.lastConsent }

    /// Notes an authentic packet, which shows that the client is there, and from which of its addresses it sends.
    private func follow(_ source: TransportAddress, at now: MonotonicTime) {
        guard case .nominate(let address)? = ice.noteTraffic(from: source, at: now) else { return }
        remoteAddress = address
    }

    /// Memory that `encrypt` reads: of this object, and of the keys once there are any.
    package var cacheHints: (connection: CacheHint, keys: CacheHint?) {
        (CacheHint(self, bytes: 384), outbound?.cacheHint)
    }

    /// Hot path: encrypts a packet from the header and payload start in `destination` and the rest in `body`.
    ///
    /// The engine may defer the authentication tag; see `EncryptedPacket`.
    /// - Parameter index: 48 bits, used once per SSRC (see `SRTPOutbound`).
    package func encrypt(
        _ destination: inout MutableSpan<UInt8>, headerLength: Int, prefixLength: Int, body: Span<UInt8>,
        index: UInt64
    ) throws(SRTPError) -> EncryptedPacket {
        guard
            let packet = try outbound?.encrypt(
                &destination, headerLength: headerLength, prefixLength: prefixLength, body: body, index: index
            )
        else { throw .notReady }
        return packet
    }

    /// Encrypts and sends an RTCP compound packet of at most 1,200 bytes; dropped while there are no keys.
    package func sendControl(_ bytes: [UInt8], into sink: inout some DatagramSink & ~Copyable) {
        guard let remoteAddress, let overhead = outbound?.profile.controlOverhead else { return }
        // A report that cannot be protected is dropped; the next one follows soon.
        try? sink.append(to: remoteAddress, capacity: bytes.count + overhead) { buffer throws(SRTPError) in
            for index in 0..<bytes.count { buffer[index] = bytes[index] }
            return try outbound?.protectControl(&buffer, length: bytes.count) ?? 0
        }
    }
}
