import Base
import ClientPeer
import Crypto
import Net
import Peer
import RostrumClient
import Synchronization
import Wire

/// One peer connection on the engine's thread: repairs what it receives, answers feedback on what it sends, and
/// reports.
final class HeadlessPeer {
    /// In nanoseconds, between requests for a key frame until the first one arrives; the same as in browsers.
    private static let keyFrameInterval: Int64 = 300_000_000
    /// ID of the control channel, which both sides know without negotiation.
    private static let control: UInt16 = 0

    private let outlet: HeadlessOutlet
    private let connection: ClientConnection
    private let clock: WallClock
    /// Packs RTCP packets into compounds.
    private let packer: ControlPacker
    /// The sender of feedback; a random SSRC if nothing is sent.
    private let ssrc: UInt32
    private var sink: DirectSink
    private var random = SystemRandomNumberGenerator()
    private var reports: ReportScheduler
    /// One for each m-line that sends.
    private var sending: [SendingTrack] = []
    /// One for each m-line that receives.
    private var receiving: [ReceivingTrack] = []
    /// SSRCs of video whose first key frame has not arrived yet.
    private var awaited: Set<UInt32> = []
    /// When the next key frame is requested.
    private var nextRequest = MonotonicTime.distantFuture
    /// Arrival times of packets for the server, by which it estimates the path; nil if the server does not number
    /// packets.
    private var arrivals: (id: UInt8, recorder: TransportFeedbackRecorder)?
    /// The next packet's number on the path, over all m-lines.
    private var transportSequence: UInt16 = 1

    init(
        _ setup: HeadlessSetup, dtls: DTLSContext, sink: DirectSink, clock: WallClock, at now: MonotonicTime
    ) {
        outlet = setup.outlet
        self.sink = sink
        self.clock = clock
        var configuration = ICEControllingAgent.Configuration()
        // Shorter than the usual 30 s: a server that was killed is silent, and the app should reconnect soon.
        configuration.consentTimeout = .seconds(10)
        connection = ClientConnection(
            credentials: setup.credentials, plan: setup.plan, localAddress: setup.socket.localAddress,
            dtls: dtls, configuration: configuration, at: now, using: &random)
        // Of simulcast only the first encoding is sent.
        for line in setup.plan.lines {
            if let encoding = line.encodings.first,
                let track = SendingTrack(line: line, encoding: encoding, using: &random)
            {
                sending.append(track)
            }
            if line.direction.receives, let track = ReceivingTrack(line: line) { receiving.append(track) }
        }
        ssrc = sending.first?.ssrc ?? UInt32.random(in: 1...UInt32.max, using: &random)
        packer = ControlPacker(localSSRC: ssrc, canonicalName: "headless", reducedSize: true)
        reports = ReportScheduler(at: now, using: &random)
        awaited = Set(receiving.lazy.filter { $0.line.kind == .video }.map(\.source.ssrc))
        if let id = receiving.lazy.compactMap(\.line.extensions.transportSequenceNumber).first {
            arrivals = (id, TransportFeedbackRecorder(senderSSRC: ssrc, mediaSSRC: 0))
        }
    }

    // MARK: What comes

    /// Handles one datagram from the server.
    func receive(_ datagram: inout MutableSpan<UInt8>, from source: TransportAddress, at now: MonotonicTime) {
        switch DatagramKind(datagram.span) {
        case .rtp: receiveMedia(&datagram, at: now)
        case .rtcp:
            // Bytes that make no sense are dropped, as a stranger may send them.
            guard let length = try? connection.unprotectControl(&datagram),
                let packets = try? RTCPPacket.parseCompound(datagram.span.extracting(first: length))
            else { return }
            for packet in packets { receive(packet, at: now) }
        case .stun, .dtls:
            connection.receive(datagram.span, from: source, at: now, using: &random, into: &sink)
            takeEvents(at: now)
        case nil: break
        }
    }

    /// Decrypts an RTP packet and delivers its payload.
    private func receiveMedia(_ datagram: inout MutableSpan<UInt8>, at now: MonotonicTime) {
        guard let length = try? connection.unprotect(&datagram) else { return }
        let bytes = datagram.span.extracting(first: length)
        guard let header = try? RTPHeader(parsing: bytes) else { return }
        if let id = arrivals?.id,
            let number = header.extensionValue(TransportSequenceNumber.self, id: id, in: bytes)
        {
            arrivals?.recorder.mediaSSRC = header.ssrc
            arrivals?.recorder.record(number.value, at: now)
        }
        guard let index = receiving.firstIndex(where: { $0.takes(ssrc: header.ssrc) }),
            let packet = (try? receiving[index].receive(bytes, at: now)) ?? nil, !packet.payload.isEmpty
        else { return }
        var startsKeyFrame = false
        if let video = packet.codec.video {
            let info = try? VideoPayload.describe(
                video, payload: packet.payload.span, marker: packet.header.marker)
            startsKeyFrame = info?.startsKeyFrame ?? false
            let source = receiving[index].source.ssrc
            // Requests begin with the first packet of a source whose key frame is still missing.
            if startsKeyFrame {
                awaited.remove(source)
            } else if awaited.contains(source), nextRequest == .distantFuture {
                nextRequest = now.advanced(byNanoseconds: Self.keyFrameInterval)
            }
        }
        outlet.tell(
            MediaPacket(
                mid: receiving[index].line.mid, codec: packet.codec.sdpName, payload: packet.payload,
                timestamp: packet.header.timestamp, marker: packet.header.marker,
                sequenceNumber: packet.sequenceNumber, startsKeyFrame: startsKeyFrame,
                captured: receiving[index].captured(packet.header.timestamp)))
    }

