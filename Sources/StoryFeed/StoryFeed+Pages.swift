import Base

/// The frozen orders that readers with a cursor follow.
///
/// They are numbered without gaps, sorted from the oldest, and bounded in number.
struct EpochShelf: Sendable {
    /// The feed's order at the moment when a reader began.
    struct Epoch: Sendable {
        let number: UInt64
        let serials: [UInt64]
        /// The serial of the stream that went live last before the order was frozen.
        let newest: UInt64
        /// The feed's `orderVersion` at that moment; the epoch can be used again while it is the same.
        let orderVersion: UInt64
        /// When a reader last began with this order.
        var lastBegun: MonotonicTime
    }

    private var epochs: [Epoch] = []
    private var lastNumber: UInt64 = 0
    private var budget = RateBudget(interval: .seconds(1), burst: 1)

    init() {}

    init(_ configuration: StoryFeed.Configuration) {
        budget = RateBudget(interval: configuration.epochInterval, burst: configuration.epochBurst)
    }

    /// The epoch with this number; nil if it is no longer kept, or was never made.
    subscript(number: UInt64) -> Epoch? {
        guard let first = epochs.first, number >= first.number, number <= lastNumber else { return nil }
        return epochs[Int(number - first.number)]
    }

    func wasMade(_ number: UInt64) -> Bool { number >= 1 && number <= lastNumber }

    /// Returns the order for a new reader: the present one, or a slightly older one if the budget for new ones is
    /// used up.
    mutating func begin(_ feed: borrowing StoryFeed, at now: MonotonicTime) -> Epoch {
        let configuration = feed.configuration
        if let last = epochs.last, last.orderVersion == feed.orderVersion || !budget.spend(at: now) {
            epochs[epochs.count - 1].lastBegun = now
            return last
        }
        lastNumber += 1
        let epoch = Epoch(
            number: lastNumber, serials: feed.order.map(\.serial), newest: feed.newestSerial,
            orderVersion: feed.orderVersion, lastBegun: now)
        // Only the last epoch is used for new readers, so the epochs that were begun longest ago are at the front.
        let isOld: (Epoch) -> Bool = { now - $0.lastBegun > configuration.epochLifetime }
        let tooMany = max(epochs.count + 1 - max(configuration.epochLimit, 1), 0)
        epochs.removeFirst(max(tooMany, epochs.prefix(while: isOld).count))
        epochs.append(epoch)
        return epoch
    }
}

extension StoryFeed {
    /// Maximum number of items on a page; a request for more gets this many.
    package static let pageLimit = 100

    /// Returns the first page of the feed, or the page after a cursor.
    ///
    /// **Why no stream is given twice and none is skipped.** A reader follows the order that was frozen when it
    /// began, its epoch, whatever moves meanwhile. Each stream occurs in it once, and the offset only grows. So each
    /// is given once, unless it has ended. Streams that went live later are not in the epoch. They are given in the
    /// order of their serials, and the cursor contains the last one given. Serials only grow, so each of these is
    /// given once too, and no stream is in both groups. Except on the first page, they come first, right ahead of the
    /// reader's position. They take at most half of a page, so that many new streams do not keep the reader from the
    /// rest.
    ///
    /// Epochs are made only for first pages, only if the order changed, and at a limited rate. When the burst is used
    /// up, a first page is at most `epochInterval` old. The number of epochs is bounded, and a cursor whose epoch is
    /// no longer kept is refused.
    /// - Parameters:
    ///   - limit: items on the page, clamped to 1...`pageLimit`.
    ///   - maySee: whether the reader may see a stream; others are passed over.
    package mutating func page(
        limit: Int, after cursor: FeedCursor? = nil, at now: MonotonicTime, maySee: (StreamID) -> Bool
    ) throws(CursorRefusal) -> FeedPage {
        let limit = min(max(limit, 1), Self.pageLimit)
        let epoch: EpochShelf.Epoch
        var next: FeedCursor
        if let cursor {
            epoch = try self.epoch(of: cursor)
            next = cursor
        } else {
            // `begin` mutates the shelf and reads the feed that contains it, so the shelf is moved out for the call.
            var shelf = epochs
            epochs = EpochShelf()
            epoch = shelf.begin(self, at: now)
            epochs = shelf
            next = FeedCursor(
                tag: configuration.tag, epoch: epoch.number, offset: 0, newest: epoch.newest, given: 0)
        }
        var picked: [UInt64] = []
        if cursor != nil { takeArrivals(into: &picked, upTo: (limit + 1) / 2, &next, maySee) }
        takeFrozen(epoch, into: &picked, upTo: limit, &next, maySee)
        takeArrivals(into: &picked, upTo: limit, &next, maySee)

        var entries: [FeedPage.Entry] = []
        var fingerprint = Fingerprint()
        for serial in picked {
            guard let record = records[serial] else { continue }
            entries.append(FeedPage.Entry(position: Int(next.given), item: record.item))
            next.given &+= 1
            fingerprint.add(serial)
            fingerprint.add(record.revision)
        }
        fingerprint.add(next.given == 0 ? 0 : UInt64(next.given) &- UInt64(entries.count))
        let isLast = Int(next.offset) >= epoch.serials.count && indexOfArrival(after: next.newest) == nil
        fingerprint.add(isLast ? 1 : 0)
        return FeedPage(entries: entries, next: next, isLast: isLast, fingerprint: fingerprint.value)
    }

    /// Looks up the epoch of a cursor, and checks that this server could have issued the cursor.
    private func epoch(of cursor: FeedCursor) throws(CursorRefusal) -> EpochShelf.Epoch {
        guard cursor.tag == configuration.tag else { throw .expired }
        guard epochs.wasMade(cursor.epoch) else { throw .unknown }
        guard let epoch = epochs[cursor.epoch] else { throw .expired }
        guard Int(cursor.offset) <= epoch.serials.count, cursor.newest >= epoch.newest,
            cursor.newest <= newestSerial, cursor.given < .max / 2
        else { throw .unknown }
        return epoch
    }

    /// Picks streams from the frozen order.
    ///
    /// Streams that have ended or may not be seen are passed over, also directly behind the page, so that `isLast` is
    /// right.
    private func takeFrozen(
        _ epoch: EpochShelf.Epoch, into picked: inout [UInt64], upTo limit: Int, _ next: inout FeedCursor,
        _ maySee: (StreamID) -> Bool
    ) {
        var index = Int(next.offset)
        while index < epoch.serials.count {
            let serial = epoch.serials[index]
            if let record = records[serial], maySee(record.item.id) {
                guard picked.count < limit else { break }
                picked.append(serial)
            }
            index += 1
        }
        next.offset = UInt32(clamping: index)
    }

    /// Picks streams that went live after the epoch, in the order of their serials.
    private func takeArrivals(
        into picked: inout [UInt64], upTo limit: Int, _ next: inout FeedCursor, _ maySee: (StreamID) -> Bool
    ) {
        guard let start = indexOfArrival(after: next.newest) else { return }
        for serial in arrivals[start...] {
            if let record = records[serial], maySee(record.item.id) {
                guard picked.count < limit else { return }
                picked.append(serial)
            }
            next.newest = serial
        }
    }
}

/// The 64-bit FNV-1a hash: the same on every machine and in every run, unlike `Hasher`.
private struct Fingerprint {
    private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

    mutating func add(_ number: UInt64) {
        var number = number
        for _ in 0..<8 {
            value = (value ^ (number & 0xFF)) &* 0x0000_0100_0000_01B3
            number >>= 8
        }
    }
}
