import Base
import ClientPeer
import Crypto
import Peer
import TestSupport
import Testing
import Wire

@testable import Net
@testable import sfu_bench

private func time(_ milliseconds: Int64) -> MonotonicTime {
    MonotonicTime(nanoseconds: milliseconds * 1_000_000)
}

/// A viewer of five streams that is not connected: it is told directly what would have arrived.
private struct FeedRig {
    let viewer: FeedViewer
    let box = TallyBox()
    /// Lines of the two slots.
    static let (firstAudio, firstVideo, secondAudio, secondVideo) = (0, 1, 2, 3)

    init(callsOff: Double = 0, isMeasured: Bool = true) throws {
        let settings = FeedSettings(
            streams: (0..<5).map { "s\($0)" }, interval: 2_000_000_000, jumps: 0, turns: 0,
            callsOff: callsOff, seed: 1, isMeasured: isMeasured)
        var random = SeededGenerator(seed: 4)
        let identity = try DTLSIdentity()
        let fingerprint = SDPFingerprint(
            algorithm: identity.fingerprint.algorithm.rawValue, bytes: identity.fingerprint.bytes)
        let offer = ClientOffer(
            [.playAudio, .playVideo, .playAudio, .playVideo], credentials: ICECredentials(using: &random),
            fingerprint: fingerprint, using: &random)
        let socket = try DatagramSocket(bind: TransportAddress(ip: .loopback, port: 0))
        let transport = LocalTransport(
            credentials: ICECredentials(using: &random), fingerprint: fingerprint,
            udp: [socket.localAddress])
        let offered = try SessionOffer(SessionDescription(parsing: offer.description.text), for: .play)
        let (_, answer) = try Negotiator().answer(to: offered, as: transport, using: &random)
        let setup = ClientSetup(
            id: 1, credentials: offer.credentials, plan: try ClientPlan(answer, to: offer),
            socket: .datagram(socket), purpose: .swipe(settings))
        let surroundings = ClientSurroundings(
            dtls: try DTLSContext(identity: identity),
            sink: DirectSink(socket: socket, buffer: DirectSinkBuffer()), box: box,
            clock: WallClock(unixNanoseconds: 0, at: .zero))
        viewer = FeedViewer(setup, settings, surroundings, seed: 9, at: .zero)
        try #require(viewer.lines.map(\.isVideo) == [false, true, false, true])
    }

    var swiping: SwipeTally { box.tally.swiping }

    // MARK: What comes

    /// One packet that is a whole frame.
    /// - Parameters:
    ///   - stream: nil for media without a tag, as other programs publish it.
    ///   - sent: when it left the publisher.
    func video(
        _ stream: Int?, on line: Int, isKey: Bool = false, layer: Int = 0, sent: Int64 = 0,
        captured: Int64? = nil, timestamp: UInt32 = 0, at now: Int64
    ) throws {
        var random = SplitMix64(seed: 1)
        var settings = SyntheticVideo.Settings()
        settings.bitrate = 30_000
        var source = SyntheticVideo(settings, using: &random)
        var packets = source.nextFrame()
        if !isKey { packets = source.nextFrame() }
        var payload = try #require(packets.first).payload
        try #require(packets.count == 1)
        if let stream {
            let offset = try MediaStamp.offset(inVideo: payload.span)
            let place = offset + StreamTag.offsetInVideo
            MediaStamp(time(sent)).write(to: &payload, at: offset)
            StreamTag(stream: "s\(stream)", layer: layer).write(to: &payload, at: place)
            if let captured {
                MediaStamp(time(captured)).write(to: &payload, at: place + StreamTag.toCapture)
            }
        }
        try deliver(payload, .vp8, on: line, timestamp, at: now)
    }

    func audio(
        _ stream: Int, on line: Int, sent: Int64 = 0, captured: Int64? = nil, timestamp: UInt32 = 0,
        at now: Int64
    ) throws {
        let source = SyntheticAudio(bitrate: 48_000)
        var payload = source.payload
        let place = source.stampOffset + StreamTag.offsetInAudio
        MediaStamp(time(sent)).write(to: &payload, at: source.stampOffset)
        StreamTag(stream: "s\(stream)").write(to: &payload, at: place)
        if let captured {
            MediaStamp(time(captured)).write(to: &payload, at: place + StreamTag.toCapture)
        }
        try deliver(payload, .opus, on: line, timestamp, at: now)
    }

