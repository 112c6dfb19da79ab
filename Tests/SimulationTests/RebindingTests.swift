import Base
import ClientPeer
import Forwarding
import Peer
import TestSupport
import Testing

/// Who walks from Wi-Fi into the open, or whose NAT forgot them: 1,000 changes of address, watching and publishing.
@Suite(.simulated) struct Rebindings {
    /// When somebody's address changed last, and what came of it.
    private struct Change {
        var at: MonotonicTime
        /// Pictures that the old address may have had on their way.
        var pictures = 0
        /// Nil while what it sees has not come back.
        var back: Duration?
    }

    /// What was on its way arrives within this time of a change.
    private static let flight = Duration.milliseconds(120)
    private static let viewers = 7
    private static let rounds = 25

    @Test(arguments: 700..<705 as Range<UInt64>)
    func `pictures are back within a second of a rebinding, and no session ends`(seed: UInt64) throws {
        let simulation = try Simulation(seed: seed, workers: 2)
        simulation.conditions = .init(loss: 0.01, delay: .milliseconds(30), jitter: .milliseconds(10))
        let (publisher, _) = try simulation.add(.publisher)
        let viewers = try (0..<Self.viewers).map { try simulation.add(.viewer, worker: $0 % 2).client }
        #expect(simulation.run(for: .seconds(5)) { viewers.allSatisfy { $0.decoder.framesDecoded > 5 } })
        var random = SeededGenerator(seed: seed)
        var port: UInt16 = 1_000
        var waits: [Duration] = []
        for _ in 0..<Self.rounds {
            // All of them move within a second and a half, the publisher too: who watches it waits for both.
            let begin = simulation.now
            let moments = ([publisher] + viewers).map { client in
                (client, begin + .milliseconds(Int64.random(in: 0..<1_500, using: &random)))
            }
            var changes: [Int: Change] = [:]
            while simulation.now < begin + .milliseconds(4_500) {
                for (index, (client, moment)) in moments.enumerated()
                where changes[index] == nil && simulation.now >= moment {
                    port += 1
                    client.outerAddress = TransportAddress(
                        ip: IPAddress(ipv4: 0xC633_6400 + UInt32(index)), port: port)
                    changes[index] = Change(at: simulation.now)
                }
                simulation.run(for: .milliseconds(10))
                for (index, viewer) in viewers.enumerated() {
                    guard let change = changes[index + 1], change.back == nil else { continue }
                    let passed = simulation.now - change.at
                    if passed <= Self.flight {
                        changes[index + 1]?.pictures = viewer.decoder.framesDecoded
                    } else if viewer.decoder.framesDecoded > change.pictures {
                        changes[index + 1]?.back = passed
                    }
                }
            }
            for index in 1...Self.viewers {
                let back = try #require(changes[index]?.back, "viewer \(index) saw nothing again")
                waits.append(back)
            }
        }
        waits.sort()
        #expect(waits[waits.count * 95 / 100] <= .seconds(1), "\(waits.suffix(10))")
        #expect(!publisher.isClosed && viewers.allSatisfy { !$0.isClosed })
        #expect(viewers.allSatisfy { $0.decoder.complaints.isEmpty })
    }
}
