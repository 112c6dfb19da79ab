import Foundation
import TestSupport
import Testing

@testable import duel_trial

@Suite(.timeLimit(.minutes(10))) struct `A server that is killed amid a duel` {
    /// Tools/kill-duels runs a thousand seeds.
    @Test(arguments: 0..<8 as Range<UInt64>)
    func `has each acknowledged gift once, and both streams agree on every duel`(seed: UInt64) async throws {
        let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let program = URL(filePath: tests).deletingLastPathComponent().appending(path: "duel-trial")
        let trial = KilledDuel(seed: seed, program: program, parent: NSTemporaryDirectory())
        let (summary, faults) = try await trial.run()
        #expect(faults == [])
        #expect(summary.kills > 0 && summary.gifts > 0)
    }
}
