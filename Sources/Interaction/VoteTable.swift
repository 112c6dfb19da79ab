import Base

/// Who chose what in a poll.
///
/// The votes are in portions, of which a table and its copies share those that are equal. The durable record and the
/// one on its way to the store are such copies. A vote copies only the portion that it belongs to, not all votes.
struct VoteTable: Equatable, Sendable {
    /// With `Poll.voterLimit` votes some eighty are in each portion, which is as much as the list of portions costs.
    private static let portionCount = 256

    /// Empty before the first vote.
    private var portions: [[ParticipantID: [Int]]] = []
    /// How many participants have voted.
    private(set) var count = 0

    /// A participant's choice; nil if there is none.
    subscript(id: ParticipantID) -> [Int]? {
        portions.isEmpty ? nil : portions[Self.portion(of: id)][id]
    }

    /// Notes a participant's choice, in place of an earlier one.
    mutating func set(_ chosen: [Int], of id: ParticipantID) {
        if portions.isEmpty { portions = Array(repeating: [:], count: Self.portionCount) }
        if portions[Self.portion(of: id)].updateValue(chosen, forKey: id) == nil { count += 1 }
    }

    /// The portion that a participant's vote is in: nothing that can be seen depends on it.
    private static func portion(of id: ParticipantID) -> Int {
        Int(UInt(bitPattern: id.hashValue) % UInt(portionCount))
    }
}

/// As one dictionary: portions are no matter of the stored form, and older records have none.
extension VoteTable: Codable {
    init(from decoder: any Decoder) throws {
        let votes = try decoder.singleValueContainer().decode([ParticipantID: [Int]].self)
        for (id, chosen) in votes { set(chosen, of: id) }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(portions.reduce(into: [ParticipantID: [Int]]()) { $0.merge($1) { $1 } })
    }
}
