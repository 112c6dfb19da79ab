import Base

/// Raised hands, in the order in which the host means to invite.
extension StageRecord {
    /// All raised hands, the next one first: in the order in which they were raised, unless the host changed it.
    package var handsInOrder: [ParticipantID] {
        hands.sorted { one, other in
            let (left, right) = (one.value, other.value)
            if left.order != right.order { return left.order ?? 0 < right.order ?? 0 }
            if left.since != right.since { return left.since < right.since }
            return one.key.description < other.key.description
        }.map(\.key)
    }

    /// The place of a participant's hand, counted from 1; nil if they have raised none, and for a held hand.
    package func handPlace(of id: ParticipantID) -> Int? {
        guard hands[id].map({ !$0.isHeld }) ?? false else { return nil }
        return handsInOrder.filter { hands[$0]?.isHeld == false }.firstIndex(of: id).map { $0 + 1 }
    }

    /// The order number for the next raised hand.
    var nextHandOrder: Int { (hands.values.compactMap(\.order).max() ?? hands.count) + 1 }
}

extension Stage {
    /// Decides on moving a hand: a held hand is put back, and the order changes if the place does.
    func decideHandMove(
        _ id: ParticipantID, to place: Int, _ sender: Sender, _ outcome: inout Outcome
    ) throws(Rejection) {
        try requireModerator(sender)
        guard let hand = record.hands[id] else { throw .handNotRaised }
        guard (1...Self.handLimit).contains(place) else { throw .invalid("place") }
        if hand.isHeld { outcome.changes.append(.handHeld(id, false)) }
        guard hand.isHeld || record.handPlace(of: id) != place else { return }
        let before = record.handsInOrder
        var order = before.filter { $0 != id }
        // Only hands that are not held have places; held ones may stand anywhere between them.
        let waiting = order.indices.filter { record.hands[order[$0]]?.isHeld == false }
        let index = waiting.dropFirst(place - 1).first ?? order.endIndex
        order.insert(id, at: index)
        if order != before { outcome.changes.append(.handsOrdered(order)) }
    }

    func decideHandHold(
        _ id: ParticipantID, _ isHeld: Bool, _ sender: Sender, _ outcome: inout Outcome
    ) throws(Rejection) {
        try requireModerator(sender)
        guard let hand = record.hands[id] else { throw .handNotRaised }
        if hand.isHeld != isHeld { outcome.changes.append(.handHeld(id, isHeld)) }
    }
}
