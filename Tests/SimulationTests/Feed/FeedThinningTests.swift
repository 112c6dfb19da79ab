import Base
import ClientPeer
import Forwarding
import StoryFeed
import TestSupport
import TestTraits
import Testing
import Wire

@testable import Node

/// A neighbour whose source has no smaller picture, but pictures that can be left out.
@Suite(.simulated, .sctpTurn) struct `A neighbour with temporal layers` {
    /// Frames of a stream that came in any slot, by their time stamps.
    private final class Frames {
        var stamps: [MonotonicTime: Set<UInt32>] = [:]

        func note(_ arrival: StageClient.Arrival, of stream: StreamID?, wanted: StreamID) {
            guard arrival.kind == .video, stream == wanted else { return }
            stamps[arrival.time, default: []].insert(arrival.timestamp)
        }

        func count(from start: MonotonicTime, to end: MonotonicTime) -> Int {
            stamps.filter { $0.key > start && $0.key <= end }.reduce(into: Set()) { $0.formUnion($1.value) }
                .count
        }
    }

    @Test(arguments: [(2, 1), (2, 2), (3, 1), (3, 2)])
    func `gets every second or fourth picture, and all of them within a second of the swipe`(
        layers: Int, workers: Int
    ) throws {
        let simulation = try FeedSimulation(seed: 11, workers: workers)
        let here = try simulation.publish("here", on: 0)
        let there = try simulation.publish("there", on: 0, keyFrameInterval: .seconds(3)) {
            $0.temporalLayers = layers
            $0.bitrate = 900_000
        }
        simulation.run(for: .seconds(2))
        let viewer = try simulation.watch(on: here, preload: .onSwipe, worker: workers - 1)
        #expect(simulation.run(for: .seconds(2)) { simulation.isPlaying(viewer) })
        let frames = Frames()
        viewer.client.onPacket = { [unowned simulation] in
            frames.note($0, of: simulation.stream(of: $0.source), wanted: there)
        }
        for _ in 0..<3 {
            simulation.peek(there, viewer)
            simulation.run(for: .milliseconds(500))
            let start = simulation.now
            simulation.run(for: .seconds(2))
            let thinned = frames.count(from: start, to: simulation.now)
            #expect((thinned - 60 / (layers == 2 ? 2 : 4)).magnitude <= 2, "\(thinned) frames")
            simulation.focus(there, viewer)
            let committed = simulation.now
            simulation.run(for: .milliseconds(100))
            // The stream that was playing goes on.
            #expect(frames.count(from: committed, to: simulation.now) >= 1 && simulation.isPlaying(viewer))
            // Two of the encoder's patterns of eight pictures at most.
            simulation.run(for: .milliseconds(500))
            let whole = simulation.now
            simulation.run(for: .seconds(1))
            // The simulated encoder makes 27 or 28 pictures in a second.
            #expect((27...31).contains(frames.count(from: whole, to: simulation.now)))
            simulation.focus(here, viewer)
            simulation.run(for: .milliseconds(600))
        }
        for slot in viewer.client.slots { #expect(slot.decoder.complaints == []) }
        #expect(simulation.faults == [])
        #expect(simulation.workers.map(\.statistics.media.packetsThinned).reduce(0, +) > 60)
        #expect(simulation.keyFrameRequests(of: there) == 0)
    }

    /// Packets are lost on both ways, so that places are kept for what turns out to be left out.
    ///
    /// Where packets overtake each other all the time, the beginning of a picture with which a layer could be taken in
    /// again seldom comes in its turn, and it takes longer.
    @Test(arguments: ChosenSeed.or(1...8), [Duration.zero, .milliseconds(25)])
    func `is decodable over lossy links`(seed: UInt64, jitter: Duration) throws {
        let simulation = try FeedSimulation(seed: seed, workers: 1)
        let here = try simulation.publish("here")
        let there = try simulation.publish("there") {
            $0.temporalLayers = 2 + Int(seed % 2)
            $0.bitrate = 900_000
        }
        simulation.run(for: .seconds(2))
        let viewer = try simulation.watch(on: here, preload: .onSwipe)
        #expect(simulation.run(for: .seconds(2)) { simulation.isPlaying(viewer) })
        simulation.conditions = .init(
            loss: 0.03, duplication: 0.01, delay: .milliseconds(15), jitter: jitter)
        let video = try #require(
            viewer.client.slots.indices.filter { viewer.client.slots[$0].kind == .video }.last)
        for _ in 0..<4 {
            simulation.peek(there, viewer)
            simulation.run(for: .milliseconds(1_500))
            let before = viewer.client.slots[video].decoder.framesDecoded
            simulation.focus(there, viewer)
            // More than two seconds of all pictures, or of the lowest layer alone in twice the time.
            #expect(
                simulation.run(for: .seconds(20)) {
                    viewer.client.slots[video].decoder.framesDecoded > before + 60
                })
            simulation.focus(here, viewer)
            simulation.run(for: .milliseconds(600))
        }
        for slot in viewer.client.slots { #expect(slot.decoder.complaints == []) }
        #expect(simulation.workers[0].statistics.media.packetsThinned > 40)
    }
}
