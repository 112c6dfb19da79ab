import Base
import Ingest
import Restream
import TestSupport
import Testing
import Wire

@Suite struct `A publisher to a target` {
    private var rig: RestreamRig

    init() throws { rig = try RestreamRig() }

    @Test mutating func `leads a server from the handshake to the stream`() {
        rig.talk()
        #expect(rig.publisher.phase == .asking && rig.keys == ["talk?token=x"])
        rig.accept()
        #expect(rig.publisher.phase == .live && rig.publisher.deadline == nil)
    }

    @Test mutating func `does the same in single bytes`() {
        while rig.publisher.phase != .live {
            let bytes = rig.publisher.takeOutput()
            guard !bytes.isEmpty else { break }
            for effect in rig.server.receive(bytes.span, at: rig.now) {
                switch effect {
                case .send(let answer): for byte in answer { rig.publisher.receive([byte].span) }
                case .publish:
                    for case .send(let answer) in rig.server.accept(at: rig.now) {
                        for byte in answer { rig.publisher.receive([byte].span) }
                    }
                default: break
                }
            }
        }
        #expect(rig.publisher.phase == .live)
    }

    @Test mutating func `begins with a key frame, and tells decoders first`() throws {
        rig.goLive()
        rig.send(.sound, at: 0)
        rig.send(.picture, at: 10)
        rig.talk()
        #expect(rig.video.isEmpty && rig.audio.isEmpty)
        rig.send(.keyFrame, at: 40)
        // Sound of before the picture is of no use.
        rig.send(.sound, at: 30)
        rig.send(.sound, at: 60)
        rig.send(.picture, at: 73)
        rig.talk()
        #expect(rig.video.map(\.timestamp) == [0, 0, 33])
        #expect(rig.video.map(\.tag.content) == [.configuration, .frame, .frame])
        #expect(rig.video.map(\.tag.isKeyFrame) == [true, true, false])
        #expect(rig.audio.map(\.timestamp) == [0, 20])
        #expect(rig.audio.map(\.tag.content) == [.configuration, .frame])
        let (head, frame, config) = (rig.video[0].body, rig.video[1].body, rig.audio[0].body)
        let record = try AVCConfiguration(parsing: head.span)
        #expect(record.profile == 0x42 && record.lengthSize == 4)
        // The lengths that the record promises.
        let units = try record.units(in: frame.span)
        #expect(units == [4..<25])
        let sound = try AACConfiguration(parsing: config.span)
        #expect(sound.sampleRate == 48_000)
        #expect(rig.metadata.first?.contains(.init("width", .number(640))) == true)
    }

    @Test mutating func `tells decoders anew when the encoder begins anew`() {
        rig.goLive()
        rig.send(.keyFrame, at: 0)
        rig.publisher.send(.format(RestreamRig.format), waiting: 0)
        rig.send(.picture, at: 33)
        rig.send(.keyFrame, at: 66)
        rig.talk()
        #expect(rig.video.map(\.tag.content) == [.configuration, .frame, .configuration, .frame])
        #expect(rig.video.map(\.timestamp) == [0, 0, 0, 66])
    }

    @Test mutating func `leaves out what needs a picture that got lost`() {
        rig.goLive()
        rig.send(.keyFrame, at: 0)
        rig.send(.picture, at: 33, skipping: 1)
        rig.send(.picture, at: 66)
        rig.send(.keyFrame, at: 100)
        rig.talk()
        #expect(rig.video.dropFirst().map(\.timestamp) == [0, 100])
        #expect(rig.publisher.dropped == 2)
    }

    @Test mutating func `leaves pictures out up to a key frame while its target is slow`() {
        rig.goLive()
        rig.send(.keyFrame, at: 0)
        rig.talk()
        let full = RTMPPublisher.pictureLimit + 1
        rig.send(.picture, at: 33, waiting: full)
        // Sound has room beyond.
        rig.send(.sound, at: 40, waiting: full)
        rig.send(.keyFrame, at: 66, waiting: full)
        rig.send(.picture, at: 100, waiting: 0)
        rig.send(.keyFrame, at: 133, waiting: RTMPPublisher.resumeLimit + 1)
        rig.send(.keyFrame, at: 166, waiting: 0)
        rig.send(.sound, at: 170, waiting: RTMPPublisher.soundLimit + 1)
        rig.talk()
        #expect(rig.video.dropFirst().map(\.timestamp) == [0, 166])
        #expect(rig.audio.dropFirst().map(\.timestamp) == [40])
        #expect(rig.publisher.dropped == 4)
    }

    @Test mutating func `counts what it was not asked for yet`() {
        rig.goLive()
        // One key frame after the other, of which nothing is taken.
        for number in 0..<40 { rig.send(.keyFrame, at: Int64(number) * 33, size: 100_000) }
        #expect(rig.publisher.takeOutput().count < RTMPPublisher.soundLimit + 200_000)
        #expect(rig.publisher.dropped > 20)
    }

    @Test mutating func `says why it is refused, without the key`() throws {
        for (reason, words) in [
            ("Invalid key talk?token=x for you.\r\nrm -rf", "Invalid key … for you.rm -rf"), ("", ""),
        ] {
            var rig = try RestreamRig()
            rig.talk()
            rig.take(rig.server.end(because: .badKey(reason)))
            #expect(rig.publisher.phase == .over(.refused(words)))
        }
    }

