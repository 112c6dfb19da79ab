import Base
import Ingest
import Net
import Restream
import TestSupport
import Testing
import Wire

@testable import Node

/// What a connection reports to its node, in words.
private final class Reports {
    private(set) var words: [String] = []
    private(set) var begun: [IngestFormats] = []

    func add(_ event: IngestEvent) {
        switch event {
        case .asked(let key, _): words.append("asked \(key.exposed)")
        case .begun(let formats):
            begun.append(formats)
            words.append("begun")
        case .originalBegun: words.append("original")
        case .notice: words.append("notice")
        // Reports and links come by time, not by what is said.
        case .report, .link: break
        case .rejected(let reason, _): words.append("rejected \(reason.name)")
        case .ended(let reason, _): words.append("ended \(reason.name)")
        }
    }
}

/// A server that sends a programme to another by RTMP, without a network between them.
private final class RTMPPair {
    static let start = MonotonicTime(nanoseconds: 5_000_000_000)
    /// Baseline, 640x360.
    static let format = RestreamFormat(
        width: 640, height: 360, framesPerSecond: 30,
        pictureHeader: hexBytes(
            """
            00000001 6742c01ed900a02ff970110000030001000003003c8f162e48
            00000001 68cb83cb20
            """), soundConfiguration: [0x11, 0x90])

    let reports: Reports
    let meter: RestreamMeter
    let server: RTMPConversation
    let client: RestreamConversation
    /// How often the client was told that the target takes the stream.
    let lives: Watched<Int>
    var now = start
    /// Bytes that the client's connection took.
    private(set) var sent = 0

    init(_ url: String = "rtmp://127.0.0.1:1935/live", key: String = "talk?token=x") throws {
        let reports = Reports()
        let lives = Watched(0)
        let meter = RestreamMeter()
        (self.reports, self.meter, self.lives) = (reports, meter, lives)
        server = RTMPConversation(
            remote: TransportAddress(ip: .loopback, port: 4_000), isDecoding: true, at: Self.start
        ) { reports.add($0) }
        let target = RestreamTarget(number: 1, address: try RestreamAddress(url), key: Secret(key))
        client = RestreamConversation(to: target, meter, at: Self.start) { lives.change { $0 += 1 } }
    }

    /// Hands everything to and fro until neither says anything more.
    func talk() {
        while true {
            let asked = client.takeOutput(waiting: 0)
            sent += asked.count
            if !asked.isEmpty { server.receive(asked.span, at: now) }
            let answered = server.takeOutput(waiting: 0)
            if !answered.isEmpty { client.receive(answered.span, at: now) }
            if asked.isEmpty, answered.isEmpty { return }
        }
    }

    func goLive() {
        talk()
        server.perform(.accept, at: now)
        talk()
    }

    func send(_ kind: RestreamSample.Kind, number: UInt64, size: Int = 20) {
        let bytes =
            kind == .sound
            ? [UInt8](repeating: 0x21, count: size)
            : [0, 0, 0, 1, kind == .keyFrame ? 0x65 : 0x41] + [UInt8](repeating: 0x88, count: size)
        let sample = RestreamSample(
            kind: kind, number: number, time: Self.start + .milliseconds(33 * Int64(number)), bytes: bytes)
        client.perform(.media(.sample(sample)), at: now)
    }
}

@Suite struct `A publisher's connection by RTMP` {
    private let pair: RTMPPair

    init() throws { pair = try RTMPPair() }

    @Test func `asks the node for its key, and publishes once it is accepted`() {
        pair.talk()
        #expect(pair.reports.words == ["asked talk?token=x"])
        #expect(!pair.server.isEstablished && !pair.client.isEstablished)
        // The node takes what time it needs.
        #expect(pair.server.deadline == nil)
        #expect(pair.lives.value == 0)
        pair.server.perform(.accept, at: pair.now)
        pair.talk()
        #expect(pair.server.isEstablished && pair.client.isEstablished)
        #expect(pair.reports.words == ["asked talk?token=x"])
        #expect(pair.lives.value == 1)
        #expect(pair.meter.current.failure == nil)
    }

