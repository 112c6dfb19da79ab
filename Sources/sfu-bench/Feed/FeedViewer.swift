import Base
import ClientPeer
import Crypto
import Net
import Peer
import Wire

/// A viewer of the story feed: one session with two slots, who swipes and looks at what comes in them.
final class FeedViewer: Client {
    /// How often a browser asks again for a key frame that it misses.
    static let keyFramePatience: Int64 = 300_000_000

    let settings: FeedSettings
    var lines: [FeedLine] = []
    var watch = AttachmentWatch()
    var pattern: SwipePattern
    /// For moves alone, which the seed of the run decides.
    var moves: SplitMix64
    /// Numbers of the streams by name.
    let numbers: [String: Int]
    let tags: [StreamTag: Int]
    var hasChannel = false
    /// The stream in focus, as last asked for or told.
    var focus: Int?
    /// When streams were released, and those that are held.
    var released: [Int: MonotonicTime] = [:]
    /// Packets of streams that are not held: media may overtake the message that tells of it.
    var untold: [Int: (since: MonotonicTime, packets: UInt64)] = [:]
    var held: Set<Int> = []
    var drag: Drag?
    var swipe: Swipe?
    var nextSwipe = MonotonicTime.distantFuture
    var hasFirstFrame = false

    /// A swipe that the finger has not finished.
    struct Drag {
        let target: Int
        let began: MonotonicTime
        let ends: MonotonicTime
        let isCalledOff: Bool
        /// The target's first frame is told of once, if it was not there before.
        var awaitsFrame: Bool
    }

    /// A `focus` that was sent, and what it has brought.
    struct Swipe {
        let target: Int
        let sent: MonotonicTime
        let isPreloaded: Bool
        var hasPacket = false
        var hasFrame = false
        var hasAudio = false
        var isSkewKnown = false
        /// Capture by the server's reports minus capture by the publisher's stamp.
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
        // Retransmissions and padding come under other SSRCs, and nobody asks for them here.
        guard let index = lines.firstIndex(where: { $0.ssrc == packet.ssrc }) else { return }
        noteMedia(at: now)
        let before = lines[index].reception.highest
        let expected = lines[index].reception.expected
        let arrival = lines[index].reception.receive(
            sequenceNumber: packet.sequenceNumber, timestamp: packet.timestamp, size: datagram.count, at: now)
        box.tally.count(
            arrival, expected: lines[index].reception.expected &- expected, newestBefore: before,
            isVideo: lines[index].isVideo)
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

    /// Where a stream has begun and there is no picture.
    private func askForKeyFrames(at now: MonotonicTime) {
        for index in lines.indices where lines[index].lacksPicture && lines[index].nextRequest <= now {
            lines[index].nextRequest = now.advanced(byNanoseconds: Self.keyFramePatience)
            if settings.isMeasured || !hasFirstFrame { requestKeyFrame(of: lines[index].ssrc) }
        }
    }
}
