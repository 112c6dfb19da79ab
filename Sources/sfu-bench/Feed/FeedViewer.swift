import Base
import ClientPeer
import Crypto
import Net
import Peer
import Wire

/// A viewer of the story feed: one session with two slots, who swipes and looks at what comes in them.
final class FeedViewer {
    /// How often a browser asks again for a key frame that it misses.
    static let keyFramePatience: Int64 = 300_000_000

    let id: Int
    let connection: ClientConnection
    let settings: FeedSettings
    let box: TallyBox
    var sink: DirectSink
    var random: SplitMix64
    let packer: ControlPacker
    let ssrc: UInt32
    var reports: ReportScheduler
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
    private(set) var lastPacket: MonotonicTime?
    var hasFirstFrame = false
    private(set) var milestones: [Notice] = []

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
        _ setup: ClientSetup, _ settings: FeedSettings, dtls: DTLSContext, sink: DirectSink, box: TallyBox,
        seed: UInt64, at now: MonotonicTime
    ) {
        var random = SplitMix64(seed: seed)
        id = setup.id
        self.settings = settings
        self.box = box
        self.sink = sink
        connection = ClientConnection(
            credentials: setup.credentials, plan: setup.plan, localAddress: setup.socket.localAddress,
            dtls: dtls, at: now, using: &random)
        ssrc = UInt32.random(in: 1...UInt32.max, using: &random)
        packer = ControlPacker(localSSRC: ssrc, canonicalName: "viewer-\(setup.id)", reducedSize: true)
        reports = ReportScheduler(at: now, using: &random)
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
        self.random = random
    }

    var hasMilestones: Bool { !milestones.isEmpty }

    func takeMilestones() -> [Notice] {
        defer { milestones.removeAll(keepingCapacity: true) }
        return milestones
    }

    func note(_ milestone: Milestone, at now: MonotonicTime) {
        milestones.append(Notice(id: id, milestone: milestone, time: now))
    }

    // MARK: Datagrams

    /// - Returns: whether the deadline may have moved.
    func receive(
        _ datagram: inout MutableSpan<UInt8>, from source: TransportAddress, at now: MonotonicTime
    ) -> Bool {
        box.tally.bytes &+= UInt64(datagram.count)
        switch DatagramKind(datagram.span) {
        case .rtp:
            receiveMedia(&datagram, at: now)
            return false
        case .rtcp:
            receiveControl(&datagram, at: now)
            return false
        case .stun, .dtls:
            connection.receive(datagram.span, from: source, at: now, using: &random, into: &sink)
            takeConnectionEvents(at: now)
            return true
        case nil:
            box.tally.unreadable &+= 1
            return false
        }
    }

    func takeConnectionEvents(at now: MonotonicTime) {
        for event in connection.takeEvents() {
            switch event {
            case .iceConnected: note(.iceConnected, at: now)
            case .connected: note(.dtlsConnected, at: now)
            case .closedByServer:
                box.tally.closedByServer &+= 1
                note(.closedByServer, at: now)
            case .failed:
                box.tally.failures &+= 1
                note(.failed, at: now)
            case .dataChannel(.opened(0, _)): hasChannel = true
            case .dataChannel(.message(0, let message)): take(message.bytes, at: now)
            case .dataChannel: break
            }
        }
    }

    private func receiveMedia(_ datagram: inout MutableSpan<UInt8>, at now: MonotonicTime) {
        guard connection.isConnected, let packet = PublicHeader(datagram.span) else {
            box.tally.unreadable &+= 1
            return
        }
        // Retransmissions and padding come under other SSRCs, and nobody asks for them here.
        guard let index = lines.firstIndex(where: { $0.ssrc == packet.ssrc }) else { return }
        if lastPacket == nil { note(.firstPacket, at: now) }
        lastPacket = now
        let before = lines[index].reception.highest
        let expected = lines[index].reception.expected
        let arrival = lines[index].reception.receive(
            sequenceNumber: packet.sequenceNumber, timestamp: packet.timestamp, size: datagram.count, at: now)
        box.tally.count(
            arrival, expected: lines[index].reception.expected &- expected, newestBefore: before,
            isVideo: lines[index].isVideo)
        guard case .new(let number) = arrival, settings.isMeasured || !hasFirstFrame else { return }
        guard let length = try? connection.unprotect(&datagram),
            let header = try? RTPHeader(parsing: datagram.span.extracting(first: length))
        else {
            box.tally.unreadable &+= 1
            return
        }
        box.tally.decrypted &+= 1
        let payload = datagram.span.extracting(header.payloadRange)
        guard !payload.isEmpty else { return }
        inspect(payload, header, index, number, at: now)
    }

    private func receiveControl(_ datagram: inout MutableSpan<UInt8>, at now: MonotonicTime) {
        guard let length = try? connection.unprotectControl(&datagram),
            let packets = try? RTCPPacket.parseCompound(datagram.span.extracting(first: length))
        else {
            box.tally.unreadable &+= 1
            return
        }
        for case .senderReport(let report) in packets {
            for index in lines.indices { lines[index].receive(report, at: now) }
        }
    }

    // MARK: Time

    var deadline: MonotonicTime {
        guard !connection.isClosed else { return .distantFuture }
        let earliest = connection.deadline ?? .distantFuture
        guard connection.isConnected else { return earliest }
        let requests =
            lines.filter { $0.isVideo && $0.stream != nil && !$0.isDecoding && !$0.isReleased }
            .map(\.nextRequest).min() ?? .distantFuture
        return min(earliest, reports.deadline, drag?.ends ?? nextSwipe, requests)
    }

    func advance(to now: MonotonicTime) {
        if let due = connection.deadline, now >= due {
            connection.advance(to: now, using: &random, into: &sink)
            takeConnectionEvents(at: now)
        }
        guard connection.isConnected else { return }
        if reports.isDue(at: now, using: &random) { sendReport(at: now) }
        askForKeyFrames(at: now)
        if drag?.ends ?? nextSwipe <= now { move(at: now) }
    }

    private func sendReport(at now: MonotonicTime) {
        var blocks: [ReportBlock] = []
        for index in lines.indices {
            if let block = lines[index].reception.reportBlock(at: now) { blocks.append(block) }
        }
        for bytes in packer.reports(senders: [], receptions: blocks) {
            connection.sendControl(bytes, into: &sink)
        }
    }

    /// Where a stream has begun and there is no picture.
    private func askForKeyFrames(at now: MonotonicTime) {
        for index in lines.indices {
            let line = lines[index]
            guard line.isVideo, line.stream != nil, !line.isDecoding, !line.isReleased,
                line.nextRequest <= now
            else { continue }
            lines[index].nextRequest = now.advanced(byNanoseconds: Self.keyFramePatience)
            guard settings.isMeasured || !hasFirstFrame else { continue }
            box.tally.keyFrameRequestsSent &+= 1
            let request = PictureLossIndication(senderSSRC: ssrc, mediaSSRC: line.ssrc)
            for bytes in packer.feedback([.pictureLossIndication(request)]) {
                connection.sendControl(bytes, into: &sink)
            }
        }
    }

    func leave() {
        connection.close(into: &sink)
    }
}
