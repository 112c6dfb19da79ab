import Base
import Testing
import Wire

@testable import Forwarding
@testable import Node

@Suite struct `What a player can choose` {
    private let sending = SessionMeasurements.Sending(
        mid: "1", kind: .video, track: nil, sent: MediaCounters.Volume(packets: 0, bytes: 0),
        resendsRequested: 0, resent: 0, reception: nil)

    private func layer(_ rid: String?, _ height: Int?, _ bitrate: Int, isActive: Bool = true)
        -> TrackMeasurements.Layer
    {
        TrackMeasurements.Layer(
            rid: rid, isActive: isActive, bitrate: bitrate, width: height.map { $0 * 16 / 9 },
            height: height, expected: 0, received: 0, repaired: 0, requested: 0, jitter: .zero,
            keyFrames: 0, keyFrameRequests: 0)
    }

    private func media(_ layers: [TrackMeasurements.Layer]) -> PlayerView.Media {
        var random = SystemRandomNumberGenerator()
        let source = TrackMeasurements(
            session: SessionID(using: &random), mid: "0", kind: .video,
            track: TrackKey(worker: 0, track: TrackID(number: 1)), layers: layers)
        return PlayerView.Media(
            sending, source: source,
            quality: DeliveryQuality(estimate: nil, roundTrip: nil, cause: nil, pictures: []))
    }

    @Test func `the choices are the publisher's layers, the best first`() {
        let media = media([layer("h", 360, 400_000), layer("q", 180, 100_000), layer("f", 720, 900_000)])
        #expect(media.mid == "1")
        #expect(media.encodings.map(\.id) == ["f", "h", "q"])
        #expect(media.encodings.map(\.order) == [2, 1, 0])
        #expect(media.encodings.map(\.extent) == [720, 360, 180])
        #expect(media.encodings.map(\.isAvailable) == [true, true, true])
    }

    @Test func `a resting layer can be chosen, one that is switched off cannot`() {
        let media = media([
            layer("f", 720, 900_000, isActive: false), layer("h", 360, 0, isActive: false),
            layer("q", 180, 100_000),
        ])
        #expect(media.encodings.map(\.isAvailable) == [true, false, true])
    }

    @Test func `a single layer without a name gets one`() {
        #expect(media([layer(nil, nil, 5_000)]).encodings.map(\.id) == ["0"])
        #expect(media([layer(nil, nil, 5_000)]).encodings.map(\.extent) == [nil])
        // The session knows the size of a picture that the server makes.
        let made = DeliveryQuality.Layer(rid: nil, width: 1_280, height: 720, bitrate: 2_000_000)
        let quality = DeliveryQuality(
            estimate: nil, roundTrip: nil, cause: nil,
            pictures: [
                DeliveryQuality.Picture(mid: "1", wanted: made, served: nil, isPaused: false),
                DeliveryQuality.Picture(mid: "2", wanted: made, served: nil, isPaused: false),
            ])
        let media = PlayerView.Media(sending, source: nil, quality: quality)
        #expect(
            media.encodings == [
                PlayerView.Encoding(id: "0", order: 0, bitrate: 2_000_000, width: 1_280, height: 720)
            ])
    }

    @Test func `the size of a layer is its shorter side`() {
        let upright = PlayerView.Encoding(id: "h", order: 0, bitrate: 1, width: 360, height: 640)
        #expect(upright.extent == 360)
    }
}
