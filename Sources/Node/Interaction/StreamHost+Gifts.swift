import Base
import Interaction
import Stage
import Store

/// What a shop says was given: each once, whatever is repeated, and whatever happens to the process.
extension StreamHost {
    /// Between what is looked for and what is decided, others may be faster; so often it is tried.
    private static let lookLimit = 8

    /// The gift of that key, if it is so old that only the ledger knows it.
    ///
    /// Whoever is told nil can decide at once: of all keys that came since, the latest gifts in memory tell.
    func ledgerGift(_ draft: Gift.Draft, from sender: Stage.Sender) async throws(StageRefusal) -> Gift? {
        guard sender.isShop else { throw .interaction(.notShop) }
        guard committed != nil else { throw .unknownStream }
        if let rejection = refusal(to: sender) { throw .rejected(rejection) }
        for _ in 0..<Self.lookLimit {
            let durable = interaction.committed.gifts.lastNumber
            let gifts = interaction.machine.record.gifts
            guard gifts.gift(draft.key) == nil else { return nil }
            // Those that are not durable yet have to be among the latest, or one could be taken twice.
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
            // The ledger does not have it, as of then; what came since must be in memory.
            if interaction.machine.record.gifts.lastNumber - durable < GiftTotals.recentLimit { return nil }
        }
        throw .overloaded
    }

    /// The ledger, in order, for those who may see it.
    /// - Parameter number: of the gift after which it begins; 0 for the first.
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

    /// Those who gave most, or took part most, the first first.
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
            // What the values are in; points have no currency.
            "currency": name == .givers ? .text(record.gifts.currency) : .null,
        ])
    }
}

extension Stage.Sender {
    /// Whether they may say that somebody gave something.
    var isShop: Bool { mayGiveGifts || authority == .admin }
}