    @Test func `is accepted once`() {
        pair.goLive()
        pair.server.perform(.accept, at: pair.now)
        let more = pair.server.takeOutput(waiting: 0)
        #expect(more.isEmpty)
        #expect(pair.lives.value == 1)
    }

    @Test func `cannot be accepted before it has asked`() {
        pair.server.perform(.accept, at: pair.now)
        #expect(!pair.server.isEstablished)
        let answer = pair.server.takeOutput(waiting: 0)
        #expect(answer.isEmpty)
        pair.goLive()
        #expect(pair.server.isEstablished)
    }

    @Test func `tells the formats once, when picture and sound are known`() throws {
        pair.goLive()
        pair.client.perform(.media(.format(RTMPPair.format)), at: pair.now)
        pair.talk()
        // Without a picture no target needs to know how to decode one.
        #expect(pair.reports.begun.isEmpty)
        pair.send(.keyFrame, number: 1)
        pair.send(.sound, number: 2)
        pair.send(.picture, number: 3)
        pair.talk()
        #expect(pair.reports.words == ["asked talk?token=x", "begun"])
        let formats = try #require(pair.reports.begun.first)
        #expect(formats.hasVideo && formats.hasAudio)
        #expect(formats.resolution == VideoResolution(width: 640, height: 360))
        #expect(formats.profile == 0x42)
        #expect(formats.sampleRate == 48_000)
        pair.client.perform(.media(.format(RTMPPair.format)), at: pair.now)
        pair.send(.keyFrame, number: 4)
        pair.talk()
        #expect(pair.reports.begun.count == 1)
    }

    /// - Parameter reason: why the node refuses.
    @Test(arguments: [
        IngestEnd.badKey("The link was revoked."), .unknownStream, .overloaded,
        .refused("Only one encoder may publish."), .unsupported("Set the encoder to H.264."),
        .ended("Another publisher took over."),
    ])
    func `is told why the node ends it, before it has begun`(_ reason: IngestEnd) {
        pair.talk()
        pair.server.perform(.end(reason), at: pair.now)
        #expect(pair.server.isOver)
        pair.talk()
        #expect(pair.reports.words == ["asked talk?token=x", "ended \(reason.name)"])
        #expect(pair.client.isOver)
        #expect(pair.meter.current.failure == .refused(reason.detail))
        #expect(pair.lives.value == 0)
    }

    @Test func `reports its end once, and nothing after it`() {
        pair.goLive()
        pair.server.perform(.end(.ended("The host ended it.")), at: pair.now)
        let last = pair.server.takeOutput(waiting: 0)
        #expect(!last.isEmpty)
        let words = pair.reports.words
        #expect(words.last == "ended ended")
        // What is under way still comes, and the node may not know of the end yet.
        pair.client.perform(.media(.format(RTMPPair.format)), at: pair.now)
        pair.send(.keyFrame, number: 1)
        let late = pair.client.takeOutput(waiting: 0)
        pair.server.receive(late.span, at: pair.now)
        pair.server.perform(.accept, at: pair.now)
        pair.server.perform(.makeKeyFrame, at: pair.now)
        pair.server.perform(.end(.overloaded), at: pair.now)
        pair.server.advance(to: pair.now + .seconds(60))
        pair.server.lose(at: pair.now + .seconds(61))
        #expect(pair.reports.words == words)
        #expect(pair.reports.begun.isEmpty)
        let more = pair.server.takeOutput(waiting: 0)
        #expect(more.isEmpty)
        #expect(pair.server.isOver && !pair.server.isEstablished)
    }

    @Test func `ends by its publisher, who says so or is gone`() throws {
        pair.goLive()
        pair.client.perform(.end, at: pair.now)
        #expect(pair.client.isOver)
        pair.talk()
        #expect(pair.server.isOver)
        #expect(pair.reports.words.last == "ended by-publisher")
        // The target refused nothing.
        #expect(pair.meter.current.failure == nil)
        pair.server.lose(at: pair.now)
        #expect(pair.reports.words.count == 2)

        let other = try RTMPPair()
        other.goLive()
        other.server.lose(at: other.now)
        #expect(other.server.isOver)
        #expect(other.reports.words == ["asked talk?token=x", "ended by-publisher"])
    }

