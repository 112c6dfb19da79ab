import Base
import Interaction

/// The gifts that followers have not been sent yet; they get all of them, in order, a few times a second.
///
/// No more gifts wait than have become durable since the last message.
struct GiftNews {
    /// The least time between two messages.
    private static let interval = Duration.milliseconds(100)
    /// Gifts in one message, which must fit into what may wait for a slow reader.
    private static let messageLimit = 100

    private var waiting: [Gift] = []
    private var toldAt: MonotonicTime?

    mutating func append(_ gift: Gift) { waiting.append(gift) }

    /// When a message is due; nil if no gift waits.
    ///
    /// A full message is due immediately: several messages at a time may be more than a follower's connection
    /// accepts.
    var deadline: MonotonicTime? {
        guard !waiting.isEmpty else { return nil }
        return waiting.count >= Self.messageLimit ? .zero : toldAt.map { $0 + Self.interval } ?? .zero
    }

    /// The members of each message that is due: none, one, or several if many gifts wait.
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
    /// The representation for followers and clients.
    package var json: JSON { .object(members) }

    /// The representation for the shop and for hosts, with the shop's own key.
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
    /// Gifts in a new follower's snapshot, so that a short absence misses none.
    private static let toldLimit = 50

    /// The sums over all gifts.
    var totalsJSON: JSON {
        .object([
            "gifts": .integer(count), "value": .integer(value), "currency": .text(currency),
            "last": .integer(lastNumber),
        ])
    }

    /// What a new follower is sent.
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
