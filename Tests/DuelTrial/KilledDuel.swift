import Base
import Foundation
import Glibc
import Interaction
import Synchronization
import TestSupport

/// One seed: some lives of a process, each killed at a random moment, and what its data must be after them.
struct KilledDuel {
    /// What was done, for people.
    struct Summary: CustomStringConvertible {
        var kills = 0
        var gifts = 0
        var duels = 0
        /// Duels that were decided by their scores, and by something else.
        var scored = 0
        var decided = 0

        mutating func add(_ other: Summary) {
            kills += other.kills
            gifts += other.gifts
            duels += other.duels
            scored += other.scored
            decided += other.decided
        }

        var description: String {
            "\(kills) kills, \(gifts) gifts acknowledged, \(duels) duels, \(scored) decided by scores, "
                + "\(decided) otherwise"
        }
    }

    /// Lives of a seed.
    private static let rounds = 3
    /// Lines of one life: a duel takes about 500 of them.
    private static let lines = 1...900
    /// In milliseconds: what was tapped is written down after five seconds, at the next step.
    private static let tapsAtRisk: Int64 = 8_000
    /// Between a duel's end and the step that notices it, in milliseconds.
    private static let slack: Int64 = 1_300

    let seed: UInt64
    let program: URL
    let parent: String

    init(seed: UInt64, program: URL, parent: String) {
        (self.seed, self.program, self.parent) = (seed, program, parent)
    }

    /// - Returns: what was done, and what was wrong.
    func run() async throws -> (Summary, [String]) {
        let directory = parent + "/duel-\(UUID())"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        var random = SeededGenerator(seed: seed)
        var told = ToldLives()
        var faults: [String] = []
        for round in 0..<Self.rounds {
            let limit = Int.random(in: Self.lines, using: &random)
            let lines = try await lines(ofRound: round, in: directory, at: told.time, killedAfter: limit)
            for line in lines { if !told.take(line) { faults.append("it said \(line)") } }
            told.kills.append(told.time)
            // What happened last may not have been told.
            told.time += Self.slack
        }
        var summary = Summary(
            kills: Self.rounds, gifts: told.acknowledged.values.reduce(0) { $0 + $1.count },
            duels: told.duels.count)
        let streams = try await TrialStreams(directory: directory, at: WallTime(milliseconds: told.time))
        // A server that starts does what is due before anybody comes.
        await streams.pass(milliseconds: 1)
        faults += try await repeatGifts(told, streams)
        for _ in 0..<300 {
            await streams.pass(milliseconds: 500)
            try await streams.settle()
            await streams.deliver()
            try await streams.settle()
        }
        let after = try await look(at: told, streams, &summary)
        faults += after.faults
        await streams.close()
        let again = try await TrialStreams(directory: directory, at: streams.clock.now.wall)
        var ignored = Summary()
        let later = try await look(at: told, again, &ignored)
        await again.close()
        if later.seen != after.seen { faults.append("another restart changes what is known") }
        return (summary, faults)
    }

    // MARK: A life

    /// Runs the trial in a process of its own until it has told so much.
    private func lines(
        ofRound round: Int, in directory: String, at time: Int64, killedAfter limit: Int
    ) async throws -> [String] {
        let process = Process()
        process.executableURL = program
        process.arguments = ["play", directory, "\(seed)", "\(round)", "\(time)"]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let identifier = process.processIdentifier
        let handle = output.fileHandleForReading
        let text: String = await withCheckedContinuation { continuation in
            // Reading waits, which no task may.
            Thread.detachNewThread {
                var (data, count) = (Data(), 0)
                while case let more = handle.availableData, !more.isEmpty {
                    data += more
                    count += more.count { $0 == UInt8(ascii: "\n") }
                    if count >= limit { kill(identifier, SIGKILL) }
                }
                continuation.resume(returning: String(decoding: data, as: UTF8.self))
            }
        }
        process.waitUntilExit()
        guard process.terminationReason == .uncaughtSignal, process.terminationStatus == SIGKILL else {
            throw TrialStreams.Fault(
                description:
                    "seed \(seed), round \(round): it ended by itself with \(process.terminationStatus)")
        }
        // The last line may not be whole.
        return text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
    }

    // MARK: What must be

    /// A shop that does not know what became of its gifts says all of them once more.
    private func repeatGifts(_ told: ToldLives, _ streams: TrialStreams) async throws -> [String] {
        var faults: [String] = []
        for (side, asked) in told.asked {
            for gift in asked {
                let number = try await streams.give(gift, on: side).number
                let before = told.acknowledged[side]?[gift]
                if let before, before != number {
                    faults.append("\(side) \(gift.key) was gift \(before) and is \(number)")
                }
            }
        }
        return faults
    }

    private func look(
        at told: ToldLives, _ streams: TrialStreams, _ summary: inout Summary
    ) async throws -> (seen: [String], faults: [String]) {
        var (seen, faults) = ([String](), [String]())
        var ledgers: [TrialStreams.Side: [(value: Int, at: Int64)]] = [:]
        for side in TrialStreams.Side.allCases {
            let (gifts, totals) = try await streams.ledger(of: side)
            faults += check(gifts, totals, told, side)
            faults += try await checkTaps(told, streams, side)
            ledgers[side] = gifts.map { gift in
                (Self.integer(gift["count"]) * TrialGift.price, Self.milliseconds(gift["at"]) ?? 0)
            }
            seen.append("\(side) \(gifts.count) \(totals.text)")
        }
        for id in told.duels {
            let (one, other) = (try await streams.duel(id, of: .talk), try await streams.duel(id, of: .quiz))
            faults += check(id, one, other, told).map { "duel \(id): \($0)" }
            guard let duel = one ?? other else { continue }
            seen.append("\(id) \(Self.outcome(of: duel))")
            guard duel["reason"] == .string("score") else {
                if duel["state"] != .string("off") { summary.decided += 1 }
                continue
            }
            summary.scored += 1
            for side in ["from", "to"] {
                faults += checkScore(of: side, in: duel, ledgers, told.counting[id] ?? [:])
            }
        }
        return (seen, faults)
    }

