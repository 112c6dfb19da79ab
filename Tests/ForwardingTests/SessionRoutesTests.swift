import Base
import Peer
import Testing
import Wire

@testable import Forwarding

@Suite struct `Routes of received SSRCs` {
    private var routes = SessionRoutes()

    /// A track in two sizes.
    private func makeTrack() throws -> (track: Track, layers: [TrackLayer]) {
        let formats = [MediaFormat(codec: .vp8, payloadType: 96)]
        let track = Track(
            key: TrackKey(worker: 0, track: TrackID(number: 1)),
            plan: SourcePlan(mid: "0", kind: .video, formats: formats),
            reader: PacketReader(formats: formats, ids: ExtensionIDs()), owner: nil, fanOut: FanOut())
        let layers = try ["f", "h"].map { try #require(track.layer(rid: $0, at: .zero)) }
        return (track, layers)
    }

    /// The layers that SSRCs lead to, by index, and -1 for none.
    private func destinations(of ssrcs: [UInt32], _ layers: [TrackLayer]) -> [Int] {
        ssrcs.map { ssrc in layers.firstIndex { $0 === routes[ssrc]?.layer } ?? -1 }
    }

    /// A sender writes MID and RID only at the beginning, so a lost route cannot be learned again.
    @Test mutating func `stay, however many SSRCs others have`() throws {
        let (track, layers) = try makeTrack()
        for index in 0...1 {
            let (ssrc, layer) = (UInt32(index + 1), layers[index])
            routes.add(Session.Route(ssrc: ssrc, kind: .media, track: track, layer: layer))
            routes.add(Session.Route(ssrc: 10 * ssrc, kind: .repair, track: track, layer: layer))
        }
        for ssrc in UInt32(100)..<200 {
            routes.add(Session.Route(ssrc: ssrc, kind: .repair, track: track, layer: layers[0]))
        }
        #expect(destinations(of: [1, 2, 20], layers) == [0, 1, 1])
        // The latest of its own kind, and the one before.
        #expect(destinations(of: [10, 197, 198, 199], layers) == [-1, -1, 0, 0])
        #expect(routes.media == [1, 2])
    }

    @Test mutating func `lead to what a layer's media has as its SSRC now`() throws {
        let (track, layers) = try makeTrack()
        for ssrc in UInt32(1)...3 {
            routes.add(Session.Route(ssrc: ssrc, kind: .media, track: track, layer: layers[1]))
        }
        #expect(destinations(of: [1, 2, 3], layers) == [-1, -1, 1])
        #expect(routes.media == [3])
    }
}
