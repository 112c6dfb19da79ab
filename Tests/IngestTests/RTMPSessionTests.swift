import Base
import Ingest
import TestSupport
import Testing
import Wire

@Suite struct RTMPSessionTests {
    private var rig = RTMPRig()

    @Test mutating func `announces no codec that only a transcoder makes something of, where there is none`()
    {
        rig = RTMPRig(isDecoding: false)
        _ = rig.receive(RTMPRig.greeting)
        #expect(rig.receive(RTMPRig.connect()).fourCCs == ["avc1", "av01", "vp09"])
    }

    @Test mutating func `leads an encoder to the question whether it may publish`() {
        #expect(rig.receive(RTMPRig.greeting).end == nil)
        let connected = rig.receive(RTMPRig.connect())
        #expect(connected.messages.map(\.kind).prefix(2) == [.windowSize, .peerBandwidth])
        #expect(connected.commands.map(\.name) == ["_result"])
        #expect(connected.commands.first?.transaction == 1)
        #expect(connected.status == "NetConnection.Connect.Success")
        #expect(connected.fourCCs == ["avc1", "av01", "vp09", "hvc1"])
        for name in ["releaseStream", "FCPublish"] {
            let answer = rig.receive(
                RTMPCommand(name, transaction: 2, object: .null, [.string("talk")]))
            #expect(answer.commands.first?.name == "_result" && answer.commands.first?.transaction == 2)
        }
        let created = rig.receive(RTMPCommand("createStream", transaction: 4))
        #expect(created.commands.first?.arguments == [.number(1)])
        #expect(rig.receive(RTMPRig.publish("talk?token=x"), on: 1).keys == ["talk?token=x"])
        let accepted = rig.outcome(of: rig.session.accept(at: rig.now))
        #expect(accepted.messages.map(\.kind) == [.userControl, .command])
        #expect(accepted.status == "NetStream.Publish.Start")
        #expect(rig.session.isPublishing && !rig.session.isOver)
    }

    @Test mutating func `takes the same in single bytes`() {
        let writer = RTMPChunkWriter()
        var bytes = RTMPRig.greeting
        writer.append(RTMPRig.connect().message(), to: &bytes)
        writer.append(RTMPRig.publish("talk").message(on: 1), to: &bytes)
        let keys = bytes.flatMap { rig.receive([$0]).keys }
        #expect(keys == ["talk"])
    }

    @Test mutating func `hands media on once it was accepted, and not before`() {
        _ = rig.ask()
        let video = RTMPMessage(.video, timestamp: 40, stream: 1, payload: [0x17, 1])
        #expect(rig.receive(video).video.isEmpty)
        let accepted = rig.outcome(of: rig.session.accept(at: rig.now))
        #expect(accepted.video.map(\.timestamp) == [40] && accepted.status == "NetStream.Publish.Start")
        let received = rig.receive(video)
        #expect(received.video.map(\.timestamp) == [40] && received.video.map(\.bytes) == [[0x17, 1]])
        #expect(rig.receive(RTMPMessage(.audio, timestamp: 41, stream: 1, payload: [0xAF])).audio.count == 1)
        var data: [UInt8] = []
        for value: AMF0Value in [
            .string("@setDataFrame"), .string("onMetaData"), .object([.init("width", .number(640))]),
        ] { value.append(to: &data) }
        let told = rig.receive(RTMPMessage(.data, stream: 1, payload: data))
        #expect(told.metadata == [[.init("width", .number(640))]])
        #expect(rig.receive(RTMPMessage(.data, stream: 1, payload: [0xFF])).metadata == [[]])
    }

    @Test mutating func `ends as its encoder ends it`() {
        rig.beginPublishing()
        #expect(rig.receive(RTMPCommand("FCUnpublish", transaction: 6)).end == .byPublisher)
        #expect(rig.session.isOver)
        #expect(rig.receive(RTMPMessage(.video, stream: 1, payload: [1])).video.isEmpty)
    }

