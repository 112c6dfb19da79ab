import Base
import Ingest
import Restream
import TestSupport
import Testing
import Wire

@Suite struct `A publisher to a target with faults and odd habits` {
    private var rig: RestreamRig

    init() throws { rig = try RestreamRig() }

    /// The target's answers, up to a phase.
    private mutating func say(_ commands: RTMPCommand...) {
        rig.publisher.receive(RestreamRig.bytes(of: commands.map { $0.message() }).span)
    }

    private mutating func advance(to phase: RTMPPublisher.Phase) {
        rig.publisher.receive(RestreamRig.greeting.span)
        if phase == .connecting { return }
        say(RTMPCommand("_result", transaction: 1))
        if phase == .creating { return }
        say(RTMPCommand("_result", transaction: 4, object: .null, [.number(1)]))
        if phase == .asking { return }
        say(Self.status("status", "NetStream.Publish.Start"))
    }

    private static func status(_ level: String, _ code: String, _ description: String = "") -> RTMPCommand {
        RTMPCommand(
            "onStatus",
            [
                .object([
                    .init("level", .string(level)), .init("code", .string(code)),
                    .init("description", .string(description)),
                ])
            ])
    }

    // MARK: Answers

    @Test(arguments: [RTMPPublisher.Phase.connecting, .creating, .asking, .live])
    mutating func `ends with what the target says at each stage`(phase: RTMPPublisher.Phase) {
        let words = [AMF0Value.object([.init("description", .string("No."))])]
        let number: Double? =
            switch phase {
            case .connecting: 1
            case .creating: 4
            case .asking: 5
            default: nil
            }
        advance(to: phase)
        #expect(rig.publisher.phase == phase)
        // Nobody asked for these; services that refuse the two commands of Flash's encoder go on.
        for other in [0.0, 1, 2, 3, 4, 5, 6] where other != number {
            say(RTMPCommand("_error", transaction: other, words))
            #expect(rig.publisher.phase == phase, "\(other)")
        }
        let saved = rig
        if let number {
            say(RTMPCommand("_error", transaction: number, words))
            #expect(rig.publisher.phase == .over(.refused("No.")))
            rig = saved
        }
        say(Self.status("error", "NetStream.Failed", "No."))
        #expect(rig.publisher.phase == .over(.refused("No.")))
        rig = saved
        say(RTMPCommand("close"))
        #expect(rig.publisher.phase == .over(.closed))
        // What it says later changes nothing.
        say(Self.status("error", "NetStream.Failed", "No."))
        #expect(rig.publisher.phase == .over(.closed) && rig.publisher.deadline == nil)
    }

    @Test(arguments: ["NetStream.Unpublish.Success", "NetStream.Publish.Idle"])
    mutating func `ends where the target says that the stream has`(code: String) {
        advance(to: .live)
        say(Self.status("status", "NetStream.Publish.Start"), Self.status("status", "NetStream.Data.Start"))
        #expect(rig.publisher.phase == .live)
        say(Self.status("status", code))
        #expect(rig.publisher.phase == .over(.closed))
    }

    /// Whatever the level says that comes with it.
    @Test mutating func `is refused by a bad name`() {
        advance(to: .asking)
        say(Self.status("status", "NetStream.Publish.BadName"))
        #expect(rig.publisher.phase == .over(.refused("")))
    }

    @Test(arguments: [Double.nan, Double.infinity, -1, 0.5, 4_294_967_296, nil] as [Double?])
    mutating func `takes no stream without a number`(number: Double?) {
        advance(to: .creating)
        let values = number.map { [AMF0Value.number($0)] } ?? []
        say(RTMPCommand("_result", transaction: 4, object: .null, values))
        guard case .over(.malformed) = rig.publisher.phase else {
            Issue.record("\(rig.publisher.phase)")
            return
        }
    }