    private func deliver(
        _ payload: [UInt8], _ codec: MediaCodec, on line: Int, _ timestamp: UInt32, at now: Int64
    ) throws {
        let known = viewer.lines[line].codecs.first { $0.value == codec }?.key
        let type = try #require(known)
        var packet: [UInt8] = [0x80, 0x80 | type, 0, 1]
        packet.append(bigEndian: timestamp)
        packet.append(bigEndian: viewer.lines[line].ssrc)
        packet += payload
        let header = try RTPHeader(parsing: packet.span)
        viewer.inspect(packet.span.extracting(header.payloadRange), header, line, 1, at: time(now))
    }

    func say(_ json: String, at now: Int64) { viewer.take(Array(json.utf8), at: time(now)) }

    /// The streams of both slots; nil for none.
    func slots(_ first: Int?, _ second: Int?, at now: Int64) {
        func line(_ mid: Int, _ stream: Int?, _ quality: String) -> String {
            let rest = stream.map { #","stream":"s\#($0)","quality":"\#(quality)""# } ?? ""
            return #"{"mid":"\#(viewer.lines[mid].mid)"\#(rest)}"#
        }
        let lines = [
            line(0, first, "full"), line(1, first, "full"), line(2, second, "preview"),
            line(3, second, "preview"),
        ]
        say(#"{"type":"slots","slots":[\#(lines.joined(separator: ","))]}"#, at: now)
    }

    func report(_ line: Int, ntp: UInt64, timestamp: UInt32, at now: Int64) {
        let report = SenderReport(
            ssrc: viewer.lines[line].ssrc, ntpTime: ntp, rtpTimestamp: timestamp, packetCount: 1,
            octetCount: 1)
        viewer.receive(RTCPPacket.senderReport(report), at: time(now))
    }

    /// A drag to the next stream, from one moment to the other.
    func swipe(from began: Int64, to ended: Int64) {
        viewer.move(at: time(began))
        viewer.move(at: time(ended))
    }

    static func histogram(_ milliseconds: Int64...) -> LogHistogram {
        var result = LogHistogram()
        for value in milliseconds { result.add(value * 1_000_000) }
        return result
    }
}

@Suite struct `A viewer that swipes` {
    @Test func `begins once it has a picture, a channel and a focus`() throws {
        let rig = try FeedRig()
        rig.slots(2, nil, at: 100)
        #expect(rig.viewer.focus == 2)
        try rig.video(2, on: FeedRig.firstVideo, isKey: true, at: 200)
        #expect(rig.viewer.hasFirstFrame && rig.viewer.nextSwipe == .distantFuture)
        try rig.video(2, on: FeedRig.firstVideo, isKey: true, at: 210)
        let milestones = rig.viewer.takeMilestones()
        #expect(milestones == [Notice(id: 1, milestone: .firstFrame, time: time(200))])
        rig.viewer.hasChannel = true
        rig.say(#"{"type":"pong"}"#, at: 300)
        let first = rig.viewer.nextSwipe
        #expect(first >= time(300) && first <= time(2_300))
        // Another message does not move it.
        rig.say(#"{"type":"pong"}"#, at: 2_000)
        #expect(rig.viewer.nextSwipe == first)
    }

    @Test func `follows the server's first message alone in what is in focus`() throws {
        let rig = try FeedRig()
        rig.slots(3, 4, at: 0)
        rig.slots(1, 2, at: 10)
        #expect(rig.viewer.focus == 3 && rig.viewer.held == [1, 2])
        rig.say("no JSON", at: 20)
        rig.say(#"{"type":"refused","reason":"x"}"#, at: 30)
        #expect(rig.box.tally.unreadable == 1 && rig.swiping.refused == 1)
    }

    @Test func `gives up its swipe where the server takes it elsewhere`() throws {
        let rig = try FeedRig()
        rig.viewer.focus = 0
        rig.swipe(from: 0, to: 100)
        rig.viewer.move(at: time(200))
        #expect(rig.viewer.focus == 1 && rig.viewer.swipe?.target == 1 && rig.viewer.drag?.target == 2)
        rig.say(#"{"type":"moved","from":"s1","to":"s4"}"#, at: 250)
        #expect(rig.viewer.focus == 4 && rig.viewer.swipe == nil && rig.viewer.drag == nil)
        // To a stream that it does not know, it cannot go.
        rig.say(#"{"type":"moved","from":"s4","to":"other"}"#, at: 260)
        #expect(rig.viewer.focus == 4 && rig.swiping.moved == 2)
        #expect(rig.swiping.swipes == 1 && rig.swiping.peeks == 2 && rig.swiping.unfinished == 0)
    }

    @Test func `that calls off a drag stays where it is`() throws {
        let rig = try FeedRig(callsOff: 1)
        rig.viewer.focus = 4
        rig.viewer.move(at: time(0))
        // The feed is a ring.
        #expect(rig.viewer.drag?.target == 0)
        rig.viewer.move(at: time(100))
        #expect(rig.viewer.focus == 4 && rig.viewer.drag == nil && rig.viewer.swipe == nil)
        #expect(rig.swiping.calledOff == 1 && rig.swiping.swipes == 0 && rig.swiping.peeks == 1)
    }

    @Test func `does not make up for swipes after a pause of the machine`() throws {
        let rig = try FeedRig()
        rig.viewer.focus = 0
        rig.viewer.nextSwipe = time(1_000)
        rig.viewer.move(at: time(60_000))
        #expect(rig.viewer.nextSwipe == time(60_000))
        // A drag comes first, and takes no longer than a fifth of a second.
        let ends = try #require(rig.viewer.drag).ends
        #expect(ends >= time(60_080) && ends <= time(60_200))
        #expect(rig.viewer.nextWork == ends)
    }

    @Test func `counts a swipe that ends before picture and sound have come`() throws {
        let rig = try FeedRig()
        rig.viewer.focus = 0
        rig.swipe(from: 0, to: 100)
        try rig.video(1, on: FeedRig.firstVideo, isKey: true, sent: 110, at: 120)
        rig.swipe(from: 500, to: 600)
        #expect(rig.swiping.unfinished == 1)
        try rig.video(2, on: FeedRig.firstVideo, isKey: true, sent: 610, at: 620)
        try rig.audio(2, on: FeedRig.firstAudio, sent: 610, at: 620)
        rig.swipe(from: 1_000, to: 1_100)
        #expect(rig.swiping.unfinished == 1 && rig.swiping.swipes == 3)
    }
}

@Suite struct `What a viewer that swipes measures` {
    @Test func `of a stream that was not loaded is each effect once, from the message on`() throws {
        let rig = try FeedRig()
        rig.viewer.focus = 0
        rig.swipe(from: 900, to: 1_000)
        // Another stream does not matter.
        try rig.video(0, on: FeedRig.firstVideo, isKey: true, sent: 1_000, at: 1_010)
        // Any layer does, as nothing was there.
        try rig.video(1, on: FeedRig.secondVideo, isKey: true, layer: 2, sent: 1_030, at: 1_050)
        try rig.audio(1, on: FeedRig.secondAudio, sent: 1_060, at: 1_070)
        for later: Int64 in [1_080, 1_100] {
            try rig.video(1, on: FeedRig.secondVideo, isKey: true, sent: later, at: later)
            try rig.audio(1, on: FeedRig.secondAudio, sent: later, at: later)
        }
        var expected = SwipeTally.Delays()
        expected.packet = FeedRig.histogram(50)
        expected.way = FeedRig.histogram(20)
        expected.frame = FeedRig.histogram(50)
        expected.audio = FeedRig.histogram(70)
        #expect(rig.swiping.cold == expected && rig.swiping.preloaded == SwipeTally.Delays())
    }

    @Test func `of a neighbour that was loaded is its best layer`() throws {
        let rig = try FeedRig()
        rig.viewer.focus = 0
        try rig.video(1, on: FeedRig.secondVideo, isKey: true, layer: 2, sent: 890, at: 900)
        rig.swipe(from: 900, to: 1_000)
        try rig.video(1, on: FeedRig.secondVideo, layer: 2, sent: 1_010, at: 1_020)
        #expect(rig.swiping.preloaded == SwipeTally.Delays())
        // It left before the message, so all of the time counts as its way.
        try rig.video(1, on: FeedRig.secondVideo, sent: 990, at: 1_040)
        var expected = SwipeTally.Delays()
        expected.packet = FeedRig.histogram(40)
        expected.way = FeedRig.histogram(40)
        expected.frame = FeedRig.histogram(40)
        #expect(rig.swiping.preloaded == expected && rig.swiping.cold == SwipeTally.Delays())
    }

    @Test func `of a neighbour whose stream has paused is not that of one that was loaded`() throws {
        let rig = try FeedRig()
        rig.viewer.focus = 0
        try rig.video(1, on: FeedRig.secondVideo, isKey: true, sent: 740, at: 750)
        rig.swipe(from: 900, to: 1_000)
        try rig.video(1, on: FeedRig.secondVideo, sent: 1_010, at: 1_030)
        #expect(rig.swiping.cold.packet == FeedRig.histogram(30) && rig.swiping.preloaded.packet.isEmpty)
    }

    @Test func `of a drag is when the neighbour's picture came, if it was not there`() throws {
        let rig = try FeedRig()
        rig.viewer.focus = 0
        rig.viewer.move(at: time(1_000))
        try rig.video(2, on: FeedRig.firstVideo, isKey: true, at: 1_020)
        try rig.video(1, on: FeedRig.secondVideo, isKey: true, at: 1_040)
        #expect(rig.swiping.preload == FeedRig.histogram(40))
        rig.viewer.move(at: time(1_100))
        // The next neighbour is there already.
        try rig.video(2, on: FeedRig.firstVideo, at: 1_190)
        rig.viewer.move(at: time(1_200))
        rig.slots(nil, 1, at: 1_210)
        try rig.video(2, on: FeedRig.firstVideo, isKey: true, at: 1_220)
        #expect(rig.swiping.preload.count == 1)
    }

    @Test func `of sound is the time on its way, but not of what was sent before it began`() throws {
        let rig = try FeedRig()
        for (sent, at): (Int64, Int64) in [(995, 1_000), (999, 1_001), (1_020, 1_026), (1_040, 1_050)] {
            try rig.audio(0, on: FeedRig.firstAudio, sent: sent, at: at)
        }
        // A clock that goes backwards measures nothing.
        try rig.audio(0, on: FeedRig.firstAudio, sent: 1_060, at: 1_055)
        #expect(rig.box.tally.latency == FeedRig.histogram(6, 10))
        #expect(rig.box.tally.jitter == FeedRig.histogram(4))
        // Pictures may be replayed.
        try rig.video(0, on: FeedRig.firstVideo, isKey: true, sent: 1_090, at: 1_090)
        try rig.video(0, on: FeedRig.firstVideo, sent: 1_095, at: 1_100)
        #expect(rig.box.tally.latency.count == 2)
    }

    @Test func `is nothing if it only counts`() throws {
        let rig = try FeedRig(isMeasured: false)
        rig.viewer.focus = 0
        rig.swipe(from: 900, to: 1_000)
        try rig.video(1, on: FeedRig.secondVideo, isKey: true, sent: 1_010, at: 1_020)
        try rig.audio(1, on: FeedRig.secondAudio, sent: 1_020, at: 1_030)
        rig.swipe(from: 1_500, to: 1_600)
        #expect(rig.swiping.cold == SwipeTally.Delays() && rig.box.tally.latency.isEmpty)
        #expect(rig.swiping.unfinished == 0 && rig.swiping.swipes == 2 && rig.viewer.hasFirstFrame)
    }

    /// Picture and sound of one moment, which the server's reports put 7 ms apart.
    @Test func `is how far reports shift sound against the picture, within a second too`() throws {
        let rig = try FeedRig()
        rig.viewer.focus = 0
        rig.swipe(from: 9_900, to: 10_000)
        try rig.video(1, on: FeedRig.secondVideo, isKey: true, sent: 10_010, captured: 10_010, at: 10_020)
        try rig.audio(1, on: FeedRig.secondAudio, sent: 10_010, captured: 10_010, at: 10_020)
        let clock = WallClock(unixNanoseconds: 0, at: .zero)
        rig.report(FeedRig.secondVideo, ntp: clock.ntp(at: time(10_400)), timestamp: 90_000, at: 10_420)
        rig.report(FeedRig.secondAudio, ntp: clock.ntp(at: time(10_407)), timestamp: 48_000, at: 10_420)
        #expect(rig.swiping.skew.isEmpty)
        // Each of them was captured 10 ms after its report's moment.
        try rig.video(
            1, on: FeedRig.secondVideo, sent: 10_420, captured: 10_420, timestamp: 90_900, at: 10_430)
        try rig.audio(
            1, on: FeedRig.secondAudio, sent: 10_420, captured: 10_420, timestamp: 48_480, at: 10_430)
        #expect(rig.swiping.skew.count == 1)
        #expect(rig.swiping.skew.quantile(1) == FeedRig.histogram(7).quantile(1))
    }
}

@Suite struct `What a viewer that swipes must not get` {
    @Test func `is a stream that was released a while ago`() throws {
        let rig = try FeedRig()
        rig.slots(0, 1, at: 0)
        try rig.video(1, on: FeedRig.secondVideo, isKey: true, at: 10)
        rig.slots(0, nil, at: 1_000)
        // Under way.
        try rig.video(1, on: FeedRig.secondVideo, at: 1_200)
        // Perhaps attached again, as a message may still tell.
        for at: Int64 in [1_250, 1_300, 1_450] { try rig.video(1, on: FeedRig.secondVideo, at: at) }
        #expect(rig.swiping.strays == 0)
        try rig.video(1, on: FeedRig.secondVideo, at: 1_451)
        #expect(rig.swiping.strays == 4)
        try rig.video(1, on: FeedRig.secondVideo, at: 1_460)
        #expect(rig.swiping.strays == 5)
    }

    @Test(arguments: [(1_450, 0), (1_451, 2)] as [(Int64, UInt64)])
    func `is no stream of which the message comes soon after it`(at: Int64, strays: UInt64) throws {
        let rig = try FeedRig()
        rig.slots(0, 1, at: 0)
        rig.slots(0, nil, at: 1_000)
        for at: Int64 in [1_250, 1_300] { try rig.video(1, on: FeedRig.secondVideo, isKey: true, at: at) }
        rig.slots(0, 1, at: at)
        #expect(rig.swiping.strays == strays)
        // From then on it is expected.
        for at: Int64 in [1_500, 2_000] { try rig.video(1, on: FeedRig.secondVideo, at: at) }
        #expect(rig.swiping.strays == strays)
    }

    @Test func `is a stream without its beginning`() throws {
        let rig = try FeedRig()
        try rig.video(0, on: FeedRig.firstVideo, isKey: true, at: 0)
        try rig.video(0, on: FeedRig.firstVideo, at: 30)
        try rig.audio(0, on: FeedRig.firstAudio, at: 30)
        #expect(rig.swiping.brokenStarts == 0)
        try rig.video(3, on: FeedRig.firstVideo, at: 60)
        #expect(rig.swiping.brokenStarts == 1)
        // It goes on like that, which is counted once.
        try rig.video(3, on: FeedRig.firstVideo, at: 90)
        #expect(rig.swiping.brokenStarts == 1)
    }

    @Test func `is three streams at the same time`() throws {
        let rig = try FeedRig()
        for at: Int64 in [0, 20, 40] {
            try rig.video(0, on: FeedRig.firstVideo, isKey: true, at: at)
            try rig.video(1, on: FeedRig.secondVideo, isKey: true, at: at + 5)
        }
        #expect(rig.swiping.mostAttached == 2 && rig.swiping.overTwo == 0)
        for at: Int64 in [60, 80] {
            try rig.audio(2, on: FeedRig.firstAudio, at: at)
            try rig.video(0, on: FeedRig.firstVideo, isKey: true, at: at + 5)
            try rig.video(1, on: FeedRig.secondVideo, isKey: true, at: at + 10)
        }
        #expect(rig.swiping.mostAttached == 3 && rig.swiping.overTwo > 0)
    }

    @Test func `cannot be told of media that does not name its stream`() throws {
        let rig = try FeedRig()
        // Without a message it belongs to nothing.
        try rig.video(nil, on: FeedRig.firstVideo, isKey: true, at: 0)
        #expect(rig.viewer.lines[FeedRig.firstVideo].stream == nil && rig.swiping.unnamed == 0)
        rig.slots(2, nil, at: 10)
        try rig.video(nil, on: FeedRig.firstVideo, at: 20)
        #expect(rig.viewer.lines[FeedRig.firstVideo].stream == 2 && rig.swiping.unnamed == 1)
        // Its first frame may have passed before the message, so that is no broken start.
        #expect(rig.swiping.brokenStarts == 0 && rig.viewer.lines[FeedRig.firstVideo].isDecoding)
        #expect(rig.swiping.mostAttached == 0)
    }

    @Test(arguments: [true, false]) func `is asked for again until its picture is there`(
        isMeasured: Bool
    ) throws {
        let rig = try FeedRig(isMeasured: isMeasured)
        try rig.video(0, on: FeedRig.firstVideo, at: 1_000)
        #expect(rig.viewer.nextWork == time(1_300))
        for at: Int64 in [1_299, 1_300, 1_301, 1_599, 1_600] { rig.viewer.work(at: time(at)) }
        #expect(rig.box.tally.keyFrameRequestsSent == 2)
        try rig.video(0, on: FeedRig.firstVideo, isKey: true, at: 1_650)
        rig.viewer.work(at: time(1_900))
        #expect(rig.box.tally.keyFrameRequestsSent == 2 && rig.viewer.nextWork == .distantFuture)
        // A viewer that only counts has seen a picture, and asks for no other.
        try rig.video(1, on: FeedRig.secondVideo, at: 2_000)
        rig.viewer.work(at: time(2_300))
        #expect(rig.box.tally.keyFrameRequestsSent == (isMeasured ? 3 : 2))
    }
}

@Suite struct `A line of a feed` {
    private static let half: UInt64 = 0x5_8000_0000

    @Test(
        arguments: [
            (FeedRig.firstVideo, half, 1_000, 1_000, 5_500_000_000),
            (FeedRig.firstVideo, half, 1_000, 1_090, 5_501_000_000),
            (FeedRig.firstVideo, half, 1_000, 910, 5_499_000_000),
            // The timestamp begins again at 0.
            (FeedRig.firstVideo, half, 0xFFFF_FFD3, 45, 5_501_000_000),
            (FeedRig.firstVideo, half, 45, 0xFFFF_FFD3, 5_499_000_000),
            (FeedRig.firstAudio, half, 7, 55, 5_501_000_000),
            (FeedRig.firstAudio, 0x9_0000_0000, 7, 7, 9_000_000_000),
            (FeedRig.firstAudio, 0x9_FFFF_FFFF, 7, 7, 9_999_999_999),
            (FeedRig.firstAudio, 0xFFFF_FFFF_FFFF_FFFF, 7, 7, 4_294_967_295_999_999_999),
        ] as [(Int, UInt64, UInt32, UInt32, Int64)])
    func `knows by a report when a packet was captured, to the nanosecond`(
        line: Int, ntp: UInt64, reported: UInt32, timestamp: UInt32, expected: Int64
    ) throws {
        let rig = try FeedRig()
        #expect(rig.viewer.lines[line].captureTime(timestamp) == nil)
        rig.report(line, ntp: ntp, timestamp: reported, at: 10)
        #expect(rig.viewer.lines[line].captureTime(timestamp) == expected)
        // No other line heard of it.
        #expect(rig.viewer.lines[line + 2].captureTime(timestamp) == nil)
    }

    @Test(arguments: [(80, true), (79, false)] as [(Int64, Bool)])
    func `forgets the report of the stream before, but not of the one that begins`(
        reported: Int64, isKept: Bool
    ) throws {
        let rig = try FeedRig()
        try rig.audio(0, on: FeedRig.firstAudio, at: 0)
        rig.report(FeedRig.firstAudio, ntp: Self.half, timestamp: 0, at: reported)
        try rig.audio(0, on: FeedRig.firstAudio, at: 99)
        let isThere = rig.viewer.lines[FeedRig.firstAudio].report != nil
        #expect(isThere)
        try rig.audio(1, on: FeedRig.firstAudio, at: 100)
        let isLeft = rig.viewer.lines[FeedRig.firstAudio].report != nil
        #expect(isLeft == isKept)
    }

    @Test func `begins the same stream again only after it was released`() throws {
        let rig = try FeedRig()
        rig.slots(0, nil, at: 0)
        try rig.video(0, on: FeedRig.firstVideo, isKey: true, at: 10)
        // A pause of the machine is no new beginning.
        try rig.video(0, on: FeedRig.firstVideo, isKey: true, at: 5_000)
        #expect(rig.viewer.lines[FeedRig.firstVideo].start == time(10))
        rig.slots(1, nil, at: 5_010)
        let isReleased = rig.viewer.lines[FeedRig.firstVideo].isReleased
        #expect(isReleased && !rig.viewer.lines[FeedRig.firstVideo].plays(0, at: time(5_010)))
        // What was under way does not begin it.
        try rig.video(0, on: FeedRig.firstVideo, at: 5_020)
        #expect(rig.viewer.lines[FeedRig.firstVideo].start == time(10))
        try rig.video(0, on: FeedRig.firstVideo, isKey: true, at: 5_030)
        #expect(rig.viewer.lines[FeedRig.firstVideo].start == time(5_030))
        #expect(rig.viewer.lines[FeedRig.firstVideo].plays(0, at: time(5_279)))
        #expect(!rig.viewer.lines[FeedRig.firstVideo].plays(0, at: time(5_280)))
    }
}
