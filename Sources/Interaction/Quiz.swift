import Base

/// What makes a poll a quiz: the options that are right, and who chose them.
///
/// Nobody but hosts may learn of it before the poll is over.
package struct Quiz: Equatable, Sendable, Codable {
    /// Somebody who chose what is right.
    package struct Winner: Equatable, Sendable, Codable {
        /// The token's subject.
        package let id: ParticipantID
        /// For people; nil where they have none.
        package let name: String?
        /// When they chose it, by the server's clock.
        package let at: WallTime
    }

    /// How many of those who were right are remembered by name: the first ones.
    package static let winnerLimit = 10

    /// The places of the right options in the poll's list, in order; who is right chose these and no others.
    package let right: [Int]
    /// People who were right.
    package private(set) var rightVoters = 0
    /// In the order of their answers; at most `winnerLimit`.
    package private(set) var winners: [Winner] = []

    /// - Throws: `.invalid("right")` where these cannot be the right ones among so many options.
    init(right: [Int], among options: Range<Int>, isMultiple: Bool) throws(Interaction.Refusal) {
        guard !right.isEmpty, isMultiple || right.count == 1, Set(right).count == right.count,
            right.allSatisfy(options.contains)
        else { throw .invalid("right") }
        self.right = right.sorted()
    }

    func isRight(_ chosen: [Int]) -> Bool { chosen.sorted() == right }

    /// Somebody who is to be remembered by name for these choices; nil where they are wrong, or others were faster.
    func winner(choosing chosen: [Int], _ person: Interaction.Person, at now: WallTime) -> Winner? {
        guard winners.count < Self.winnerLimit, isRight(chosen) else { return nil }
        return Winner(id: person.id, name: person.name, at: now)
    }

    mutating func count(_ chosen: [Int]) {
        if isRight(chosen) { rightVoters += 1 }
    }

    mutating func append(_ winner: Winner) {
        if winners.count < Self.winnerLimit { winners.append(winner) }
    }
}
