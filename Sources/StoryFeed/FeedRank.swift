import Base

/// How much viewers, age and boost count in the feed's order.
///
/// A score is made of whole numbers only, so that every machine makes the same one, and ageing is linear: each stream
/// loses the same in the same time. So the order of two streams never changes merely because time passes, and a score
/// can be written as what a stream gains by having started later. Nothing has to be scored again as a clock ticks.
package struct FeedWeights: Equatable, Sendable {
    /// Of each weight, either way.
    package static let limit = 1_000
    /// Steps that count, either way.
    package static let boostLimit = 1_000

    /// Points for each doubling of the audience.
    package let perDoublingOfViewers: Int
    /// Points lost with each hour since the start.
    package let perHour: Int
    /// Points for each step of boost.
    package let perBoost: Int

    /// - Parameters: each within ±`limit`; what is beyond is cut.
    package init(perDoublingOfViewers: Int = 10, perHour: Int = 5, perBoost: Int = 10) {
        self.perDoublingOfViewers = Self.cut(perDoublingOfViewers, to: Self.limit)
        self.perHour = Self.cut(perHour, to: Self.limit)
        self.perBoost = Self.cut(perBoost, to: Self.limit)
    }

    /// In 1/1,024 of a point; the higher, the further ahead.
    func score(_ item: FeedItem) -> Int64 {
        // Seconds until the year 2106: with the greatest weight, 52 bits.
        let started = min(max(item.startedAt.milliseconds / 1_000, 0), Int64(UInt32.max))
        let age = started * Int64(perHour) * 1_024 / 3_600
        let audience = Int64(perDoublingOfViewers) * Self.doublings(of: item.viewers)
        let boost = Int64(perBoost) * Int64(Self.cut(item.boost, to: Self.boostLimit)) * 1_024
        return age + audience + boost
    }

    /// The logarithm of `viewers + 1` to the base of 2, in 1/1,024; a straight line between powers of two.
    static func doublings(of viewers: Int) -> Int64 {
        let value = Int64(min(max(viewers, 0), 1_000_000_000)) + 1
        let whole = Int64(63 - value.leadingZeroBitCount)
        let rest = ((value - (1 << whole)) << 10) >> whole
        return whole << 10 + rest
    }

    private static func cut(_ value: Int, to limit: Int) -> Int { min(max(value, -limit), limit) }
}

/// Where a stream stands in the feed: pinned place, then score, then name.
///
/// A strict order over all streams that are live at the same time. It outlives its stream, so that what came next is
/// known even after a stream has ended.
package struct FeedRank: Comparable, Sendable {
    /// `UInt32.max` for a stream that is not pinned.
    let place: UInt32
    let score: Int64
    let id: StreamID
    /// Counts every going live; see `StoryFeed`.
    let serial: UInt64

    init(_ item: FeedItem, serial: UInt64, weights: FeedWeights) {
        place = item.pinnedPlace.map { UInt32(min(max($0, 0), 1_000_000)) } ?? .max
        score = weights.score(item)
        id = item.id
        self.serial = serial
    }

    package static func < (left: FeedRank, right: FeedRank) -> Bool {
        if left.place != right.place { return left.place < right.place }
        if left.score != right.score { return left.score > right.score }
        return left.id != right.id && left.id.description < right.id.description
    }

    package static func == (left: FeedRank, right: FeedRank) -> Bool {
        left.place == right.place && left.score == right.score && left.id == right.id
    }
}
