import Base

/// The weights of viewers, age and boost in the feed's order.
///
/// Scores are computed in integers, so that every machine computes the same ones. Aging is linear: every stream loses
/// the same number of points in the same time. Therefore time alone never changes the order of two streams. A score
/// can contain a bonus for a later start instead of a penalty for age, and no stream has to be scored again as time
/// passes.
package struct FeedWeights: Equatable, Sendable {
    /// Largest absolute value of each weight.
    package static let limit = 1_000
    /// Largest number of boost steps that count, up or down.
    package static let boostLimit = 1_000

    /// Points for each doubling of the audience.
    package let perDoublingOfViewers: Int
    /// Points lost with each hour since the start.
    package let perHour: Int
    /// Points for each step of boost.
    package let perBoost: Int

    /// Each weight is clamped to ±`limit`.
    package init(perDoublingOfViewers: Int = 10, perHour: Int = 5, perBoost: Int = 10) {
        self.perDoublingOfViewers = Self.cut(perDoublingOfViewers, to: Self.limit)
        self.perHour = Self.cut(perHour, to: Self.limit)
        self.perBoost = Self.cut(perBoost, to: Self.limit)
    }

    /// The score in 1/1,024 of a point; the stream with the higher score comes first.
    func score(_ item: FeedItem) -> Int64 {
        // `UInt32` holds the seconds until the year 2106; times the greatest weight and 1,024 that is 52 bits.
        let started = min(max(item.startedAt.milliseconds / 1_000, 0), Int64(UInt32.max))
        let age = started * Int64(perHour) * 1_024 / 3_600
        let audience = Int64(perDoublingOfViewers) * Self.doublings(of: item.viewers)
        let boost = Int64(perBoost) * Int64(Self.cut(item.boost, to: Self.boostLimit)) * 1_024
        return age + audience + boost
    }

    /// The binary logarithm of `viewers + 1` in units of 1/1,024, linear between powers of two.
    static func doublings(of viewers: Int) -> Int64 {
        let value = Int64(min(max(viewers, 0), 1_000_000_000)) + 1
        let whole = Int64(63 - value.leadingZeroBitCount)
        let rest = ((value - (1 << whole)) << 10) >> whole
        return whole << 10 + rest
    }

    private static func cut(_ value: Int, to limit: Int) -> Int { min(max(value, -limit), limit) }
}

/// A stream's place in the feed: by pinned place, then score, then ID.
///
/// This is a strict order over all streams that are live at the same time. A rank outlives its stream, so that the
/// next stream can be found even after the stream has ended.
package struct FeedRank: Comparable, Sendable {
    /// `UInt32.max` for a stream that is not pinned.
    let place: UInt32
    let score: Int64
    let id: StreamID
    /// Identifies one occasion of going live, as in `StoryFeed`; comparisons ignore it.
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
