import Base
import ClientPeer
import Forwarding
import Peer
import TestSupport
import Testing
import Wire

/// What viewers see over two hundred links that nobody chose: each has one of their own, for half a minute.
@Suite(.simulated) struct `Viewers over links of all kinds` {
    /// 720p, 480p and 360p.
    private static let ladder = SyntheticVideo.Settings.ladder(
        [(2_000_000, 720), (800_000, 480), (400_000, 360)])
    /// How often is looked, in seconds.
    private static let tick = 0.02
    /// Joining is measured elsewhere.
    private static let beginning = 2.0
    private static let tracesOfEachKind = 40
    /// Of one publisher: it costs as much as two viewers or three.
    private static let viewersAtOnce = 10

    /// Of all traces, or each, of a kind.
    struct Bounds {
        /// Share of the time for which the best layer has to be sent that the link takes: of all, and of each.
        let best: Double
        let leastBest: Double
        /// Share of the time for which the picture may stand: of all, and of each.
        let frozen: Double
        let mostFrozen: Double
        /// Share of the sound that has to come, of what is not lost by chance.
        let sound: Double
    }

    private static let bounds: [CapacityTrace.Kind: Bounds] = [
        .wired: Bounds(best: 0.83, leastBest: 0.5, frozen: 0.04, mostFrozen: 0.2, sound: 0.98),
        .mobile: Bounds(best: 0.9, leastBest: 0.6, frozen: 0.02, mostFrozen: 0.13, sound: 0.98),
        .train: Bounds(best: 0.73, leastBest: 0.38, frozen: 0.13, mostFrozen: 0.3, sound: 0.98),
        .hotel: Bounds(best: 0.65, leastBest: 0.3, frozen: 0.03, mostFrozen: 0.13, sound: 0.98),
        .lossy: Bounds(best: 0.89, leastBest: 0.45, frozen: 0.06, mostFrozen: 0.25, sound: 0.98),
    ]
    /// Share of the time for which the best layer has to be sent over all of them.
    private static let leastOfAll = 0.8

    private struct Outcome {
        /// Shares of the time, 0 to 1, in which anything got through.
        var best = 0.0
        var frozen = 0.0
        /// Share of what was sent and not lost by chance.
        var sound = 0.0
    }

    /// What a link takes with sound and headers, and with a tenth to spare for key frames.
    private static func bestHeight(at capacity: Double) -> Int? {
        ladder.first { Double($0.bitrate) * 1.05 + 46_000 <= capacity / 1.1 }?.height
    }

    /// A viewer with a trace before them, and what they have had so far.
    private final class Viewer {
        let trace: CapacityTrace
        private let client: SimulatedClient
        private let slot: Slot
        private var ticks = 0
        private var best = 0
        private var frozen = 0
        private var still = 0
        private var frames: Int
        private let heard: Int

        init(_ client: SimulatedClient, _ slot: Slot, behind trace: CapacityTrace) {
            (self.client, self.slot, self.trace) = (client, slot, trace)
            (frames, heard) = (client.decoder.framesDecoded, client.audioPackets)
        }

        /// - Parameter time: seconds of the trace.
        func look(at time: Double) {
            let height = slot.isStopped ? nil : slot.current?.resolution.map { Int($0.height) }
            // A picture stands once it has for more than 200 ms.
            still = client.decoder.framesDecoded > frames || trace.isOut(at: time) ? 0 : still + 1
            if still == 11 { frozen += 11 } else if still > 11 { frozen += 1 }
            frames = client.decoder.framesDecoded
            guard !trace.isOut(at: time) else { return }
            ticks += 1
            if height == bestHeight(at: trace.sustained(at: time)) { best += 1 }
        }

        var outcome: Outcome {
            let seconds = Double(max(ticks, 1)) * tick
            return Outcome(
                best: Double(best) * tick / seconds, frozen: Double(frozen) * tick / seconds,
                sound: Double(client.audioPackets - heard) / (50 * seconds * (1 - trace.loss)))
        }
    }

    /// Has viewers watch one publisher at once.
    private static func watch(over traces: [CapacityTrace], seed: UInt64) throws -> [Outcome] {
        let simulation = try Simulation(seed: seed, conditions: .init(delay: .milliseconds(20)))
        let (publisher, _) = try simulation.add(.publisher, rids: ["h", "m", "l"], layers: ladder)
        #expect(simulation.run(for: .seconds(5)) { publisher.isConnected })
        simulation.run(for: .seconds(2))
        let began = simulation.now
        let watching = try traces.map { trace in
            let (client, session) = try simulation.add(.viewer)
            simulation.cap(client, CappedLink(trace.curve, from: began, queue: trace.queue))
            simulation.delay(client, by: trace.delay)
            simulation.lose(trace.loss, to: client)
            let slots = simulation.workers[0].sessions[session]?.slots ?? []
            return (client, try #require(slots.first { $0.plan.kind == .video }), trace)
        }
        simulation.run(for: .milliseconds(Int64(beginning * 1_000)))
        let viewers = watching.map(Viewer.init)
        for turn in Int(beginning / tick)..<Int(CapacityTrace.seconds / tick) {
            for viewer in viewers { viewer.look(at: Double(turn) * tick) }
            simulation.run(for: .milliseconds(Int64(tick * 1_000)))
        }
        for (client, _, _) in watching {
            #expect(client.decoder.complaints.isEmpty, "\(client.decoder.complaints)")
            #expect(client.ambiguousPackets == 0)
        }
        return viewers.map(\.outcome)
    }

    /// Over all traces of a kind.
    private static func watch(over kind: CapacityTrace.Kind) throws -> [Outcome] {
        var outcomes: [Outcome] = []
        while outcomes.count < tracesOfEachKind {
            let seeds = (1...viewersAtOnce).map { UInt64(outcomes.count + $0) }
            outcomes += try watch(over: seeds.map { CapacityTrace(kind, seed: $0) }, seed: seeds[0])
        }
        return outcomes
    }

    private static func mean(_ outcomes: [Outcome], of part: KeyPath<Outcome, Double>) -> Double {
        outcomes.reduce(0) { $0 + $1[keyPath: part] } / Double(max(outcomes.count, 1))
    }

    @Test func `have the best that each takes, most of the time`() async throws {
        let all = try await withThrowingTaskGroup(of: (CapacityTrace.Kind, [Outcome]).self) { group in
            for kind in CapacityTrace.Kind.allCases {
                group.addTask { (kind, try Self.watch(over: kind)) }
            }
            var all: [CapacityTrace.Kind: [Outcome]] = [:]
            for try await (kind, outcomes) in group { all[kind] = outcomes }
            return all
        }
        for (kind, bounds) in Self.bounds {
            let outcomes = try #require(all[kind])
            #expect(outcomes.count == Self.tracesOfEachKind)
            for (index, outcome) in outcomes.enumerated() {
                let what: Comment = "\(kind.rawValue) \(index + 1): \(outcome)"
                #expect(outcome.best >= bounds.leastBest, what)
                #expect(outcome.frozen <= bounds.mostFrozen, what)
                #expect(outcome.sound >= bounds.sound, what)
            }
            let (best, frozen) = (Self.mean(outcomes, of: \.best), Self.mean(outcomes, of: \.frozen))
            #expect(best >= bounds.best, "\(kind.rawValue): \(best)")
            #expect(frozen <= bounds.frozen, "\(kind.rawValue): \(frozen)")
        }
        let best = Self.mean(all.values.flatMap(\.self), of: \.best)
        #expect(best >= Self.leastOfAll, "\(best)")
    }
}
