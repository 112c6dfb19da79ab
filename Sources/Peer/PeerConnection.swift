import Base
import Crypto
import SCTP
import Wire

/// The server's end of one peer connection: ICE-lite, DTLS and SRTP under one roof.
///
/// Takes datagrams and the time, sends through a sink, and tells what happened through `takeEvents()`. It knows
/// nothing of tracks and slots: it decrypts what came and encrypts what is to leave.
/// - Source: RFC 8827 §6.5 (DTLS-SRTP), RFC 5764, RFC 8445.
package final class PeerConnection {
    /// How far the connection is; it never goes back.
    package enum State: Equatable, Sendable {
        /// ICE or DTLS have still to finish, or no address is proven.
        case connecting
        case connected
        case closed(CloseReason)
    }

    /// Why a connection is over, as logs and metrics say it.
    package enum CloseReason: String, Sendable {
        /// This server ended it.
        case ended
        /// Another publisher of the same stream took over.
        case replaced
        /// The peer said goodbye: close_notify or a fatal alert.
        case closedByPeer
        /// Nothing authentic came for the consent time (RFC 7675 §5.1).
        case consentLost
        /// The DTLS handshake failed, or the certificate was not the one that was offered.
        case handshakeFailed
        /// No connection was made in time.
        case timedOut
    }

    /// What happened, in order.
    package enum Event: Equatable, Sendable {
        /// An address passed a check: its datagrams belong here.
        case admitted(TransportAddress)
        /// An address was forgotten, because too many others came.
        case dismissed(TransportAddress)
        /// Checks with this ufrag of ours are no longer answered, after an ICE restart.
        case retired(ufrag: String)
        /// Media may be encrypted and sent from now on; without a profile where there is no peer.
        case connected(SRTPProfile?)
        case closed(CloseReason)
        case dataChannel(DataChannelEvent)
    }

    /// What all connections of a worker share.
    package struct Environment {
        /// Certificate, ciphers and profiles.
        package let dtls: DTLSContext
        /// What encrypts media.
        package let engine: SRTPEngine
        /// How long clients may be silent.
        package let ice: ICELiteAgent.Configuration
        /// The clock by which data channels run.
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

    /// How long offer and connected may be apart, unless the first check alone may come later.
    private static let connectTimeout = Duration.seconds(30)
    private static let authenticator = OpenSSLAuthenticator()

    // These two stand first because they are read for every packet that is sent; see `cacheHints`.
    /// Where media goes; nil until somebody proved to be there.
    package private(set) var remoteAddress: TransportAddress?
    private var outbound: SRTPOutbound?
    /// Media may flow while it is `.connected`.
    package private(set) var state = State.connecting
    private var ice: ICELiteAgent
    private let dtls: DTLSEndpoint
    private var inbound: SRTPInbound?
    private let engine: SRTPEngine
    private let channelPlan: DataChannelPlan?
    private let timeline: SCTPTimeline
    /// Nil without an offer of them, and until DTLS is done.
    private var channels: DataChannelEndpoint?
    private let connectDeadline: MonotonicTime
    /// Whether nobody is there: see `SessionPlan.isIngested`.
    private let isIngested: Bool
    private var route = HandshakeRoute()
    /// Of a handshake that is made while no address is proven.
    private var keys: SRTPKeyingMaterial?
    private var events: [Event] = []

    package init(
        plan: SessionPlan, localCredentials: ICECredentials, environment: Environment, at now: MonotonicTime
    ) {
        ice = ICELiteAgent(
            credentials: localCredentials, remote: plan.remoteCredentials, configuration: environment.ice,
            at: now)
        dtls = DTLSEndpoint(
            context: environment.dtls, role: .server,
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

    /// Whether nothing is sent or understood any more.
    package var isClosed: Bool {
        if case .closed = state { true } else { false }
    }

    /// By which a worker finds the connection of a check: one ufrag, or two during an ICE restart.
    package var localUfrags: [String] { ice.localUfrags }

    /// By which it finds that of any other datagram; at most 8.
    package var addresses: [TransportAddress] { ice.addresses }

    /// When an authentic check or packet last came from an address; nil for one where nobody need be.
    package func lastHeard(from address: TransportAddress) -> MonotonicTime? {
        isClosed ? nil : ice.lastHeard(from: address)
    }

    /// What happened since the last call.
    package func takeEvents() -> [Event] {
        guard !events.isEmpty else { return [] }
        defer { events.removeAll() }
        return events
    }

    // MARK: Connecting

    /// Answers a connectivity check that carries our ufrag, or takes the answer to a request of ours in.
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

    /// An authentic control packet came from an address that is not known: it is asked whether the client is there now.
    package func noteStray(
        from source: TransportAddress, at now: MonotonicTime, using random: inout some RandomNumberGenerator,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        guard !isClosed else { return }
        let effects = ice.noteStray(
            from: source, at: now, authenticator: Self.authenticator, using: &random)
        perform(effects, at: now, into: &sink)
    }

    /// Takes a DTLS record in, of the handshake or of what follows it.
    package func receiveHandshake(
        _ datagram: Span<UInt8>, from source: TransportAddress, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        guard !isClosed else { return }
        if route.origin == nil { route.origin = source }
        // No sign of life: anybody can send records from an address that was once admitted.
        perform(dtls.receive(datagram, at: now), at: now, into: &sink)
    }

    /// Forgets an address whose TCP connection was closed; consent says later whether the client is gone too.
    package func lose(
        _ address: TransportAddress, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) {
        guard !isClosed else { return }
        perform(ice.lose(address, at: now), at: now, into: &sink)
        if route.origin == address { route.origin = nil }
    }

    /// New credentials from both sides; the addresses and keys stay (RFC 8445 §2.4).
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
        connectIfReady(at: now, into: &sink)
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

    /// Becomes connected once there are keys and an address that is proven.
    private func connectIfReady(at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable) {
        guard state == .connecting, remoteAddress != nil, let keys else { return }
        self.keys = nil
        do {
            inbound = try SRTPInbound(engine, keys.inbound(as: .server))
            outbound = try SRTPOutbound(engine, keys.outbound(as: .server))
        } catch {
            return end(because: .handshakeFailed)
        }
        state = .connected
        events.append(.connected(keys.profile))
        guard let channelPlan else {
            // 75 kB a session; without data channels there is nothing left to say but goodbye.
            return dtls.releaseHandshake()
        }
        // Media goes on without them if the process has as many associations as there can be.
        channels = try? DataChannelEndpoint(plan: channelPlan, role: .server, timeline: timeline, at: now)
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

    /// When `advance` wants to be called.
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

    /// Does what is due: time-outs, DTLS and SCTP repetitions, requests to new addresses, lost consent.
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

    /// Ends the connection from this side, with a DTLS close.
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

    /// What a channel is called; nil if there is none that can be used.
    package func dataChannel(_ stream: UInt16) -> DataChannelOpen? { channels?.description(of: stream) }

    /// Whether channels can be opened: the peer asked for data channels, and their association is up.
    package var hasDataChannels: Bool { channels?.isEstablished ?? false }

    /// Opens a channel, on which messages can be sent at once.
    package func openDataChannel(
        _ open: DataChannelOpen, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) throws(DataChannelError) -> UInt16 {
        let stream = try channels?.open(open, at: now)
        withChannels(into: &sink) { _ in }
        guard let stream else { throw .noChannel }
        return stream
    }

    /// - Throws: `.bufferFull` where as much waits as may.
    package func send(
        _ message: DataChannelMessage, on stream: UInt16, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) throws(DataChannelError) {
        guard let channels else { throw .noChannel }
        try channels.send(message, on: stream, at: now)
        withChannels(into: &sink) { _ in }
    }

    /// Closes the channel, once what was sent on it has arrived.
    package func closeDataChannel(
        _ stream: UInt16, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) {
        withChannels(into: &sink) { $0.close(stream, at: now) }
    }

    /// Bytes of a channel that wait for the peer.
    package func buffered(_ stream: UInt16) -> Int { channels?.buffered(stream) ?? 0 }

    /// Calls `body`, and sends what came of it.
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

    /// Decrypts an RTP packet in place; one that is authentic shows that the peer lives.
    /// - Returns: its length without the authentication tag.
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

    /// Decrypts an RTCP compound in place.
    /// - Returns: its length without tag and index.
    package func unprotectControl(
        _ packet: inout MutableSpan<UInt8>, from source: TransportAddress, at now: MonotonicTime
    ) throws(SRTPError) -> Int {
        guard let length = try inbound?.unprotectControl(&packet, length: packet.count) else {
            throw .notReady
        }
        follow(source, at: now)
        return length
    }

    /// Decrypts in place a packet from an address that is not known to be this session's.
    /// - Returns: its length without what SRTP added; nil for somebody else's, which is left as it came.
    package func unprotectStray(_ packet: inout MutableSpan<UInt8>, _ kind: DatagramKind) -> Int? {
        guard kind == .rtp else { return inbound?.unprotectStray(&packet, headerLength: nil) }
        guard let length = try? RTPHeader.length(of: packet.span) else { return nil }
        return inbound?.unprotectStray(&packet, headerLength: length)
    }

    /// When the client last proved to be there.
    package var lastHeard: MonotonicTime { ice.lastConsent }

    /// An authentic packet shows that the client is there, and on which of its networks.
    private func follow(_ source: TransportAddress, at now: MonotonicTime) {
        guard case .nominate(let address)? = ice.noteTraffic(from: source, at: now) else { return }
        remoteAddress = address
    }

    /// What `encrypt` reads: of this object, and of the keys once there are any.
    package var cacheHints: (connection: CacheHint, keys: CacheHint?) {
        (CacheHint(self, bytes: 384), outbound?.cacheHint)
    }

    /// Hot path: encrypts a packet whose header and payload start stand in `destination`, and whose rest is `body`.
    ///
    /// Its tag may be left for later.
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

    /// Encrypts and sends an RTCP compound of at most 1,200 bytes; dropped while there are no keys.
    package func sendControl(_ bytes: [UInt8], into sink: inout some DatagramSink & ~Copyable) {
        guard let remoteAddress, let overhead = outbound?.profile.controlOverhead else { return }
        // A packet that cannot be protected has no use; the next report comes soon.
        try? sink.append(to: remoteAddress, capacity: bytes.count + overhead) { buffer throws(SRTPError) in
            for index in 0..<bytes.count { buffer[index] = bytes[index] }
            return try outbound?.protectControl(&buffer, length: bytes.count) ?? 0
        }
    }
}
