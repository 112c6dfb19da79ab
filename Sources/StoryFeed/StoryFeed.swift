import Base

/// The ordered list of live streams.
///
/// The list is always sorted. A stream that goes live, ends, is pinned or boosted is placed immediately by binary
/// search. Viewer counts change all the time, so they are only noted, and all streams concerned are scored again
/// together, at most once per interval and in one pass over the list. No request sorts anything.
///
/// Each time a stream goes live it gets a new serial. A stream that ends and goes live again is a new entry.
package struct StoryFeed: Sendable {
    /// Limits of the list, and how often it is sorted by new viewer counts.
    package struct Configuration: Equatable, Sendable {
        /// The weights of viewers, age and boost.
        package var weights = FeedWeights()
        /// Maximum number of listed streams; further ones can be watched, but are not listed.
        package var streamLimit = 20_000
        /// Time between two scorings by viewer counts; a tenth of it while streams are left over from the last one.
        package var rescoreInterval = Duration.seconds(2)
        /// Maximum number of streams per scoring, so that no caller waits for the feed longer than about 1 ms.
        package var rescoreLimit = 1_000
        /// Maximum number of moves that one scoring reports individually; more are reported as `reordered`.
        package var namedMoveLimit = 100
        /// Minimum time between two frozen orders, after a burst.
        ///
        /// Together with `epochLimit` it determines how long a cursor is valid at least: (200 - 16) × 3 s, nine
        /// minutes.
        package var epochInterval = Duration.seconds(3)
        /// Number of orders that may be frozen in a burst before `epochInterval` applies.
        package var epochBurst = 16
        /// Maximum number of frozen orders kept; the oldest is dropped first.
        package var epochLimit = 200
        /// A frozen order is dropped if no reader began with it for this long.
        package var epochLifetime = Duration.seconds(600)
        /// Distinguishes this process's cursors from those of other processes.
        package var tag: UInt32

        package init(tag: UInt32) {
            self.tag = tag
        }
    }

    /// Why a change of the list was refused.
    package enum Refusal: Error, Equatable, Sendable {
        /// The list contains `streamLimit` streams.
        case full
        case notLive
    }

    /// One listed stream with its place.
    struct Record: Sendable {
        var item: FeedItem
        var rank: FeedRank
        /// The feed's version when the item last changed.
        var revision: UInt64
        /// Whether the stream is in `unscored` already.
        var isUnscored = false
    }

    let configuration: Configuration
    private let weights: FeedWeights
    /// Keyed by serial.
    var records: [UInt64: Record] = [:]
    private var serials: [StreamID: UInt64] = [:]
    /// The ranks of the live streams, from first to last.
    private(set) var order: [FeedRank] = []
    /// The serials of the live streams, ascending, which is the order in which they went live.
    private(set) var arrivals: [UInt64] = []
    private(set) var newestSerial: UInt64 = 0
    /// Counts changes of the order except ends, which need no new epoch because readers pass over ended streams.
    private(set) var orderVersion: UInt64 = 0
    var epochs = EpochShelf()

    /// Serials of the streams to be scored again, each once, those that have waited longest first; some may have
    /// ended.
    private(set) var unscored: [UInt64] = []
    private var lastScored = MonotonicTime(nanoseconds: .min)
    /// Whether the last scoring reached `rescoreLimit` before the end of `unscored`.
    private var hasLeftOver = false
    /// Counts changes of any kind.
    package private(set) var version: UInt64 = 0

    package init(_ configuration: Configuration) {
        self.configuration = configuration
        weights = configuration.weights
        epochs = EpochShelf(configuration)
    }

    // MARK: Looking

    /// The number of listed streams.
    package var count: Int { order.count }
    /// The listed streams, from first to last.
    package var streams: some Sequence<StreamID> { order.lazy.map(\.id) }

    /// Whether the stream is listed: a stream beyond `streamLimit` counts as not live.
    package func isLive(_ id: StreamID) -> Bool { serials[id] != nil }
    /// Nil for a stream that is not in the list.
    package func item(_ id: StreamID) -> FeedItem? { record(id)?.item }
    /// Nil for a stream that is not in the list.
    package func rank(of id: StreamID) -> FeedRank? { record(id)?.rank }

    private func record(_ id: StreamID) -> Record? { serials[id].flatMap { records[$0] } }

    /// Returns the stream nearest to a place, on one side of it, that meets a condition.
    /// - Parameter rank: nil for the place before the first stream. No stream needs to have this rank any more.
    package func nearest(
        to rank: FeedRank?, _ direction: FeedDirection, where isWanted: (StreamID) -> Bool
    ) -> StreamID? {
        let index = rank.map { firstIndex(notBefore: $0) } ?? 0
        switch direction {
        case .backward: return order[..<index].last { isWanted($0.id) }?.id
        case .forward:
            let start = index < order.count && order[index] == rank ? index + 1 : index
            return order[start...].first { isWanted($0.id) }?.id
        }
    }

    private func firstIndex(notBefore rank: FeedRank) -> Int {
        var low = 0
        var high = order.count
        while low < high {
            let middle = (low + high) / 2
            if order[middle] < rank { low = middle + 1 } else { high = middle }
        }
        return low
    }

    // MARK: Changing

    /// Adds a stream, or edits it if it is listed already.
    /// - Throws: `.full` if the list contains `streamLimit` streams.
    package mutating func goLive(_ item: FeedItem) throws(Refusal) -> [FeedChange] {
        guard serials[item.id] == nil else { return try edit(item) }
        guard order.count < configuration.streamLimit else { throw .full }
        version &+= 1
        newestSerial += 1
        let rank = FeedRank(item, serial: newestSerial, weights: weights)
        serials[item.id] = newestSerial
        records[newestSerial] = Record(item: item, rank: rank, revision: version)
        arrivals.append(newestSerial)
        return [.added(item, after: insert(rank))]
    }

    /// The result of a stream's end: the change to announce, and the stream's former place.
    package struct Departure: Sendable {
        /// The change to announce to followers.
        package let change: FeedChange
        /// The place from which the stream's viewers move on.
        package let rank: FeedRank
    }

    /// Removes a stream.
    /// - Returns: nil for a stream that is not listed: ending it twice changes nothing.
    package mutating func end(_ id: StreamID) -> Departure? {
        guard let serial = serials.removeValue(forKey: id), let record = records.removeValue(forKey: serial)
        else { return nil }
        version &+= 1
        remove(record.rank)
        if let index = indexOfArrival(after: serial &- 1) { arrivals.remove(at: index) }
        return Departure(change: .ended(id), rank: record.rank)
    }

    /// Replaces a stream's item, and moves the stream if its place changes.
    ///
    /// A new viewer count is only noted until the next scoring, and an item without a preview keeps the old one.
    /// - Throws: `.notLive` for a stream that is not listed.
    package mutating func edit(_ item: FeedItem) throws(Refusal) -> [FeedChange] {
        guard let serial = serials[item.id], let old = records[serial] else { throw .notLive }
        guard old.item != item else { return [] }
        var changes: [FeedChange] = []
        if let preview = item.preview, preview != old.item.preview {
            changes += setPreview(item.id, preview)
        }
        setViewers(item.id, item.viewers)
        var item = item
        item.preview = item.preview ?? old.item.preview
        // A change of the viewer count alone moves nothing before the next scoring.
        var scored = item
        scored.viewers = old.item.viewers
        guard scored != old.item, records[serial]?.item != item else { return changes }
        version &+= 1
        records[serial]?.item = item
        records[serial]?.revision = version
        // Pin and boost change only the order, which `place` reports.
        (scored.pinnedPlace, scored.boost) = (old.item.pinnedPlace, old.item.boost)
        if scored != old.item { changes.append(.edited(item)) }
        return changes + place(serial)
    }

    /// Notes a viewer count; the next scoring announces it and moves the stream.
    package mutating func setViewers(_ id: StreamID, _ viewers: Int) {
        guard let serial = serials[id], let record = records[serial], record.item.viewers != viewers else {
            return
        }
        version &+= 1
        records[serial]?.item.viewers = viewers
        records[serial]?.revision = version
        scoreLater(serial)
    }

    /// Sets a stream's preview; does nothing for a stream that is not listed or already has this preview.
    package mutating func setPreview(_ id: StreamID, _ preview: FeedPreview) -> [FeedChange] {
        guard let serial = serials[id], let record = records[serial], record.item.preview != preview else {
            return []
        }
        version &+= 1
        records[serial]?.item.preview = preview
        records[serial]?.revision = version
        return [.previewed(id, preview)]
    }

    // MARK: Order

    /// Inserts a rank by binary search.
    /// - Returns: the stream directly before it; nil if it is first.
    private mutating func insert(_ rank: FeedRank) -> StreamID? {
        let index = firstIndex(notBefore: rank)
        order.insert(rank, at: index)
        orderVersion &+= 1
        return index > 0 ? order[index - 1].id : nil
    }

    private mutating func remove(_ rank: FeedRank) {
        let index = firstIndex(notBefore: rank)
        guard index < order.count, order[index] == rank else {
            assertionFailure("a live stream is not where its rank says")
            return
        }
        order.remove(at: index)
    }

    /// Moves one stream to the place that follows from its item.
    private mutating func place(_ serial: UInt64) -> [FeedChange] {
        guard let record = records[serial] else { return [] }
        let rank = FeedRank(record.item, serial: serial, weights: weights)
        guard rank != record.rank else { return [] }
        records[serial]?.rank = rank
        let before = firstIndex(notBefore: record.rank)
        remove(record.rank)
        let predecessor = insert(rank)
        return before == firstIndex(notBefore: rank) ? [] : [.moved(rank.id, after: predecessor)]
    }

    /// Adds a stream to those that the next scoring looks at.
    private mutating func scoreLater(_ serial: UInt64) {
        guard let record = records[serial], !record.isUnscored else { return }
        records[serial]?.isUnscored = true
        // Streams that end and go live again before they are scored leave stale serials behind.
        if unscored.count >= 2 * configuration.streamLimit { unscored.removeAll { records[$0] == nil } }
        unscored.append(serial)
    }

    /// When to score again; nil if there is nothing to score.
    package var deadline: MonotonicTime? {
        guard !unscored.isEmpty else { return nil }
        return lastScored + (hasLeftOver ? configuration.rescoreInterval / 10 : configuration.rescoreInterval)
    }

    /// If the deadline has passed, scores the streams whose viewer counts changed, up to `rescoreLimit` of them.
    package mutating func advance(to now: MonotonicTime) -> [FeedChange] {
        guard let deadline, deadline <= now else { return [] }
        lastScored = now
        var moving: [FeedRank] = []
        var counts: [FeedChange.ViewerCount] = []
        let due = unscored.prefix(max(configuration.rescoreLimit, 1))
        for serial in due {
            guard let record = records[serial] else { continue }
            records[serial]?.isUnscored = false
            counts.append(FeedChange.ViewerCount(stream: record.item.id, viewers: record.item.viewers))
            let rank = FeedRank(record.item, serial: serial, weights: weights)
            guard rank != record.rank else { continue }
            records[serial]?.rank = rank
            moving.append(rank)
        }
        unscored.removeFirst(due.count)
        hasLeftOver = !unscored.isEmpty
        return (counts.isEmpty ? [] : [.viewersChanged(counts)]) + move(moving)
    }

    /// Moves streams to their new ranks in one pass: takes them all out and merges them in again.
    private mutating func move(_ ranks: [FeedRank]) -> [FeedChange] {
        guard !ranks.isEmpty else { return [] }
        let names = Set(ranks.map(\.serial))
        let resting = order.filter { !names.contains($0.serial) }
        var moves: [FeedChange] = []
        var merged: [FeedRank] = []
        merged.reserveCapacity(order.count)
        var rest = 0
        for rank in ranks.sorted() {
            while rest < resting.count, resting[rest] < rank {
                merged.append(resting[rest])
                rest += 1
            }
            moves.append(.moved(rank.id, after: merged.last?.id))
            merged.append(rank)
        }
        merged += resting[rest...]
        let isSameOrder = zip(order, merged).allSatisfy { $0.serial == $1.serial }
        order = merged
        guard !isSameOrder else { return [] }
        orderVersion &+= 1
        return moves.count > configuration.namedMoveLimit ? [.reordered] : moves
    }

    /// The index in `arrivals` of the first stream with a serial above this one; nil if there is none.
    func indexOfArrival(after serial: UInt64) -> Int? {
        var low = 0
        var high = arrivals.count
        while low < high {
            let middle = (low + high) / 2
            if arrivals[middle] <= serial { low = middle + 1 } else { high = middle }
        }
        return low < arrivals.count ? low : nil
    }
}
