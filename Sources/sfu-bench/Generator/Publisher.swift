import Base
import ClientPeer
import Crypto
import Net
import Peer
import Wire

/// A publisher: generates video and audio, paces them as a browser does, and answers NACKs and key-frame requests.
final class Publisher: Client {
    /// A thread that was delayed by more nanoseconds than this skips the frames it missed.
    private static let longestDebt: Int64 = 1_000_000_000

    /// One simulcast layer of the video; the only one without simulcast.
    private struct Layer {
        var source: VideoSource
        var track: SendingTrack
        let tag: StreamTag
    }

    /// From the best layer to the smallest.
    private var layers: [Layer] = []
    private var audio: (source: AudioSource, track: SendingTrack)?
    private var pacer: BurstPacer<MediaPacket>
    private let clock: WallClock
    /// The connection's next transport-wide sequence number.
    private var transportSequence: UInt16 = 1
    private var nextFrame = MonotonicTime.distantFuture
    private var nextAudio = MonotonicTime.distantFuture
    private var nextKeyFrame = MonotonicTime.distantFuture
    /// In nanoseconds; 0 makes key frames only on request.
    private let keyFrameInterval: Int64
    /// Index of its stream, under which key-frame requests are counted.
    private let number: Int
    /// Whether the server has confirmed that media arrived.
    private var isTaken = false

    init(
        _ setup: ClientSetup, _ settings: PublisherSettings, _ surroundings: ClientSurroundings, seed: UInt64,
        at now: MonotonicTime
    ) {
        var random = SplitMix64(seed: seed)
        clock = surroundings.clock
        let media = settings.media
        number = settings.number
        keyFrameInterval = Int64(media.keyFrameInterval * 1e9)
        // An m-line of the plan becomes one track, or one for each simulcast layer.
        for line in setup.plan.lines where line.direction.sends {
            for (index, encoding) in line.encodings.enumerated() {
                guard let track = SendingTrack(line: line, encoding: encoding, using: &random) else {
                    continue
                }
                switch line.kind {
                case .video:
                    guard let source = VideoSource(settings, layer: index, using: &random) else { continue }
                    let tag = StreamTag(stream: settings.stream, layer: index)
                    layers.append(Layer(source: source, track: track, tag: tag))
                case .audio:
                    if let source = AudioSource(settings, using: &random) { audio = (source, track) }
                }
            }
        }
        // All layers share one pacer, as they share one path. The floor is for a publisher without video.
        let bitrate = max(layers.reduce(0) { $0 + $1.source.bitrate }, 100_000)
        pacer = BurstPacer(bitrate: bitrate, interval: .milliseconds(media.burstMilliseconds))
        super.init(
            setup, as: "publisher", ssrc: layers.first?.track.ssrc ?? audio?.track.ssrc ?? 1, random: random,
            surroundings, at: now)
    }

    /// Starts each medium at a random moment, so that publishers that connect together do not send in lockstep.
    override func connected(at now: MonotonicTime) {
        if let interval = layers.first?.source.frameInterval {
            nextFrame = now.advanced(byNanoseconds: Int64.random(in: 0...interval, using: &random))
            if keyFrameInterval > 0 { nextKeyFrame = now.advanced(byNanoseconds: keyFrameInterval) }
        }
        if let interval = audio?.source.packetInterval {
            nextAudio = now.advanced(byNanoseconds: Int64.random(in: 0...interval, using: &random))
        }
    }

    // MARK: Time

    override var nextWork: MonotonicTime { min(nextFrame, nextAudio, pacer.deadline ?? .distantFuture) }

    override func work(at now: MonotonicTime) {
        makeVideo(at: now)
        while let (packet, due) = pacer.next(at: now) {
            box.tally.lateness.add(now.nanoseconds(since: due))
            send(packet, at: now)
        }
        makeAudio(at: now)
    }

