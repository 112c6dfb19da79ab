import Base

/// The time over which a ranking adds up.
package enum RankPeriod: String, Sendable, CaseIterable {
    /// Since the stream was created.
    case stream
    /// Since midnight, UTC.
    case day
}

/// A place in a ranking.
package struct Rank: Equatable, Sendable {
    /// The participant.
    package let id: ParticipantID
    /// Display name; nil if there is none.
    package let name: String?
    /// What determines the place: for givers the value in the smallest unit of the currency, for fans points.
    package let value: Int
}

/// The sums of participants, and who has the largest; bounded.
package struct RankTable: Equatable, Sendable {
    /// The sum of one participant.
    package struct Entry: Equatable, Sendable, Codable {
        /// Display name as of the last addition; nil if there is none.
        package fileprivate(set) var name: String?
        /// The sum, at most `RankTable.highest`.
        package fileprivate(set) var value = 0
        /// The number of the last addition; of two equal sums, the one that was reached earlier is placed first.
        fileprivate var last = 0

        private enum CodingKeys: String, CodingKey {
            case name, value
            case last = "lastGift"
        }
    }

    /// The highest sum: the largest integer that JSON's parsers keep exact.
    package static let highest = 9_007_199_254_740_991

    /// The sums by participant.
    package private(set) var entries: [ParticipantID: Entry] = [:]

    /// Adds to a participant's sum.
    /// - Parameters:
    ///   - last: the number of this addition; increases from one to the next.
    ///   - limit: participants kept; beyond that the last one is dropped.
    mutating func add(_ value: Int, to id: ParticipantID, name: String?, last: Int, limit: Int) {
        var entry = entries[id] ?? Entry()
        entry.name = name
        entry.value = Self.sum(entry.value, value)
        entry.last = last
        entries[id] = entry
        guard entries.count > limit, let least = entries.max(by: Self.isBefore) else { return }
        entries[least.key] = nil
    }

    /// Adds two sums, up to `highest`.
    static func sum(_ one: Int, _ other: Int) -> Int {
        let (sum, overflow) = one.addingReportingOverflow(other)
        return overflow ? highest : min(sum, highest)
    }

    /// The first places in order.
    package func top(_ limit: Int) -> [Rank] {
        entries.sorted(by: Self.isBefore).prefix(limit).map { id, entry in
            Rank(id: id, name: entry.name, value: entry.value)
        }
    }

    private typealias Element = (key: ParticipantID, value: Entry)

    /// Whether one is placed before the other, in an order that does not depend on hashing.
    private static func isBefore(_ one: Element, _ other: Element) -> Bool {
        if one.value.value != other.value.value { return one.value.value > other.value.value }
        if one.value.last != other.value.last { return one.value.last < other.value.last }
        return one.key.description < other.key.description
    }
}

extension RankTable: Codable {
    package init(from decoder: any Decoder) throws {
        entries = try decoder.singleValueContainer().decode([ParticipantID: Entry].self)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(entries)
    }
}

/// The ranking of a stream, and that of the latest day.
///
/// Days are those of UTC. During the first day the two are identical, and stored once.
package struct Ranking: Equatable, Sendable {
    /// The table of a day that is not the first.
    private struct Later: Equatable, Codable {
        let day: Int64
        var table = RankTable()
    }

    /// Sums since the stream was created.
    package private(set) var all: RankTable
    /// The day of the first sum; nil while there is none, and in records from before days were counted.
    private var firstDay: Int64?
    /// The latest day, unless it is the first.
    private var later: Later?

    init(_ all: RankTable = RankTable()) {
        self.all = all
    }

    /// Adds to both rankings; the first sum of a new day replaces the ranking of the day before.
    mutating func add(
        _ value: Int, to id: ParticipantID, name: String?, last: Int, limit: Int, at time: WallTime
    ) {
        let day = time.day
        if all.entries.isEmpty { firstDay = day }
        all.add(value, to: id, name: name, last: last, limit: limit)
        guard day != firstDay else { return }
        if later?.day != day { later = Later(day: day) }
        later?.table.add(value, to: id, name: name, last: last, limit: limit)
    }

    /// The first places of a period in order; none if nothing was added today and the period is the day.
    package func top(_ limit: Int, of period: RankPeriod = .stream, at now: WallTime) -> [Rank] {
        if period == .stream || firstDay == now.day { return all.top(limit) }
        guard let later, later.day == now.day else { return [] }
        return later.table.top(limit)
    }

    /// Whether all sums are from today, so that both rankings are the same.
    package func isOfOneDay(at now: WallTime) -> Bool { all.entries.isEmpty || firstDay == now.day }
}

/// Before days were counted, a ranking was stored as a table alone; that form can still be read.
extension Ranking: Codable {
    private enum Keys: String, CodingKey { case all, firstDay, later }

    package init(from decoder: any Decoder) throws {
        guard let container = try? decoder.container(keyedBy: Keys.self), container.contains(.all) else {
            self.init(try RankTable(from: decoder))
            return
        }
        self.init(try container.decode(RankTable.self, forKey: .all))
        firstDay = try container.decodeIfPresent(Int64.self, forKey: .firstDay)
        later = try container.decodeIfPresent(Later.self, forKey: .later)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(all, forKey: .all)
        try container.encodeIfPresent(firstDay, forKey: .firstDay)
        try container.encodeIfPresent(later, forKey: .later)
    }
}

extension WallTime {
    private static let millisecondsOfDay: Int64 = 86_400_000

    /// Days since 1970, UTC.
    package var day: Int64 {
        // Division alone would round times before 1970 up.
        let rest = milliseconds % Self.millisecondsOfDay
        return milliseconds / Self.millisecondsOfDay - (rest < 0 ? 1 : 0)
    }

    /// The next midnight, UTC; saturates.
    package var nextDay: WallTime {
        let (start, overflow) = (day + 1).multipliedReportingOverflow(by: Self.millisecondsOfDay)
        return WallTime(milliseconds: overflow ? .max : start)
    }
}
