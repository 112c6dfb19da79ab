import Base
import Crypto
import Peer
import SCTP
import Wire

/// The browser's side of one peer connection: controlling ICE, DTLS in the role that the server leaves to it, and SRTP.
///
/// The counterpart of `PeerConnection`, for `sfu-bench`, simulations and headless clients. It receives datagrams and
/// the time, sends through a sink from its one socket, and reports through `takeEvents()`.
/// - Source: RFC 8445 §6, §7.2 (full agent); RFC 5764 §5 (DTLS-SRTP).
package final class ClientConnection {
    /// Events of the connection, in order.
    package enum Event: Equatable, Sendable {
        /// ICE has selected a pair; the DTLS handshake begins.
        case iceConnected
        /// Media can be encrypted and sent from now on.
        case connected(SRTPProfile)
        /// The server has closed the DTLS connection.
        case closedByServer
        /// No path to the server works, the server does not answer any more, or the handshake failed.
        case failed
        case dataChannel(DataChannelEvent)
    }

    private static let authenticator = OpenSSLAuthenticator()

    /// Whether SRTP keys are available.
    package private(set) var isConnected = false
    /// Whether the connection has ended, for any reason.
    package private(set) var isClosed = false
    /// The address of the client's socket, which may differ from the one that the server sees.
    package let localAddress: TransportAddress
    private var ice: ICEControllingAgent
    private let dtls: DTLSEndpoint
    private let dtlsRole: DTLSRole
    private var inbound: SRTPInbound?
    private var outbound: SRTPOutbound?
    private let engine: SRTPEngine
    /// The selected path's far end; nil until ICE selects one.
    private var remoteAddress: TransportAddress?
    /// Nil if no data channels were negotiated.
    private let channelPlan: DataChannelPlan?
    private let timeline: SCTPTimeline
    /// Nil before the handshake is complete, and without data channels.
    private var channels: DataChannelEndpoint?
    /// Source of the server's last authentic check.
    ///
    /// A server in the active role may begin the DTLS handshake before a pair is selected here; answers go to this
    /// address then.
    private var checkedFrom: TransportAddress?
    private var events: [Event] = []

    /// - Parameters:
    ///   - credentials: those of the client's offer.
    ///   - plan: from the server's answer.
    package init(
        credentials: ICECredentials, plan: ClientPlan, localAddress: TransportAddress, dtls: DTLSContext,
        engine: SRTPEngine = .openSSL, configuration: ICEControllingAgent.Configuration = .init(),
        timeline: SCTPTimeline = .system, at now: MonotonicTime,
        using random: inout some RandomNumberGenerator
    ) {
        self.localAddress = localAddress
        self.engine = engine
        self.timeline = timeline
        channelPlan = plan.dataChannel
        ice = ICEControllingAgent(
            local: credentials, remote: plan.remoteCredentials, configuration: configuration, at: now,
            using: &random)
        ice.addLocal(.init(host: localAddress))
        // With TCP a client can only connect to the server's passive candidates.
        for candidate in plan.candidates where candidate.tcpType ?? .passive == .passive {
            guard let address = candidate.transportAddress else { continue }
            ice.addRemote(.init(address: address, priority: candidate.priority))
        }
        dtlsRole = plan.dtlsRole
        self.dtls = DTLSEndpoint(
            context: dtls, role: plan.dtlsRole,
            expectedFingerprints: plan.fingerprints.compactMap {
                CertificateFingerprint(algorithm: $0.algorithm, bytes: $0.bytes)
            })
    }

    /// Events since the last call.
    package func takeEvents() -> [Event] {
        guard !events.isEmpty else { return [] }
        defer { events.removeAll() }
        return events
    }

    /// Round-trip time of the latest ICE check; nil before the first answer.
    package var roundTripTime: Duration? { ice.roundTripTime }

    // MARK: Datagrams

    /// Handles STUN and DTLS; RTP and RTCP go to `unprotect` and `unprotectControl`.
    package func receive(
        _ datagram: Span<UInt8>, from source: TransportAddress, at now: MonotonicTime,
        using random: inout some RandomNumberGenerator, into sink: inout some DatagramSink & ~Copyable
    ) {
        guard !isClosed else { return }
        switch DatagramKind(datagram) {
        case .stun where (try? datagram.uint16(at: 0)) == STUNKind.bindingRequest.rawValue:
            let answer = try? ice.answer(
                datagram, to: localAddress, from: source, authenticator: Self.authenticator)
            guard let answer else { return }
            checkedFrom = source
            perform([answer], at: now, into: &sink)
        case .stun:
            let effects = try? ice.receive(
                datagram, to: localAddress, from: source, at: now, authenticator: Self.authenticator,
                using: &random)
            perform(effects ?? [], at: now, into: &sink)
        case .dtls: perform(dtls.receive(datagram, at: now), at: now, into: &sink)
        case .rtp, .rtcp, nil: break
        }
    }

    /// Performs the effects of ICE.
    private func perform(
        _ effects: [ICEControllingAgent.Effect], at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        for effect in effects {
            switch effect {
            case .send(let bytes, let path): sink.append(bytes, to: path.remote)
            case .select(let path):
                let isFirst = remoteAddress == nil
                remoteAddress = path.remote
                // Later selections only change the path.
                guard isFirst else { continue }
                events.append(.iceConnected)
                perform(dtls.start(at: now), at: now, into: &sink)
            case .failed, .consentLost: end(with: .failed)
            }
        }
    }

    /// Performs the effects of DTLS.
    private func perform(
        _ effects: [DTLSEndpoint.Effect], at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        for effect in effects {
            switch effect {
            case .send(let bytes):
                guard let destination = remoteAddress ?? checkedFrom else { continue }
                sink.append(bytes, to: destination)
            case .connected(let keys):
                inbound = try? SRTPInbound(engine, keys.inbound(as: dtlsRole))
                outbound = try? SRTPOutbound(engine, keys.outbound(as: dtlsRole))
                isConnected = true
                events.append(.connected(keys.profile))
                beginChannels(at: now, into: &sink)
            case .applicationData(let bytes): withChannels(into: &sink) { $0.receive(bytes.span, at: now) }
            case .closed(.closedByPeer): end(with: .closedByServer)
            case .closed: end(with: .failed)
            }
        }
    }

    /// Starts SCTP; without data channels DTLS needs no state any more.
    private func beginChannels(at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable) {
        guard let channelPlan else { return dtls.releaseHandshake() }
        channels = try? DataChannelEndpoint(plan: channelPlan, role: dtlsRole, timeline: timeline, at: now)
        withChannels(into: &sink) { _ in }
    }

    private func end(with event: Event) {
        guard !isClosed else { return }
        channels = nil
        isClosed = true
        isConnected = false
        events.append(event)
    }

    // MARK: Time

    /// When `advance` must be called next; nil once closed.
    package var deadline: MonotonicTime? {
        guard !isClosed else { return nil }
        return min(
            ice.deadline ?? .distantFuture, dtls.deadline ?? .distantFuture,
            channels?.deadline ?? .distantFuture)
    }

    /// Does what is due: checks, consent, and retransmissions of DTLS and SCTP.
    package func advance(
        to now: MonotonicTime, using random: inout some RandomNumberGenerator,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        guard !isClosed else { return }
        let effects = ice.advance(to: now, authenticator: Self.authenticator, using: &random)
        perform(effects, at: now, into: &sink)
        if let due = dtls.deadline, now >= due { perform(dtls.advance(to: now), at: now, into: &sink) }
        if let due = channels?.deadline, now >= due { withChannels(into: &sink) { $0.advance(to: now) } }
    }

    /// Closes the connection and notifies the server.
    package func close(into sink: inout some DatagramSink & ~Copyable) {
        guard !isClosed else { return }
        channels = nil
        // Before DTLS closes: its end is not reported, as the owner wanted it.
        isClosed = true
        isConnected = false
        // The effects of closing do not depend on the time.
        perform(dtls.close(), at: .zero, into: &sink)
    }

    /// Applies new credentials and candidates after an ICE restart; the SRTP keys stay.
    package func restartICE(
        credentials: ICECredentials, remote: ICECredentials, candidates: [ICECandidate], at now: MonotonicTime
    ) {
        ice.restart(
            local: credentials, remote: remote,
            remoteCandidates: candidates.compactMap { candidate in
                candidate.transportAddress.map { .init(address: $0, priority: candidate.priority) }
            }, at: now)
    }

    // MARK: Data channels

    /// Opens a channel, on which messages can be sent immediately.
    ///
    /// Channel 0 is negotiated and needs no opening.
    package func openDataChannel(
        _ open: DataChannelOpen, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) throws(DataChannelError) -> UInt16 {
        guard let channels else { throw .noChannel }
        let stream = try channels.open(open, at: now)
        withChannels(into: &sink) { _ in }
        return stream
    }

    /// Sends a message on a data channel.
    /// - Throws: if the channel is not open, or has no room for the message.
    package func send(
        _ message: DataChannelMessage, on stream: UInt16, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) throws(DataChannelError) {
        guard let channels else { throw .noChannel }
        try channels.send(message, on: stream, at: now)
        withChannels(into: &sink) { _ in }
    }

    /// Closes the channel in both directions, once everything that was sent has arrived.
    package func closeDataChannel(
        _ stream: UInt16, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) {
        withChannels(into: &sink) { $0.close(stream, at: now) }
    }

    /// Runs `body`, then collects the events and packets that it has caused.
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

    /// Decrypts an RTP packet in place.
    /// - Returns: its length without the authentication tag.
    package func unprotect(_ packet: inout MutableSpan<UInt8>) throws(SRTPError) -> Int {
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
        return length
    }

    /// Decrypts an RTCP compound in place.
    /// - Returns: its length without tag and index.
    package func unprotectControl(_ packet: inout MutableSpan<UInt8>) throws(SRTPError) -> Int {
        guard let length = try inbound?.unprotectControl(&packet, length: packet.count) else {
            throw .notReady
        }
        return length
    }

    /// Encrypts and sends an RTP packet.
    ///
    /// - Parameters:
    ///   - index: 48 bits, its low 16 the packet's sequence number; used once per SSRC.
    ///   - writeHeader: writes the RTP header and returns its length.
    package func send(
        payload: Span<UInt8>, index: UInt64, into sink: inout some DatagramSink & ~Copyable,
        writeHeader: (inout MutableSpan<UInt8>) throws(WireError) -> Int
    ) throws(SRTPError) {
        guard let remoteAddress, isConnected else { throw .notReady }
        try sink.append(to: remoteAddress, capacity: 1_500) { buffer throws(SRTPError) in
            let headerLength: Int
            do throws(WireError) {
                headerLength = try writeHeader(&buffer)
            } catch {
                throw .noRoom
            }
            return try outbound?.protect(
                &buffer, headerLength: headerLength, prefixLength: 0, body: payload, index: index) ?? 0
        }
    }

    /// Encrypts and sends an RTCP compound of at most 1,200 bytes.
    package func sendControl(_ bytes: [UInt8], into sink: inout some DatagramSink & ~Copyable) {
        guard let remoteAddress, let overhead = outbound?.profile.controlOverhead else { return }
        // A compound that cannot be protected is dropped; the next report follows soon.
        try? sink.append(to: remoteAddress, capacity: bytes.count + overhead) { buffer throws(SRTPError) in
            for index in 0..<bytes.count { buffer[index] = bytes[index] }
            return try outbound?.protectControl(&buffer, length: bytes.count) ?? 0
        }
    }
}
