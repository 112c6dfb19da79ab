import Base
import Foundation
import MallocCounter
import Testing

@testable import Interaction

@Suite struct `A table of votes` {
    private var rig = InteractionRig()

    private static func voter(_ number: Int) throws -> ParticipantID {
        try #require(ParticipantID("voter-\(number)"))
    }

    @Test func `has each participant's choice, however many there are`() throws {
        var table = VoteTable()
        let seventh = try Self.voter(7)
        #expect(table.count == 0 && table[seventh] == nil)
        for number in 0..<1_000 { try table.set([number % 3], of: Self.voter(number)) }
        #expect(table.count == 1_000)
        for number in 0..<1_000 { #expect(try table[Self.voter(number)] == [number % 3]) }
        #expect(try table[Self.voter(1_000)] == nil)
        let before = table
        table.set([5], of: seventh)
        #expect(table[seventh] == [5] && before[seventh] == [1])
        #expect(table.count == 1_000 && table != before)
    }

    /// Streams that were stored before have their votes like this.
    @Test func `is stored as one dictionary`() throws {
        var votes: [ParticipantID: [Int]] = [:]
        for number in 0..<300 { votes[try Self.voter(number)] = [number % 2] }
        for part in [[:], votes] {
            let table = try JSONDecoder().decode(VoteTable.self, from: JSONEncoder().encode(part))
            #expect(table.count == part.count)
            for (id, chosen) in part { #expect(table[id] == chosen) }
            let again = try JSONDecoder().decode(
                [ParticipantID: [Int]].self, from: JSONEncoder().encode(table))
            #expect(again == part)
        }
    }

    /// A commit counts its votes in a copy of what is durable, which stays as it is in case the store fails.
    @Test(.enabled(if: malloc_counter_is_on() != 0, "sanitizers count allocations themselves"))
    mutating func `costs a commit what was voted, not all votes`() throws {
        try rig.apply(
            .openPoll(Poll.Draft(question: "Tea?", options: ["Yes", "No"])), from: InteractionRig.ann)
        var durable = rig.machine.record
        for number in 0..<Poll.voterLimit - 1 { try durable.apply(.voted(Self.voter(number), [0])) }
        let last = try Self.voter(Poll.voterLimit)
        let before = malloc_counter_live_bytes()
        var next = durable
        next.apply(.voted(last, [1]))
        let cost = malloc_counter_live_bytes() - before
        #expect(next.poll?.counts == [Poll.voterLimit - 1, 1])
        #expect(durable.poll?.counts == [Poll.voterLimit - 1, 0] && durable.poll?.vote(of: last) == nil)
        // All votes take about a megabyte.
        #expect(cost < 64 << 10)
    }
}
