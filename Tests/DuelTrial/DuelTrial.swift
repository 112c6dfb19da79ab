import Base
import Foundation
import Glibc
import Interaction
import Store
import TestSupport

/// Kills a server amid gifts, taps and a duel, and looks at what is left.
@main enum DuelTrial {
    private static let usage = """
        usage: duel-trial seeds FIRST COUNT [DIRECTORY]    kill as each seed says, and say what was wrong
               duel-trial play DIRECTORY SEED ROUND TIME   duel until killed, and print what was told

        """

    static func main() async throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        switch (arguments.first, arguments.count) {
        case ("play", 5):
            guard let seed = UInt64(arguments[2]), let round = Int(arguments[3]),
                let time = Int64(arguments[4])
            else { break }
            var life = try await TrialLife(
                directory: arguments[1], seed: seed, round: round, at: WallTime(milliseconds: time))
            try await life.run()
            return
        case ("seeds", 3...4):
            guard let first = UInt64(arguments[1]), let count = UInt64(arguments[2]) else { break }
            try await run(
                first..<first + count, in: arguments.count > 3 ? arguments[3] : NSTemporaryDirectory())
            return
        default: break
        }
        FileHandle.standardError.write(Data(usage.utf8))
        exit(2)
    }

    private static func run(_ seeds: Range<UInt64>, in directory: String) async throws {
        let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        var (sum, failed) = (KilledDuel.Summary(), 0)
        for seed in seeds {
            let trial = KilledDuel(seed: seed, program: URL(filePath: program), parent: directory)
            let (summary, faults) = try await trial.run()
            sum.add(summary)
            for fault in faults { print("seed \(seed): \(fault)") }
            if !faults.isEmpty { failed += 1 }
        }
        print("\(seeds.count) seeds, \(failed) failed: \(sum)")
        if failed > 0 { exit(1) }
    }
}

/// One life of the process: it goes on with what it finds, until it is killed.
///
/// Each line that it prints is true from then on: `A` and `G` for a gift that is asked for and one that was
/// acknowledged, `H` for taps that count, `I` for a duel that there is, `C` for a side that counts for it from now on,
/// `R` for the score of one that is decided, `T` for the time.
struct TrialLife {
    private static let steps = 2_000
    /// Milliseconds of one step.
    private static let pauses = 0...1_200
    private let streams: TrialStreams
    private let round: Int
    private var random: SeededGenerator
    private var asked = 0
    private var latest: DuelID?
    private var told: Set<DuelID> = []
    private var counting: [DuelID: Set<TrialStreams.Side>] = [:]

    init(directory: String, seed: UInt64, round: Int, at time: WallTime) async throws {
        streams = try await TrialStreams(directory: directory, at: time)
        random = SeededGenerator(seed: seed &* 1_000 &+ UInt64(round))
        self.round = round
    }

    mutating func run() async throws {
        for _ in 0..<Self.steps {
            await streams.pass(milliseconds: Int.random(in: Self.pauses, using: &random))
            say("T", "\(streams.clock.now.wall.milliseconds)")
            try await duel()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for side in TrialStreams.Side.allCases {
                    for gift in someGifts() {
                        say("A", "\(side.rawValue) \(gift.key)")
                        group.addTask { [self] in
                            let given = try await streams.give(gift, on: side)
                            say("G", "\(side.rawValue) \(gift.key) \(given.number)")
                        }
                    }
                }
                try await group.waitForAll()
            }
            for side in TrialStreams.Side.allCases {
                let counted = try await streams.tap(Int.random(in: 1...9, using: &random), on: side)
                say("H", "\(side.rawValue) \(counted) \(streams.clock.now.wall.milliseconds)")
            }
        }
    }

    /// New ones, and some that were asked for before, in this life or an earlier one.
    private mutating func someGifts() -> [TrialGift] {
        (0..<Int.random(in: 0...4, using: &random)).map { _ in
            guard asked == 0 || Int.random(in: 0..<5, using: &random) > 0 else {
                let earlier = Int.random(in: 0...round, using: &random)
                return TrialGift(round: earlier, number: Int.random(in: 0..<asked, using: &random))
            }
            asked += 1
            return TrialGift(round: round, number: asked - 1)
        }
    }

    /// What the two hosts do, and what their streams tell each other by a bad network.
    private mutating func duel() async throws {
        let number = Int.random(in: 0..<100, using: &random)
        var id = latest
        if number < 25, let talk = TrialTerms.stream(of: .quiz) {
            let terms = TrialTerms.terms(countsTaps: round.isMultiple(of: 2))
            note(try await streams.perform(.invite(talk, terms), on: .talk), &id)
        } else if number < 28, let id {
            _ = try await streams.perform(.leave(id), on: Bool.random(using: &random) ? .talk : .quiz)
        } else if number < 40, let latest {
            note(try await streams.perform(.rematch(latest), on: .quiz), &id)
        }
        var random = random
        for spoken in await streams.deliver({
            [0, 1, 1, 1, 1, 1, 1, 1, 1, 2].randomElement(using: &random) ?? 1
        }) {
            if latest != spoken { say("I", "\(spoken)") }
            latest = spoken
        }
        self.random = random
        if Int.random(in: 0..<3, using: &random) > 0, let latest {
            let invited: TrialStreams.Side = latest.inviter.description == "talk" ? .quiz : .talk
            _ = try await streams.perform(.accept(latest), on: invited)
        }
        await streams.deliver()
        try await tellCounting()
        try await tellResult()
    }

    /// Who hears late that a duel has begun, as after a crash in the countdown, counts from then on.
    private mutating func tellCounting() async throws {
        guard let latest else { return }
        for side in TrialStreams.Side.allCases where counting[latest]?.contains(side) != true {
            guard try await streams.duel(latest, of: side)?["state"] == .string("running") else { continue }
            counting[latest, default: []].insert(side)
            say("C", "\(latest) \(side.rawValue) \(streams.clock.now.wall.milliseconds)")
        }
    }

    private func note(_ duel: JSON?, _ id: inout DuelID?) {
        guard case .string(let text) = duel?["id"], let known = DuelID(text) else { return }
        id = known
        say("I", "\(known)")
    }

    /// What both have the scores of stays as it is.
    private mutating func tellResult() async throws {
        guard let latest, !told.contains(latest), let duel = try await streams.duel(latest, of: .talk),
            duel["reason"] == .string("score")
        else { return }
        told.insert(latest)
        say("R", "\(latest) \(KilledDuel.outcome(of: duel))")
    }

    /// Whole, whoever else writes at the same time.
    private func say(_ kind: String, _ text: String) {
        let line = Array("\(kind) \(text)\n".utf8)
        _ = line.withUnsafeBytes { Glibc.write(1, $0.baseAddress, $0.count) }
    }
}

/// What the trial's duels are about.
enum TrialTerms {
    static func terms(countsTaps: Bool) -> DuelTerms {
        var terms = DuelTerms()
        (terms.seconds, terms.penaltySeconds) = (30, 10)
        terms.reactionWeight = countsTaps ? 1 : 0
        return terms
    }

    static func stream(of side: TrialStreams.Side) -> StreamID? { StreamID(side.rawValue) }
}
