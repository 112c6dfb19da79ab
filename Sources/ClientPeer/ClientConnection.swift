import Base
import Crypto
import Peer
import SCTP
import Wire

/// The browser's end of one peer connection: controlling ICE, DTLS in the role the server leaves, and SRTP.
///
/// The mirror of `PeerConnection`, for `sfu-bench` and simulations: takes datagrams and the time, sends through a
/// sink from its one socket, tells what happened through `takeEvents()`.
/// - Source: RFC 8445 §6, §7.2 (full agent); RFC 5764 §5 (DTLS-SRTP).
package final class ClientConnection {
    /// What happened to the connection, in order.
    package enum Event: Equatable, Sendable {
        /// ICE has selected a pair; DTLS begins.
        case iceConnected
        /// Media may be encrypted and sent from now on.
        case connected(SRTPProfile)
        /// The server said goodbye.
        case closedByServer
        /// No way to the server works, it no longer answers, or the handshake failed.
        case failed
        case dataChannel(DataChannelEvent)
    }

    private static let authenticator = OpenSSLAuthenticator()

    /// Whether keys were agreed on.
    package private(set) var isConnected = false
    /// Whether the connection is over, for whatever reason.
    package private(set) var isClosed = false
    /// The client's socket, as it knows it itself.
    package let localAddress: TransportAddress
    private var ice: ICEControllingAgent
    private let dtls: DTLSEndpoint
    private let dtlsRole: DTLSRole
    private var inbound: SRTPInbound?
    private var outbound: SRTPOutbound?
    private let engine: SRTPEngine
    private var remoteAddress: TransportAddress?
    private let channelPlan: DataChannelPlan?
    private let timeline: SCTPTimeline
    private var channels: DataChannelEndpoint?
    /// Where the server's last authentic check came from: it may begin with DTLS before a pair is selected here.
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

    /// What happened since the last call.
    package func takeEvents() -> [Event] {
        guard !events.isEmpty else { return [] }
        defer { events.removeAll() }
        return events
    }

    /// Round-trip time of the latest ICE check.
    package var roundTripTime: Duration? { ice.roundTripTime }

    // MARK: Datagrams

    /// Takes STUN or DTLS in; media goes to `unprotect` and `unprotectControl`.
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
                guard isFirst else { continue }
                events.append(.iceConnected)
                perform(dtls.start(at: now), at: now, into: &sink)
            case .failed, .consentLost: end(with: .failed)
            }
        }
    }

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

    /// When `advance` wants to be called; nil once closed.
    package var deadline: MonotonicTime? {
        guard !isClosed else { return nil }
        return min(
            ice.deadline ?? .distantFuture, dtls.deadline ?? .distantFuture,
            channels?.deadline ?? .distantFuture)
    }

    /// Does what is due: checks, consent, DTLS and SCTP repetitions.
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

    /// Says goodbye.
    package func close(into sink: inout some DatagramSink & ~Copyable) {
        guard !isClosed else { return }
        channels = nil
        // What remains to be done needs no time.
        perform(dtls.close(), at: .zero, into: &sink)
        isClosed = true
        isConnected = false
    }

    /// Goes on with the server's new credentials after an ICE restart; the keys stay.
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

    /// Opens a channel, on which messages can be sent at once; channel 0 is there without.
    package func openDataChannel(
        _ open: DataChannelOpen, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) throws(DataChannelError) -> UInt16 {
        guard let channels else { throw .noChannel }
        let stream = try channels.open(open, at: now)
        withChannels(into: &sink) { _ in }
        return stream
    }

    /// Sends a message; throws where the channel is not open or has no room.
    package func send(
        _ message: DataChannelMessage, on stream: UInt16, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) throws(DataChannelError) {
        guard let channels else { throw .noChannel }
        try channels.send(message, on: stream, at: now)
        withChannels(into: &sink) { _ in }
    }

    /// Closes the channel in both directions, once what was sent has arrived.
    package func closeDataChannel(
        _ stream: UInt16, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) {
        withChannels(into: &sink) { $0.close(stream, at: now) }
    }

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
        // One that cannot be protected has no use; the next report comes soon.
        try? sink.append(to: remoteAddress, capacity: bytes.count + overhead) { buffer throws(SRTPError) in
            for index in 0..<bytes.count { buffer[index] = bytes[index] }
            return try outbound?.protectControl(&buffer, length: bytes.count) ?? 0
        }
    }
}
