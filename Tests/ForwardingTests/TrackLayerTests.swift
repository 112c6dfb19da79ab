import Base
import Peer
import Testing
import Wire

@testable import Forwarding

@Suite struct `A layer of a track` {
    private let start = MonotonicTime(nanoseconds: 1_000_000_000)

    /// - Returns: the track too, which the layer does not own.
    private func make(_ kind: MediaKind) throws -> (track: Track, layer: TrackLayer) {
        let formats = [MediaFormat(codec: kind == .audio ? .opus : .vp8, payloadType: 96)]
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

    /// A packet of sound every 20 ms.
    private func receive(_ number: Int, by layer: TrackLayer, at now: MonotonicTime) throws -> MediaPacket? {
        var bytes: [UInt8] = [0x80, 96]
        bytes.append(bigEndian: UInt16(truncatingIfNeeded: number))
        bytes.append(bigEndian: UInt32(truncatingIfNeeded: number * 960))
        bytes.append(bigEndian: UInt32(7))
        bytes += [0x78, 1, 2, 3]
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

    @Test func `lets sound wait longer than pictures`() throws {
        let (picture, pictures) = try make(.video)
        let (voice, sound) = try make(.audio)
        defer { withExtendedLifetime((picture, voice)) {} }
        for wait in [0, 2_000_000, Patience.usual] {
            #expect(pictures.dueTime(after: wait) == pictures.waitingSince.advanced(byNanoseconds: wait))
            #expect(
                sound.dueTime(after: wait)
                    == sound.waitingSince.advanced(byNanoseconds: Patience.ofSound(wait)))
        }
    }
}
