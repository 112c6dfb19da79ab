import Base

/// What a stream was given: the latest gifts, sums, the largest givers, and combos in progress.
///
/// The stream's ledger, which the owner keeps, contains every gift. The totals change by `apply` only, so applying
/// the gifts of the ledger in order yields the same totals.
package struct GiftTotals: Equatable, Sendable, Codable {
    /// Latest gifts kept here; for a short time up to a quarter more.
    package static let recentLimit = 400
    /// Givers whose sums are kept; beyond that the one who gave least is dropped.
    package static let giverLimit = 2_000
    /// Combos that may be in progress at the same time; beyond that the one that has been idle for longest ends.
    private static let comboLimit = 200
    /// Milliseconds within which another gift of the same kind by the same giver continues a combo.
    package static let comboTime: Int64 = 5_000
    /// The highest value of a sum.
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

    /// The oldest first; the numbers have no gaps.
    package private(set) var recent: [Gift] = []
    /// Number of the latest gift; 0 before the first.
    package private(set) var lastNumber = 0
    /// How many gifts were given, each counted as often as it was given.
    package private(set) var count = 0
    /// Value of all gifts, in the smallest unit of the currency.
    package private(set) var value = 0
    /// Currency of all gifts; nil before the first.
    package private(set) var currency: String?
    /// Givers by value, in the smallest unit of the currency; at most `giverLimit`.
    package private(set) var givers = Ranking()
    /// The one with the latest gift is last.
    private var combos: [Combo] = []

    /// Totals of a stream without gifts.
    package init() {}

    /// The gift with this key, if it is among the latest.
    package func gift(_ key: String) -> Gift? { recent.last { $0.key == key } }

    /// Whether there are gifts that only the ledger contains.
    package var hasForgotten: Bool { lastNumber > recent.count }

    // MARK: Deciding

    /// Turns a shop's report into a gift; the caller has checked that the key is new.
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

    /// Adds a gift.
    mutating func apply(_ gift: Gift) {
        lastNumber = gift.number
        recent.append(gift)
        // In portions, because moving all gifts for each new one would cost too much.
        if recent.count >= Self.recentLimit + Self.recentLimit / 4 {
            recent.removeFirst(recent.count - Self.recentLimit)
        }
        // Cannot overflow: both factors are limited, and their product is far below the highest sum.
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
