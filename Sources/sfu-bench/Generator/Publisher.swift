import Base
import ClientPeer
import Crypto
import Net
import Peer
import Wire

/// A publisher: makes video and audio, paces it as a browser does, answers NACKs and key-frame requests.
final class Publisher {
    /// A thread that was away for longer than this does not make up for the frames it missed.
    private static let longestDebt: Int64 = 1_000_000_000

    let id: Int
    let connection: ClientConnection
    let box: TallyBox
    var sink: DirectSink
    var random: SplitMix64
    var video: VideoSource?
    var videoTrack: SendingTrack?
    var audio: AudioSource?
    var audioTrack: SendingTrack?
    private var pacer: BurstPacer<MediaPacket>
    var reports: ReportScheduler
    let packer: ControlPacker
    let clock: WallClock
    /// The connection's transport-wide sequence number.
    var transportSequence: UInt16 = 1
    private var nextFrame = MonotonicTime.distantFuture
    private var nextAudio = MonotonicTime.distantFuture
    private var nextKeyFrame = MonotonicTime.distantFuture
    private let keyFrameInterval: Int64
    private let tag: StreamTag
    private let number: Int
    private(set) var milestones: [Notice] = []

    init(
        _ setup: ClientSetup, _ settings: PublisherSettings, dtls: DTLSContext, sink: DirectSink,
        box: TallyBox, clock: WallClock, seed: UInt64, at now: MonotonicTime
    ) {
        var random = SplitMix64(seed: seed)
        id = setup.id
        self.box = box
        self.sink = sink
        self.clock = clock
        connection = ClientConnection(
            credentials: setup.credentials, plan: setup.plan, localAddress: setup.socket.localAddress,
            dtls: dtls, at: now, using: &random)
        let media = settings.media
        tag = StreamTag(stream: settings.stream)
        number = settings.number
        keyFrameInterval = Int64(media.keyFrameInterval * 1e9)
        for line in setup.plan.lines where line.direction.sends {
            guard let encoding = line.encodings.first else { continue }
            let track = SendingTrack(line: line, encoding: encoding, using: &random)
            switch line.kind {
            case .video:
                videoTrack = track
                video = VideoSource(settings, using: &random)
            case .audio:
                audioTrack = track
                audio = AudioSource(settings, using: &random)
            case .application: continue
            }
        }
        let bitrate = max(video?.bitrate ?? 0, 100_000)
        pacer = BurstPacer(bitrate: bitrate, interval: .milliseconds(media.burstMilliseconds))
        packer = ControlPacker(
            localSSRC: videoTrack?.ssrc ?? audioTrack?.ssrc ?? 1, canonicalName: "publisher-\(setup.id)",
            reducedSize: true)
        reports = ReportScheduler(at: now, using: &random)
        self.random = random
    }

    var hasMilestones: Bool { !milestones.isEmpty }

    func takeMilestones() -> [Notice] {
        defer { milestones.removeAll() }
        return milestones
    }

    private func note(_ milestone: Milestone, at now: MonotonicTime) {
        milestones.append(Notice(id: id, milestone: milestone, time: now))
    }

    // MARK: Datagrams

    func receive(
        _ datagram: inout MutableSpan<UInt8>, from source: TransportAddress, at now: MonotonicTime
    ) {
        switch DatagramKind(datagram.span) {
        case .rtcp: receiveControl(&datagram, at: now)
        case .stun, .dtls:
            connection.receive(datagram.span, from: source, at: now, using: &random, into: &sink)
            takeConnectionEvents(at: now)
        case .rtp, nil: break
        }
    }

    private func takeConnectionEvents(at now: MonotonicTime) {
        for event in connection.takeEvents() {
            switch event {
            case .iceConnected: note(.iceConnected, at: now)
            case .connected:
                note(.dtlsConnected, at: now)
                start(at: now)
            case .closedByServer:
                box.tally.closedByServer &+= 1
                note(.closedByServer, at: now)
            case .failed:
                box.tally.failures &+= 1
                note(.failed, at: now)
            case .dataChannel: break
            }
        }
    }

    /// Publishers that connect together do not send together.
    private func start(at now: MonotonicTime) {
        if let video {
            let interval = video.frameInterval
            nextFrame = now.advanced(byNanoseconds: Int64.random(in: 0...interval, using: &random))
            if keyFrameInterval > 0 { nextKeyFrame = now.advanced(byNanoseconds: keyFrameInterval) }
        }
        if let audio {
            nextAudio = now.advanced(
                byNanoseconds: Int64.random(in: 0...audio.packetInterval, using: &random))
        }
    }

    // MARK: Time

