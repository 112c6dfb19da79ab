import Base
import Foundation
import Testing

@testable import Interaction

@Suite struct Polls {
    private var rig = InteractionRig()
    private let ann = InteractionRig.ann
    private let bob = InteractionRig.bob

    private mutating func open(_ body: (inout Poll.Draft) -> Void = { _ in }) throws -> Poll {
        var draft = Poll.Draft(question: " Tea\nor coffee? ", options: ["Tea", "Coffee"])
        body(&draft)
        let outcome = try rig.apply(.openPoll(draft), from: ann)
        guard case .poll(let poll) = outcome.reply else { throw Interaction.Refusal.unknownPoll }
        return poll
    }

    @Test mutating func `take one answer of each, and count it once`() throws {
        let poll = try open()
        #expect(poll.question == "Tea or coffee?" && poll.number == 1)
        try rig.apply(.vote(1, options: [1]))
        #expect(try rig.apply(.vote(1, options: [1])).changes.isEmpty)
        #expect(throws: Interaction.Refusal.alreadyVoted) { try rig.apply(.vote(1, options: [0])) }
        try rig.apply(.vote(1, options: [0]), from: ann)
        #expect(rig.machine.record.poll?.counts == [1, 1] && rig.machine.record.poll?.voters == 2)
        #expect(rig.machine.record.poll?.vote(of: bob.id) == [1])
    }

    /// A reply waits for the disk: with all votes in it, each further one would copy them.
    @Test mutating func `answer each with their own choice, and keep nobody else's in the answer`() throws {
        _ = try open()
        try rig.apply(.vote(1, options: [1]))
        for _ in 0..<2 {
            let outcome = try rig.apply(.vote(1, options: [0]), from: ann)
            guard case .poll(let poll) = outcome.reply else { throw Interaction.Refusal.unknownPoll }
            #expect(poll.vote(of: ann.id) == [0] && poll.vote(of: bob.id) == nil)
            #expect(poll.counts == [1, 1] && poll.voters == 2)
        }
        #expect(rig.machine.record.poll?.vote(of: bob.id) == [1])
        #expect(rig.machine.record.poll?.vote(of: ann.id) == [0])
    }

    @Test(arguments: [[], [2], [-1], [0, 0], [0, 1], [.max]])
    mutating func `refuse choices that are none`(chosen: [Int]) throws {
        _ = try open()
        #expect(throws: Interaction.Refusal.invalid("options")) { try rig.apply(.vote(1, options: chosen)) }
    }

    @Test mutating func `may take several`() throws {
        _ = try open { draft in
            draft.isMultiple = true
            draft.options = ["a", "b", "c"]
        }
        try rig.apply(.vote(1, options: [2, 0]))
        #expect(rig.machine.record.poll?.counts == [1, 0, 1] && rig.machine.record.poll?.voters == 1)
    }

    @Test mutating func `take the same options in another order for the same answer`() throws {
        _ = try open { draft in
            draft.isMultiple = true
            draft.options = ["a", "b", "c"]
        }
        try rig.apply(.vote(1, options: [2, 0]))
        let again = try rig.apply(.vote(1, options: [0, 2]))
        #expect(again.changes.isEmpty && rig.machine.record.poll?.voters == 1)
        for other in [[0], [0, 1], [0, 1, 2]] {
            #expect(throws: Interaction.Refusal.alreadyVoted) {
                try rig.apply(.vote(1, options: other))
            }
        }
        #expect(throws: Interaction.Refusal.invalid("options")) {
            try rig.apply(.vote(1, options: [0, 2, 2]))
        }
        #expect(rig.machine.record.poll?.counts == [1, 0, 1])
    }

    @Test mutating func `are open one at a time, until their host closes them`() throws {
        _ = try open()
        #expect(throws: Interaction.Refusal.pollOpen) { _ = try open() }
        #expect(throws: Interaction.Refusal.notModerator) { try rig.apply(.closePoll(1)) }
        try rig.apply(.vote(1, options: [0]))
        try rig.apply(.closePoll(1), from: ann)
        #expect(try rig.apply(.closePoll(1), from: ann).changes.isEmpty)
        #expect(throws: Interaction.Refusal.pollClosed) { try rig.apply(.vote(1, options: [0])) }
        #expect(rig.machine.record.poll?.counts == [1, 0])
        #expect(rig.machine.record.poll?.vote(of: bob.id) == nil, "who chose what is not remembered")
        #expect(try open().number == 2)
        for number in [0, 1, 3, .max] {
            #expect(throws: Interaction.Refusal.unknownPoll) { try rig.apply(.vote(number, options: [0])) }
        }
    }

    @Test mutating func `close by themselves, by the server's clock`() throws {
        _ = try open { $0.seconds = 30 }
        #expect(rig.machine.pollDeadline == rig.now.wall.advanced(bySeconds: 30))
        rig.wait(.milliseconds(29_999))
        #expect(rig.machine.closePoll(at: rig.now.wall).isEmpty)
        try rig.apply(.vote(1, options: [0]))
        rig.wait(.milliseconds(1))
        // Before anybody has looked at the clock.
        #expect(throws: Interaction.Refusal.pollClosed) {
            try rig.apply(.vote(1, options: [0]), from: InteractionRig.person("cid"))
        }
        #expect(rig.machine.closePoll(at: rig.now.wall) == [.pollClosed(rig.now.wall)])
        #expect(rig.machine.pollDeadline == nil)
    }

    @Test mutating func `have a question and options within their ranges`() throws {
        let long = String(repeating: "x", count: 141)
        for (field, body) in [
            ("question", { $0.question = "\u{200B}" }), ("question", { $0.question = long }),
            ("options", { $0.options = ["a"] }), ("options", { $0.options = ["a", "a "] }),
            ("options", { $0.options = ["a", ""] }), ("options", { $0.options = ["a", long] }),
            ("options", { $0.options = ["1", "2", "3", "4", "5", "6", "7"] }),
            ("seconds", { $0.seconds = 9 }), ("seconds", { $0.seconds = .max }),
        ] as [(String, (inout Poll.Draft) -> Void)] {
            #expect(throws: Interaction.Refusal.invalid(field)) { _ = try open(body) }
        }
        #expect(throws: Interaction.Refusal.notModerator) {
            try rig.apply(.openPoll(Poll.Draft(question: "x", options: ["a", "b"])))
        }
    }

    @Test mutating func `are the same after a restart, and their votes too`() throws {
        _ = try open { $0.seconds = 30 }
        try rig.apply(.vote(1, options: [1]))
        let bytes = try JSONEncoder().encode(rig.machine.record)
        rig.machine = Interaction(restoring: try JSONDecoder().decode(InteractionRecord.self, from: bytes))
        #expect(throws: Interaction.Refusal.alreadyVoted) { try rig.apply(.vote(1, options: [0])) }
        #expect(rig.machine.record.poll?.counts == [0, 1])
        var replayed = InteractionRecord()
        for change in rig.log { replayed.apply(change) }
        #expect(replayed == rig.machine.record)
    }
}
