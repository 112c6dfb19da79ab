import Base
import Peer
import Testing
import Wire

@testable import Forwarding

@Suite struct `A layer of a track` {
    private let start = MonotonicTime(nanoseconds: 1_000_000_000)

    /// - Returns: the track too, which the layer does not own.
    private func make(
        _ kind: MediaKind, video: MediaCodec = .vp8, answersKeyFrameRequests: Bool = true
    ) throws -> (track: Track, layer: TrackLayer) {
        let formats = [MediaFormat(codec: kind == .audio ? .opus : video, payloadType: 96)]
        let track = Track(
            key: TrackKey(worker: 0, track: TrackID(number: 1)),
            plan: SourcePlan(
                mid: "0", kind: kind, formats: formats, rids: [], announced: [], supportsNACK: true,
                supportsPLI: true, supportsFIR: false, answersKeyFrameRequests: answersKeyFrameRequests),
            reader: PacketReader(formats: formats, ids: ExtensionIDs()), owner: nil, fanOut: FanOut())
        let layer = try #require(track.layer(rid: nil, at: start))
        layer.restart(ssrc: 7, at: start)
        return (track, layer)
    }

    /// A packet every 20 ms, of sound unless it is told otherwise.
    private func receive(
        _ number: Int, _ payload: [UInt8] = [0x78, 1, 2, 3], by layer: TrackLayer, at now: MonotonicTime
    ) throws -> MediaPacket? {
        var bytes: [UInt8] = [0x80, 96]
        bytes.append(bigEndian: UInt16(truncatingIfNeeded: number))
        bytes.append(bigEndian: UInt32(truncatingIfNeeded: number * 960))
        bytes.append(bigEndian: UInt32(7))
        bytes += payload
        let header = try RTPHeader(parsing: bytes.span)
        return try layer.receive(bytes.span, header, origin: .original, clock: nil, at: now)
    }

    /// Packets are sent from the history, so it could not be sent.
    @Test func `sends nothing on that its history no longer has room for`() throws {
        let (track, layer) = try make(.audio)
        defer { withExtendedLifetime(track) {} }
        for number in 100..<300 where number != 102 && number != 290 {
            let now = start + .milliseconds(20 * (number - 100))
            #expect(try receive(number, by: layer, at: now) != nil)
        }
        #expect(try receive(290, by: layer, at: start + .seconds(4)) != nil)
        #expect(try receive(102, by: layer, at: start + .seconds(4)) == nil)
        #expect(layer.history.range(of: 102) == nil)
    }

