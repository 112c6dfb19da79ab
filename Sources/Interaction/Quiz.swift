import Base

/// What makes a poll a quiz: the right options, and who chose them.
///
/// Only hosts may see it before the poll is over.
package struct Quiz: Equatable, Sendable, Codable {
    /// A participant who chose the right options.
    package struct Winner: Equatable, Sendable, Codable {
        /// The participant's identity.
        package let id: ParticipantID
        /// Display name; nil if there is none.
        package let name: String?
        /// When the answer was accepted, by the server's clock.
        package let at: WallTime
    }

    /// Winners remembered by name: the first to answer correctly.
    package static let winnerLimit = 10

    /// The indices of the right options, ascending; an answer is right if it has exactly these.
    package let right: [Int]
    /// Participants who answered correctly.
    package private(set) var rightVoters = 0
    /// In the order of their answers; at most `winnerLimit`.
    package private(set) var winners: [Winner] = []

    /// - Throws: `.invalid("right")` if the indices cannot be the right answer among the options.
    init(right: [Int], among options: Range<Int>, isMultiple: Bool) throws(Interaction.Refusal) {
        guard !right.isEmpty, isMultiple || right.count == 1, Set(right).count == right.count,
            right.allSatisfy(options.contains)
        else { throw .invalid("right") }
        self.right = right.sorted()
    }

    /// Whether the choice has exactly the right options, in any order.
    func isRight(_ chosen: [Int]) -> Bool { chosen.sorted() == right }

    /// The winner that a choice makes; nil if it is wrong, or enough others were faster.
    func winner(choosing chosen: [Int], _ person: Interaction.Person, at now: WallTime) -> Winner? {
        guard winners.count < Self.winnerLimit, isRight(chosen) else { return nil }
        return Winner(id: person.id, name: person.name, at: now)
    }

    /// Counts a choice.
    mutating func count(_ chosen: [Int]) {
        if isRight(chosen) { rightVoters += 1 }
    }

    /// Remembers a winner.
    mutating func append(_ winner: Winner) {
        if winners.count < Self.winnerLimit { winners.append(winner) }
    }
}
