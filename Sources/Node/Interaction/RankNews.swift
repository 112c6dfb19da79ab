import Base
import Interaction

/// Who gave most, as followers were told it: anew when the first ten are others or gave more, twice a second at most.
struct RankNews {
    /// Followers are told of so many.
    static let toldLimit = 10
    /// Whoever asks is told of so many.
    static let longest = 100
    private static let interval = Duration.milliseconds(500)

    private var told: [GiftTotals.Rank]
    private var toldAt: MonotonicTime?
    private var mayDiffer = false

    init(_ totals: GiftTotals) {
        told = totals.top(Self.toldLimit)
    }

    /// Something was given.
    mutating func note() { mayDiffer = true }

    /// When it is looked whether there is something to tell; nil for never.
    var deadline: MonotonicTime? { mayDiffer ? toldAt.map { $0 + Self.interval } ?? .zero : nil }

    /// What to tell now; nil for nothing.
    mutating func take(_ totals: GiftTotals, at now: MonotonicTime) -> JSON? {
        guard let deadline, deadline <= now else { return nil }
        mayDiffer = false
        toldAt = now
        let top = totals.top(Self.toldLimit)
        guard top != told else { return nil }
        told = top
        return totals.ranksJSON
    }
}

extension GiftTotals {
    /// The first ten, for all who follow.
    var ranksJSON: JSON { .object(["givers": .array(top(RankNews.toldLimit).map(\.json))]) }
}

extension GiftTotals.Rank {
    package var json: JSON {
        .object([
            "participant": .string(id.description), "name": .text(name), "value": .integer(value),
        ])
    }
}
