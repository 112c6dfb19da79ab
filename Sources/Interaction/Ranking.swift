import Base

/// Of what a rank is made.
package enum RankPeriod: String, Sendable, CaseIterable {
    /// Since it was made.
    case stream
    /// Since midnight, UTC.
    case day
}

/// One of a list of those who are first.
package struct Rank: Equatable, Sendable {
    /// Whose it is.
    package let id: ParticipantID
    /// For people; nil where they have none.
    package let name: String?
    /// What decides on the place: of givers in the smallest unit of the currency, of fans in points.
    package let value: Int
}

/// What people have gathered, and who is first; bounded.
package struct RankTable: Equatable, Sendable {
    /// What somebody gathered.
    package struct Entry: Equatable, Sendable, Codable {
        /// As of the last time.
        package fileprivate(set) var name: String?
        /// At most `RankTable.highest`.
        package fileprivate(set) var value = 0
        /// Grows from one time to the next; it breaks ties: who was there first is before.
        fileprivate var last = 0

        private enum CodingKeys: String, CodingKey {
            case name, value
            case last = "lastGift"
        }
    }

    /// Where sums stop, so that they stay whole numbers in JSON.
    package static let highest = 9_007_199_254_740_991

    package private(set) var entries: [ParticipantID: Entry] = [:]

    /// - Parameters:
    ///   - last: which time it is.
    ///   - limit: of people; beyond it, who has least is forgotten.
    mutating func add(_ value: Int, to id: ParticipantID, name: String?, last: Int, limit: Int) {
        var entry = entries[id] ?? Entry()
        entry.name = name
        entry.value = Self.sum(entry.value, value)
        entry.last = last
        entries[id] = entry
        guard entries.count > limit, let least = entries.max(by: Self.isBefore) else { return }
        entries[least.key] = nil
    }

    static func sum(_ one: Int, _ other: Int) -> Int {
        let (sum, overflow) = one.addingReportingOverflow(other)
        return overflow ? highest : min(sum, highest)
    }

    /// The first first.
    package func top(_ limit: Int) -> [Rank] {
        entries.sorted(by: Self.isBefore).prefix(limit).map { id, entry in
            Rank(id: id, name: entry.name, value: entry.value)
        }
    }

    private typealias Element = (key: ParticipantID, value: Entry)

    /// In an order that hashing does not decide.
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

/// Who is first in a stream, and who of the latest day.
///
/// Days are those of UTC. What came on the first day is not written twice: as long as it lasts both are the same.
package struct Ranking: Equatable, Sendable {
    private struct Later: Equatable, Codable {
        let day: Int64
        var table = RankTable()
    }

    package private(set) var all: RankTable
    /// Nil while there is nothing, and where it was before days were counted.
    private var firstDay: Int64?
    /// The latest day, unless it is the first.
    private var later: Later?

    init(_ all: RankTable = RankTable()) {
        self.all = all
    }

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

    /// The first first.
    package func top(_ limit: Int, of period: RankPeriod = .stream, at now: WallTime) -> [Rank] {
        if period == .stream || firstDay == now.day { return all.top(limit) }
        guard let later, later.day == now.day else { return [] }
        return later.table.top(limit)
    }

    /// Whether all that there is came today.
    package func isOfOneDay(at now: WallTime) -> Bool { all.entries.isEmpty || firstDay == now.day }
}

/// As a table alone it was written before days were counted.
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
        // Not `/` alone, which rounds times before 1970 up.
        let rest = milliseconds % Self.millisecondsOfDay
        return milliseconds / Self.millisecondsOfDay - (rest < 0 ? 1 : 0)
    }

    /// The next midnight, UTC; saturates.
    package var nextDay: WallTime {
        let (start, overflow) = (day + 1).multipliedReportingOverflow(by: Self.millisecondsOfDay)
        return WallTime(milliseconds: overflow ? .max : start)
    }
}
