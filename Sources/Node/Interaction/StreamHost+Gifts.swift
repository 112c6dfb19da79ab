import Base
import Interaction
import Stage
import Store

/// Gifts that a shop reports: each is shown once, even if the shop repeats the request or the process restarts.
extension StreamHost {
    /// Attempts to look a key up in the ledger: while the store is read, other gifts may be decided.
    private static let lookLimit = 8

    /// The gift with the draft's key, if it is so old that only the ledger in the store has it.
    ///
    /// If the result is nil, the caller may decide without awaiting anything first: a gift of this key that came
    /// since would be among the latest gifts in memory.
    /// - Throws: `.interaction(.giftKeyReused)` if the key was used for another gift.
    func ledgerGift(_ draft: Gift.Draft, from sender: Stage.Sender) async throws(StageRefusal) -> Gift? {
        guard sender.isShop else { throw .interaction(.notShop) }
        guard committed != nil else { throw .unknownStream }
        if let rejection = refusal(to: sender) { throw .rejected(rejection) }
        for _ in 0..<Self.lookLimit {
            let durable = interaction.committed.gifts.lastNumber
            let gifts = interaction.machine.record.gifts
            guard gifts.gift(draft.key) == nil else { return nil }
            // Gifts that are not durable yet must be among the latest in memory, or one could be accepted twice.
            guard gifts.lastNumber - durable < GiftTotals.recentLimit else { throw .overloaded }
            guard gifts.hasForgotten else { return nil }
            let found: Gift?
            do {
                found = try await environment.store.ledgerEntry(draft.key, of: id).map(StageCoding.gift)
            } catch {
                throw .storage("\(error)")
            }
            if let found {
                guard found.isSame(as: draft) else { throw .interaction(.giftKeyReused) }
                return found
            }
            // The ledger had no such gift when it was read. All that came since must still be in memory; else look
            // again.
            if interaction.machine.record.gifts.lastNumber - durable < GiftTotals.recentLimit { return nil }
        }
        throw .overloaded
    }

    /// A page of the ledger, in order, for hosts and the shop.
    /// - Parameter number: of the gift after which the page begins; 0 for the first page.
    package func gifts(
        after number: Int, limit: Int, as sender: Stage.Sender
    ) async throws(StageRefusal) -> JSON {
        _ = try look(as: sender)
        guard let committed, committed.isModerator(sender) || sender.isShop else {
            throw .rejected(.notHost)
        }
        let gifts: [Gift]
        do {
            gifts = try await environment.store.ledger(of: id, after: number, limit: limit + 1)
                .map(StageCoding.gift)
        } catch {
            throw .storage("\(error)")
        }
        return .object([
            "gifts": .array(gifts.prefix(limit).map(\.ledgerJSON)), "more": .bool(gifts.count > limit),
            "totals": interaction.committed.gifts.totalsJSON,
        ])
    }

    /// The participants who gave most, or took part most, in descending order.
    package func rank(
        _ name: RankName, of period: RankPeriod, as sender: Stage.Sender?
    ) throws(StageRefusal) -> JSON {
        guard committed != nil else { throw .unknownStream }
        if let rejection = refusal(to: sender) { throw .rejected(rejection) }
        let record = interaction.committed
        let ranking = name == .givers ? record.gifts.givers : record.fans
        let ranks = ranking.top(RankNews.longest, of: period, at: environment.now().wall)
        return .object([
            "ranks": .array(ranks.map(\.json)), "period": .string(period.rawValue),
            // Points of fans have no currency.
            "currency": name == .givers ? .text(record.gifts.currency) : .null,
        ])
    }
}

extension Stage.Sender {
    /// Whether the sender may report gifts.
    var isShop: Bool { mayGiveGifts || authority == .admin }
}
