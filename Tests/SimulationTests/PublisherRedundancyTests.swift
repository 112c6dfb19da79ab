import Base
import ClientPeer
import Forwarding
import Peer
import TestSupport
import Testing
import Wire

/// Sound of publishers who put earlier packets into later ones, on paths that lose packets.
@Suite(.simulated) struct `Earlier sound in later packets of a publisher` {
    private struct World {
        let simulation: Simulation
        let publisher: SimulatedClient
        let source: SessionID
        let viewers: [SimulatedClient]

        var counters: MediaCounters { simulation.workers[0].sessions[source]?.totals ?? MediaCounters() }

        /// As the server has it.
        var sound: TrackLayer? {
            simulation.workers[0].sessions[source]?.sources.first { $0.plan.kind == .audio }?.track.layers
                .first
        }

        /// Share of what was said from now on that each viewer heard.
        func heard(for seconds: Int64) -> [Double] {
            let first = publisher.spokenTimes.count
            simulation.run(for: .seconds(seconds))
            // The latest sound is still on its way.
            let spoken = publisher.spokenTimes[first...].dropLast(25)
            return viewers.map { viewer in
                guard let shift = viewer.soundShift else { return 0 }
                let heard = spoken.count { viewer.heardTimes.contains($0 &+ shift) }
                return Double(heard) / Double(max(spoken.count, 1))
            }
        }
    }

    /// Two viewers, of whom the second takes RED.
    private func begin(
        _ seed: UInt64, depth: Int, loss: Double = 0, conditions: SimulatedNetwork.Conditions? = nil,
        tellsOfPackets: Bool = true
    ) throws -> World {
        let simulation = try Simulation(seed: seed, conditions: conditions ?? .init(delay: .milliseconds(30)))
        let (publisher, source) = try simulation.add(.publisher, prefersRED: true)
        if depth > 0 { publisher.redundantSound = RedundantSound(depth: depth) }
        #expect(simulation.run(for: .seconds(5)) { publisher.isConnected })
        let viewers = try [false, true].map { try simulation.add(.viewer, hasRED: $0).client }
        for viewer in viewers { viewer.tellsOfPackets = tellsOfPackets }
        #expect(simulation.run(for: .seconds(10)) { viewers.allSatisfy { $0.audioPackets > 50 } })
        simulation.lose(loss, from: publisher)
        return World(simulation: simulation, publisher: publisher, source: source, viewers: viewers)
    }

    @Test(arguments: [1, 2, 3] as [UInt64], [(1, 0.98), (2, 0.995)])
    func `fill the gaps of a path that loses a tenth`(
        seed: UInt64, what: (depth: Int, least: Double)
    ) throws {
        let world = try begin(seed, depth: what.depth, loss: 0.1)
        for share in world.heard(for: 30) { #expect(share > what.least, "\(share)") }
        let counters = world.counters
        #expect(counters.packetsRecovered > 100)
        #expect(
            counters.packetsRecovered + counters.redundancyReceived
                <= UInt64(world.publisher.spokenTimes.count))
        #expect(world.publisher.repairsOfSoundAsked == 0)
        for viewer in world.viewers {
            #expect(viewer.ambiguousPackets == 0)
            let shift = try #require(viewer.soundShift)
            let wrong = viewer.heardSound.filter { $1 != SimulatedClient.sound(at: $0 &- shift) }
            #expect(wrong.isEmpty, "\(wrong.count) of \(viewer.heardSound.count)")
            // The level goes with what came itself, and with nothing else.
            let levels = viewer.heardLevels
            #expect(levels.count > viewer.audioPackets / 2 && levels.values.allSatisfy { $0 == 30 })
            #expect(levels.count < viewer.audioPackets)
        }
    }

    @Test func `without redundancy the gaps stay`() throws {
        let world = try begin(1, depth: 0, loss: 0.1)
        for share in world.heard(for: 30) {
            #expect(share < 0.93, "or the test above proves nothing: \(share)")
        }
        #expect(world.counters.packetsRecovered == 0 && world.counters.redundancyReceived == 0)
    }

