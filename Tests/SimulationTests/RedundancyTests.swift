import Base
import ClientPeer
import Peer
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// Sound on paths that lose packets, for viewers who take earlier packets in later ones.
@Suite struct Redundancy {
    private struct World {
        let simulation: Simulation
        let viewer: SimulatedClient
        let id: SessionID

        var resent: UInt64 { simulation.workers[0].sessions[id]?.totals.packetsResent ?? 0 }

        /// Packets of sound that left for the viewer once more.
        var soundResent: UInt64 {
            let slots = simulation.workers[0].sessions[id]?.slots ?? []
            var count: UInt64 = 0
            for slot in slots where slot.plan.kind == .audio { count += slot.counters.packetsResent }
            return count
        }

        /// Packets of sound that left for the viewer.
        var soundSent: Int {
            Int(simulation.workers[0].sessions[id]?.totals.audioSent.packets ?? 0)
        }
    }

    private func begin(
        _ seed: UInt64, hasRED: Bool, asksForSound: Bool = false, tellsOfPackets: Bool = true
    ) throws -> World {
        let simulation = try Simulation(
            seed: seed, conditions: .init(delay: .milliseconds(30), jitter: .zero))
        let (publisher, _) = try simulation.add(.publisher)
        #expect(simulation.run(for: .seconds(5)) { publisher.isConnected })
        let (viewer, id) = try simulation.add(.viewer, hasRED: hasRED, asksForSound: asksForSound)
        viewer.tellsOfPackets = tellsOfPackets
        #expect(simulation.run(for: .seconds(10)) { viewer.audioPackets > 50 })
        return World(simulation: simulation, viewer: viewer, id: id)
    }

    /// Share of what the server had of a time's sound that the viewer heard; what the publisher's path lost is lost.
    private func heard(_ world: World, for seconds: Int64) -> Double {
        let before = (world.viewer.heardTimes.count, world.soundSent)
        world.simulation.run(for: .seconds(seconds))
        return Double(world.viewer.heardTimes.count - before.0) / Double(max(world.soundSent - before.1, 1))
    }

    @Test(arguments: [1, 2, 3] as [UInt64], [true, false])
    func `keeps sound whole where a tenth is lost`(seed: UInt64, tellsOfPackets: Bool) throws {
        let world = try begin(seed, hasRED: true, tellsOfPackets: tellsOfPackets)
        let (simulation, viewer) = (world.simulation, world.viewer)
        simulation.run(for: .seconds(5))
        #expect(viewer.redundantPackets == 0, "nothing is lost, and nothing is carried twice")
        simulation.conditions.loss = 0.1
        simulation.run(for: .seconds(10))
        let share = heard(world, for: 20)
        // Where packets are reported, what earlier sound in later packets does not fill is sent again.
        #expect(share > (tellsOfPackets ? 0.997 : 0.98), "\(share)")
        #expect(viewer.ambiguousPackets == 0)
        simulation.conditions.loss = 0
        simulation.run(for: .seconds(40))
        let before = viewer.redundantPackets
        simulation.run(for: .seconds(5))
        #expect(viewer.redundantPackets == before, "it ends with the loss")
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `goes with packets that are asked for again`(seed: UInt64) throws {
        let world = try begin(seed, hasRED: true, asksForSound: true)
        world.simulation.conditions.loss = 0.1
        world.simulation.run(for: .seconds(10))
        let share = heard(world, for: 20)
        #expect(share > 0.995, "\(share)")
        // Also for those that came: only of these can be seen whether they are the same when they come again.
        let before = world.viewer.repeatedPackets
        for _ in 0..<100 {
            let last = UInt16(truncatingIfNeeded: world.viewer.soundSequence.last ?? 0)
            world.simulation.ask(for: (0..<8).map { last &- $0 }, of: .audio, by: world.viewer)
            world.simulation.run(for: .milliseconds(200))
        }
        #expect(world.viewer.repeatedPackets > before + 200)
        #expect(world.viewer.redundantPackets > 500)
        #expect(world.resent > 50)
        #expect(world.viewer.ambiguousPackets == 0, "two packets under one index share a nonce")
    }

    @Test func `a client that did not negotiate redundancy gets none`() throws {
        let world = try begin(1, hasRED: false, tellsOfPackets: false)
        world.simulation.conditions.loss = 0.1
        world.simulation.run(for: .seconds(10))
        #expect(heard(world, for: 20) < 0.95, "or the test above proves nothing")
        #expect(world.viewer.redundantPackets == 0)
    }

    /// As Firefox, which reports each packet, takes no RED and asks for no sound.
    @Test(arguments: [1, 2, 3] as [UInt64])
    func `sound that a client reports lost is sent again`(seed: UInt64) throws {
        let world = try begin(seed, hasRED: false)
        world.simulation.run(for: .seconds(2))
        #expect(world.soundResent == 0)
        world.simulation.conditions.loss = 0.1
        world.simulation.run(for: .seconds(10))
        let (before, sent) = (world.soundResent, world.soundSent)
        let share = heard(world, for: 20)
        // Of the tenth that is lost a tenth is lost again, and a tenth of the reports.
        #expect(share > 0.97, "\(share)")
        #expect(world.viewer.redundantPackets == 0)
        let repeated = Double(world.soundResent - before) / Double(world.soundSent - sent)
        #expect(repeated > 0.05 && repeated < 0.13, "each of them once: \(repeated)")
        #expect(world.viewer.ambiguousPackets == 0, "two packets under one index share a nonce")
    }

    /// Where a packet was really lost, the client has nothing with which to compare the one that comes again.
    @Test func `sound that a client reports lost is the same when it comes again`() throws {
        let world = try begin(4, hasRED: false)
        world.viewer.hides = { $0 % 20 == 0 }
        world.simulation.run(for: .seconds(2))
        let before = world.viewer.repeatedPackets
        world.simulation.run(for: .seconds(20))
        // Of a thousand.
        let repeated = world.viewer.repeatedPackets - before
        #expect(repeated > 30 && repeated < 70, "each of them once: \(repeated)")
        #expect(world.viewer.ambiguousPackets == 0, "two packets under one index share a nonce")
    }

    /// A queue that was full when a packet came may be full when it comes again.
    @Test func `sound that is lost a second time is sent a last time`() throws {
        let world = try begin(5, hasRED: false)
        let arrivals = Mutex<[UInt16: Int]>([:])
        // Of forty packets one is lost once, one twice and one always.
        let lost = [0: 1, 10: 2, 30: Int.max]
        world.viewer.dropsSound = { number in
            guard let times = lost[Int(number % 40)] else { return false }
            return arrivals.withLock { known in
                known[number, default: 0] += 1
                return known[number, default: 0] <= times
            }
        }
        world.simulation.run(for: .seconds(20))
        let known = arrivals.withLock(\.self)
        let newest = world.viewer.soundSequence.last ?? 0
        for (place, times) in [0: 2, 10: 3, 30: 3] {
            // Without the first ones, before which no repeated packet had arrived, and those of the last second.
            let counts = known.filter { number, _ in
                let age = UInt16(truncatingIfNeeded: newest) &- number
                return Int(number % 40) == place && age > 50 && age < 900
            }
            let values = Set(counts.values)
            #expect(counts.count > 15 && values == [times], "of place \(place): \(counts)")
        }
        #expect(world.viewer.ambiguousPackets == 0, "two packets under one index share a nonce")
    }
}
