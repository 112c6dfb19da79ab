import Base
import Testing

@testable import Interaction

@Suite struct Comments {
    private var rig = InteractionRig()
    private let ann = InteractionRig.ann
    private let bob = InteractionRig.bob

    @Test mutating func `are numbered in order, and known by what their clients call them`() throws {
        let first = try rig.write("one")
        let second = try rig.write("two", from: ann)
        #expect([first.number, second.number] == [1, 2])
        #expect(second.role == .host && first.name == "BOB")
        let again = try rig.apply(.comment(key: first.key, text: "other"))
        #expect(again.reply == .comment(first) && again.changes.isEmpty)
        // Another's client may choose the same.
        let other = try rig.apply(.comment(key: first.key, text: "mine"), from: ann)
        #expect(other.changes.count == 1)
    }

    @Test(arguments: ["", "a b", "ä", String(repeating: "x", count: 65)])
    mutating func `have a name by their client that fits into a header`(key: String) {
        #expect(throws: Interaction.Refusal.invalid("id")) { try rig.apply(.comment(key: key, text: "x")) }
    }

    @Test mutating func `come once a second, with a burst of three`() throws {
        for _ in 0..<3 { try rig.write() }
        #expect(throws: Interaction.Refusal.tooFast(wait: 1)) { try rig.write() }
        rig.wait(.milliseconds(1_000))
        try rig.write()
        #expect(throws: Interaction.Refusal.tooFast(wait: 1)) { try rig.write() }
        try rig.write(from: InteractionRig.person("cid"))
    }

    @Test mutating func `cost their author's requests even where they are refused`() throws {
        for _ in 0..<20 { #expect(throws: Interaction.Refusal.emptyComment) { try rig.write("") } }
        #expect(throws: Interaction.Refusal.tooFast(wait: 1)) { try rig.write("") }
        rig.wait(.seconds(1))
        try rig.write()
    }

    @Test mutating func `of viewers wait in slow mode, those of hosts and speakers do not`() throws {
        try rig.edit { $0.slowModeSeconds = 30 }
        try rig.write()
        rig.wait(.milliseconds(500))
        #expect(throws: Interaction.Refusal.slowMode(wait: 30)) { try rig.write() }
        rig.wait(.seconds(29))
        #expect(throws: Interaction.Refusal.slowMode(wait: 1)) { try rig.write() }
        rig.wait(.milliseconds(500))
        try rig.write()
        for other in [ann, InteractionRig.person("sam", .speaker)] {
            try rig.write(from: other)
            try rig.write(from: other)
        }
    }

    @Test mutating func `are refused where they are switched off, or hold an unwanted word`() throws {
        try rig.edit { $0.words = ["spam"] }
        #expect(throws: Interaction.Refusal.forbiddenWord) { try rig.write("buy SPAM now") }
        try rig.write("buy SPAM now", from: ann)
        try rig.edit { $0.takesComments = false }
        #expect(throws: Interaction.Refusal.commentsOff) { try rig.write() }
    }

    @Test mutating func `take a tier of viewers where the host wants one`() throws {
        let mia = InteractionRig.person("mia", tiers: ["silver", "gold"])
        let before = try rig.write("before")
        try rig.edit { $0.commentTier = .set("gold") }
        #expect(throws: Interaction.Refusal.membersOnly) { try rig.write() }
        #expect(throws: Interaction.Refusal.membersOnly) {
            try rig.write(from: InteractionRig.person("sid", tiers: ["silver"]))
        }
        for other in [mia, ann, InteractionRig.mod, InteractionRig.person("sam", .speaker)] {
            try rig.write(from: other)
        }
        // The rest is as it was, also of what somebody wrote before.
        try rig.apply(.react(["heart": 1]))
        #expect(rig.machine.record.page(limit: 9, for: bob.id).comments.count == 5)
        let repeated = try rig.apply(.comment(key: before.key, text: "before"))
        #expect(repeated.reply == .comment(before))
        try rig.apply(.delete(before.number))
        // Members keep to the other rules.
        try rig.edit { $0.words = ["spam"] }
        #expect(throws: Interaction.Refusal.forbiddenWord) { try rig.write("spam", from: mia) }
        #expect(rig.machine.record.settings.commentTier == "gold", "what an edit does not name stays")
        try rig.edit { $0.commentTier = .clear }
        try rig.write()
    }