    var deadline: MonotonicTime {
        guard !connection.isClosed else { return .distantFuture }
        let earliest = connection.deadline ?? .distantFuture
        guard connection.isConnected else { return earliest }
        return min(earliest, reports.deadline, nextFrame, nextAudio, pacer.deadline ?? .distantFuture)
    }

    func advance(to now: MonotonicTime) {
        if let due = connection.deadline, now >= due {
            connection.advance(to: now, using: &random, into: &sink)
            takeConnectionEvents(at: now)
        }
        guard connection.isConnected else { return }
        makeVideo(at: now)
        while let (packet, due) = pacer.next(at: now) {
            box.tally.lateness.add(now.nanoseconds(since: due))
            send(packet, at: now)
        }
        makeAudio(at: now)
        if reports.isDue(at: now, using: &random) { sendReports(at: now) }
    }

    private func makeVideo(at now: MonotonicTime) {
        guard nextFrame <= now, let interval = video?.frameInterval else { return }
        if now.nanoseconds(since: nextFrame) > Self.longestDebt { nextFrame = now }
        while nextFrame <= now {
            if nextKeyFrame <= nextFrame {
                video?.requestKeyFrame()
                nextKeyFrame = nextFrame.advanced(byNanoseconds: keyFrameInterval)
            }
            let packets = video?.nextFrame() ?? []
            box.tally.framesSent &+= 1
            if packets.first?.isKeyFrame == true { box.tally.keyFramesSent &+= 1 }
            for var packet in packets {
                packet.captured = nextFrame
                pacer.enqueue(packet, size: packet.payload.count, at: now)
            }
            nextFrame = nextFrame.advanced(byNanoseconds: interval)
        }
    }

    private func send(_ packet: MediaPacket, at now: MonotonicTime) {
        var payload = packet.payload
        if let offset = packet.stampOffset {
            MediaStamp(now).write(to: &payload, at: offset)
            tag.write(to: &payload, at: offset + StreamTag.offsetInVideo)
            MediaStamp(packet.captured).write(
                to: &payload, at: offset + StreamTag.offsetInVideo + StreamTag.toCapture)
        }
        try? videoTrack?.send(
            payload, timestamp: packet.timestamp, marker: packet.marker, captured: packet.captured,
            transport: &transportSequence, at: now, over: connection, into: &sink)
        box.tally.packetsSent &+= 1
        box.tally.bytesSent &+= UInt64(payload.count)
    }

    private func makeAudio(at now: MonotonicTime) {
        guard nextAudio <= now, let interval = audio?.packetInterval else { return }
        if now.nanoseconds(since: nextAudio) > Self.longestDebt { nextAudio = now }
        while nextAudio <= now {
            if let packet = audio?.nextPacket(captured: nextAudio, at: now) {
                try? audioTrack?.send(
                    packet.payload, timestamp: packet.timestamp, marker: false, captured: nextAudio,
                    transport: &transportSequence, at: now, over: connection, into: &sink)
                box.tally.packetsSent &+= 1
                box.tally.bytesSent &+= UInt64(packet.payload.count)
            }
            nextAudio = nextAudio.advanced(byNanoseconds: interval)
        }
    }

    private func sendReports(at now: MonotonicTime) {
        let senders = [videoTrack, audioTrack].compactMap { $0?.report(at: now, clock: clock) }
        guard !senders.isEmpty else { return }
        for bytes in packer.reports(senders: senders, receptions: []) {
            connection.sendControl(bytes, into: &sink)
        }
    }

    // MARK: Feedback

    private func receiveControl(_ datagram: inout MutableSpan<UInt8>, at now: MonotonicTime) {
        guard let length = try? connection.unprotectControl(&datagram),
            let packets = try? RTCPPacket.parseCompound(datagram.span.extracting(first: length))
        else {
            box.tally.unreadable &+= 1
            return
        }
        for packet in packets {
            switch packet {
            case .pictureLossIndication, .fullIntraRequest:
                box.tally.keyFrameRequests &+= 1
                box.tally.swiping.requested(of: number)
                video?.requestKeyFrame()
            case .nack(let nack): answer(nack)
            default: continue
            }
        }
    }

    private func answer(_ nack: NegativeAcknowledgement) {
        box.tally.nacksReceived &+= 1
        box.tally.packetsResent &+= UInt64(nack.lost.count)
        if nack.mediaSSRC == videoTrack?.ssrc {
            try? videoTrack?.resend(
                nack.lost, transport: &transportSequence, over: connection, into: &sink)
        } else if nack.mediaSSRC == audioTrack?.ssrc {
            try? audioTrack?.resend(
                nack.lost, transport: &transportSequence, over: connection, into: &sink)
        }
    }

    func leave() {
        connection.close(into: &sink)
    }
}