    @Test func `has ten seconds to say what it wants`() {
        #expect(pair.server.deadline == RTMPPair.start + .seconds(10))
        pair.server.advance(to: RTMPPair.start + .milliseconds(9_999))
        #expect(!pair.server.isOver)
        // Bytes alone do not prolong it.
        let hello = pair.client.takeOutput(waiting: 0)
        pair.server.receive(hello.span, at: RTMPPair.start + .milliseconds(9_999))
        #expect(pair.server.deadline == RTMPPair.start + .seconds(10))
        pair.server.advance(to: RTMPPair.start + .seconds(10))
        #expect(pair.server.isOver)
        #expect(pair.reports.words == ["ended timed-out"])
    }

    @Test func `is pinged when it is silent, and ended when it stays so`() {
        pair.goLive()
        pair.now = RTMPPair.start + .seconds(5)
        #expect(pair.server.deadline == pair.now)
        pair.server.advance(to: pair.now)
        // The answer to the ping is a sign of life.
        pair.talk()
        #expect(pair.server.deadline == RTMPPair.start + .seconds(10))
        pair.server.advance(to: RTMPPair.start + .seconds(10))
        let ping = pair.server.takeOutput(waiting: 0)
        #expect(!ping.isEmpty)
        pair.server.advance(to: RTMPPair.start + .milliseconds(19_999))
        #expect(!pair.server.isOver)
        pair.server.advance(to: RTMPPair.start + .seconds(20))
        #expect(pair.server.isOver)
        #expect(pair.reports.words.last == "ended stalled")
    }

    @Test(arguments: ["GET / HTTP/1.1\r\n\r\n", "\u{16}\u{3}\u{1}", "\0"])
    func `ends at the first byte of another protocol`(_ text: String) {
        let bytes = Array(text.utf8)
        pair.server.receive(bytes.span, at: pair.now)
        #expect(pair.server.isOver)
        #expect(pair.reports.words == ["ended malformed"])
        let answer = pair.server.takeOutput(waiting: 0)
        #expect(answer.isEmpty)
    }

    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func `does not depend on how its bytes are cut`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<10_000 where !pair.client.isEstablished {
            let asked = pair.client.takeOutput(waiting: 0)
            var rest = asked[...]
            while !rest.isEmpty {
                let piece = Array(rest.prefix(Int.random(in: 1...1_000, using: &random)))
                rest = rest.dropFirst(piece.count)
                pair.server.receive(piece.span, at: pair.now)
            }
            if !pair.reports.words.isEmpty { pair.server.perform(.accept, at: pair.now) }
            var answer = pair.server.takeOutput(waiting: 0)[...]
            while !answer.isEmpty {
                let piece = Array(answer.prefix(Int.random(in: 1...1_000, using: &random)))
                answer = answer.dropFirst(piece.count)
                pair.client.receive(piece.span, at: pair.now)
            }
        }
        #expect(pair.client.isEstablished && pair.server.isEstablished)
        #expect(pair.reports.words == ["asked talk?token=x"])
        #expect(pair.lives.value == 1)
    }
}

@Suite struct `A connection to a target by RTMP` {
    private let pair: RTMPPair

    init() throws { pair = try RTMPPair() }

    @Test func `counts what it hands to its connection`() {
        pair.goLive()
        #expect(pair.sent > 3_000, "the handshake alone has more")
        #expect(pair.meter.current.bytes == UInt64(pair.sent))
        let before = pair.sent
        pair.client.perform(.media(.format(RTMPPair.format)), at: pair.now)
        pair.send(.keyFrame, number: 1, size: 10_000)
        pair.talk()
        #expect(pair.sent > before + 10_000)
        #expect(pair.meter.current.bytes == UInt64(pair.sent))
    }