    @Test(arguments: [
        (IngestEnd.badKey("No."), "NetStream.Publish.BadName"),
        (.refused("No."), "NetStream.Publish.BadName"),
        (.unsupported("No."), "NetStream.Publish.Rejected"), (.ended("No."), "NetStream.Unpublish.Success"),
    ]) mutating func `says why it ends`(reason: IngestEnd, code: String) {
        _ = rig.ask()
        let ended = rig.outcome(of: rig.session.end(because: reason))
        #expect(ended.status == code && ended.end == reason)
        #expect(ended.commands.first?.arguments.first?[name: "description"]?.text == "No.")
        #expect(ended.commands.first?.arguments.first?[name: "level"]?.text == "error")
        #expect(rig.session.end(because: .stalled).isEmpty)
    }

    @Test mutating func `has one application`() {
        _ = rig.receive(RTMPRig.greeting)
        let refused = rig.receive(RTMPRig.connect("vod"))
        #expect(refused.commands.map(\.name) == ["_error"] && refused.end == .unknownApplication)
        var other = RTMPRig()
        _ = other.receive(RTMPRig.greeting)
        #expect(other.receive(RTMPRig.connect("live/")).end == nil)
    }

    @Test mutating func `answers pings`() {
        rig.beginPublishing()
        let answer = rig.receive(RTMPMessage(.pingRequest, value: 0x0102_0304))
        #expect(answer.messages == [RTMPMessage(.pingResponse, value: 0x0102_0304)])
    }

    @Test mutating func `acknowledges half of every window`() {
        rig.beginPublishing()
        _ = rig.receive(RTMPMessage(.windowSize, number: 20_000))
        let acknowledgements = (0..<10).flatMap { _ in
            rig.receive(RTMPMessage(.video, stream: 1, payload: [UInt8](repeating: 0x17, count: 4_000)))
                .messages.filter { $0.kind == .acknowledgement }
        }
        #expect((3...4).contains(acknowledgements.count))
    }

    @Test mutating func `does not wait for those who never say what they want`() {
        #expect(rig.session.deadline == rig.now + RTMPSession.joinLimit)
        _ = rig.receive(RTMPRig.greeting)
        #expect(rig.advance(by: RTMPSession.joinLimit - .milliseconds(1)).end == nil)
        // Whatever trickles in meanwhile.
        _ = rig.receive([3])
        #expect(rig.advance(by: .milliseconds(1)).end == .timedOut)
    }

    @Test mutating func `asks who is silent, and ends who stays silent`() {
        rig.beginPublishing()
        let asked = rig.advance(by: .seconds(5))
        #expect(asked.messages.map(\.kind) == [.userControl] && asked.end == nil)
        #expect(rig.advance(by: .seconds(9)).end == nil)
        _ = rig.receive(RTMPMessage(.audio, stream: 1, payload: [0xAF]))
        #expect(rig.advance(by: .seconds(14)).end == nil)
        let ended = rig.advance(by: .seconds(1))
        #expect(ended.end == .stalled && ended.status == "NetStream.Publish.Idle")
        #expect(rig.session.deadline == nil)
    }

    @Test mutating func `knows what is no RTMP by its first byte`() {
        let end = rig.receive(Array("GET".utf8)).end
        #expect(end == .malformed("The encoder begins with another protocol than RTMP."))
    }

    @Test mutating func `says what is wrong with chunks in words`() {
        let endless = hexBytes("04 000000 0000c8 09 01000000") + [UInt8](repeating: 1, count: 128)
        let unfit = "sends a chunk that doesn't fit the chunks before it"
        let faults: [([UInt8], String)] = [
            ([0xC4], unfit), (endless + hexBytes("44 000000 0000c8 09"), unfit),
            (hexBytes("04 000000 ffffff 09 01000000"), "sends a message that is too long"),
            (hexBytes("02 000000 000004 01 00000000 00000000"), "sets an invalid chunk size"),
            (hexBytes("02 000000 000001 01 00000000 00"), "sends a message that ends too early"),
        ]
        for (bytes, fault) in faults {
            var rig = RTMPRig()
            _ = rig.receive(RTMPRig.greeting)
            let end = rig.receive(bytes).end
            #expect(end == .malformed("The encoder \(fault)."))
        }
    }

