import Base
import Ingest
import TestSupport
import Testing
import Wire

@Suite struct `A session of RTMP with faults and odd habits` {
    private var rig = RTMPRig()

    /// Chunk headers tell 24 bits, and the rest behind the header; 32 bits turn over after 49 days.
    @Test mutating func `hands on times that are longer than a header's, and turn over`() {
        rig.beginPublishing()
        let times: [UInt32] = [0xFF_FFFE, 0xFF_FFFF, 0x100_0000, .max - 1, .max, 0, 33]
        let received = times.flatMap { time in
            rig.receive(RTMPMessage(.video, timestamp: time, stream: 1, payload: [0x27, 1])).video
        }
        #expect(received.map(\.timestamp) == times)
    }

    /// As encoders send all messages but the first one of a track.
    @Test mutating func `adds up the differences that it is told`() {
        rig.beginPublishing()
        // Of message stream 1: at 2^32 - 16 in full, then 10 ms later, then by the same difference again.
        let bytes =
            hexBytes("06 ffffff 000002 08 01000000 fffffff0 af01")
            + hexBytes("46 00000a 000002 08 af02") + hexBytes("86 00000a af03") + hexBytes("c6 af04")
        let audio = rig.receive(bytes).audio
        let times: [UInt32] = [0xFFFF_FFF0, 0xFFFF_FFFA, 4, 14]
        #expect(audio.map(\.timestamp) == times)
        #expect(audio.map(\.bytes) == [[0xAF, 1], [0xAF, 2], [0xAF, 3], [0xAF, 4]])
    }

    @Test mutating func `takes commands and data in the form of AMF 3`() {
        _ = rig.receive(RTMPRig.greeting)
        let connected = rig.receive(Self.inAMF3(RTMPRig.connect().message(), .commandAMF3))
        #expect(connected.status == "NetConnection.Connect.Success")
        let asked = rig.receive(Self.inAMF3(RTMPRig.publish("talk").message(on: 1), .commandAMF3))
        #expect(asked.keys == ["talk"])
        _ = rig.outcome(of: rig.session.accept(at: rig.now))
        var data: [UInt8] = []
        for value: AMF0Value in [.string("onMetaData"), .object([.init("width", .number(640))])] {
            value.append(to: &data)
        }
        let told = rig.receive(Self.inAMF3(RTMPMessage(.data, stream: 1, payload: data), .dataAMF3))
        let nothing = rig.receive(RTMPMessage(.dataAMF3, stream: 1, payload: []))
        #expect(told.metadata == [[.init("width", .number(640))]] && nothing.metadata.isEmpty)
        #expect(nothing.end == nil)
    }

    private static func inAMF3(_ message: RTMPMessage, _ kind: RTMPMessage.Kind) -> RTMPMessage {
        RTMPMessage(
            kind, timestamp: message.timestamp, stream: message.stream, payload: [0] + message.payload)
    }

    // MARK: Many messages

    /// An empty message of sound.
    private static let empty = hexBytes("06 000000 000000 08 01000000")

    /// The same again and again, in one byte each.
    private static func empties(_ count: Int) -> [UInt8] { [UInt8](repeating: 0xC6, count: count) }

    @Test mutating func `ends who sends empty messages instead of the request to publish`() {
        _ = rig.receive(RTMPRig.greeting)
        _ = rig.receive(RTMPRig.connect())
        let some = rig.receive(Self.empty + Self.empties(400))
        let more = rig.receive(Self.empties(400))
        #expect(some.end == nil && more.end?.name == "malformed")
    }

    @Test mutating func `ends who sends much instead of the request to publish`() {
        _ = rig.receive(RTMPRig.greeting)
        _ = rig.receive(RTMPRig.connect())
        let message = RTMPMessage(
            RTMPMessage.Kind(rawValue: 22), payload: [UInt8](repeating: 1, count: 1_000))
        var ends: [String] = []
        for _ in 0..<140 { if let end = rig.receive(message).end { ends.append(end.name) } }
        #expect(ends == ["malformed"])
    }

    @Test mutating func `ends a publisher who sends more messages than any encoder`() {
        rig.beginPublishing()
        var count = rig.receive(Self.empty).audio.count
        for _ in 0..<5 {
            let second = rig.receive(Self.empties(5_000))
            count += second.audio.count
            #expect(second.end == nil)
            rig.now = rig.now + .seconds(1)
        }
        #expect(count == 25_001)
        let flood = rig.receive(Self.empties(20_000))
        #expect(flood.end?.name == "malformed" && flood.audio.count <= 10_001)
    }

    /// Sizes of chunks are no messages that a session sees.
    @Test mutating func `ends a publisher who does nothing but change the size of chunks`() {
        rig.beginPublishing()
        let first = rig.receive(hexBytes("02 000000 000004 01 00000000 00001000"))
        var bytes: [UInt8] = []
        for _ in 0..<20_000 { bytes += [0xC2, 0, 0, 0x10, 0] }
        let flood = rig.receive(bytes)
        #expect(first.end == nil && flood.end?.name == "malformed")
    }

