import Base
import ClientPeer
import StoryFeed
import TestSupport
import TestTraits
import Testing
import Wire

@testable import Node

/// The publisher's packets come to one worker, the viewers are on another.
@Suite(.simulated, .sctpTurn, .serialized) struct `From one worker to another` {
    @Test func `the first viewer begins with what the publisher's worker has`() throws {
        let simulation = try FeedSimulation(seed: 3)
        // The key frame that the encoder begins with is the only one that it makes unasked.
        let stream = try simulation.publish("s0", on: 0, keyFrameInterval: nil)
        simulation.run(for: .seconds(1))
        let near = try simulation.watch(on: stream, preload: .onSwipe, worker: 0)
        #expect(simulation.run(for: .seconds(2)) { simulation.isPlaying(near) })
        let before = simulation.keyFrameRequests(of: stream)
        let far = try simulation.watch(on: stream, preload: .onSwipe, worker: 1)
        #expect(simulation.run(for: .milliseconds(900)) { simulation.isPlaying(far) })
        #expect(simulation.keyFrameRequests(of: stream) == before)
        #expect(simulation.faults.isEmpty)
    }

    @Test func `a swipe to what nobody there has seen costs no key frame, nor does the way back later`()
        throws
    {
        let simulation = try FeedSimulation(seed: 4)
        let here = try simulation.publish("here", on: 1)
        let there = try simulation.publish("there", on: 0)
        simulation.run(for: .seconds(1))
        let viewer = try simulation.watch(on: here, preload: .onSwipe, worker: 1)
        #expect(simulation.run(for: .seconds(2)) { simulation.isPlaying(viewer) })
        // The second time the copy has been given up: it lingers for ten seconds.
        for pause in [Duration.seconds(1), .seconds(13)] {
            simulation.focus(there, viewer)
            let isThere = simulation.run(for: .milliseconds(100)) {
                simulation.focus(of: viewer)?.stream == there && simulation.isPlaying(viewer)
            }
            #expect(isThere)
            simulation.run(for: .seconds(1))
            simulation.focus(here, viewer)
            #expect(simulation.run(for: .milliseconds(100)) { simulation.focus(of: viewer)?.stream == here })
            simulation.run(for: pause)
        }
        simulation.focus(there, viewer)
        #expect(simulation.run(for: .milliseconds(100)) { simulation.isPlaying(viewer) })
        #expect(simulation.keyFrameRequests(of: there) == 0)
        #expect(simulation.faults.isEmpty, "\(simulation.faults.prefix(3))")
    }

    @Test(arguments: ChosenSeed.or(701...706)) func `swipes are whole where a twentieth is lost`(seed: UInt64)
        throws
    {
        let swarm = try FeedSwarm(seed: seed, viewers: 12, streams: 6, workers: 2, isApart: true) {
            $0.conditions = .init(
                loss: 0.05, duplication: 0.01, delay: .milliseconds(20), jitter: .milliseconds(12))
        }
        swarm.run(for: .seconds(4))
        #expect(swarm.settle() == [])
        #expect(swarm.allFaults == [])
        #expect(swarm.switches > 12)
        // Each began with a key frame every two seconds, and that was enough for all.
        #expect(swarm.keyFrameRequests.allSatisfy { $0 == 0 })
    }

    /// Meanwhile the copy lingers, and the publisher's worker says only once who publishes.
    @Test func `a publisher who came back while nobody watched is seen again`() throws {
        let simulation = try FeedSimulation(seed: 6)
        let here = try simulation.publish("here", on: 1)
        let there = try simulation.publish("there", on: 0)
        simulation.run(for: .seconds(1))
        let viewer = try simulation.watch(on: here, preload: .onSwipe, worker: 1)
        #expect(simulation.run(for: .seconds(2)) { simulation.isPlaying(viewer) })
        func turns(to stream: StreamID) -> Bool {
            simulation.focus(stream, viewer)
            return simulation.run(for: .seconds(2)) {
                simulation.focus(of: viewer)?.stream == stream && simulation.isPlaying(viewer)
            }
        }
        let wasThere = turns(to: there)
        let isBack = turns(to: here)
        #expect(wasThere && isBack)
        simulation.run(for: .seconds(1))
        simulation.end(there)
        simulation.run(for: .seconds(1))
        try simulation.publish("there", on: 0)
        simulation.run(for: .seconds(1))
        let isThere = turns(to: there)
        #expect(isThere)
        #expect(simulation.faults.isEmpty, "\(simulation.faults.prefix(3))")
    }

    /// Right after the viewer turned there, what the publisher's worker has is on its way to the viewer's.
    @Test func `a viewer sees nothing from before the past was forgotten`() throws {
        let simulation = try FeedSimulation(seed: 5)
        let here = try simulation.publish("here", on: 0)
        let there = try simulation.publish("there", on: 1, keyFrameInterval: nil)
        simulation.run(for: .seconds(1))
        let viewer = try simulation.watch(on: here, preload: .onSwipe, worker: 0)
        #expect(simulation.run(for: .seconds(2)) { simulation.isPlaying(viewer) })
        var pictures = 0
        viewer.client.onPacket = { [unowned simulation] arrival in
            if arrival.kind == .video, simulation.stream(of: arrival.source) == there { pictures += 1 }
        }
        simulation.focus(there, viewer)
        #expect(simulation.run(for: .milliseconds(100)) { simulation.focus(of: viewer)?.stream == there })
        let before = simulation.keyFrameRequests(of: there)
        simulation.flush(there)
        #expect(simulation.run(for: .seconds(1)) { simulation.keyFrameRequests(of: there) > before })
        #expect(pictures == 0)
        #expect(simulation.run(for: .seconds(1)) { simulation.isPlaying(viewer) })
        #expect(simulation.faults.isEmpty)
    }
}