    @Test mutating func `bounds what comes before it publishes`() {
        _ = rig.receive(RTMPRig.greeting)
        _ = rig.receive(RTMPRig.connect())
        var ends: [IngestEnd] = []
        for _ in 0..<100 {
            if let end = rig.receive(RTMPCommand("_checkbw", transaction: 9)).end { ends.append(end) }
        }
        #expect(ends.map(\.name) == ["malformed"])
        // A message that would be fine later is too long now.
        var early = RTMPRig()
        _ = early.receive(RTMPRig.greeting)
        #expect(early.receive(hexBytes("04 000000 200000 09 01000000")).end?.name == "malformed")
        var later = RTMPRig()
        later.beginPublishing()
        #expect(later.receive(hexBytes("04 000000 200000 09 01000000")).end == nil)
    }

    /// Of which nobody has said yet that it is welcome.
    @Test mutating func `takes large pictures that come with the request to publish`() {
        _ = rig.receive(RTMPRig.greeting)
        _ = rig.receive(RTMPRig.connect())
        let large = RTMPMessage(.video, stream: 1, payload: [UInt8](repeating: 1, count: 100_000))
        let writer = RTMPChunkWriter()
        var bytes: [UInt8] = []
        writer.append(RTMPRig.publish("talk").message(on: 1), to: &bytes)
        writer.append(large, to: &bytes)
        let asked = rig.receive(bytes)
        #expect(asked.keys == ["talk"] && asked.end == nil && asked.video.isEmpty)
        let further = rig.receive(large)
        #expect(further.end == nil && further.video.isEmpty)
        let early = rig.outcome(of: rig.session.accept(at: rig.now))
        let earlySizes = early.video.map { $0.bytes.count }
        #expect(earlySizes == [100_000, 100_000])
        let accepted = rig.receive(large)
        let sizes = accepted.video.map { $0.bytes.count }
        #expect(accepted.end == nil && sizes == [100_000])
        // A picture ahead of the request is too long, whatever follows.
        var hasty = RTMPRig()
        _ = hasty.receive(RTMPRig.greeting)
        _ = hasty.receive(RTMPRig.connect())
        var other: [UInt8] = []
        writer.append(large, to: &other)
        writer.append(RTMPRig.publish("talk").message(on: 1), to: &other)
        let refused = hasty.receive(other)
        #expect(refused.end?.name == "malformed" && refused.keys.isEmpty)
    }

    /// The first, because they may be configurations, without which no later one means anything.
    @Test(arguments: [(1, 256), (100_000, 41)])
    mutating func `keeps the first of what comes before the answer`(size: Int, kept: Int) {
        _ = rig.ask()
        for number in 0..<300 {
            let payload = [UInt8](repeating: 1, count: size)
            _ = rig.receive(RTMPMessage(.video, timestamp: UInt32(number), stream: 1, payload: payload))
        }
        let accepted = rig.outcome(of: rig.session.accept(at: rig.now))
        let times = accepted.video.map(\.timestamp)
        #expect(times == Array(0..<UInt32(kept)))
        let again = rig.outcome(of: rig.session.accept(at: rig.now))
        #expect(again.video.isEmpty)
    }

    @Test mutating func `takes each command in its time only`() {
        _ = rig.receive(RTMPRig.greeting)
        #expect(rig.receive(RTMPRig.publish("talk"), on: 1).end?.name == "malformed")
        var twice = RTMPRig()
        twice.beginPublishing()
        #expect(twice.receive(RTMPRig.publish("talk"), on: 1).end?.name == "malformed")
        var player = RTMPRig()
        _ = player.receive(RTMPRig.greeting)
        _ = player.receive(RTMPRig.connect())
        #expect(
            player.receive(RTMPCommand("play", transaction: 3), on: 1).status == "NetStream.Publish.BadName")
    }

    @Test func `survives random bytes at every stage`() {
        var random = SeededGenerator(seed: 17)
        for round in 0..<400 {
            var rig = RTMPRig()
            if round % 4 > 0 { _ = rig.receive(RTMPRig.greeting) }
            if round % 4 > 1 { _ = rig.receive(RTMPRig.connect()) }
            if round % 4 > 2 {
                _ = rig.receive(RTMPRig.publish("talk"), on: 1)
                _ = rig.outcome(of: rig.session.accept(at: rig.now))
            }
            var ends = 0
            for _ in 0..<20 {
                let bytes = (0..<Int.random(in: 1..<200, using: &random)).map { _ in
                    UInt8.random(in: 0...255, using: &random)
                }
                if rig.receive(bytes).end != nil { ends += 1 }
            }
            #expect(ends <= 1)
        }
    }
}
