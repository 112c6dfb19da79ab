import Base
import Interaction

/// A list of the participants who lead in something.
package enum RankName: String, Sendable, CaseIterable {
    /// By the value of their gifts.
    case givers
    /// By their points for taking part.
    case fans
}

/// The leaders as followers were last sent them.
///
/// They are sent again when the first ten or their values change, at most twice a second.
struct RankNews {
    /// Ranks that followers are sent.
    static let toldLimit = 10
    /// Ranks in the answer to a request.
    static let longest = 100
    /// Ranks that have a badge beside the name.
    static let badgeLimit = 3
    private static let interval = Duration.milliseconds(500)

    /// The lists that followers are sent.
    struct Lists: Equatable {
        let givers: [Rank]
        let fans: [Rank]
        /// The lists of the current day, in the order of `RankName`; nil if they are the same because everything
        /// happened today.
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
    /// The end of the day to which `told` belongs.
    private var midnight: WallTime
    private var toldAt: MonotonicTime?
    /// Whether something has changed since `told` was made.
    private var mayDiffer = false

    init(_ record: InteractionRecord, at now: WallTime) {
        told = Lists(record, at: now)
        midnight = now.nextDay
    }

    /// Notes that something was given, or that points were.
    mutating func note() { mayDiffer = true }

    /// When the lists are to be compared again; nil if there is nothing to compare.
    ///
    /// At midnight the lists of the day change even if nothing happens.
    func deadline(at now: Moment) -> MonotonicTime? {
        if mayDiffer { return toldAt.map { $0 + Self.interval } ?? .zero }
        return told.isEmpty ? nil : now.elapsed(at: midnight)
    }

    /// The lists, if followers are to be sent them now.
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

    /// The lists as they were last sent.
    var json: JSON { told.json }

    /// The participants whom pages list first: givers, then fans, each once.
    var leaders: [ParticipantID] {
        var seen: Set<ParticipantID> = []
        return (told.givers + told.fans).map(\.id).filter { seen.insert($0).inserted }
    }

    /// The badges beside a participant's name, such as `giver-1`.
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