    /// Each acknowledged gift once, under its number, and nothing that nobody asked for.
    private func check(_ gifts: [JSON], _ totals: JSON, _ told: ToldLives, _ side: TrialStreams.Side)
        -> [String]
    {
        var faults: [String] = []
        var found: [TrialGift: Int] = [:]
        for (index, gift) in gifts.enumerated() {
            guard case .string(let key) = gift["key"], let known = TrialGift(key: key) else {
                faults.append("\(side) has a gift without a key of ours")
                continue
            }
            if Self.integer(gift["number"]) != index + 1 { faults.append("\(side) has gaps before \(key)") }
            if found.updateValue(index + 1, forKey: known) != nil {
                faults.append("\(side) has \(key) twice")
            }
        }
        for (gift, number) in told.acknowledged[side] ?? [:] where found[gift] != number {
            faults.append("\(side) acknowledged \(gift.key) as \(number), and has \(found[gift] ?? 0)")
        }
        if Set(found.keys) != Set(told.asked[side] ?? []) {
            faults.append("\(side) has other gifts than asked for")
        }
        let (count, value) = found.keys.reduce((0, 0)) { ($0.0 + $1.count, $0.1 + $1.value) }
        if Self.integer(totals["gifts"]) != count || Self.integer(totals["value"]) != value {
            faults.append("\(side) counts \(totals.text) of \(count) gifts worth \(value)")
        }
        return faults
    }

    /// No more taps than there were, and none lost but those of the seconds before a kill.
    private func checkTaps(
        _ told: ToldLives, _ streams: TrialStreams, _ side: TrialStreams.Side
    ) async throws -> [String] {
        let taps = told.taps[side] ?? []
        let all = taps.reduce(0) { $0 + $1.count }
        let safe = taps.filter { tap in
            !told.kills.contains { tap.at <= $0 && tap.at > $0 - Self.tapsAtRisk }
        }.reduce(0) { $0 + $1.count }
        // Up to nine in each of the lives may have counted without being told.
        let count = try await streams.taps(on: side)
        guard count >= safe, count <= all + 9 * Self.rounds else {
            return ["\(side) counts \(count) taps of \(all), of which \(safe) were old enough"]
        }
        return []
    }

    private func check(_ id: DuelID, _ one: JSON?, _ other: JSON?, _ told: ToldLives) -> [String] {
        // A stream knows its latest duels alone.
        let isOld = told.duels.count { $0.number > id.number } >= DuelSide.limit
        guard let duel = one ?? other else {
            return isOld || told.results[id] == nil ? [] : ["was decided, and nobody knows it"]
        }
        guard let one, let other else {
            // A refusal is not remembered by whoever refuses.
            return isOld || duel["state"] == .string("off")
                ? [] : ["is known to one side alone: \(duel.text)"]
        }
        var faults: [String] = []
        for side in [one, other] where side["state"] != .string("over") && side["state"] != .string("off") {
            faults.append("is not over: \(side.text)")
        }
        let isOff = one["state"] == .string("off")
        if isOff != (other["state"] == .string("off"))
            || !isOff && Self.outcome(of: one) != Self.outcome(of: other)
        {
            faults.append("is \(one.text) to one side and \(other.text) to the other")
        }
        if let result = told.results[id], result != Self.outcome(of: one) {
            faults.append("was told as \(result) and is \(Self.outcome(of: one))")
        }
        return faults
    }

    /// The gifts that came while it ran are a side's score, where taps count nothing.
    private func checkScore(
        of name: String, in duel: JSON, _ ledgers: [TrialStreams.Side: [(value: Int, at: Int64)]],
        _ counting: [TrialStreams.Side: Int64]
    ) -> [String] {
        guard duel["weights"]?["reactions"] == .number(0) else { return [] }
        guard case .string(let stream) = duel[name]?["stream"],
            let side = TrialStreams.Side(rawValue: stream),
            let start = Self.milliseconds(duel["startsAt"]), let end = Self.milliseconds(duel["endsAt"])
        else { return ["a duel without sides or times: \(duel.text)"] }
        func value(from start: Int64, to end: Int64) -> Int {
            (ledgers[side] ?? []).reduce(0) { $1.at >= start && $1.at < end ? $0 + $1.value : $0 }
        }
        let score = Self.integer(duel[name]?["score"])
        // Those of that very step may have come before it.
        let least = counting[side].map { value(from: $0 + 1, to: end) } ?? 0
        let most = value(from: start, to: end + 2 * Self.slack)
        return (least...max(most, least)).contains(score)
            ? [] : ["\(side) has \(score) points of gifts worth \(least) to \(most): \(duel.text)"]
    }

    // MARK: JSON

    /// What became of a duel, as both sides have to say it.
    static func outcome(of duel: JSON) -> String {
        ["winner", "reason", "from", "to", "startsAt", "endsAt"].map { "\($0) \(duel[$0]?.text ?? "-")" }
            .joined(separator: ", ")
    }

    private static func integer(_ value: JSON?) -> Int {
        guard case .number(let number) = value else { return -1 }
        return Int(number)
    }

    private static func milliseconds(_ time: JSON?) -> Int64? {
        guard case .string(let text) = time else { return nil }
        let date = try? Date(text, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: true))
        return date.map { Int64(($0.timeIntervalSince1970 * 1_000).rounded()) }
    }
}