    @Test func `says which application the target does not have`() throws {
        let other = try RTMPPair("rtmp://127.0.0.1:1935/studio")
        other.talk()
        #expect(other.reports.words == ["ended unknown-application"])
        #expect(other.client.isOver)
        #expect(other.meter.current.failure == .refused(IngestEnd.unknownApplication.detail))
    }

    @Test func `gives a target fifteen seconds to take the stream`() {
        pair.talk()
        #expect(pair.client.deadline == RTMPPair.start + .seconds(15))
        pair.client.advance(to: RTMPPair.start + .milliseconds(14_999))
        #expect(!pair.client.isOver)
        pair.client.advance(to: RTMPPair.start + .seconds(15))
        #expect(pair.client.isOver)
        #expect(pair.meter.current.failure == .timedOut)
        #expect(pair.lives.value == 0)
    }

    @Test func `waits for nothing once the target takes the stream`() {
        pair.goLive()
        #expect(pair.client.deadline == nil)
        pair.client.advance(to: RTMPPair.start + .seconds(3_600))
        #expect(!pair.client.isOver)
        #expect(pair.meter.current.failure == nil)
    }

    @Test func `fails where the target speaks another protocol`() {
        let answer = Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8)
        pair.client.receive(answer.span, at: pair.now)
        #expect(pair.client.isOver)
        #expect(pair.meter.current.failure?.name == "malformed")
        // The first reason counts.
        pair.client.advance(to: RTMPPair.start + .seconds(60))
        #expect(pair.meter.current.failure?.name == "malformed")
    }

    /// What the target has not read is known by what its connection says when it takes output.
    @Test func `leaves out pictures while the target reads too slowly, and goes on with a key frame`() {
        pair.goLive()
        pair.client.perform(.media(.format(RTMPPair.format)), at: pair.now)
        pair.send(.keyFrame, number: 1)
        _ = pair.client.takeOutput(waiting: 0)
        pair.send(.picture, number: 2)
        _ = pair.client.takeOutput(waiting: 2 << 20)
        #expect(pair.meter.current.dropped == 0)

        pair.send(.picture, number: 3)
        pair.send(.keyFrame, number: 4)
        let slow = pair.client.takeOutput(waiting: 2 << 20)
        #expect(slow.isEmpty)
        #expect(pair.meter.current.dropped == 2)

        // Later pictures refer to those that were left out.
        _ = pair.client.takeOutput(waiting: 0)
        pair.send(.picture, number: 5)
        let waiting = pair.client.takeOutput(waiting: 0)
        #expect(waiting.isEmpty)
        #expect(pair.meter.current.dropped == 3)
        pair.send(.keyFrame, number: 6)
        pair.send(.picture, number: 7)
        let resumed = pair.client.takeOutput(waiting: 0)
        #expect(!resumed.isEmpty)
        #expect(pair.meter.current.dropped == 3)
    }

    @Test func `ends in the way that the protocol has for it, once`() {
        pair.goLive()
        pair.client.perform(.end, at: pair.now)
        let goodbye = pair.client.takeOutput(waiting: 0)
        #expect(!goodbye.isEmpty)
        pair.client.perform(.end, at: pair.now)
        pair.client.perform(.media(.format(RTMPPair.format)), at: pair.now)
        pair.send(.keyFrame, number: 1)
        let more = pair.client.takeOutput(waiting: 0)
        #expect(more.isEmpty)
        #expect(pair.meter.current.failure == nil)
    }
}

@Suite struct `The end of a connection to a target` {
    @Test func `is a failure unless the server wanted it`() {
        #expect(RestreamFailure(OutgoingEnd.over) == nil)
        let ends: [OutgoingEnd] = [
            .unresolved, .forbidden, .unreachable("refused"), .insecure(nil), .insecure("expired"), .closed,
            .stalled,
        ]
        let failures: [RestreamFailure] = ends.compactMap { RestreamFailure($0) }
        #expect(
            failures == [
                .unresolved, .forbidden, .unreachable("refused"), .insecure(nil), .insecure("expired"),
                .closed, .stalled,
            ])
    }
}
