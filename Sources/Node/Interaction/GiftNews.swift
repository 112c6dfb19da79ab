import Base
import Interaction

/// Which gifts followers have not heard of yet: they are told of all of them, in order, a few times a second.
///
/// No more wait than became durable since the last message.
struct GiftNews {
    /// Between two messages.
    private static let interval = Duration.milliseconds(100)
    /// In one message, which has to fit into what a slow reader may be sent.
    private static let messageLimit = 100

    private var waiting: [Gift] = []
    private var toldAt: MonotonicTime?

    mutating func append(_ gift: Gift) { waiting.append(gift) }

    /// When there is something to tell; nil for never.
    ///
    /// What fills a message does not wait: several at once may be more than a follower may be sent.
    var deadline: MonotonicTime? {
        guard !waiting.isEmpty else { return nil }
        return waiting.count >= Self.messageLimit ? .zero : toldAt.map { $0 + Self.interval } ?? .zero
    }

    /// What to tell now: the members of one message, or of several where there are many.
    mutating func take(_ totals: GiftTotals, at now: MonotonicTime) -> [[String: JSON]] {
        guard let deadline, deadline <= now else { return [] }
        toldAt = now
        defer { waiting = [] }
        return stride(from: 0, to: waiting.count, by: Self.messageLimit).map { start in
            let gifts = waiting[start..<min(start + Self.messageLimit, waiting.count)]
            return ["gifts": .array(gifts.map(\.json)), "giftTotals": totals.totalsJSON]
        }
    }
}

extension Gift {
    /// As followers see it.
    package var json: JSON { .object(members) }

    /// As the shop and hosts see it.
    package var ledgerJSON: JSON { .object(members.merging(["key": .string(key)]) { known, _ in known }) }

    private var members: [String: JSON] {
        [
            "number": .integer(number), "giver": .string(giver.description), "name": .text(name),
            "gift": .string(kind), "count": .integer(count), "combo": .integer(combo),
            "price": .object(["amount": .integer(price), "currency": .string(currency)]), "at": .time(at),
        ]
    }
}

extension GiftTotals {
    /// Gifts that those who come are told of, so that whoever was away for a moment has missed none.
    private static let toldLimit = 50

    /// Sums of everything.
    var totalsJSON: JSON {
        .object([
            "gifts": .integer(count), "value": .integer(value), "currency": .text(currency),
            "last": .integer(lastNumber),
        ])
    }

    /// For those who come.
    var json: JSON {
        .object(["recent": .array(recent.suffix(Self.toldLimit).map(\.json)), "totals": totalsJSON])
    }
}

extension GiftCatalogue {
    /// As followers and clients see it.
    package var json: JSON {
        let kinds = kinds.map { kind in
            JSON.object([
                "id": .string(kind.id), "name": .string(kind.name), "picture": .string(kind.picture),
                "price": .integer(kind.price),
            ])
        }
        return .object(["currency": .string(currency), "kinds": .array(kinds)])
    }
}