    /// The picture is of no use without them, and nobody needs packets from before the key frame.
    @Test func `asks for lost parameter sets also when the picture behind them is there`() throws {
        let (track, layer) = try make(.video, video: .h264(packetizationMode: 1))
        defer { withExtendedLifetime(track) {} }
        let (slice, picture): ([UInt8], [UInt8]) = ([0x41, 0x9A, 1], [0x65, 0x88, 1])
        #expect(try receive(100, slice, by: layer, at: start) != nil)
        #expect(try receive(104, slice, by: layer, at: start) != nil)
        // 105 and 106 are the parameter sets.
        #expect(try receive(107, picture, by: layer, at: start) != nil)
        var feedback: [RTCPPacket] = []
        let deadline = layer.feedbackDeadline
        #expect(layer.appendFeedback(from: 1, rtt: nil, at: deadline, to: &feedback) == nil)
        #expect(
            feedback == [.nack(NegativeAcknowledgement(senderSSRC: 1, mediaSSRC: 7, lost: [103, 105, 106]))])
        #expect(try receive(105, [0x67, 0x42, 0xC0, 0x1F], by: layer, at: deadline) != nil)
    }

    @Test func `still asks for a key frame after a loss when one comes late from before it`() throws {
        let (track, layer) = try make(.video)
        defer { withExtendedLifetime(track) {} }
        let keyFrame: [UInt8] = [0x10, 0x10, 0, 0, 0x9D, 1, 0x2A, 0x80, 2, 0x68, 1]
        let picture: [UInt8] = [0x10, 0x11, 0, 0]
        #expect(try receive(100, picture, by: layer, at: start) != nil)
        // The key frame is 101; 111 is lost behind it, and nobody sends it again within a second.
        #expect(try receive(110, picture, by: layer, at: start) != nil)
        #expect(try receive(112, picture, by: layer, at: start) != nil)
        let late = start + .milliseconds(1_200)
        var feedback: [RTCPPacket] = []
        let occasion = layer.appendFeedback(from: 1, rtt: nil, at: late, to: &feedback)
        #expect(occasion?.reason == .loss)
        #expect(try receive(101, keyFrame, by: layer, at: late + .milliseconds(20)) != nil)
        #expect(layer.keyFrames.deadline != nil)
        #expect(try receive(113, keyFrame, by: layer, at: late + .milliseconds(60)) != nil)
        #expect(layer.keyFrames.deadline == nil)
    }

    /// By RTMP the next key frame may be ten seconds away; catching up from the last one takes a second.
    @Test(arguments: [(true, 4), (false, 20)])
    func `keeps pictures for longer whose encoder makes no key frame when it is asked`(
        answers: Bool, seconds: Int
    ) throws {
        let (track, layer) = try make(.video, answersKeyFrameRequests: answers)
        defer { withExtendedLifetime(track) {} }
        let keyFrame: [UInt8] = [0x10, 0x10, 0, 0, 0x9D, 1, 0x2A, 0x80, 2, 0x68, 1]
        for number in 0...1_250 {
            let now = start + .milliseconds(20 * number)
            let payload = number == 0 ? keyFrame : [0x10, 0x11] + [UInt8](repeating: 0, count: 200)
            #expect(try receive(number, payload, by: layer, at: now) != nil)
            let isKept = layer.group(at: now) != nil
            #expect(isKept == (number <= 50 * seconds), "\(number)")
        }
    }

    /// All viewers have to begin again at each leap.
    @Test func `takes few leaps of its source's numbers at once, and the next one a second later`() throws {
        let (track, layer) = try make(.video)
        defer { withExtendedLifetime(track) {} }
        let keyFrame: [UInt8] = [0x10, 0x10, 0, 0, 0x9D, 1, 0x2A, 0x80, 2, 0x68, 1]
        #expect(try receive(100, keyFrame, by: layer, at: start) != nil)
        let epoch = layer.epoch
        var taken = 0
        for leap in 1...20 {
            let now = start + .milliseconds(10 * leap)
            if try receive(100 + 3_001 * leap, keyFrame, by: layer, at: now) != nil { taken += 1 }
        }
        #expect(layer.epoch - epoch == 4)
        #expect(taken == 4)
        #expect(try receive(60_121, keyFrame, by: layer, at: start + .milliseconds(1_100)) != nil)
        #expect(try receive(60_122, keyFrame, by: layer, at: start + .milliseconds(1_101)) != nil)
        #expect(layer.epoch - epoch == 5)
    }

    @Test func `changes its SSRC no more often than that`() throws {
        let (track, layer) = try make(.video)
        defer { withExtendedLifetime(track) {} }
        let epoch = layer.epoch
        for number in UInt32(1)...20 {
            layer.restart(ssrc: 7 + number, at: start + .milliseconds(10 * Int64(number)))
        }
        #expect(layer.epoch - epoch == 4)
        #expect(layer.ssrc == 11)
        layer.restart(ssrc: 50, at: start + .milliseconds(1_100))
        #expect(layer.ssrc == 50)
    }

    @Test func `lets sound wait no longer than pictures`() throws {
        let (picture, pictures) = try make(.video)
        let (voice, sound) = try make(.audio)
        defer { withExtendedLifetime((picture, voice)) {} }
        for wait in [0, 2_000_000, Patience.usual] {
            #expect(
                pictures.outgoing.dueTime(after: wait)
                    == pictures.outgoing.waitingSince.advanced(byNanoseconds: wait))
            #expect(
                sound.outgoing.dueTime(after: wait)
                    == sound.outgoing.waitingSince.advanced(byNanoseconds: wait))
        }
    }
}
