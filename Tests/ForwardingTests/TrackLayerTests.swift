import Base
import Peer
import Testing
import Wire

@testable import Forwarding

@Suite struct `A layer of a track` {
    private let start = MonotonicTime(nanoseconds: 1_000_000_000)

    /// - Returns: the track too, which the layer does not own.
    private func make(
        _ kind: MediaKind, video: MediaCodec = .vp8
    ) throws -> (track: Track, layer: TrackLayer) {
        let formats = [MediaFormat(codec: kind == .audio ? .opus : video, payloadType: 96)]
        let track = Track(
            key: TrackKey(worker: 0, track: TrackID(number: 1)),
            plan: SourcePlan(
                mid: "0", kind: kind, formats: formats, rids: [], announced: [], supportsNACK: true,
                supportsPLI: true, supportsFIR: false),
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
        return try layer.receive(bytes.span, header, isRepair: false, clock: nil, at: now)
    }

    /// It could not be sent: packets leave out of the history.
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

    /// The picture alone is of no use; what came before the key frame is needed by nobody any more.
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
        layer.appendFeedback(from: 1, rtt: nil, at: deadline, to: &feedback)
        #expect(
            feedback == [.nack(NegativeAcknowledgement(senderSSRC: 1, mediaSSRC: 7, lost: [103, 105, 106]))])
        #expect(try receive(105, [0x67, 0x42, 0xC0, 0x1F], by: layer, at: deadline) != nil)
    }

    @Test func `lets sound wait no longer than pictures`() throws {
        let (picture, pictures) = try make(.video)
        let (voice, sound) = try make(.audio)
        defer { withExtendedLifetime((picture, voice)) {} }
        for wait in [0, 2_000_000, Patience.usual] {
            #expect(pictures.dueTime(after: wait) == pictures.waitingSince.advanced(byNanoseconds: wait))
            #expect(sound.dueTime(after: wait) == sound.waitingSince.advanced(byNanoseconds: wait))
        }
    }
}
