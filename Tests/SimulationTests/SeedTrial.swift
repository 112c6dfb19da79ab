import Base
import Foundation
import Forwarding
import Peer
import StoryFeed
import TestSupport
import TestTraits
import Testing
import Wire

/// A run with a bit of everything that a seed has to decide, done twice to compare the results.
enum SeedTrial {
    private static let lossy = SimulatedNetwork.Conditions(
        loss: 0.05, duplication: 0.01, delay: .milliseconds(20), jitter: .milliseconds(12))

    /// A line for each seed, with a digest for each kind of simulation.
    static func lines(_ seeds: ClosedRange<UInt64>) async throws -> [String] {
        var lines: [String] = []
        for seed in seeds {
            let digests = [try broadcast(seed), try stage(seed), try feed(seed), try await audience(seed)]
            lines.append(([seed] + digests).map { String($0, radix: 16) }.joined(separator: " "))
        }
        return lines
    }

    private static func audience(_ seed: UInt64) async throws -> UInt64 {
        let simulation = try await AudienceSimulation(seed: seed, people: 40)
        try await simulation.run(talking: .seconds(3), listening: .seconds(2))
        return simulation.value
    }

    private static func broadcast(_ seed: UInt64) throws -> UInt64 {
        let workers = 1 + Int(seed % 2)
        let simulation = try Simulation(seed: seed, conditions: lossy, workers: workers)
        let (publisher, session) = try simulation.add(.publisher, rids: seed % 3 == 0 ? ["l", "h"] : [])
        for number in 0..<4 {
            let (viewer, _) = try simulation.add(.viewer, worker: number % workers, hasRTX: number > 0)
            simulation.run(for: .milliseconds(150))
            if number == 2 { simulation.askForKeyFrame(viewer) }
        }
        simulation.run(for: .seconds(1))
        simulation.perform(.close(session))
        simulation.close(publisher)
        _ = try simulation.add(.publisher, worker: workers - 1)
        simulation.run(for: .milliseconds(800))
        return simulation.digest.value
    }

    private static func stage(_ seed: UInt64) throws -> UInt64 {
        let simulation = try StageSimulation(seed: seed, conditions: lossy)
        let speakers = try (0..<5).map { try simulation.add(audio: 2, video: 3, isHost: $0 == 0) }
        _ = try simulation.addViewer()
        simulation.run(for: .milliseconds(1_500))
        for (place, id) in speakers.enumerated() {
            simulation.clients[id]?.audioLevel = UInt8(20 + 10 * place)
            let now = simulation.now
            let stream = try? simulation.with(id) { try $0.open("data:chat", at: now, into: &$1) }
            guard let stream = stream ?? nil else { continue }
            _ = try? simulation.with(id) {
                try $0.send(DataChannelMessage("hi"), on: stream, at: now, into: &$1)
            }
        }
        simulation.run(for: .milliseconds(700))
        simulation.leave(speakers[3])
        simulation.run(for: .milliseconds(300))
        return simulation.digest.value
    }

    private static func feed(_ seed: UInt64) throws -> UInt64 {
        let swarm = try FeedSwarm(seed: seed, viewers: 4, streams: 4, workers: 1 + Int(seed % 2)) {
            $0.conditions = lossy
        }
        swarm.run(for: .milliseconds(1_200), dwell: 50...500)
        if let stream = swarm.streams.first, seed.isMultiple(of: 2) { swarm.end(stream) }
        swarm.run(for: .milliseconds(400), dwell: 50...500)
        return swarm.simulation.digest.value
    }

    // MARK: Another process

    private static let file = "ROSTRUM_DIGESTS"
    private static let count = "ROSTRUM_SEEDS"

    /// The result of another process, whose hashing has another seed.
    static func linesOfAnotherProcess(_ seeds: UInt64) async throws -> [String] {
        let output = FileManager.default.temporaryDirectory.appendingPathComponent("digests-\(UUID())")
        defer { try? FileManager.default.removeItem(at: output) }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = [
            "--testing-library", "swift-testing", "--filter", #"SimulationTests\.SeedTrialWriting"#,
        ]
        var environment = ProcessInfo.processInfo.environment
        environment["SWIFT_DETERMINISTIC_HASHING"] = nil
        environment[file] = output.path
        environment[count] = "\(seeds)"
        process.environment = environment
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try await withCheckedThrowingContinuation { (done: CheckedContinuation<Void, any Error>) in
            process.terminationHandler = { _ in done.resume() }
            do { try process.run() } catch { done.resume(throwing: error) }
        }
        return try String(contentsOf: output, encoding: .utf8).split(separator: "\n").map(String.init)
    }

    /// Where to write what this process comes to; nil where nobody asked.
    static var order: (path: String, seeds: UInt64)? {
        let environment = ProcessInfo.processInfo.environment
        return environment[file].map { ($0, environment[count].flatMap { UInt64($0) } ?? 1) }
    }
}

@Suite(.simulated, .sctpTurn) struct `A seed` {
    @Test func `decides everything that happens, in every process`() async throws {
        let seeds: UInt64 = 3
        let first = try await SeedTrial.lines(1...seeds)
        #expect(try await SeedTrial.lines(1...seeds) == first)
        #expect(Set(first).count == Int(seeds))
        #expect(try await SeedTrial.linesOfAnotherProcess(seeds) == first)
    }
}

/// Writes digests for `A seed`, and for Tools/seeds.
@Suite(.simulated, .sctpTurn, .enabled(if: SeedTrial.order != nil, "only another process asks for it"))
struct SeedTrialWriting {
    @Test func `writes the digests of many seeds`() async throws {
        let order = try #require(SeedTrial.order)
        let lines = try await SeedTrial.lines(1...order.seeds)
        try Data((lines.joined(separator: "\n") + "\n").utf8).write(to: URL(fileURLWithPath: order.path))
    }
}
