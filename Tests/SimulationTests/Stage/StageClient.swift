import Base
import ClientPeer
import Crypto
import Peer
import SCTP
import TestSupport
import Wire

/// A speaker in virtual time: sends a small picture and a voice that name it, and looks at what comes in its slots.
final class StageClient {
    let number: Int
    let name: ParticipantID
    let offer: ClientOffer
    let address: TransportAddress
    private(set) var connection: ClientConnection?
    private(set) var dataEvents: [DataChannelEvent] = []
    /// 127 is silence.
    var audioLevel: UInt8 = 127
    var isSending = true
    /// Nil for key frames on request only.
    var keyFrameInterval: Duration?
    private var nextKeyFrame = MonotonicTime.zero
    private(set) var keyFrameRequests = 0
    /// Told of every packet that came in a slot, late and repaired ones too.
    var onPacket: ((Arrival) -> Void)?
    private(set) var sawItself = false
    private(set) var slots: [Slot] = []
    private var random: SeededGenerator
    private let dtls: DTLSContext
    private var videoTrack: SendingTrack?
    private var audioTrack: SendingTrack?
    private var video: SyntheticVideo
    private var audioTimestamp: UInt32 = 7
    private var transport: UInt16 = 1
    private var nextVideo = MonotonicTime.distantFuture
    private var nextAudio = MonotonicTime.distantFuture
    private var nextReport = MonotonicTime.distantFuture
    private var nextRequest = MonotonicTime.distantFuture
    private let clock = WallClock(unixNanoseconds: 1_700_000_000_000_000_000, at: .zero)

    struct Arrival {
        let mid: String
        let kind: MediaKind
        let source: Int
        let sequenceNumber: Int64
        let timestamp: UInt32
        let startsKeyFrame: Bool
        let isRepaired: Bool
        let time: MonotonicTime
    }

    /// What came in one slot.
    struct Slot {
        var track: ReceivingTrack
        var decoder = DecoderModel()
        /// Whose media came last, and when.
        var source: Int?
        var heard = MonotonicTime.zero
        /// When a picture was last shown, or one was asked for because there was none.
        var shown = MonotonicTime.zero
        var mid: String { track.line.mid }
        var kind: MediaKind { track.line.kind }
    }

    init(
        number: Int, name: ParticipantID, address: TransportAddress, identity: DTLSIdentity, seed: UInt64,
        audio: Int, video slots: Int, publishes: Bool = true, hasChannels: Bool? = nil,
        _ change: (inout SyntheticVideo.Settings) -> Void = { _ in }
    ) throws {
        (self.number, self.name, self.address) = (number, name, address)
        var random = SeededGenerator(seed: seed)
        dtls = try DTLSContext(identity: identity)
        let requests: [ClientOffer.Request] =
            (publishes ? [.publishAudio, .publishVideo(.vp8)] : [])
            + Array(repeating: .playAudio, count: audio) + Array(repeating: .playVideo, count: slots)
            + (hasChannels ?? publishes ? [.dataChannels] : [])
        offer = ClientOffer(
            requests, credentials: ICECredentials(using: &random),
            fingerprint: SDPFingerprint(
                algorithm: identity.fingerprint.algorithm.rawValue, bytes: identity.fingerprint.bytes),
            using: &random)
        var settings = SyntheticVideo.Settings()
        (settings.bitrate, settings.framesPerSecond, settings.keyFrameRatio) = (16_000, 3, 2)
        (settings.width, settings.height) = (320, 180)
        change(&settings)
        video = SyntheticVideo(settings, using: &random)
        self.random = random
    }

    /// Whose sound or picture comes now.
    func source(_ kind: MediaKind, at now: MonotonicTime) -> Int? {
        slots.first { $0.kind == kind && $0.heard + .milliseconds(900) >= now }?.source
    }

    var isConnected: Bool { connection?.isConnected ?? false }
    var hasControl: Bool { dataEvents.contains { if case .opened(0, _) = $0 { true } else { false } } }