    @Test mutating func `is refused by a server that has no such application`() throws {
        var rig = try RestreamRig("rtmp://live.example.org/vod")
        rig.talk()
        guard case .over(.refused(let words)) = rig.publisher.phase else {
            Issue.record("\(rig.publisher.phase)")
            return
        }
        #expect(!words.isEmpty)
    }

    @Test mutating func `waits so long for an answer, and no longer`() {
        _ = rig.publisher.takeOutput()
        let end = RestreamRig.start + RTMPPublisher.joinLimit
        #expect(rig.publisher.deadline == end)
        rig.publisher.advance(to: RestreamRig.start + RTMPPublisher.joinLimit - .milliseconds(1))
        #expect(!rig.publisher.isOver)
        // Whatever trickles in meanwhile.
        rig.publisher.receive([3].span)
        rig.publisher.advance(to: end)
        #expect(rig.publisher.phase == .over(.timedOut))
    }

    @Test mutating func `answers pings and windows, and acknowledges`() throws {
        rig.goLive()
        _ = rig.publisher.takeOutput()
        var bandwidth = RTMPMessage(.peerBandwidth, number: 5_000_000)
        bandwidth.payload.append(2)
        let padding = RTMPMessage(.audio, payload: [UInt8](repeating: 0, count: 5_000))
        let said = RestreamRig.bytes(of: [
            RTMPMessage(.pingRequest, value: 0x0102_0304), bandwidth, RTMPMessage(.windowSize, number: 8_000),
            padding,
        ])
        // What came since the beginning is more than half of the new window.
        rig.publisher.receive(RestreamRig.setChunkSize.span)
        rig.publisher.receive(said.span)
        var reader = RTMPChunkReader(messageLimit: 1 << 20)
        var answers: [RTMPMessage] = []
        try reader.read(rig.publisher.takeOutput().span) { answers.append($0) }
        #expect(answers.first == RTMPMessage(.pingResponse, value: 0x0102_0304))
        #expect(answers.contains(RTMPMessage(.windowSize, number: 5_000_000)))
        #expect(answers.last?.kind == .acknowledgement)
    }

    @Test mutating func `passes over what is no command`() {
        rig.talk()
        var payload: [UInt8] = []
        AMF0Value.string("onFCPublish").append(to: &payload)
        rig.publisher.receive(
            RestreamRig.bytes(of: [
                RTMPMessage(.command, payload: payload), RTMPMessage(.command, payload: [0xFF]),
            ]).span)
        #expect(rig.publisher.phase == .asking)
    }

    @Test mutating func `says goodbye`() {
        rig.goLive()
        rig.publisher.end()
        #expect(rig.publisher.phase == .over(nil))
        rig.talk()
        #expect(rig.serverEnd == .byPublisher)
        rig.send(.keyFrame, at: 0)
        #expect(rig.publisher.takeOutput().isEmpty)
    }

    @Test mutating func `knows what is no RTMP by its first byte`() {
        rig.publisher.receive(Array("HTTP/1.1 400".utf8).span)
        #expect(rig.publisher.phase == .over(.malformed("it begins with another protocol than RTMP")))
        #expect(
            RestreamFailure.malformed("it begins with another protocol than RTMP").text
                == "The target doesn't speak RTMP correctly: it begins with another protocol than RTMP.")
    }

    @Test mutating func `does not listen for ever to who talks and talks`() throws {
        rig.publisher.receive(RestreamRig.greeting.span)
        let chatter = RestreamRig.bytes(of: [
            RTMPMessage(.data, payload: [UInt8](repeating: 0, count: 128 * 100))
        ])
        for _ in 0..<200 where !rig.publisher.isOver { rig.publisher.receive(chatter.span) }
        guard case .over(.malformed(let what)) = rig.publisher.phase else {
            Issue.record("\(rig.publisher.phase)")
            return
        }
        #expect(what.contains("more than"))
        // A message of 16 MB is refused by its header.
        var other = try RestreamRig()
        other.publisher.receive(RestreamRig.greeting.span)
        other.publisher.receive(hexBytes("04 000000 FFFFFF 09 01000000").span)
        #expect(other.publisher.phase == .over(.malformed("it sends a message that is too long")))
    }

    @Test func `survives random bytes at every stage`() throws {
        var random = SeededGenerator(seed: 18)
        for round in 0..<400 {
            var rig = try RestreamRig()
            if round % 3 > 0 { rig.talk() }
            if round % 3 > 1 { rig.goLive() }
            let bytes = (0..<Int.random(in: 1...400, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            rig.publisher.receive(bytes.span)
            rig.send(.keyFrame, at: 0)
            _ = rig.publisher.takeOutput()
        }
    }
}

extension RestreamRig {
    /// So that what is said next comes in one chunk.
    static var setChunkSize: [UInt8] {
        var writer = RTMPChunkWriter()
        var bytes: [UInt8] = []
        writer.setChunkSize(128, in: &bytes)
        return bytes
    }
}
