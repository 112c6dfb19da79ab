import Base
import ClientPeer
import Crypto
import Peer
import Wire

/// How a viewer on an emulated network is set up.
struct NetworkSettings: Sendable {
    var profile: NetworkProfile
    var recorder: NetworkRecorder
}

/// A viewer behind an emulated link, which requests lost packets and key frames as browsers do, and is recorded.
///
/// It decrypts all packets. A model of a VP8 decoder decides when a picture is shown; with other codecs it sees packets
/// only.
final class NetworkViewer: Client {
    /// How often a viewer without a picture requests a key frame.
    private static let keyFramePause = Duration.milliseconds(300)
    /// After this time without a new frame the picture counts as lost.
    private static let standing = Duration.milliseconds(1_200)

    private let recorder: NetworkRecorder
    private var tracks: [ReceivingTrack]
    private var decoder = DecoderModel()
    /// Records arrivals for transport-wide feedback; nil if the server does not number packets.
    private var arrivals: TransportFeedbackRecorder?
    private var nextKeyFrameRequest = MonotonicTime.distantFuture
    /// When the latest frame was shown.
    private var lastFrame: MonotonicTime?
    /// Of the latest key frame, in pixels.
    private var height: Int?
    private var nextSample: MonotonicTime

    init(
        _ setup: ClientSetup, _ settings: NetworkSettings, _ surroundings: ClientSurroundings, seed: UInt64,
        at now: MonotonicTime
    ) {
        recorder = settings.recorder
        tracks = setup.plan.lines.compactMap { ReceivingTrack(line: $0) }
        nextSample = now
        super.init(
            setup, as: "viewer", random: SplitMix64(seed: seed), surroundings, at: now)
        link = ImpairedLink(settings.profile, at: now)
        if setup.plan.lines.contains(where: { $0.extensions.transportSequenceNumber != nil }) {
            arrivals = TransportFeedbackRecorder(senderSSRC: ssrc, mediaSSRC: 0)
        }
    }

    override func connected(at now: MonotonicTime) {
        nextKeyFrameRequest = now + Self.keyFramePause
    }

    override var hurriesAfterMedia: Bool { true }

    override func delivered(late: Int64) { recorder.noteLateness(late) }

    // MARK: Media

    /// Processes a packet at the time at which the link delivered it.
    ///
    /// Feedback and frames have that time, not the one at which this thread read it, so that a busy machine does not
    /// look like a slow network.
    override func receiveMedia(_ datagram: inout MutableSpan<UInt8>, at now: MonotonicTime) {
        guard connection.isConnected, let (header, length) = unprotect(&datagram),
            let index = tracks.firstIndex(where: { $0.takes(ssrc: header.ssrc) })
        else { return }
        noteMedia(at: now)
        let plain = datagram.span.extracting(first: length)
        if let id = tracks[index].line.extensions.transportSequenceNumber,
            let number = header.extensionValue(TransportSequenceNumber.self, id: id, in: plain)
        {
            arrivals?.mediaSSRC = header.ssrc
            arrivals?.record(number.value, at: arrival)
        }
        guard let packet = (try? tracks[index].receive(plain, at: arrival)) ?? nil, packet.codec == .vp8
        else { return }
        let before = decoder.framesDecoded
        decoder.receive(packet.header, payload: packet.payload, sequenceNumber: packet.sequenceNumber)
        noteHeight(of: packet)
        guard decoder.framesDecoded > before else { return }
        if before == 0 { note(.firstFrame, at: now) }
        recorder.noteFrame(at: arrival)
        lastFrame = arrival
    }

    /// Reads the size of the picture, which only key frames contain.
    private func noteHeight(of packet: ReceivingTrack.Packet) {
        let info = try? VideoPayload.describe(
            .vp8, payload: packet.payload.span, marker: packet.header.marker)
        if let resolution = info?.resolution { height = Int(resolution.height) }
    }

    override func receive(_ packet: RTCPPacket, at now: MonotonicTime) {
        guard case .senderReport(let report) = packet else { return }
        for index in tracks.indices { tracks[index].receive(report, at: now) }
    }

    // MARK: Reports, requests and notes

    override var nextWork: MonotonicTime {
        let feedback = tracks.compactMap(\.deadline).min() ?? .distantFuture
        return min(nextSample, nextKeyFrameRequest, arrivals?.deadline ?? .distantFuture, feedback)
    }

    override func work(at now: MonotonicTime) {
        let told = arrivals?.feedbackDue(at: now) ?? []
        if !told.isEmpty { send(packer.feedback(told.map { .transportFeedback($0) })) }
        var packets: [RTCPPacket] = []
        for index in tracks.indices {
            let asked = tracks[index].feedback(from: ssrc, rtt: connection.roundTripTime, at: now)
            // Browsers request lost audio only if there is room for it, which usually means not at all.
            if tracks[index].line.kind == .video { packets += asked }
        }
        if !packets.isEmpty { send(packer.feedback(packets)) }
        askForKeyFrame(at: now)
        if now >= nextSample { sample(at: now) }
    }

    /// Sends a PLI if no frame was shown for `standing`, or if the decoder cannot continue without a key frame.
    private func askForKeyFrame(at now: MonotonicTime) {
        guard now >= nextKeyFrameRequest else { return }
        nextKeyFrameRequest = now + Self.keyFramePause
        let isPlaying = lastFrame.map { now < $0 + Self.standing } ?? false
        guard !isPlaying || decoder.isWaitingForKeyFrame,
            let video = tracks.first(where: { $0.line.kind == .video && $0.stream.counters.packets > 0 })
        else { return }
        requestKeyFrame(of: video.source.ssrc)
    }

    /// Closes a sample: takes the link's account, and notes what is shown.
    private func sample(at now: MonotonicTime) {
        nextSample = now.advanced(byNanoseconds: NetworkRecorder.interval)
        guard let account = link?.takeAccount(), let seconds = link?.seconds(at: now) else { return }
        let isShown = lastFrame.map { now < $0 + Self.standing } ?? false
        let sound = tracks.first { $0.line.kind == .audio }?.stream
        recorder.note(
            account, seconds: seconds, height: isShown ? height : nil,
            sound: (Int(clamping: sound?.counters.packets ?? 0), Int(clamping: sound?.expected ?? 0)))
    }

    override func report(at now: MonotonicTime) -> (sent: [SenderReport], received: [ReportBlock]) {
        var blocks: [ReportBlock] = []
        for index in tracks.indices {
            if let block = tracks[index].reportBlock(at: now) { blocks.append(block) }
        }
        return ([], blocks)
    }
}
