import Base
import ClientPeer
import Forwarding
import Peer
import TestSupport
import Testing
import Wire

@testable import Net

/// What a viewer over TCP sees while their connection takes now more, now less.
@Suite(.simulated) struct `Capacity of a TCP connection` {
    /// 720p, 480p and 360p.
    private static let ladder = SyntheticVideo.Settings.ladder(
        [(2_000_000, 720), (800_000, 480), (400_000, 360)])

    /// How a viewer differs from a browser.
    enum Viewer: CaseIterable {
        case tellsOfPackets, tellsOfLossAlone, takesNoProbes
    }

    /// A viewer who watches over a connection.
    private struct Watching {
        let simulation: Simulation
        let viewer: SimulatedClient
        let reader: SlowReader
        let session: Session
        let slot: Slot

        /// In bits a second.
        var estimate: Int? { session.gauge.quality?.estimate }

        /// What is sent, in pixels; nil for no picture.
        var height: Int? { slot.isStopped ? nil : slot.current?.resolution.map { Int($0.height) } }

        /// Watches for some seconds.
        /// - Returns: the share of them in which the picture stood for more than 300 ms, and that of the sound that
        ///   came.
        func watch(for seconds: Int) -> (frozen: Double, sound: Double) {
            let sound = viewer.audioPackets
            var frames = viewer.decoder.framesDecoded
            var still = 0
            var frozen = 0
            for _ in 0..<(seconds * 50) {
                simulation.run(for: .milliseconds(20))
                still = viewer.decoder.framesDecoded > frames ? 0 : still + 1
                if still == 15 { frozen += 15 } else if still > 15 { frozen += 1 }
                frames = viewer.decoder.framesDecoded
            }
            return (
                Double(frozen) / Double(seconds * 50),
                Double(viewer.audioPackets - sound) / Double(seconds * 50)
            )
        }
    }

    private func begin(
        _ seed: UInt64, _ kind: Viewer, bitrate: Int
    ) throws -> Watching {
        let simulation = try Simulation(seed: seed)
        let (publisher, _) = try simulation.add(.publisher, rids: ["h", "m", "l"], layers: Self.ladder)
        #expect(simulation.run(for: .seconds(5)) { publisher.isConnected })
        simulation.run(for: .seconds(2))
        let (viewer, id) = try simulation.add(
            .viewer, hasRTX: kind != .takesNoProbes, hasTransportFeedback: kind == .tellsOfPackets)
        let place = viewer.outerAddress
        viewer.outerAddress = TransportAddress(ip: place.ip, port: place.port, transport: .tcp)
        let reader = SlowReader(rate: bitrate / 8)
        simulation.readers[viewer.outerAddress] = reader
        try #require(simulation.run(for: .seconds(10)) { viewer.decoder.framesDecoded > 0 })
        let session = try #require(simulation.workers[0].sessions[id])
        let slot = try #require(session.slots.first { $0.plan.kind == .video })
        return Watching(
            simulation: simulation, viewer: viewer, reader: reader, session: session, slot: slot)
    }

    @Test(arguments: [1, 2, 3] as [UInt64], [Viewer.tellsOfPackets, .tellsOfLossAlone])
    func `is followed by layers, down to sound alone and up again`(seed: UInt64, kind: Viewer) throws {
        let watching = try begin(seed, kind, bitrate: 8_000_000)
        _ = watching.watch(for: 5)
        #expect(watching.height == 720)
        for (bitrate, height) in [(1_200_000, 480), (600_000, 360), (1_200_000, 480), (4_000_000, 720)] {
            watching.reader.rate = bitrate / 8
            let change = watching.watch(for: 10)
            let steady = watching.watch(for: 10)
            let what =
                "\(bitrate) bit/s: \(change), \(steady), \(String(describing: watching.estimate))"
            #expect(watching.height == height, "\(what)")
            #expect(change.frozen <= 0.3 && change.sound >= 0.9, "\(what)")
            #expect(steady.frozen <= 0.05 && steady.sound >= 0.99, "\(what)")
        }
        watching.reader.rate = 100_000 / 8
        _ = watching.watch(for: 10)
        let sound = watching.watch(for: 10)
        #expect(watching.height == nil && sound.sound >= 0.95, "\(sound)")
        watching.reader.rate = 1_000_000
        #expect(watching.simulation.run(for: .seconds(30)) { watching.height == 720 })
        let whole = watching.watch(for: 5)
        #expect(whole.frozen <= 0.05 && whole.sound >= 0.99, "\(whole)")
        #expect(watching.viewer.decoder.complaints.isEmpty, "\(watching.viewer.decoder.complaints)")
        #expect(watching.viewer.ambiguousPackets == 0)
        #expect(watching.reader.malformed == 0)
    }

    /// A connection that takes the best there is costs not a byte more.
    @Test(arguments: Viewer.allCases)
    func `a TCP capacity that is enough is not probed`(kind: Viewer) throws {
        let watching = try begin(7, kind, bitrate: 4_000_000)
        _ = watching.watch(for: 60)
        #expect(watching.height == 720)
        #expect(watching.session.totals.probeBytes == 0)
        #expect(watching.reader.queue.drops == .init())
    }

    /// The layer that fits is found once and kept.
    @Test(arguments: [1, 2, 3] as [UInt64])
    func `a constant TCP capacity leads to one layer`(seed: UInt64) throws {
        let watching = try begin(seed, .tellsOfLossAlone, bitrate: 1_300_000)
        _ = watching.watch(for: 10)
        var changes = 0
        for _ in 0..<60 {
            let before = watching.height
            _ = watching.watch(for: 1)
            if watching.height != before { changes += 1 }
        }
        #expect(watching.height == 480)
        #expect(changes <= 1)
        // Of what the connection takes in a minute.
        #expect(watching.session.totals.probeBytes < 1_300_000 / 8 * 70 * 4 / 100)
    }

    /// Without RTX there is nothing to probe with: a layer is tried, and later each time that it does not fit.
    @Test(arguments: [1, 2, 3] as [UInt64])
    func `a TCP capacity that cannot be probed is tried out`(seed: UInt64) throws {
        let watching = try begin(seed, .takesNoProbes, bitrate: 8_000_000)
        _ = watching.watch(for: 5)
        watching.reader.rate = 600_000 / 8
        _ = watching.watch(for: 10)
        let slow = watching.watch(for: 60)
        #expect(watching.height == 360)
        #expect(slow.frozen <= 0.2 && slow.sound >= 0.95, "\(slow)")
        watching.reader.rate = 1_000_000
        #expect(watching.simulation.run(for: .seconds(130)) { watching.height == 720 })
        let whole = watching.watch(for: 5)
        #expect(whole.frozen <= 0.05 && whole.sound >= 0.99, "\(whole)")
        #expect(watching.viewer.ambiguousPackets == 0)
    }

    /// A reader who sleeps tells nothing of what their path takes.
    @Test(arguments: [1, 2, 3] as [UInt64])
    func `the capacity is as before when a reader wakes up`(seed: UInt64) throws {
        let watching = try begin(seed, .tellsOfLossAlone, bitrate: 8_000_000)
        _ = watching.watch(for: 5)
        watching.reader.rate = 0
        watching.simulation.run(for: .seconds(6))
        watching.reader.rate = 1_000_000
        _ = watching.watch(for: 3)
        let after = watching.watch(for: 3)
        #expect(watching.height == 720)
        #expect(after.frozen <= 0.05 && after.sound >= 0.99, "\(after)")
    }
}
