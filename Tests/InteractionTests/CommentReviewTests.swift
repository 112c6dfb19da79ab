import Base
import TestSupport
import Testing

@testable import Interaction

/// Comments that somebody outside is asked about before they are written.
@Suite struct `Comments under review` {
    private var rig = InteractionRig()
    private let ann = InteractionRig.ann
    private let bob = InteractionRig.bob
    private let mod = InteractionRig.mod

    /// The number under which a new one waits.
    private mutating func submit(
        _ text: String = "hello", key: String, from person: Interaction.Person? = nil
    ) throws -> Int {
        let submission = try rig.machine.submit(key, text, from: person ?? bob, at: rig.now)
        guard case .new(let number, let draft) = submission else {
            Issue.record("\(submission) is not new")
            return 0
        }
        #expect(draft.key == key && draft.person == person ?? bob)
        return number
    }

    /// Says something of one.
    /// - Returns: the texts of those that were written then.
    private mutating func judge(_ number: Int, isShown: Bool = true) throws -> [String] {
        var texts: [String] = []
        for judged in rig.machine.judge(number, isShown: isShown) where judged.isShown {
            let outcome = try rig.machine.write(judged.draft, at: rig.now)
            rig.log += outcome.changes
            if case .comment(let comment) = outcome.reply { texts.append(comment.text) }
        }
        return texts
    }

    @Test mutating func `are written in the order in which they came`() throws {
        let first = try submit("one", key: "a")
        let second = try submit("two", key: "b", from: mod)
        let third = try submit("three", key: "c", from: ann)
        #expect(try judge(third).isEmpty)
        #expect(try judge(second, isShown: false).isEmpty)
        #expect(rig.machine.record.comments.isEmpty)
        #expect(try judge(first) == ["one", "three"])
        #expect(rig.machine.record.comments.map(\.number) == [1, 2])
        #expect(try judge(first).isEmpty, "what has gone is not looked at again")
    }

    @Test mutating func `are not written if the host lets only members comment meanwhile`() throws {
        let mia = InteractionRig.person("mia", tiers: ["gold"])
        let first = try submit("one", key: "a")
        let second = try submit("two", key: "b", from: mia)
        try rig.edit { $0.commentTier = .set("gold") }
        #expect(throws: Interaction.Refusal.membersOnly) { try judge(first) }
        #expect(try judge(second) == ["two"])
    }

    @Test mutating func `are one comment however often they come`() throws {
        let number = try submit(key: "a")
        #expect(try rig.machine.submit("a", "hello", from: bob, at: rig.now) == .waiting(number))
        // Another author may use the same name.
        _ = try submit(key: "a", from: mod)
        #expect(try judge(number) == ["hello"])
        let comment = try #require(rig.machine.record.comments.first)
        #expect(try rig.machine.submit("a", "hello", from: bob, at: rig.now) == .known(comment))
    }

    @Test mutating func `that were denied can be written anew`() throws {
        let number = try submit(key: "a")
        #expect(try judge(number, isShown: false).isEmpty)
        #expect(try judge(try submit("hello!", key: "a")) == ["hello!"])
    }

    @Test mutating func `keep to the rules and budgets before anybody is asked`() throws {
        #expect(throws: Interaction.Refusal.invalid("id")) { try submit(key: "a b") }
        #expect(throws: Interaction.Refusal.emptyComment) { try submit(" ", key: "a") }
        for key in ["a", "b", "c"] { _ = try submit(key: key) }
        #expect(throws: Interaction.Refusal.tooFast(wait: 1)) { try submit(key: "d") }
        #expect(try rig.machine.submit("a", "hello", from: bob, at: rig.now) == .waiting(1))
        try rig.edit { $0.words = ["spam"] }
        rig.wait(.seconds(5))
        #expect(throws: Interaction.Refusal.forbiddenWord) { try submit("Spam!", key: "e") }
        var refusals = 0
        for _ in 0..<30 {
            do { _ = try rig.machine.submit("a", "hello", from: bob, at: rig.now) } catch { refusals += 1 }
        }
        #expect(refusals >= 10, "asking costs as well")
    }

    @Test mutating func `are not written where the rules have changed meanwhile`() throws {
        let (first, second) = (try submit("spam", key: "a"), try submit("fine", key: "b"))
        try rig.edit { $0.words = ["spam"] }
        #expect(throws: Interaction.Refusal.forbiddenWord) { try judge(first) }
        try rig.apply(.silence(bob.id, seconds: 60), from: ann)
        #expect(throws: Interaction.Refusal.silenced(wait: 60)) { try judge(second) }
        #expect(rig.machine.record.comments.isEmpty)
        let third = try submit("seen by nobody", key: "c", from: mod)
        try rig.apply(.silence(mod.id, seconds: 60, isShadow: true), from: ann)
        #expect(try judge(third) == ["seen by nobody"])
        #expect(rig.machine.record.comments.last?.isHidden == true)
    }

    @Test mutating func `are so many at once, and no more`() throws {
        for number in 0..<CommentReviews.limit {
            _ = try submit(key: "k", from: InteractionRig.person("p\(number)"))
        }
        #expect(throws: Interaction.Refusal.tooFast(wait: 1)) { try submit(key: "k") }
        #expect(try judge(1) == ["hello"])
        _ = try submit(key: "k")
    }

    /// Whatever comes in whatever order, and whatever is said of it when.
    @Test(arguments: 0..<50)
    mutating func `keep their order, each once`(seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        var (waiting, came, written): ([Int], [Int: String], [String]) = ([], [:], [])
        var denied: Set<Int> = []
        for step in 0..<400 {
            rig.wait(.milliseconds(400))
            let person = InteractionRig.person("p\(Int.random(in: 0..<9, using: &random))")
            if Int.random(in: 0..<5, using: &random) < 3 {
                let key = "k\(Int.random(in: 0..<step / 2 + 1, using: &random))"
                switch try? rig.machine.submit(key, "\(step)", from: person, at: rig.now) {
                case .new(let number, _):
                    waiting.append(number)
                    came[number] = "\(step)"
                case .waiting(let number): #expect(came[number] != nil)
                case .known, nil: break
                }
            } else if let number = waiting.randomElement(using: &random) {
                waiting.removeAll { $0 == number }
                let isShown = Int.random(in: 0..<4, using: &random) > 0
                if !isShown { denied.insert(number) }
                written += try judge(number, isShown: isShown)
            }
        }
        for number in waiting { written += try judge(number) }
        let expected = came.keys.sorted().filter { !denied.contains($0) }.compactMap { came[$0] }
        #expect(written == expected)
        #expect(rig.machine.record.comments.map(\.text) == written.suffix(rig.machine.record.comments.count))
    }
}
