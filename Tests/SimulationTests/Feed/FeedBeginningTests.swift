import Base
import ClientPeer
import StoryFeed
import TestSupport
import TestTraits
import Testing
import Wire

@testable import Node

@Suite(.simulated, .sctpTurn) struct BeginningsInTheFeed {
    /// What a client needs in order to show a story's first frame, and none of the story before.
    @Test(arguments: 1...2) func `are told with the time stamp of the first packet, each once`(
        workers: Int
    ) throws {
        let simulation = try FeedSimulation(seed: 5, workers: workers)
        let streams = try (0..<4).map { number throws in try simulation.publish("s\(number)") }
        simulation.run(for: .seconds(3))
        let viewer = try simulation.watch(on: streams[0], preload: .onSwipe)
        // The first packet of each run of packets of one publisher, in each slot.
        var firsts: [String: [UInt32]] = [:]
        var sources: [String: Int] = [:]
        viewer.client.onPacket = { arrival in
            guard arrival.kind == .video, sources[arrival.mid] != arrival.source else { return }
            sources[arrival.mid] = arrival.source
            firsts[arrival.mid, default: []].append(arrival.timestamp)
        }
        #expect(simulation.run(for: .seconds(2)) { simulation.isPlaying(viewer) })
        for number in [2, 1, 3, 0, 2] {
            simulation.focus(streams[number], viewer)
            let isThere = simulation.run(for: .milliseconds(300)) {
                simulation.focus(of: viewer)?.stream == streams[number] && simulation.isPlaying(viewer)
            }
            #expect(isThere)
            simulation.run(for: .milliseconds(400))
        }
        let mids = viewer.client.offer.mids.video
        for pair in 0..<2 {
            let told = viewer.beginnings.filter { $0.pair == pair }.map(\.timestamp)
            #expect(told.count == 3 && told == firsts[mids[pair]])
        }
        #expect(viewer.beginnings.map(\.stream) == [0, 2, 1, 3, 0, 2].map { streams[$0] })
        #expect(simulation.faults.isEmpty)
    }
}
