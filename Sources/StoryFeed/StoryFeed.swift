import Base

/// The ordered list of live streams.
///
/// Kept sorted: a stream that goes live, ends, is pinned or boosted takes its place at once by binary search, while
/// viewer counts, which change all the time, are only noted, and all streams concerned are scored again together, at
/// most once an interval and in one pass over the list. No request sorts anything.
///
/// Each going live gets a serial, which never comes again: a stream that ends and goes live again is a new one.
package struct StoryFeed: Sendable {
    /// Limits of the list, and how often it is put in order.
    package struct Configuration: Equatable, Sendable {
        /// What counts how much in the order.
        package var weights = FeedWeights()
        /// Beyond it a stream can be watched, but is not listed.
        package var streamLimit = 20_000
        /// Between two times that viewer counts are looked at; a tenth of it while some are left over.
        package var rescoreInterval = Duration.seconds(2)
        /// Streams scored again at a time, so that nobody has to wait for the feed longer than for 1 ms or so.
        package var rescoreLimit = 1_000
        /// More moves at once than this are not named one by one.
        package var namedMoveLimit = 100
        /// Frozen orders are made at most this often, but for a burst.
        ///
        /// With `epochLimit` it says how long a cursor holds at least: (200 - 16) × 3 s, nine minutes.
        package var epochInterval = Duration.seconds(3)
        /// Orders frozen before `epochInterval` counts.
        package var epochBurst = 16
        /// Frozen orders kept; the oldest goes first.
        package var epochLimit = 200
        /// A frozen order that nobody began to read for this long is forgotten.
        package var epochLifetime = Duration.seconds(600)
        /// Tells this process's cursors from others'.
        package var tag: UInt32

        package init(tag: UInt32) {
            self.tag = tag
        }
    }

    /// Why the list stays as it is.
    package enum Refusal: Error, Equatable, Sendable {
        /// As many streams are live as the feed takes.
        case full
        case notLive
    }

    struct Record: Sendable {
        var item: FeedItem
        var rank: FeedRank
        /// The feed's version when the item last changed.
        var revision: UInt64
        var isUnscored = false
    }

    let configuration: Configuration
    private let weights: FeedWeights
    var records: [UInt64: Record] = [:]
    private var serials: [StreamID: UInt64] = [:]
    /// The live streams in order.
    private(set) var order: [FeedRank] = []
    /// The live streams' serials, ascending: in the order in which they went live.
    private(set) var arrivals: [UInt64] = []
    private(set) var newestSerial: UInt64 = 0
    /// Counts changes of the order, other than ends: those need no new epoch.
    private(set) var orderVersion: UInt64 = 0
    var epochs = EpochShelf()

    /// Streams to be scored again, each once, those that wait longest first; some may have ended.
    private(set) var unscored: [UInt64] = []
    private var lastScored = MonotonicTime(nanoseconds: .min)
    private var hasLeftOver = false
    /// Counts changes of any kind.
    package private(set) var version: UInt64 = 0

    package init(_ configuration: Configuration) {
        self.configuration = configuration
        weights = configuration.weights
        epochs = EpochShelf(configuration)
    }

    // MARK: Looking

    /// Of live streams.
    package var count: Int { order.count }
    /// From first to last.
    package var streams: some Sequence<StreamID> { order.lazy.map(\.id) }

    /// Whether the list has it: a stream beyond `streamLimit` counts as not live.
    package func isLive(_ id: StreamID) -> Bool { serials[id] != nil }
    /// Nil for a stream that is not in the list.
    package func item(_ id: StreamID) -> FeedItem? { record(id)?.item }
    /// Nil for a stream that is not in the list.
    package func rank(of id: StreamID) -> FeedRank? { record(id)?.rank }

    private func record(_ id: StreamID) -> Record? { serials[id].flatMap { records[$0] } }

    /// The nearest stream on one side of a place that meets a condition.
    /// - Parameter rank: nil for before the first. Need not be anybody's place any more.
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

    /// Takes a stream in; for one that is in already, takes over what is new about it.
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

    /// A stream that ended: what to tell, and where it stood.
    package struct Departure: Sendable {
        /// For followers.
        package let change: FeedChange
        /// From where a viewer of it moves on.
        package let rank: FeedRank
    }

    /// - Returns: nil for a stream that is not live: ending twice changes nothing.
    package mutating func end(_ id: StreamID) -> Departure? {
        guard let serial = serials.removeValue(forKey: id), let record = records.removeValue(forKey: serial)
        else { return nil }
        version &+= 1
        remove(record.rank)
        if let index = indexOfArrival(after: serial &- 1) { arrivals.remove(at: index) }
        return Departure(change: .ended(id), rank: record.rank)
    }

    /// Takes over title, host, pause, start, pin and boost; viewers and preview as well if they differ.
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
        // What only the score knows of the viewers is left to the next scoring.
        var scored = item
        scored.viewers = old.item.viewers
        guard scored != old.item, records[serial]?.item != item else { return changes }
        version &+= 1
        records[serial]?.item = item
        records[serial]?.revision = version
        // What only has to do with the order is told by the order.
        (scored.pinnedPlace, scored.boost) = (old.item.pinnedPlace, old.item.boost)
        if scored != old.item { changes.append(.edited(item)) }
        return changes + place(serial)
    }

    /// Pins a stream or takes the pin off.
    package mutating func pin(_ id: StreamID, at place: Int?) throws(Refusal) -> [FeedChange] {
        guard var item = item(id) else { throw .notLive }
        item.pinnedPlace = place
        return try edit(item)
    }

    /// - Parameter steps: as a whole, not in addition.
    package mutating func boost(_ id: StreamID, by steps: Int) throws(Refusal) -> [FeedChange] {
        guard var item = item(id) else { throw .notLive }
        item.boost = steps
        return try edit(item)
    }

    /// Notes a viewer count; it is told, and moves the stream, at the next scoring.
    package mutating func setViewers(_ id: StreamID, _ viewers: Int) {
        guard let serial = serials[id], let record = records[serial], record.item.viewers != viewers else {
            return
        }
        version &+= 1
        records[serial]?.item.viewers = viewers
        records[serial]?.revision = version
        scoreLater(serial)
    }

    /// Nothing for a stream that is not live, or has this preview already.
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

    /// - Returns: who stands before it.
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

    /// Gives one stream the place that it now deserves.
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

    private mutating func scoreLater(_ serial: UInt64) {
        guard let record = records[serial], !record.isUnscored else { return }
        records[serial]?.isUnscored = true
        // Streams that end and come back before they are scored leave nothing but their serials behind.
        if unscored.count >= 2 * configuration.streamLimit { unscored.removeAll { records[$0] == nil } }
        unscored.append(serial)
    }

    /// When there is something to score again.
    package var deadline: MonotonicTime? {
        guard !unscored.isEmpty else { return nil }
        return lastScored + (hasLeftOver ? configuration.rescoreInterval / 10 : configuration.rescoreInterval)
    }

    /// Scores again, if it is time, the streams whose viewers changed.
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

    /// Gives streams their new ranks in one pass: takes them all out and merges them in again.
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

    /// The index in `arrivals` of the first stream that went live after another.
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