    /// A size of one byte is allowed, but then each byte costs as much as a message.
    @Test mutating func `ends a publisher who sends pictures byte by byte, and no slow one`() {
        rig.beginPublishing()
        // One for all messages: the change of the size comes in chunks of the size before.
        var writer = RTMPChunkWriter()
        func bytes(_ length: Int, inChunksOf size: UInt32) -> [UInt8] {
            var bytes: [UInt8] = []
            writer.setChunkSize(size, in: &bytes)
            writer.append(
                RTMPMessage(.video, stream: 1, payload: [UInt8](repeating: 1, count: length)), to: &bytes)
            return bytes
        }
        let small = rig.receive(bytes(5_000, inChunksOf: 1))
        #expect(small.end == nil && small.video.first?.bytes.count == 5_000)
        let usual = rig.receive(bytes(1_500_000, inChunksOf: 128))
        #expect(usual.end == nil && usual.video.first?.bytes.count == 1_500_000)
        rig.now = rig.now + .seconds(1)
        let next = rig.receive(bytes(9_000, inChunksOf: 1))
        #expect(next.end == nil && next.video.count == 1)
        let flood = rig.receive(bytes(20_000, inChunksOf: 1))
        #expect(flood.end?.name == "malformed" && flood.video.isEmpty)
    }

    @Test mutating func `answers nobody who wants no answer`() {
        _ = rig.receive(RTMPRig.greeting)
        _ = rig.receive(RTMPRig.connect())
        let answers = ["createStream", "releaseStream", "_checkbw", "getStreamLength", "anything"].flatMap {
            rig.receive(RTMPCommand($0, transaction: 0)).messages
        }
        #expect(answers.isEmpty)
    }

    @Test mutating func `passes over what says nothing`() {
        rig.beginPublishing()
        let kinds: [RTMPMessage.Kind] = [
            .userControl, .windowSize, .peerBandwidth, .acknowledgement, .init(rawValue: 99),
        ]
        for kind in kinds {
            for count in 0...3 {
                let outcome = rig.receive(RTMPMessage(kind, payload: [UInt8](repeating: 0, count: count)))
                #expect(outcome.messages.isEmpty && outcome.end == nil, "\(count) bytes of \(kind)")
            }
        }
        let video = rig.receive(RTMPMessage(.video, timestamp: 1, stream: 1, payload: [])).video
        #expect(video.map(\.bytes) == [[]])
    }

    /// Or each byte would be answered with sixteen.
    @Test mutating func `acknowledges no more often than every two kilobytes`() {
        rig.beginPublishing()
        _ = rig.receive(RTMPMessage(.windowSize, number: 0))
        var acknowledged: [UInt32] = []
        for _ in 0..<400 {
            let outcome = rig.receive(RTMPMessage(.audio, stream: 1, payload: [0xAF]))
            for message in outcome.messages where message.kind == .acknowledgement {
                acknowledged.append((try? message.payload.span.uint32(at: 0)) ?? 0)
            }
        }
        #expect((1...3).contains(acknowledged.count))
        #expect(zip(acknowledged, acknowledged.dropFirst()).allSatisfy { $1 - $0 >= 2_048 })
    }

    @Test mutating func `waits for whoever decides, however long it takes`() {
        _ = rig.ask()
        #expect(rig.session.deadline == nil)
        let late = rig.advance(by: .seconds(600))
        #expect(late.end == nil && late.messages.isEmpty)
        _ = rig.outcome(of: rig.session.accept(at: rig.now))
        // The wait does not count as the encoder's silence.
        let after = rig.advance(by: .milliseconds(4_999))
        #expect(after.end == nil && after.messages.isEmpty && rig.session.isPublishing)
        // Once accepted is enough.
        let again = rig.outcome(of: rig.session.accept(at: rig.now))
        #expect(again.messages.isEmpty)
    }

    @Test(arguments: ["FCUnpublish", "deleteStream", "closeStream"])
    mutating func `ends with whoever gives up before the answer`(name: String) {
        _ = rig.receive(RTMPRig.greeting)
        _ = rig.receive(RTMPRig.connect())
        // Encoders tidy up before they begin.
        let early = rig.receive(RTMPCommand(name, transaction: 2))
        #expect(early.end == nil)
        _ = rig.receive(RTMPRig.publish("talk"), on: 1)
        let ended = rig.receive(RTMPCommand(name, transaction: 6))
        #expect(ended.end == .byPublisher && rig.session.isOver)
        let late = rig.outcome(of: rig.session.accept(at: rig.now))
        #expect(late.messages.isEmpty && rig.session.deadline == nil)
    }

    @Test mutating func `connects once, and only with the name of an application`() {
        _ = rig.receive(RTMPRig.greeting)
        _ = rig.receive(RTMPRig.connect())
        let twice = rig.receive(RTMPRig.connect())
        #expect(twice.end?.name == "malformed")
        for object in [AMF0Value.null, .object([]), .object([.init("app", .number(1))])] {
            var other = RTMPRig()
            _ = other.receive(RTMPRig.greeting)
            let refused = other.receive(RTMPCommand("connect", transaction: 1, object: object))
            #expect(refused.end == .unknownApplication && refused.commands.map(\.name) == ["_error"])
        }
        for name in ["live/", "live/instance", "/live"] {
            var other = RTMPRig()
            _ = other.receive(RTMPRig.greeting)
            let taken = other.receive(RTMPRig.connect(name))
            #expect(taken.end == nil, "\(name)")
        }
    }

    /// What a key consists of is the business of whoever checks it.
    @Test(arguments: [.null, .number(5), .string(""), .string("talk?token=a/b&c")] as [AMF0Value])
    mutating func `asks for whatever an encoder wants to publish`(key: AMF0Value) {
        _ = rig.receive(RTMPRig.greeting)
        _ = rig.receive(RTMPRig.connect())
        let asked = rig.receive(RTMPCommand("publish", transaction: 5, object: .null, [key]), on: 1)
        #expect(asked.keys == [key.text ?? ""] && asked.end == nil)
    }
}
