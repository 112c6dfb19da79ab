import Base
import ClientPeer
import Crypto
import Net
import Peer
import RostrumClient
import Synchronization
import Wire

/// One peer connection on the engine's thread: repairs what is received, answers for what is sent, and reports.
final class HeadlessPeer {
    /// How often a key frame is asked for until the first one comes; browsers do the same.
    private static let keyFrameInterval: Int64 = 300_000_000
    /// Number of the control channel, known to both sides.
    private static let control: UInt16 = 0

    private let outlet: HeadlessOutlet
    private let connection: ClientConnection
    private let clock: WallClock
    private let packer: ControlPacker
    private let ssrc: UInt32
    private var sink: DirectSink
    private var random = SystemRandomNumberGenerator()
    private var reports: ReportScheduler
    private var sending: [SendingTrack] = []
    private var receiving: [ReceivingTrack] = []
    /// SSRCs of pictures of which no key frame came yet.
    private var awaited: Set<UInt32> = []
    private var nextRequest = MonotonicTime.distantFuture
    /// What the server is told of packets' arrivals, so that it knows the path; nil where it does not number them.
    private var arrivals: (id: UInt8, recorder: TransportFeedbackRecorder)?
    private var transportSequence: UInt16 = 1

    init(
        _ setup: HeadlessSetup, dtls: DTLSContext, sink: DirectSink, clock: WallClock, at now: MonotonicTime
    ) {
        outlet = setup.outlet
        self.sink = sink
        self.clock = clock
        var configuration = ICEControllingAgent.Configuration()
        // A server that was killed says nothing; the next one is waited for soon.
        configuration.consentTimeout = .seconds(10)
        connection = ClientConnection(
            credentials: setup.credentials, plan: setup.plan, localAddress: setup.socket.localAddress,
            dtls: dtls, configuration: configuration, at: now, using: &random)
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

    private func receive(_ packet: RTCPPacket, at now: MonotonicTime) {
        switch packet {
        case .senderReport(let report):
            for index in receiving.indices { receiving[index].receive(report, at: now) }
        case .pictureLossIndication(let request): wantKeyFrame(of: request.mediaSSRC)
        case .fullIntraRequest(let request):
            for entry in request.entries { wantKeyFrame(of: entry.ssrc) }
        case .nack(let nack):
            guard let index = sending.firstIndex(where: { $0.ssrc == nack.mediaSSRC }) else { return }
            // What cannot be sent again is given up by who asked, in a moment.
            try? sending[index].resend(
                nack.lost, transport: &transportSequence, over: connection, into: &sink)
        default: break
        }
    }

    private func wantKeyFrame(of ssrc: UInt32) {
        guard let track = sending.first(where: { $0.ssrc == ssrc }) else { return }
        outlet.tell(.keyFrameWanted(mid: track.line.mid))
    }

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

    func send(_ packet: MediaPacket, at now: MonotonicTime) {
        guard connection.isConnected, let index = sending.firstIndex(where: { $0.line.mid == packet.mid })
        else { return }
        // What finds no room in the socket is lost, as it would be on the way.
        try? sending[index].send(
            packet.payload, timestamp: packet.timestamp, marker: packet.marker,
            audioLevel: packet.audioLevel, transport: &transportSequence, at: now, over: connection,
            into: &sink)
    }

    func say(_ message: String, at now: MonotonicTime) {
        // A server that takes nothing any more does not answer either, and the connection is lost soon.
        try? connection.send(DataChannelMessage(message), on: Self.control, at: now, into: &sink)
        takeEvents(at: now)
    }

    func leave() {
        connection.close(into: &sink)
    }

    // MARK: Time

    var deadline: MonotonicTime {
        guard !connection.isClosed else { return .distantFuture }
        var earliest = connection.deadline ?? .distantFuture
        guard connection.isConnected else { return earliest }
        earliest = min(earliest, reports.deadline, nextRequest)
        earliest = min(earliest, arrivals?.recorder.deadline ?? .distantFuture)
        for track in receiving { earliest = min(earliest, track.deadline ?? .distantFuture) }
        return earliest
    }

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

    private func send(_ control: [[UInt8]]) {
        for bytes in control { connection.sendControl(bytes, into: &sink) }
    }
}

extension ReceivingTrack {
    /// Seconds from 1900, where NTP begins, to 1970.
    private static var epochDifference: Double { 2_208_988_800 }

    /// When media of that time stamp was captured by the server's clock, in seconds since 1970.
    /// - Source: RFC 3550 §6.4.1.
    fileprivate func captured(_ timestamp: UInt32) -> Double? {
        guard let report = lastReport else { return nil }
        let rate = line.kind == .video ? 90_000.0 : 48_000.0
        let seconds = Double(report.ntpTime) / 4_294_967_296 - Self.epochDifference
        return seconds + Double(Int32(bitPattern: timestamp &- report.rtpTimestamp)) / rate
    }
}

extension MediaCodec {
    /// As SDP names it.
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