    func start(_ answer: SessionDescription, timeline: SCTPTimeline, at now: MonotonicTime) throws {
        let plan = try ClientPlan(answer, to: offer)
        connection = ClientConnection(
            credentials: offer.credentials, plan: plan, localAddress: address, dtls: dtls, timeline: timeline,
            at: now, using: &random)
        for line in plan.lines {
            if let track = ReceivingTrack(line: line) { slots.append(Slot(track: track)) }
            guard let encoding = line.encodings.first else { continue }
            let track = SendingTrack(line: line, encoding: encoding, using: &random)
            if line.kind == .video { videoTrack = track } else { audioTrack = track }
        }
    }

    // MARK: Time

    func advance(to now: MonotonicTime, into sink: inout CollectingSink) {
        guard let connection, !connection.isClosed else { return }
        if let due = connection.deadline, now >= due {
            connection.advance(to: now, using: &random, into: &sink)
            takeEvents(at: now)
        }
        guard connection.isConnected else { return }
        if isSending { sendMedia(at: now, over: connection, into: &sink) }
        for index in slots.indices {
            if let due = slots[index].track.deadline, due > now { continue }
            let packets = slots[index].track.feedback(from: 1, rtt: connection.roundTripTime, at: now)
            connection.sendFeedback(packets, into: &sink)
        }
        if now >= nextReport { report(at: now, over: connection, into: &sink) }
        if now >= nextRequest { askForKeyFrames(at: now, over: connection, into: &sink) }
    }

    private func sendMedia(
        at now: MonotonicTime, over connection: ClientConnection, into sink: inout CollectingSink
    ) {
        if now >= nextVideo {
            nextVideo = now + video.frameInterval
            if let keyFrameInterval, now >= nextKeyFrame {
                nextKeyFrame = now + keyFrameInterval
                video.requestKeyFrame()
            }
            for packet in video.nextFrame(stamp: UInt64(number)) {
                try? videoTrack?.send(
                    packet.payload, timestamp: packet.timestamp, marker: packet.marker, transport: &transport,
                    at: now, over: connection, into: &sink)
            }
        }
        guard now >= nextAudio else { return }
        nextAudio = now + .milliseconds(60)
        try? audioTrack?.send(
            [0x78, UInt8(number)] + Array(repeating: 0, count: 20), timestamp: audioTimestamp, marker: false,
            audioLevel: audioLevel, transport: &transport, at: now, over: connection, into: &sink)
        audioTimestamp &+= 2_880
    }

    private func report(
        at now: MonotonicTime, over connection: ClientConnection, into sink: inout CollectingSink
    ) {
        nextReport = now + .seconds(1)
        var blocks: [ReportBlock] = []
        for index in slots.indices {
            if let block = slots[index].track.reportBlock(at: now) { blocks.append(block) }
        }
        let senders = [videoTrack, audioTrack].compactMap { $0?.report(at: now, clock: clock) }
        connection.sendReports(senders: senders, receptions: blocks, into: &sink)
    }

    /// Chromium and Firefox ask for a key frame when packets come but no picture for so long.
    private static let patience = Duration.seconds(3)

    /// As browsers do while they have nothing to show.
    private func askForKeyFrames(
        at now: MonotonicTime, over connection: ClientConnection, into sink: inout CollectingSink
    ) {
        nextRequest = now + .milliseconds(500)
        for index in slots.indices where slots[index].kind == .video && slots[index].source != nil {
            let slot = slots[index]
            // What was lost before the first packet that came is not known to be missing; nobody asks for it again.
            let stands = slot.heard + .seconds(1) >= now && slot.shown + Self.patience <= now
            guard slot.decoder.isWaitingForKeyFrame || stands else { continue }
            slots[index].shown = now
            let indication = PictureLossIndication(senderSSRC: 1, mediaSSRC: slot.track.source.ssrc)
            connection.sendFeedback([.pictureLossIndication(indication)], into: &sink)
        }
    }

    private func takeEvents(at now: MonotonicTime) {
        for event in connection?.takeEvents() ?? [] {
            if case .dataChannel(let event) = event { dataEvents.append(event) }
            guard case .connected = event else { continue }
            (nextVideo, nextAudio, nextReport, nextRequest) = (now, now, now, now)
        }
    }