    /// Queues every frame that is due in the pacer; all layers of a frame together.
    private func makeVideo(at now: MonotonicTime) {
        guard nextFrame <= now, let interval = layers.first?.source.frameInterval else { return }
        if now.nanoseconds(since: nextFrame) > Self.longestDebt { nextFrame = now }
        while nextFrame <= now {
            if nextKeyFrame <= nextFrame {
                for index in layers.indices { layers[index].source.requestKeyFrame() }
                nextKeyFrame = nextFrame.advanced(byNanoseconds: keyFrameInterval)
            }
            for index in layers.indices {
                let packets = layers[index].source.nextFrame()
                box.tally.framesSent &+= 1
                if packets.first?.isKeyFrame == true { box.tally.keyFramesSent &+= 1 }
                for var packet in packets {
                    (packet.captured, packet.layer) = (nextFrame, index)
                    pacer.enqueue(packet, size: packet.payload.count, at: now)
                }
            }
            nextFrame = nextFrame.advanced(byNanoseconds: interval)
        }
    }

    /// Stamps a packet as it leaves, not as it is queued: latency is measured from here.
    private func send(_ packet: MediaPacket, at now: MonotonicTime) {
        var payload = packet.payload
        if let offset = packet.stampOffset {
            MediaStamp(now).write(to: &payload, at: offset)
            layers[packet.layer].tag.write(to: &payload, at: offset + StreamTag.offsetInVideo)
            MediaStamp(packet.captured).write(
                to: &payload, at: offset + StreamTag.offsetInVideo + StreamTag.toCapture)
        }
        try? layers[packet.layer].track.send(
            payload, timestamp: packet.timestamp, marker: packet.marker, captured: packet.captured,
            transport: &transportSequence, at: now, over: connection, into: &sink)
        box.tally.packetsSent &+= 1
        box.tally.bytesSent &+= UInt64(payload.count)
    }

    /// Sends the audio that is due.
    ///
    /// It bypasses the pacer, so that it never waits behind a frame.
    private func makeAudio(at now: MonotonicTime) {
        guard nextAudio <= now, let interval = audio?.source.packetInterval else { return }
        if now.nanoseconds(since: nextAudio) > Self.longestDebt { nextAudio = now }
        while nextAudio <= now {
            if let packet = audio?.source.nextPacket(captured: nextAudio, at: now) {
                try? audio?.track.send(
                    packet.payload, timestamp: packet.timestamp, marker: false, captured: nextAudio,
                    transport: &transportSequence, at: now, over: connection, into: &sink)
                box.tally.packetsSent &+= 1
                box.tally.bytesSent &+= UInt64(packet.payload.count)
            }
            nextAudio = nextAudio.advanced(byNanoseconds: interval)
        }
    }

    override func report(at now: MonotonicTime) -> (sent: [SenderReport], received: [ReportBlock]) {
        let tracks = layers.map(\.track) + (audio.map { [$0.track] } ?? [])
        return (tracks.compactMap { $0.report(at: now, clock: clock) }, [])
    }

    // MARK: Feedback

    override func receive(_ packet: RTCPPacket, at now: MonotonicTime) {
        switch packet {
        case .pictureLossIndication(let request): makeKeyFrame(of: [request.mediaSSRC])
        case .fullIntraRequest(let request): makeKeyFrame(of: request.entries.map(\.ssrc))
        case .nack(let nack): answer(nack)
        case .transportFeedback: noteTaken(at: now)
        case .receiverReport(let report) where !report.reports.isEmpty: noteTaken(at: now)
        default: break
        }
    }

    /// Notes once that the server confirmed media, by feedback or a receiver report.
    private func noteTaken(at now: MonotonicTime) {
        guard !isTaken else { return }
        isTaken = true
        note(.taken, at: now)
    }

    /// Requests a key frame of the layers with these SSRCs.
    ///
    /// Each request counts, even one for an SSRC that is not of this publisher.
    private func makeKeyFrame(of wanted: [UInt32]) {
        box.tally.keyFrameRequests &+= 1
        box.tally.swiping.requested(of: number)
        for index in layers.indices where wanted.contains(layers[index].track.ssrc) {
            layers[index].source.requestKeyFrame()
        }
    }

    /// Resends the packets that a NACK lists, from the history of its track.
    private func answer(_ nack: NegativeAcknowledgement) {
        box.tally.nacksReceived &+= 1
        box.tally.packetsResent &+= UInt64(nack.lost.count)
        if let index = layers.firstIndex(where: { $0.track.ssrc == nack.mediaSSRC }) {
            try? layers[index].track.resend(
                nack.lost, transport: &transportSequence, over: connection, into: &sink)
        } else if nack.mediaSSRC == audio?.track.ssrc {
            try? audio?.track.resend(
                nack.lost, transport: &transportSequence, over: connection, into: &sink)
        }
    }
}
