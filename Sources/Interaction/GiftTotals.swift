import Base

/// What a stream was given: the latest gifts, sums, who gave most, and who is giving several in a row.
///
/// Each single gift is in the stream's ledger, which whoever carries this out keeps. Changes only by `apply`, so that
/// the gifts in order give the same again.
package struct GiftTotals: Equatable, Sendable, Codable {
    /// Gifts that are known without the ledger, the latest ones; a quarter more for moments.
    package static let recentLimit = 400
    /// People whose sums are remembered; beyond, who gave least is forgotten.
    package static let giverLimit = 2_000
    /// Combos that may go on at the same time; beyond, the one that was quiet for longest ends.
    private static let comboLimit = 200
    /// Within which the next gift of the same kind by the same giver goes on with a combo, in milliseconds.
    package static let comboTime: Int64 = 5_000
    /// Where sums stop.
    package static let highest = RankTable.highest
    private struct Combo: Equatable, Codable {
        let giver: ParticipantID
        let kind: String
        let count: Int
        let at: WallTime

        func isOver(at now: WallTime) -> Bool {
            let (age, overflow) = now.milliseconds.subtractingReportingOverflow(at.milliseconds)
            return overflow || age > GiftTotals.comboTime
        }
    }

    /// The oldest first; numbers have no gaps.
    package private(set) var recent: [Gift] = []
    /// Of the latest gift; 0 before the first.
    package private(set) var lastNumber = 0
    /// Of all gifts, each as often as it was given.
    package private(set) var count = 0
    /// Of all gifts, in the smallest unit of the currency.
    package private(set) var value = 0
    /// Of all gifts; nil before the first.
    package private(set) var currency: String?
    /// Who gave how much, in the smallest unit of the currency; at most `giverLimit`.
    package private(set) var givers = Ranking()
    /// The one with the latest gift last.
    private var combos: [Combo] = []

    package init() {}

    /// The gift of that key, if it is among the latest.
    package func gift(_ key: String) -> Gift? { recent.last { $0.key == key } }

    /// Whether there are gifts that only the ledger knows.
    package var hasForgotten: Bool { lastNumber > recent.count }

    // MARK: Deciding

    /// What a shop's gift becomes; the machine has seen to it that its key is new.
    func decide(
        _ draft: Gift.Draft, from catalogue: GiftCatalogue?, at now: WallTime
    ) throws(Interaction.Refusal) -> Gift {
        guard Interaction.isKey(draft.key) else { throw .invalid("key") }
        guard Gift.countRange.contains(draft.count) else { throw .invalid("count") }
        guard GiftCatalogue.priceRange.contains(draft.price) else { throw .invalid("price") }
        let name = try Gift.name(of: draft)
        guard let catalogue, catalogue.kinds.contains(where: { $0.id == draft.kind }) else {
            throw .unknownGift
        }
        guard draft.currency == catalogue.currency else { throw .otherCurrency(catalogue.currency) }
        let going = combos.last { $0.giver == draft.giver && $0.kind == draft.kind && !$0.isOver(at: now) }
        return Gift(
            number: lastNumber + 1, key: draft.key, giver: draft.giver, name: name, kind: draft.kind,
            count: draft.count, price: draft.price, currency: draft.currency,
            combo: RankTable.sum(going?.count ?? 0, draft.count), at: now)
    }

    // MARK: Remembering

    mutating func apply(_ gift: Gift) {
        lastNumber = gift.number
        recent.append(gift)
        if recent.count >= Self.recentLimit + Self.recentLimit / 4 {
            recent.removeFirst(recent.count - Self.recentLimit)
        }
        // Both factors have a limit, and the product is far below the highest.
        let worth = gift.price * gift.count
        count = RankTable.sum(count, gift.count)
        value = RankTable.sum(value, worth)
        currency = gift.currency
        combos.removeAll { $0.giver == gift.giver && $0.kind == gift.kind || $0.isOver(at: gift.at) }
        if combos.count >= Self.comboLimit { combos.removeFirst() }
        combos.append(Combo(giver: gift.giver, kind: gift.kind, count: gift.combo, at: gift.at))
        givers.add(
            worth, to: gift.giver, name: gift.name, last: gift.number, limit: Self.giverLimit, at: gift.at)
    }
}