    // MARK: Data channels

    func open(_ label: String, at now: MonotonicTime, into sink: inout CollectingSink) throws -> UInt16? {
        try connection?.openDataChannel(DataChannelOpen(label: label), at: now, into: &sink)
    }

    func send(
        _ message: DataChannelMessage, on stream: UInt16, at now: MonotonicTime,
        into sink: inout CollectingSink
    ) throws {
        try connection?.send(message, on: stream, at: now, into: &sink)
    }

    /// Messages on channels of that label.
    func messages(_ label: String) -> [DataChannelMessage] {
        let streams = dataEvents.compactMap { event -> UInt16? in
            if case .opened(let stream, let open) = event, open.label == label { stream } else { nil }
        }
        return dataEvents.compactMap { event in
            if case .message(let stream, let message) = event, streams.contains(stream) {
                message
            } else {
                nil
            }
        }
    }

    // MARK: Datagrams

    func receive(
        _ datagram: [UInt8], from source: TransportAddress, at now: MonotonicTime,
        into sink: inout CollectingSink
    ) {
        guard let connection else { return }
        switch DatagramKind(datagram.span) {
        case .stun, .dtls:
            connection.receive(datagram.span, from: source, at: now, using: &random, into: &sink)
            takeEvents(at: now)
        case .rtp: receiveMedia(datagram, over: connection, at: now)
        case .rtcp: receiveControl(datagram, over: connection, at: now, into: &sink)
        case nil: break
        }
    }

    private func receiveMedia(_ datagram: [UInt8], over connection: ClientConnection, at now: MonotonicTime) {
        var bytes = datagram
        var span = bytes.mutableSpan
        guard let length = try? connection.unprotect(&span) else { return }
        let plain = Array(bytes[..<length])
        guard let header = try? RTPHeader(parsing: plain.span),
            let index = slots.firstIndex(where: { $0.track.takes(ssrc: header.ssrc) }),
            let packet = (try? slots[index].track.receive(plain.span, at: now)) ?? nil
        else { return }
        var source: Int?
        if packet.codec.isVideo {
            let before = slots[index].decoder.framesDecoded
            slots[index].decoder.receive(
                packet.header, payload: packet.payload, sequenceNumber: packet.sequenceNumber)
            if slots[index].decoder.framesDecoded > before { slots[index].shown = now }
            source = (try? SyntheticMark(reading: packet.payload.span)).map { Int($0.stamp) }
        } else if packet.payload.count > 1 {
            source = Int(packet.payload[1])
        }
        guard let source else { return }
        if source == number { sawItself = true }
        if let onPacket {
            let info = packet.codec.video.flatMap {
                try? VideoPayload.describe($0, payload: packet.payload.span, marker: packet.header.marker)
            }
            onPacket(
                Arrival(
                    mid: slots[index].mid, kind: slots[index].kind, source: source,
                    sequenceNumber: packet.sequenceNumber, timestamp: packet.header.timestamp,
                    startsKeyFrame: info?.startsKeyFrame ?? false, isRepaired: packet.isRepaired, time: now))
        }
        // A repaired packet belongs to the past.
        guard !packet.isRepaired else { return }
        slots[index].source = source
        slots[index].heard = now
    }

    private func receiveControl(
        _ datagram: [UInt8], over connection: ClientConnection, at now: MonotonicTime,
        into sink: inout CollectingSink
    ) {
        for packet in connection.controlPackets(in: datagram) {
            switch packet {
            case .senderReport(let report):
                for index in slots.indices { slots[index].track.receive(report, at: now) }
            case .nack(let nack):
                if videoTrack?.ssrc == nack.mediaSSRC {
                    try? videoTrack?.resend(nack.lost, transport: &transport, over: connection, into: &sink)
                }
            case .pictureLossIndication, .fullIntraRequest:
                keyFrameRequests += 1
                video.requestKeyFrame()
            default: break
            }
        }
    }

    func close(into sink: inout CollectingSink) {
        connection?.close(into: &sink)
    }
}
