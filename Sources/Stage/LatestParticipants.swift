import Base

/// The participants to whom something happened most recently, in that order.
///
/// Beyond `Stage.banLimit` the oldest one is forgotten. Encoded as a list of identities.
package struct LatestParticipants: Equatable, Sendable, Codable {
    private var order: [ParticipantID] = []
    private var members: Set<ParticipantID> = []

    package init() {}

    package init(from decoder: any Decoder) throws {
        for id in try decoder.singleValueContainer().decode([ParticipantID].self) { insert(id) }
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(order)
    }

    package static func == (left: LatestParticipants, right: LatestParticipants) -> Bool {
        left.order == right.order
    }

    /// Whether the participant is among the remembered ones.
    package func contains(_ id: ParticipantID) -> Bool { members.contains(id) }

    mutating func insert(_ id: ParticipantID) {
        guard members.insert(id).inserted else { return }
        order.append(id)
        if order.count > Stage.banLimit { members.remove(order.removeFirst()) }
    }

    mutating func remove(_ id: ParticipantID) {
        guard members.remove(id) != nil else { return }
        order.removeAll { $0 == id }
    }
}
