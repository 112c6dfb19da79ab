import Base
import ClientPeer
import Crypto
import Net
import Peer
import Wire

/// A viewer of the story feed: one session with two slots, which swipes and checks what arrives in them.
final class FeedViewer: Client {
    /// Between two requests for a missing key frame, in nanoseconds; browsers wait as long.
    static let keyFramePatience: Int64 = 300_000_000

    let settings: FeedSettings
    /// The receiving m-lines: two slots of audio and video each.
    var lines: [FeedLine] = []
    /// Counts how many streams arrive at the same time.
    var watch = AttachmentWatch()
    var pattern: SwipePattern
    /// For the moves alone; seeded by the run's seed, so that it does not depend on anything else that is random.
    var moves: SplitMix64
    /// Indices of the streams by name.
    let numbers: [String: Int]
    /// Indices of the streams by the tag in their media.
    let tags: [StreamTag: Int]
    /// Whether the control channel is open.
    var hasChannel = false
    /// The stream in focus, as last requested or as reported by the server; nil at first.
    var focus: Int?
    /// When each stream was released; without those that have been attached again.
    var released: [Int: MonotonicTime] = [:]
    /// Packets of streams that should not arrive, counted until a message explains them: media may overtake it.
    var untold: [Int: (since: MonotonicTime, packets: UInt64)] = [:]
    /// The streams that the server has attached, by its latest message.
    var held: Set<Int> = []
    /// Nil while no finger is down.
    var drag: Drag?
    /// The latest swipe; nil before the first, and after the server moved the focus.
    var swipe: Swipe?
    /// When the next move begins; never until there is a picture.
    var nextSwipe = MonotonicTime.distantFuture
    var hasFirstFrame = false

    /// A swipe that has begun, and that the finger has not finished.
    struct Drag {
        let target: Int
        let began: MonotonicTime
        let ends: MonotonicTime
        /// Whether it will end without a change of the focus.
        let isCalledOff: Bool
        /// Whether the target's first complete frame is still to be measured; false if its picture was there already.
        var awaitsFrame: Bool
    }

    /// A `focus` message, and which of its effects have arrived.
    struct Swipe {
        let target: Int
        let sent: MonotonicTime
        /// Whether the target's picture was being decoded when the message was sent.
        let isPreloaded: Bool
        var hasPacket = false
        var hasFrame = false
        var hasAudio = false
        var isSkewKnown = false
        /// Capture time by the server's reports minus capture time by the publisher's stamp, in nanoseconds.
        var videoOffset: Int64?
        var audioOffset: Int64?

        var isFinished: Bool { hasPacket && hasFrame && hasAudio }
    }

    init(
        _ setup: ClientSetup, _ settings: FeedSettings, _ surroundings: ClientSurroundings, seed: UInt64,
        at now: MonotonicTime
    ) {
        self.settings = settings
        pattern = SwipePattern(settings)
        moves = SplitMix64(seed: settings.seed)
        numbers = Dictionary(
            settings.streams.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
        tags = Dictionary(
            settings.streams.enumerated().map { (StreamTag(stream: $1), $0) },
            uniquingKeysWith: { first, _ in first })
        var counts: [MediaKind: Int] = [:]
        // The first audio and the first video line make up slot 0, the second ones slot 1.
        for line in setup.plan.lines where line.direction.receives {
            let slot = counts[line.kind, default: 0]
            counts[line.kind] = slot + 1
            if let line = FeedLine(line, slot: slot) { lines.append(line) }
        }
        super.init(setup, as: "viewer", random: SplitMix64(seed: seed), surroundings, at: now)
    }

    // MARK: What comes

    override func receive(_ event: DataChannelEvent, at now: MonotonicTime) {
        switch event {
        case .opened(0, _): hasChannel = true
        case .message(0, let message): take(message.bytes, at: now)
        default: break
        }
    }

    override func receive(_ packet: RTCPPacket, at now: MonotonicTime) {
        guard case .senderReport(let report) = packet else { return }
        for index in lines.indices { lines[index].receive(report, at: now) }
    }

    override func receiveMedia(_ datagram: inout MutableSpan<UInt8>, at now: MonotonicTime) {
        box.tally.bytes &+= UInt64(datagram.count)
        guard connection.isConnected, let packet = PublicHeader(datagram.span) else {
            box.tally.unreadable &+= 1
            return
        }
        // Retransmissions and padding have other SSRCs; this viewer requests none.
        guard let index = lines.firstIndex(where: { $0.ssrc == packet.ssrc }) else { return }
        noteMedia(at: now)
        let before = lines[index].reception.highest
        let expected = lines[index].reception.expected
        let arrival = lines[index].reception.receive(
            sequenceNumber: packet.sequenceNumber, timestamp: packet.timestamp, size: datagram.count, at: now)
        box.tally.count(
            arrival, expected: lines[index].reception.expected &- expected, newestBefore: before,
            isVideo: lines[index].isVideo)
        // Viewers that are not measured decrypt until they have a picture, without which they do not swipe.
        guard case .new(let number) = arrival, settings.isMeasured || !hasFirstFrame else { return }
        guard let (header, _) = unprotect(&datagram) else { return }
        box.tally.decrypted &+= 1
        let payload = datagram.span.extracting(header.payloadRange)
        guard !payload.isEmpty else { return }
        inspect(payload, header, index, number, at: now)
    }

    // MARK: Time

    override var nextWork: MonotonicTime {
        min(drag?.ends ?? nextSwipe, lines.filter(\.lacksPicture).map(\.nextRequest).min() ?? .distantFuture)
    }

    override func work(at now: MonotonicTime) {
        askForKeyFrames(at: now)
        if drag?.ends ?? nextSwipe <= now { move(at: now) }
    }

    override func report(at now: MonotonicTime) -> (sent: [SenderReport], received: [ReportBlock]) {
        ([], lines.indices.compactMap { lines[$0].reception.reportBlock(at: now) })
    }

    /// Requests a key frame for each line with a stream but no picture.
    private func askForKeyFrames(at now: MonotonicTime) {
        for index in lines.indices where lines[index].lacksPicture && lines[index].nextRequest <= now {
            lines[index].nextRequest = now.advanced(byNanoseconds: Self.keyFramePatience)
            if settings.isMeasured || !hasFirstFrame { requestKeyFrame(of: lines[index].ssrc) }
        }
    }
}