    @Test(arguments: [0, 1, 7, 4_294_967_295] as [Double])
    mutating func `publishes on the stream that it was given`(number: Double) throws {
        advance(to: .creating)
        _ = rig.publisher.takeOutput()
        say(RTMPCommand("_result", transaction: 4, object: .null, [.number(number)]))
        say(Self.status("status", "NetStream.Publish.Start"))
        rig.publisher.send(.format(RestreamRig.format), waiting: 0)
        rig.send(.keyFrame, at: 0)
        var reader = RTMPChunkReader(messageLimit: 1 << 20)
        var messages: [RTMPMessage] = []
        let output = rig.publisher.takeOutput()
        // The size of chunks was told before.
        try reader.read(RestreamRig.bytes(of: [RTMPMessage(.setChunkSize, number: 4_096)]).span) { _ in }
        try reader.read(output.span) { messages.append($0) }
        #expect(messages.map(\.kind) == [.command, .data, .video, .audio, .video])
        #expect(messages.allSatisfy { Double($0.stream) == number })
    }

    /// What is told to the host and in the log: neither the key, however it is hidden, nor more lines, nor too much.
    @Test(arguments: [
        ("No ta\u{200B}lk?tok\u{0}en=x.", "No …."),
        ("talk?token=x\u{301} and talk?token=xtalk?token=x", "…\u{301} and ……"),
        ("a\u{202E}b\r\n\u{2028}c\u{7}", "abc"),
        (String(repeating: "é", count: 300), String(repeating: "é", count: 200)),
    ])
    mutating func `says what the target says, without what must not be said`(text: String, words: String) {
        advance(to: .asking)
        say(Self.status("error", "NetStream.Publish.Denied", text))
        #expect(rig.publisher.phase == .over(.refused(words)))
    }

    @Test mutating func `says goodbye before it was accepted, but not before it asked`() {
        advance(to: .creating)
        _ = rig.publisher.takeOutput()
        let saved = rig
        rig.publisher.end()
        let early = rig.publisher.takeOutput()
        #expect(early.isEmpty && rig.publisher.phase == .over(nil))
        rig = saved
        say(RTMPCommand("_result", transaction: 4, object: .null, [.number(1)]))
        _ = rig.publisher.takeOutput()
        rig.publisher.end()
        let late = rig.publisher.takeOutput()
        #expect(!late.isEmpty && rig.publisher.phase == .over(nil))
    }

    // MARK: Media

    /// Past the 24 bits of a chunk's header, and past 32 bits, after 49 days.
    @Test mutating func `goes on where its time stamps turn over`() {
        rig.goLive()
        let times: [Int64] = [
            0, 0xFF_FFFE, 0xFF_FFFF, 0x100_0000, 1 << 31, 0xFFFF_FFFF, 0x1_0000_0000, 0x1_0000_0021,
        ]
        for time in times {
            rig.send(time == 0 ? .keyFrame : .picture, at: time)
            rig.send(.sound, at: time + 5)
        }
        rig.talk()
        let frames = rig.video.filter { $0.tag.content == .frame }
        #expect(frames.map(\.timestamp) == times.map { UInt32(truncatingIfNeeded: $0) })
        let sounds = rig.audio.filter { $0.tag.content == .frame }
        #expect(sounds.map(\.timestamp) == times.map { UInt32(truncatingIfNeeded: $0 + 5) })
        // What decoders are told anew is of the latest time, not of 49 days ago.
        rig.publisher.send(.format(RestreamRig.format), waiting: 0)
        rig.send(.keyFrame, at: 0x1_0000_0042)
        rig.talk()
        #expect(rig.video.suffix(2).map(\.timestamp) == [0x26, 0x42])
    }