    @Test func `say to those who are no members what is the matter`() {
        let refusal = Interaction.Refusal.membersOnly
        #expect(refusal.kind == .forbidden && refusal.name == "members-only" && refusal.wait == nil)
        #expect(refusal.explanation == "Only members can comment.")
    }

    @Test mutating func `are taken away by their author and by hosts`() throws {
        let comment = try rig.write("oops")
        #expect(throws: Interaction.Refusal.notModerator) {
            try rig.apply(.delete(comment.number), from: InteractionRig.person("cid"))
        }
        try rig.apply(.delete(comment.number))
        #expect(rig.machine.record.page(limit: 10).comments.isEmpty)
        #expect(throws: Interaction.Refusal.unknownComment) {
            try rig.apply(.delete(comment.number), from: ann)
        }
        // Nor does the same request bring it back.
        let again = try rig.apply(.comment(key: comment.key, text: "oops"))
        #expect(again.changes.isEmpty)
        try rig.apply(.delete(try rig.write().number), from: ann)
        for number in [0, -1, 99, .max, .min] {
            #expect(throws: Interaction.Refusal.unknownComment) { try rig.apply(.delete(number), from: ann) }
        }
    }

    @Test mutating func `are pinned one at a time, until they are deleted`() throws {
        let (first, second) = (try rig.write("one"), try rig.write("two"))
        #expect(throws: Interaction.Refusal.notModerator) { try rig.apply(.pin(first.number)) }
        try rig.apply(.pin(first.number), from: ann)
        try rig.apply(.pin(second.number), from: ann)
        #expect(try rig.apply(.pin(second.number), from: ann).changes.isEmpty)
        #expect(rig.machine.record.pinned?.text == "two")
        try rig.apply(.delete(second.number), from: ann)
        #expect(rig.machine.record.pinned == nil)
        #expect(try rig.apply(.unpin, from: ann).changes.isEmpty)
        #expect(throws: Interaction.Refusal.unknownComment) { try rig.apply(.pin(second.number), from: ann) }
    }

    @Test mutating func `are not taken from somebody silenced, until the time is over`() throws {
        try rig.apply(.silence(bob.id, seconds: 60), from: ann)
        #expect(throws: Interaction.Refusal.silenced(wait: 60)) { try rig.write() }
        rig.wait(.seconds(60))
        try rig.write()
        try rig.apply(.silence(bob.id, seconds: 60), from: ann)
        try rig.apply(.unsilence(bob.id), from: ann)
        try rig.write()
        #expect(throws: Interaction.Refusal.notSilenced) { try rig.apply(.unsilence(bob.id), from: ann) }
        #expect(throws: Interaction.Refusal.moderatorSpeaks) {
            try rig.apply(.silence(ann.id, seconds: 9), from: ann)
        }
        #expect(throws: Interaction.Refusal.notModerator) { try rig.apply(.silence(ann.id, seconds: 9)) }
        for seconds in [0, -1, .max] {
            #expect(throws: Interaction.Refusal.invalid("seconds")) {
                try rig.apply(.silence(bob.id, seconds: seconds), from: ann)
            }
        }
    }

    @Test mutating func `are found by when they were written, without what others may not see`() throws {
        for number in 1...6 {
            rig.wait(.seconds(10))
            try rig.write("\(number)")
        }
        let times = rig.machine.record.comments.map(\.at)
        try rig.apply(.delete(3))
        try rig.apply(.silence(bob.id, seconds: 60, isShadow: true), from: ann)
        try rig.write("psst")
        let record = rig.machine.record
        func numbers(_ time: Range<WallTime>, after: Int = 0, limit: Int = 9) -> [Int] {
            record.page(writtenIn: time, after: after, limit: limit).comments.map(\.number)
        }
        // From the first moment on, up to the last, which is not in it.
        #expect(numbers(times[1]..<times[4]) == [2, 4])
        #expect(numbers(times[0]..<WallTime.latest) == [1, 2, 4, 5, 6])
        #expect(numbers(times[0]..<WallTime.latest, after: 2, limit: 2) == [4, 5])
        #expect(record.page(writtenIn: times[0]..<times[4], after: 0, limit: 2).isMore)
        #expect(!record.page(writtenIn: times[0]..<times[4], after: 0, limit: 3).isMore)
        #expect(numbers(times[2]..<times[2]).isEmpty)
    }

    @Test mutating func `are kept up to a limit, and told in pages`() throws {
        for number in 1...1_300 {
            rig.wait(.seconds(1))
            try rig.write("\(number)")
        }
        let record = rig.machine.record
        #expect((1_000..<1_250).contains(record.comments.count) && record.lastNumber == 1_300)
        let last = record.page(limit: 3)
        #expect(last.comments.map(\.number) == [1_298, 1_299, 1_300] && last.isMore)
        #expect(record.page(before: 1_298, limit: 2).comments.map(\.number) == [1_296, 1_297])
        let next = record.page(after: 1_298, limit: 1)
        #expect(next.comments.map(\.number) == [1_299] && next.isMore)
        let rest = record.page(after: 1_299, limit: 5)
        #expect(rest.comments.map(\.number) == [1_300] && !rest.isMore)
        #expect(record.comment(1) == nil && record.comment(1_000)?.text == "1000")
    }

    @Test mutating func `of more people than are remembered share one budget`() throws {
        for number in 0..<PersonBudgets.limit { try rig.write(from: InteractionRig.person("p\(number)")) }
        for number in 0..<3 { try rig.write(from: InteractionRig.person("q\(number)")) }
        #expect(throws: Interaction.Refusal.tooFast(wait: 1)) {
            try rig.write(from: InteractionRig.person("r"))
        }
        // Who keeps order has a budget of their own, whoever comes.
        for number in 0..<10 {
            try rig.apply(.comment(key: "k\(number)", text: "x"), from: InteractionRig.ann)
            rig.wait(.seconds(1))
        }
        // Those who have been quiet make room.
        rig.wait(.seconds(131))
        for number in 0..<10 { try rig.write(from: InteractionRig.person("s\(number)")) }
    }

    @Test(arguments: [
        ("reactions", InteractionEdit(reactions: ["a", "a"])),
        ("reactions", InteractionEdit(reactions: ["Ä"])),
        ("reactions", InteractionEdit(reactions: ["a", "b", "c", "d", "e", "f"])),
        ("slowMode", InteractionEdit(slowMode: 121)), ("slowMode", InteractionEdit(slowMode: -1)),
        ("commentTier", InteractionEdit(commentTier: "")),
        ("commentTier", InteractionEdit(commentTier: "gold members")),
        ("commentTier", InteractionEdit(commentTier: String(repeating: "x", count: 33))),
        ("words", InteractionEdit(words: ["?!"])),
        ("words", InteractionEdit(words: [String(repeating: "x", count: 51)])),
        ("words", InteractionEdit(words: (0...200).map { "w\($0)" })),
    ])
    mutating func `have settings within their ranges`(field: String, edit: InteractionEdit) {
        #expect(throws: Interaction.Refusal.invalid(field)) { try rig.apply(.edit(edit), from: ann) }
        #expect(throws: Interaction.Refusal.notModerator) { try rig.apply(.edit(edit)) }
    }
}

extension InteractionEdit {
    fileprivate init(
        reactions: [String]? = nil, slowMode: Int? = nil, words: [String]? = nil, commentTier: String? = nil
    ) {
        self.init()
        self.commentTier = commentTier.map { .set($0) } ?? .keep
        (self.reactions, self.slowModeSeconds, self.words) = (reactions, slowMode, words)
    }
}