    /// Handles one RTCP packet.
    private func receive(_ packet: RTCPPacket, at now: MonotonicTime) {
        switch packet {
        case .senderReport(let report):
            for index in receiving.indices { receiving[index].receive(report, at: now) }
        case .pictureLossIndication(let request): wantKeyFrame(of: request.mediaSSRC)
        case .fullIntraRequest(let request):
            for entry in request.entries { wantKeyFrame(of: entry.ssrc) }
        case .nack(let nack):
            guard let index = sending.firstIndex(where: { $0.ssrc == nack.mediaSSRC }) else { return }
            // A packet that is not available any more is not resent; the receiver gives up on it soon.
            try? sending[index].resend(
                nack.lost, transport: &transportSequence, over: connection, into: &sink)
        default: break
        }
    }

    /// Forwards a request for a key frame to the app.
    private func wantKeyFrame(of ssrc: UInt32) {
        guard let track = sending.first(where: { $0.ssrc == ssrc }) else { return }
        outlet.tell(.keyFrameWanted(mid: track.line.mid))
    }

    /// Forwards events of the connection to the app.
    private func takeEvents(at now: MonotonicTime) {
        for event in connection.takeEvents() {
            switch event {
            case .iceConnected: break
            case .connected: outlet.tell(.connected)
            case .closedByServer: outlet.tell(.lost("the server said goodbye"))
            case .failed: outlet.tell(.lost("the server does not answer"))
            case .dataChannel(.opened(Self.control, _)):
                outlet.isControlOpen.store(true, ordering: .releasing)
                outlet.tell(.controlOpened)
            case .dataChannel(.message(Self.control, let message)):
                if let text = message.text { outlet.tell(.message(text)) }
            case .dataChannel(.closed(Self.control)):
                outlet.isControlOpen.store(false, ordering: .releasing)
            case .dataChannel: break
            }
        }
    }

    // MARK: What is sent

    /// Sends a packet of the app; drops it before the connection is established.
    func send(_ packet: MediaPacket, at now: MonotonicTime) {
        guard connection.isConnected, let index = sending.firstIndex(where: { $0.line.mid == packet.mid })
        else { return }
        // If the socket has no room, the packet is lost, as it could be on the path.
        try? sending[index].send(
            packet.payload, timestamp: packet.timestamp, marker: packet.marker,
            audioLevel: packet.audioLevel, transport: &transportSequence, at: now, over: connection,
            into: &sink)
    }

    func say(_ message: String, at now: MonotonicTime) {
        // If the server accepts no more data, it does not answer checks either, and the connection is soon reported as
        // lost.
        try? connection.send(DataChannelMessage(message), on: Self.control, at: now, into: &sink)
        takeEvents(at: now)
    }

    /// Notifies the server of the end.
    func leave() {
        connection.close(into: &sink)
    }

    // MARK: Time

    /// When `advance` must be called next.
    var deadline: MonotonicTime {
        guard !connection.isClosed else { return .distantFuture }
        var earliest = connection.deadline ?? .distantFuture
        guard connection.isConnected else { return earliest }
        earliest = min(earliest, reports.deadline, nextRequest)
        earliest = min(earliest, arrivals?.recorder.deadline ?? .distantFuture)
        for track in receiving { earliest = min(earliest, track.deadline ?? .distantFuture) }
        return earliest
    }

    /// Does what is due: checks, feedback, requests for key frames, and reports.
    func advance(to now: MonotonicTime) {
        if let due = connection.deadline, now >= due {
            connection.advance(to: now, using: &random, into: &sink)
            takeEvents(at: now)
        }
        guard connection.isConnected else { return }
        var feedback = arrivals?.recorder.feedbackDue(at: now).map { RTCPPacket.transportFeedback($0) } ?? []
        for index in receiving.indices {
            feedback += receiving[index].feedback(from: ssrc, rtt: connection.roundTripTime, at: now)
        }
        if nextRequest <= now {
            feedback += awaited.sorted().map {
                .pictureLossIndication(.init(senderSSRC: ssrc, mediaSSRC: $0))
            }
            nextRequest =
                awaited.isEmpty ? .distantFuture : now.advanced(byNanoseconds: Self.keyFrameInterval)
        }
        if !feedback.isEmpty { send(packer.feedback(feedback)) }
        guard reports.isDue(at: now, using: &random) else { return }
        let sent = sending.compactMap { $0.report(at: now, clock: clock) }
        let received = receiving.indices.compactMap { receiving[$0].reportBlock(at: now) }
        send(packer.reports(senders: sent, receptions: received))
    }

    /// Sends RTCP compounds.
    private func send(_ control: [[UInt8]]) {
        for bytes in control { connection.sendControl(bytes, into: &sink) }
    }
}

extension ReceivingTrack {
    /// Seconds from 1900, the epoch of NTP, to 1970.
    private static var epochDifference: Double { 2_208_988_800 }

    /// When media with this time stamp was captured by the server's clock, in seconds since 1970.
    ///
    /// The latest sender report relates the two clocks; nil before the first one.
    /// - Source: RFC 3550 §6.4.1.
    fileprivate func captured(_ timestamp: UInt32) -> Double? {
        guard let report = lastReport else { return nil }
        let rate = line.kind == .video ? 90_000.0 : 48_000.0
        let seconds = Double(report.ntpTime) / 4_294_967_296 - Self.epochDifference
        return seconds + Double(Int32(bitPattern: timestamp &- report.rtpTimestamp)) / rate
    }
}

extension MediaCodec {
    /// The codec's name in SDP.
    fileprivate var sdpName: String {
        switch self {
        case .opus: "opus"
        case .vp8: "VP8"
        case .vp9: "VP9"
        case .h264: "H264"
        case .av1: "AV1"
        }
    }
}
