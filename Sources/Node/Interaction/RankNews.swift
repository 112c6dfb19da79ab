import Base
import Interaction

/// A list of those who are first in something.
package enum RankName: String, Sendable, CaseIterable {
    /// Who gave most.
    case givers
    /// Who took part most.
    case fans
}

/// Who is first, as followers were told it: anew when the first ten are others or have more, twice a second at most.
struct RankNews {
    /// Followers are told of so many.
    static let toldLimit = 10
    /// Whoever asks is told of so many.
    static let longest = 100
    /// So many have a badge beside their names.
    static let badgeLimit = 3
    private static let interval = Duration.milliseconds(500)

    /// What followers are told.
    struct Lists: Equatable {
        let givers: [Rank]
        let fans: [Rank]
        /// Those of the day; nil where they are the same, because everything came today.
        let ofDay: [[Rank]]?

        init(_ record: InteractionRecord, at now: WallTime) {
            let rankings = [record.gifts.givers, record.fans]
            givers = rankings[0].top(RankNews.toldLimit, at: now)
            fans = rankings[1].top(RankNews.toldLimit, at: now)
            ofDay =
                rankings.allSatisfy { $0.isOfOneDay(at: now) }
                ? nil
                : rankings.map {
                    $0.top(RankNews.toldLimit, of: .day, at: now)
                }
        }

        var isEmpty: Bool { givers.isEmpty && fans.isEmpty }

        var json: JSON {
            let names = RankName.allCases.map(\.rawValue)
            let day = ofDay.map { lists in
                JSON.object(Dictionary(uniqueKeysWithValues: zip(names, lists.map(Self.json))))
            }
            return .object([
                "givers": Self.json(givers), "fans": Self.json(fans), "day": day ?? .null,
            ])
        }

        private static func json(_ ranks: [Rank]) -> JSON { .array(ranks.map(\.json)) }
    }

    private var told: Lists
    /// Of the day that `told` is of.
    private var midnight: WallTime
    private var toldAt: MonotonicTime?
    private var mayDiffer = false

    init(_ record: InteractionRecord, at now: WallTime) {
        told = Lists(record, at: now)
        midnight = now.nextDay
    }

    /// Something was given, or points were.
    mutating func note() { mayDiffer = true }

    /// When it is looked whether there is something to tell; nil for never.
    func deadline(at now: Moment) -> MonotonicTime? {
        if mayDiffer { return toldAt.map { $0 + Self.interval } ?? .zero }
        return told.isEmpty ? nil : now.elapsed(at: midnight)
    }

    /// What to tell now; nil for nothing.
    mutating func take(_ record: InteractionRecord, at now: Moment) -> JSON? {
        guard let deadline = deadline(at: now), deadline <= now.elapsed else { return nil }
        mayDiffer = false
        toldAt = now.elapsed
        midnight = now.wall.nextDay
        let lists = Lists(record, at: now.wall)
        guard lists != told else { return nil }
        told = lists
        return lists.json
    }

    /// As it was told last.
    var json: JSON { told.json }

    /// Those who were told of, in the order in which pages show who is there: who gave, then who took part.
    var leaders: [ParticipantID] {
        var seen: Set<ParticipantID> = []
        return (told.givers + told.fans).map(\.id).filter { seen.insert($0).inserted }
    }

    /// What stands beside somebody's name, such as `giver-1`.
    func badges(of id: ParticipantID) -> [String] {
        [("giver", told.givers), ("fan", told.fans)].compactMap { name, ranks in
            ranks.prefix(Self.badgeLimit).firstIndex { $0.id == id }.map { "\(name)-\($0 + 1)" }
        }
    }
}

extension Rank {
    package var json: JSON {
        .object([
            "participant": .string(id.description), "name": .text(name), "value": .integer(value),
        ])
    }
}
