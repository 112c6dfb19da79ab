import Base
import Foundation
import Testing

@testable import Interaction

@Suite struct Quizzes {
    private var rig = InteractionRig()
    private let ann = InteractionRig.ann

    @discardableResult
    private mutating func open(
        _ right: [Int], isMultiple: Bool = false, results: Poll.Results? = nil
    ) throws -> Poll {
        var draft = Poll.Draft(question: "Which is a river?", options: ["Po", "Ox", "Don"])
        (draft.isMultiple, draft.results, draft.right) = (isMultiple, results, right)
        let outcome = try rig.apply(.openPoll(draft), from: ann)
        guard case .poll(let poll) = outcome.reply else { throw Interaction.Refusal.unknownPoll }
        return poll
    }

    private mutating func vote(_ name: String, _ chosen: [Int]) throws {
        try rig.apply(.vote(1, options: chosen), from: InteractionRig.person(name))
    }

    private var quiz: Quiz? { rig.machine.record.poll?.quiz }

    @Test(arguments: [
        (right: [], isMultiple: false), ([], true), ([3], false), ([-1], true), ([.max], false),
        ([0, 2], false), ([0, 0], true), ([0, 3], true),
    ])
    mutating func `refuse answers that cannot be right`(right: [Int], isMultiple: Bool) throws {
        #expect(throws: Interaction.Refusal.invalid("right")) { try open(right, isMultiple: isMultiple) }
        #expect(rig.machine.record.poll == nil)
    }

    @Test mutating func `hide what others chose until they are over, unless the host says otherwise`() throws
    {
        #expect(try open([0]).results == .closed)
        try rig.apply(.closePoll(1), from: ann)
        #expect(try open([0], results: .live).results == .live)
        try rig.apply(.closePoll(2), from: ann)
        let poll = try rig.apply(.openPoll(Poll.Draft(question: "x", options: ["a", "b"])), from: ann)
        guard case .poll(let plain) = poll.reply else { throw Interaction.Refusal.unknownPoll }
        #expect(plain.results == .live && plain.quiz == nil)
    }

    @Test(arguments: [
        (right: [2], isMultiple: false, chosen: [2], isRight: true), ([2], false, [0], false),
        ([2, 0], true, [0, 2], true), ([2, 0], true, [2, 0], true), ([2, 0], true, [0], false),
        ([2, 0], true, [0, 1, 2], false), ([1], true, [1], true), ([1], true, [1, 2], false),
    ])
    mutating func `count who chose all that is right and nothing else`(
        right: [Int], isMultiple: Bool, chosen: [Int], isRight: Bool
    ) throws {
        try open(right, isMultiple: isMultiple)
        try vote("bob", chosen)
        #expect(quiz?.rightVoters == (isRight ? 1 : 0))
        #expect(quiz?.winners.count == quiz?.rightVoters)
    }

    @Test mutating func `remember the first who were right, in the order of the server's clock`() throws {
        try open([2])
        for number in 0..<15 {
            rig.wait(.milliseconds(250))
            // The first is wrong.
            try vote("p\(number)", [number == 0 ? 1 : 2])
            try vote("p\(number)", [number == 0 ? 1 : 2])
        }
        #expect(quiz?.rightVoters == 14)
        #expect(quiz?.winners.map(\.id.description) == (1...10).map { "p\($0)" })
        let first = try #require(quiz?.winners.first)
        #expect(first.name == "P1")
        #expect(first.at.milliseconds - (rig.machine.record.poll?.openedAt.milliseconds ?? 0) == 500)
        try rig.apply(.closePoll(1), from: ann)
        #expect(quiz?.winners.count == 10 && quiz?.rightVoters == 14)
        #expect(throws: Interaction.Refusal.pollClosed) { try vote("late", [2]) }
    }

    @Test mutating func `are not answered by those who see what is right`() throws {
        try open([2])
        #expect(throws: Interaction.Refusal.knowsAnswer) { try rig.apply(.vote(1, options: [2]), from: ann) }
        // Moderators of comments see no more than others.
        try rig.apply(.vote(1, options: [2]), from: InteractionRig.mod)
        #expect(rig.machine.record.poll?.voters == 1)
    }

    @Test mutating func `are the same after a restart, with their winners`() throws {
        try open([0, 2], isMultiple: true)
        try vote("bob", [2, 0])
        try vote("cid", [2])
        let bytes = try JSONEncoder().encode(rig.machine.record)
        rig.machine = Interaction(restoring: try JSONDecoder().decode(InteractionRecord.self, from: bytes))
        try vote("dan", [0, 2])
        #expect(quiz?.right == [0, 2] && quiz?.winners.map(\.name) == ["BOB", "DAN"])
        let log = try JSONDecoder().decode(
            [InteractionChange].self, from: JSONEncoder().encode(rig.log))
        var replayed = InteractionRecord()
        for change in log { replayed.apply(change) }
        #expect(replayed == rig.machine.record)
    }

    @Test func `were none in what was written before there were any`() throws {
        let written = """
            {"pollOpened":{"_0":{"number":1,"question":"Tea?","options":["Yes","No"],"isMultiple":false,\
            "results":"live","openedAt":1800000000000,"counts":[0,0],"voters":0,"votes":[]}}}
            """
        let change = try JSONDecoder().decode(InteractionChange.self, from: Data(written.utf8))
        guard case .pollOpened(let poll) = change else { return #expect(Bool(false), "no poll") }
        #expect(poll.quiz == nil && poll.results == .live && poll.isOpen)
    }
}
