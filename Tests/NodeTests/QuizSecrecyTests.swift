import Base
import TestSupport
import Testing

@testable import Interaction
@testable import Node

/// Two audiences do the same in two quizzes that differ in nothing but what is right.
@Suite struct QuizSecrecy {
    private static func person(_ name: String, isHost: Bool = false) throws -> Interaction.Person {
        Interaction.Person(
            id: try #require(ParticipantID(name)), name: name, role: isHost ? .host : .viewer,
            isModerator: isHost)
    }

    /// What everybody may be told after a command: the answer to it, what followers hear, what newcomers see.
    private static func told(
        _ command: Interaction.Command, by person: Interaction.Person, at now: Moment,
        to desk: inout InteractionDesk
    ) -> [String] {
        var texts: [String] = []
        do throws(Interaction.Refusal) {
            let outcome = try desk.apply(command, from: person, at: now)
            desk.conclude(outcome.changes, desk.machine.record)
            if case .poll(let poll) = outcome.reply { texts.append(poll.json.text) }
            if let text = AudienceAnswer.text(outcome.reply, to: command) { texts.append(text) }
        } catch {
            texts.append(error.name + error.explanation)
        }
        texts += desk.takeNews(for: 9, at: now)
        texts.append(desk.describe(at: now.elapsed))
        return texts
    }

    @Test(arguments: 0..<60)
    func `lets nobody tell which options are right before it is over`(seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        let host = try Self.person("ann", isHost: true)
        let options = (0..<Int.random(in: 2...6, using: &random)).map { "option \($0)" }
        var draft = Poll.Draft(question: "Which?", options: options)
        draft.isMultiple = Bool.random(using: &random)
        draft.results = [nil, .live, .closed][Int.random(in: 0..<3, using: &random)]
        let count = draft.isMultiple ? Int.random(in: 1...options.count, using: &random) : 1
        let answers = (0..<2).map { _ in
            Array(options.indices.shuffled(using: &random).prefix(count))
        }
        var now = Moment(elapsed: .zero, wall: WallTime(milliseconds: 1_800_000_000_000))
        var desks = answers.map { _ in InteractionDesk(restoring: InteractionRecord(), at: now) }
        func each(_ person: Interaction.Person, _ command: ([Int]) -> Interaction.Command) -> [[String]] {
            zip(desks.indices, answers).map { place, right in
                Self.told(command(right), by: person, at: now, to: &desks[place])
            }
        }
        let opened = each(host) { right in
            draft.right = right
            return .openPoll(draft)
        }
        #expect(opened[0] == opened[1])
        for _ in 0..<60 {
            let voter = try Self.person("v\(Int.random(in: 0..<30, using: &random))")
            let chosen = Array(
                options.indices.shuffled(using: &random)
                    .prefix(draft.isMultiple ? Int.random(in: 1...options.count, using: &random) : 1))
            now = Moment(
                elapsed: now.elapsed + .milliseconds(300),
                wall: WallTime(milliseconds: now.wall.milliseconds + 300))
            let told = each(voter) { _ in .vote(1, options: chosen) }
            #expect(told[0] == told[1])
            for text in told.joined() {
                for member in ["\"right\"", "rightVoters", "winners"] { #expect(!text.contains(member)) }
            }
        }
        let closed = each(host) { _ in .closePoll(1) }
        #expect(closed[0].allSatisfy { $0.contains("\"rightVoters\"") && $0.contains("\"winners\"") })
        #expect((closed[0] == closed[1]) == (Set(answers[0]) == Set(answers[1])))
    }
}