    /// Without parameter sets nobody could decode anything.
    @Test mutating func `sends nothing of a format that says too little`() {
        rig.goLive()
        let format = RestreamFormat(
            width: 640, height: 360, framesPerSecond: nil, pictureHeader: [0, 0, 0, 1, 0x67, 1],
            soundConfiguration: [0x11, 0x90])
        rig.publisher.send(.format(format), waiting: 0)
        for index in 0..<5 {
            rig.send(index % 2 == 0 ? .keyFrame : .picture, at: Int64(index) * 33)
            rig.send(.sound, at: Int64(index) * 33)
        }
        rig.talk()
        #expect(rig.video.isEmpty && rig.audio.isEmpty && rig.metadata.isEmpty)
        rig.publisher.send(.format(RestreamRig.format), waiting: 0)
        rig.send(.picture, at: 200)
        rig.send(.keyFrame, at: 233)
        rig.talk()
        #expect(rig.video.map(\.tag.isKeyFrame) == [true, true])
    }

    /// Of such a key frame nothing can be sent, so that nothing can be decoded before the next one.
    @Test mutating func `leaves out what follows a key frame without content`() {
        rig.goLive()
        rig.send(.keyFrame, at: 0, bytes: [])
        rig.send(.sound, at: 10)
        rig.send(.picture, at: 33)
        rig.send(.keyFrame, at: 66)
        rig.send(.picture, at: 100)
        rig.send(.keyFrame, at: 133, bytes: [0, 0, 0, 1])
        rig.send(.picture, at: 166)
        rig.send(.keyFrame, at: 200)
        rig.talk()
        let frames = rig.video.filter { $0.tag.content == .frame }
        #expect(frames.map(\.tag.isKeyFrame) == [true, false, true])
        #expect(frames.map(\.timestamp) == [0, 34, 134])
        #expect(!rig.audio.contains { $0.tag.content == .frame }, "nothing is from before the first picture")
        #expect(rig.publisher.dropped == 2)
    }

    /// Viewers at the target would see pictures that refer to what never came.
    @Test(arguments: ChosenSeed.or(1...30))
    mutating func `sends no picture without the one before it, and counts the others`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        rig.goLive()
        // Pictures are told apart by their size; of each, whether everything since the one before was offered.
        var offered: [(size: Int, isKeyFrame: Bool, follows: Bool)] = []
        var isBroken = true
        for step in 0..<600 {
            let skipped: UInt64 = Int.random(in: 0..<40, using: &random) == 0 ? 1 : 0
            if Int.random(in: 0..<60, using: &random) == 0 {
                rig.publisher.send(.format(RestreamRig.format), waiting: 0)
                isBroken = true
            }
            if skipped > 0 { isBroken = true }
            let levels = [0, 0, 0, 0, RTMPPublisher.resumeLimit + 1, RTMPPublisher.pictureLimit + 1]
            let waiting = levels.randomElement(using: &random) ?? 0
            let kind: RestreamSample.Kind =
                Int.random(in: 0..<3, using: &random) == 0
                ? .sound : Int.random(in: 0..<10, using: &random) == 0 ? .keyFrame : .picture
            rig.send(kind, at: Int64(step) * 10, size: step + 1, skipping: skipped, waiting: waiting)
            if kind != .sound {
                offered.append((step + 1, kind == .keyFrame, !isBroken))
                isBroken = false
            }
            rig.talk()
        }
        let sent = rig.video.filter { $0.tag.content == .frame }.map { $0.body.count - 5 }
        var places: [Int] = []
        for size in sent { places.append(offered.firstIndex { $0.size == size } ?? -1) }
        #expect(zip(places, places.dropFirst()).allSatisfy { $0 < $1 })
        for (index, place) in places.enumerated() where !offered[max(place, 0)].isKeyFrame {
            let isWhole = index > 0 && places[index - 1] == place - 1 && offered[max(place, 0)].follows
            #expect(isWhole, "picture \(place)")
        }
        let first = places.first ?? offered.count
        #expect(rig.publisher.dropped == UInt64(offered.count - first - sent.count))
        #expect(!places.contains(-1) && sent.count > 20)
    }
}
