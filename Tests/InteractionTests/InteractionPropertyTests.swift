import Base
import Foundation
import TestSupport
import Testing

@testable import Interaction

/// Thousands of random commands by random people; whatever happens, some things must stay true.
@Suite struct InteractionProperties {
    private func someCommand(_ random: inout SeededGenerator) -> Interaction.Command {
        let number = Int.random(in: -1..<60, using: &random)
        let id = InteractionRig.person("p\(Int.random(in: 0..<9, using: &random))").id
        switch Int.random(in: 0..<30, using: &random) {
        case 0..<14:
            let text = String(repeating: "ab \u{202E}🦊", count: Int.random(in: 0..<80, using: &random))
            return .comment(key: "k\(Int.random(in: 0..<40, using: &random))", text: text)
        case 14..<17: return .delete(number)
        case 17: return .pin(number)
        case 18: return .unpin
        case 19: return .silence(id, seconds: Int.random(in: -1..<20, using: &random))
        case 20: return .unsilence(id)
        case 22: return .openPoll(Poll.Draft(question: "?!a", options: ["a", "b"]))
        case 23: return .vote(number % 4, options: [number % 3])
        case 24: return .closePoll(number % 4)
        case 21:
            var edit = InteractionEdit()
            edit.slowModeSeconds = Int.random(in: -1..<4, using: &random)
            edit.commentTier = [.keep, .clear, .clear, .set("gold")][Int.random(in: 0..<4, using: &random)]
            edit.takesComments = Int.random(in: 0..<4, using: &random) > 0
            edit.reactions =
                [["heart"], ["heart", "fire"], [], ["heart", "heart"]][Int.random(in: 0..<4, using: &random)]
            edit.words = [["ab"], [], ["fox"]][Int.random(in: 0..<3, using: &random)]
            return .edit(edit)
        default:
            return .react(
                ["heart": Int.random(in: -1..<60, using: &random), "fire": 1].filter { _ in
                    Bool.random(using: &random)
                })
        }
    }

    @Test(arguments: 0..<40)
    func `hold after every step, and the log tells the same story`(seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        var rig = InteractionRig()
        var (taps, commentsAt) = (0, [ParticipantID: [MonotonicTime]]())
        for step in 0..<1_500 {
            rig.wait(.milliseconds(Int.random(in: 0..<300, using: &random)))
            let number = Int.random(in: 0..<9, using: &random)
            let person =
                number == 0
                ? InteractionRig.ann : InteractionRig.person("p\(number)", tiers: number < 5 ? ["gold"] : [])
            let before = rig.machine.record
            do throws(Interaction.Refusal) {
                let outcome = try rig.apply(someCommand(&random), from: person)
                if case .counted(let count) = outcome.reply { taps += count }
                if case .commented = outcome.changes.first {
                    commentsAt[person.id, default: []].append(rig.now.elapsed)
                }
            } catch {
                #expect(rig.machine.record == before, "step \(step): what is refused changes nothing")
                #expect(error.wait.map { $0 > 0 } ?? true)
            }
            let record = rig.machine.record
            #expect(record.lastNumber == (record.comments.last?.number ?? 0))
            #expect(record.pinned.map { !$0.isDeleted } ?? true)
            #expect(record.pinned.map { record.comment($0.number) == $0 } ?? true)
            #expect(Set(record.totals.keys).isSubset(of: record.settings.reactions))
            if let poll = record.poll { #expect(poll.counts.reduce(0, +) == poll.voters) }
            if step % 10 == 0 { rig.log += rig.machine.saveReactions(at: rig.now.elapsed) }
        }
        for times in commentsAt.values {
            for (index, time) in times.enumerated() where index + 4 < times.count {
                #expect(times[index + 4] - time >= .seconds(1), "a burst of three, and one a second")
            }
        }
        rig.log += rig.machine.saveReactions(at: rig.now.elapsed, isLast: true)
        #expect(rig.machine.counter.totals.values.reduce(0, +) <= taps)
        var replayed = InteractionRecord()
        for change in rig.log { replayed.apply(change) }
        #expect(replayed == rig.machine.record)
        // What is written and read again is the same, change by change and as a whole.
        let coder = (JSONEncoder(), JSONDecoder())
        #expect(try coder.1.decode([InteractionChange].self, from: coder.0.encode(rig.log)) == rig.log)
        #expect(try coder.1.decode(InteractionRecord.self, from: coder.0.encode(replayed)) == replayed)
    }
}
