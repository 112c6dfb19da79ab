import Base
import ClientPeer
import Forwarding
import StoryFeed
import TestSupport
import TestTraits
import Testing

@testable import Node

@Suite(.simulated, .sctpTurn) struct InTheFeed {
    private let bad = SimulatedNetwork.Conditions(
        loss: 0.02, duplication: 0.01, delay: .milliseconds(20), jitter: .milliseconds(10))

    @Test(arguments: 1...2) func `the first stream plays after the handshake, and the next one is ready`(
        workers: Int
    ) throws {
        let simulation = try FeedSimulation(seed: 1, workers: workers)
        let old = try simulation.publish("old")
        let new = try simulation.publish("new")
        simulation.run(for: .seconds(3))
        let viewer = try simulation.watch()
        #expect(simulation.run(for: .seconds(2)) { simulation.isPlaying(viewer) })
        #expect(simulation.focus(of: viewer)?.stream == new)
        #expect(simulation.run(for: .seconds(1)) { simulation.shown(viewer, .second) == old })
        #expect(simulation.heard(viewer, .second) == nil)
        #expect(simulation.faults.isEmpty)
    }

    /// Or a link that takes one story and not two would be called too slow for the one that is seen.
    @Test func `reports of quality are about the story that is watched`() throws {
        let simulation = try FeedSimulation(seed: 3, workers: 1)
        let old = try simulation.publish("old")
        _ = try simulation.publish("new")
        simulation.run(for: .seconds(3))
        let viewer = try simulation.watch()
        let session = { simulation.workers[viewer.worker].sessions[viewer.id] }
        #expect(simulation.run(for: .seconds(10)) { session()?.gauge.quality?.pictures.count == 2 })
        let quality = try #require(session()?.gauge.quality)
        #expect(quality.pictures.map(\.isPreview) == [false, true])
        #expect(quality.cause == .publisher)
        // The other way round the neighbour, which is kept small, comes first.
        simulation.focus(old, viewer)
        let isTurned = simulation.run(for: .seconds(5)) {
            session()?.gauge.quality?.pictures.map(\.isPreview) == [true, false]
        }
        #expect(isTurned)
        #expect(session()?.gauge.quality?.cause == .publisher)
        simulation.say(#"{"type":"prefer","pin":"low"}"#, viewer)
        #expect(simulation.run(for: .seconds(5)) { session()?.gauge.quality?.cause == .pinned })
    }

    @Test(arguments: 1...2) func `a swipe turns to the neighbour within a frame, with sound, and back`(
        workers: Int
    ) throws {
        let simulation = try FeedSimulation(seed: 2, workers: workers)
        let streams = try (0..<4).map { number throws in try simulation.publish("s\(number)") }
        simulation.run(for: .seconds(3))
        let viewer = try simulation.watch(on: streams[1], preload: .onSwipe)
        #expect(simulation.run(for: .seconds(2)) { simulation.isPlaying(viewer) })
        for stream in [streams[2], streams[3], streams[2], streams[0]] {
            let before = simulation.focus(of: viewer)
            simulation.peek(stream, viewer)
            let slot = try #require(before?.slot).other
            #expect(simulation.run(for: .milliseconds(300)) { simulation.shown(viewer, slot) == stream })
            #expect(simulation.heard(viewer, slot) == nil)
            simulation.focus(stream, viewer)
            let isThere = simulation.run(for: .milliseconds(100)) {
                simulation.focus(of: viewer)?.stream == stream && simulation.isPlaying(viewer)
            }
            #expect(isThere)
            simulation.run(for: .milliseconds(400))
            #expect(simulation.shown(viewer, slot.other) == nil)
        }
        #expect(simulation.faults.isEmpty)
    }
}