    @Test func `redundancy changes nothing for a viewer where nothing is lost`() throws {
        let world = try begin(2, depth: 2)
        let shares = world.heard(for: 10)
        #expect(shares == [1, 1])
        #expect(world.counters.redundancyReceived == world.counters.audioReceived.packets)
        #expect(world.counters.packetsRecovered == 0)
        #expect(world.viewers.map(\.redundantPackets) == [0, 0])
        #expect(world.viewers.map(\.soundSequence.gaps) == [0, 0])
    }

    /// The server's redundancy for viewers is made of the sound that it recovered.
    @Test func `viewers who lose packets get redundancy made of recovered sound`() throws {
        let world = try begin(3, depth: 2, loss: 0.1, tellsOfPackets: false)
        for viewer in world.viewers { viewer.asksForSound = false }
        world.simulation.conditions.loss = 0.05
        world.simulation.run(for: .seconds(10))
        let shares = world.heard(for: 20)
        #expect(shares[0] < 0.97 && shares[1] > 0.98, "\(shares)")
        #expect(world.viewers[1].redundantPackets > 100)
        #expect(world.viewers[1].ambiguousPackets == 0)
    }

    @Test func `recovered packets that still arrive do not count as lost`() throws {
        let world = try begin(
            4, depth: 1,
            conditions: .init(duplication: 0.05, delay: .milliseconds(30), jitter: .milliseconds(50)))
        for share in world.heard(for: 20) { #expect(share == 1) }
        let layer = try #require(world.sound)
        let stream = try #require(layer.stream)
        #expect(stream.counters.recovered > 10)
        // All came in the end, but for what is on its way.
        let lost = stream.expected - Int64(stream.counters.packets)
        #expect((0...5).contains(lost), "\(lost)")
    }

    @Test func `give the same for the same seed`() throws {
        func digest() throws -> UInt64 {
            let world = try begin(5, depth: 2, loss: 0.1)
            _ = world.heard(for: 5)
            return world.simulation.digest.value
        }
        #expect(try digest() == digest())
    }

    /// A publisher can claim anything about earlier packets: nobody hears false sound, and nothing piles up.
    @Test(arguments: 0..<7) func `redundancy that does not fit is not used`(lie: Int) throws {
        let world = try begin(6, depth: 1, loss: 0.1)
        let wrong: [UInt8] = [0x78, 0xBA, 0xD0]
        var random = SeededGenerator(seed: 6)
        world.publisher.spoilsSound = { number, payload in
            let own = SimulatedClient.sound(at: UInt32(number) * 960 + 7)
            switch lie {
            // Longer than the packet.
            case 0: return [0xEF, 0x0F, 0x03, 0xFF, 0x6F] + own
            case 1:
                return RedundantSound.payload(
                    (1...127).reversed().map { ($0 * 120, wrong) }, own: own, type: payload.first ?? 0)
            // Backwards, twice, and of no time at all.
            case 2, 3, 4:
                let offsets: [[UInt32]] = [[960, 1_920], [960, 960], [480, 0]]
                return RedundantSound.payload(offsets[lie - 2].map { ($0, wrong) }, own: own, type: 111)
            // Nothing at all, between what is true.
            case 5: return number % 3 == 0 ? [] : payload
            default: return payload.map { _ in UInt8.random(in: 0...255, using: &random) }
            }
        }
        let before = world.viewers.map(\.audioPackets)
        world.simulation.run(for: .seconds(20))
        #expect(world.publisher.isConnected)
        for (viewer, before) in zip(world.viewers, before) {
            #expect(viewer.heardSound.values.allSatisfy { $0 != wrong })
            #expect(viewer.audioPackets - before <= 1_000)
            #expect(viewer.ambiguousPackets == 0)
        }
        let isWhole = (2...5).contains(lie)
        #expect(isWhole == (world.counters.drops.undecodable == 0))
        let layer = try #require(world.sound)
        #expect(layer.history.storage.count <= 1 << 16)
    }
}
