import Base
import Interaction
import Node
import Stage
import TestSupport
import Testing

/// Whatever happens to what people say and to what they are told: once it is quiet, all know the same, and it is right.
@Suite(.simulated, .timeLimit(.minutes(10))) struct `An audience on bad connections` {
    /// What the server knows, as somebody new is told it.
    private struct Truth {
        let comments: [JSON]
        let interaction: JSON
        let gifts: [JSON]
    }

    private func truth(of simulation: AudienceSimulation) async throws -> Truth {
        let newcomer = SimulatedLink(seed: 0, isSlow: false, ToldMessages()) { .zero }
        let host = simulation.host
        await host.unfollow(try await host.follow(as: nil, since: nil, newcomer))
        let told = try #require(newcomer.receive(at: .distantFuture).first)
        let page = try await host.comments(before: nil, after: nil, limit: Interaction.commentLimit)
        let ledger = try await host.gifts(after: 0, limit: 10_000, as: simulation.ann)
        return Truth(
            comments: SimulatedPerson.list(page["comments"]),
            interaction: try #require(told.json["interaction"]),
            gifts: SimulatedPerson.list(ledger["gifts"]))
    }

    @Test(arguments: [1_000, 60, 61] as [UInt64])
    func `hears all of it exactly, in the end`(seed: UInt64) async throws {
        let seed = ChosenSeed.value ?? seed
        let simulation = try await AudienceSimulation(seed: seed, people: seed == 1_000 ? 1_000 : 100)
        try await simulation.run(talking: .seconds(6), listening: .seconds(8))
        let truth = try await truth(of: simulation)
        try checkLedger(truth, simulation)
        let reactions = SimulatedPerson.integer(truth.interaction["reactions"]?["heart"]?["total"])
        #expect(reactions == simulation.taps && simulation.taps > 100, "every tap that was counted, once")
        let comments = Dictionary(grouping: truth.comments) { $0["number"]?.text ?? "" }
        #expect(comments.values.allSatisfy { $0.count == 1 })
        for person in simulation.people { check(person, truth) }
        // The connection of very few breaks before they are told anything.
        #expect(simulation.people.count { $0.giftsBefore > 0 } <= simulation.people.count / 50)
        #expect(simulation.repetitions > 10, "the network repeats things")
        #expect(simulation.people.reduce(0) { $0 + $1.interruptions } > simulation.people.count / 10)
    }

    /// Each gift once, whatever was repeated, and nothing between.
    private func checkLedger(_ truth: Truth, _ simulation: AudienceSimulation) throws {
        let keys = truth.gifts.compactMap { gift -> String? in
            if case .string(let key) = gift["key"] { key } else { nil }
        }
        #expect(keys.count == truth.gifts.count && Set(keys).count == keys.count && keys.count > 20)
        #expect(
            truth.gifts.map { SimulatedPerson.integer($0["number"]) } == Array(1..<(truth.gifts.count + 1)))
    }

    private func check(_ person: SimulatedPerson, _ truth: Truth) {
        let name = "\(person.sender.id)"
        let shown = Array((person.giftsBefore + 1)..<(truth.gifts.count + 1))
        #expect(person.gifts == shown, "\(name): gifts, each once and in order, since they came")
        #expect(person.giftTotals == truth.interaction["gifts"]?["totals"], "\(name): sums of gifts")
        #expect(
            person.hearts == SimulatedPerson.integer(truth.interaction["reactions"]?["heart"]?["total"]),
            "\(name): hearts")
        #expect(person.poll == truth.interaction["poll"], "\(name): the poll")
        #expect(person.ranks == truth.interaction["ranks"]?["givers"], "\(name): who gave most")
        #expect(person.pinned == truth.interaction["pinned"], "\(name): the pinned comment")
        // None that is not there, or not any more.
        let all = Dictionary(truth.comments.map { ($0["number"]?.text ?? "", $0) }) { one, _ in one }
        let known = person.comments.values
        #expect(known.allSatisfy { all[$0["number"]?.text ?? ""] == $0 }, "\(name): comments as they are")
        // What they wrote, and the host did not take away, is there once: a repeated request is the same comment.
        for (key, comment) in person.written {
            let same = truth.comments.filter {
                $0["id"] == .string(key) && $0["author"] == .string("\(person.sender.id)")
            }
            #expect(same.count <= 1, "\(name): \(key) once")
            if let first = same.first { #expect(first == comment, "\(name): \(key)") }
        }
    }
}
