import Base

/// The orders that readers with a cursor go by.
///
/// Numbered without gaps, the oldest first, a bounded number of them.
struct EpochShelf: Sendable {
    /// An order as it was when somebody began to read.
    struct Epoch: Sendable {
        let number: UInt64
        let serials: [UInt64]
        /// The latest stream in it, or before it.
        let newest: UInt64
        let orderVersion: UInt64
        var lastBegun: MonotonicTime
    }

    private var epochs: [Epoch] = []
    private var lastNumber: UInt64 = 0
    private var budget = RateBudget(interval: .seconds(1), burst: 1)

    init() {}

    init(_ configuration: StoryFeed.Configuration) {
        budget = RateBudget(interval: configuration.epochInterval, burst: configuration.epochBurst)
    }

    subscript(number: UInt64) -> Epoch? {
        guard let first = epochs.first, number >= first.number, number <= lastNumber else { return nil }
        return epochs[Int(number - first.number)]
    }

    func wasMade(_ number: UInt64) -> Bool { number >= 1 && number <= lastNumber }

    /// The order to begin with: the present one, or one that is hardly older.
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
        // The last one is the latest begun: the old ones stand in front.
        let isOld: (Epoch) -> Bool = { now - $0.lastBegun > configuration.epochLifetime }
        let tooMany = max(epochs.count + 1 - max(configuration.epochLimit, 1), 0)
        epochs.removeFirst(max(tooMany, epochs.prefix(while: isOld).count))
        epochs.append(epoch)
        return epoch
    }
}

extension StoryFeed {
    /// Items; a request for more gets this many.
    package static let pageLimit = 100

    /// The first part of the feed, or the part after a cursor.
    ///
    /// **Why nothing is seen twice and nothing skipped.** A reader goes by the order that was frozen when it began, its
    /// epoch, whatever moves meanwhile. Every stream stands in it once, and the offset only grows: so each is given
    /// once, unless it has ended. Streams that went live later are in no place of it. They are given in the order of
    /// their serials, and the cursor says up to which: serials only grow, so each of these is given once as well, and
    /// no stream is both in the epoch and later than it. They come first on every page but the first one, that is,
    /// right ahead of where the reader is; half a page at most, lest a crowd of new ones keep the reader from the rest.
    ///
    /// Epochs are made only for first pages, only if the order changed, and at a bounded rate; when the burst is used
    /// up, the first page is as old as `epochInterval` at most. A bounded number is kept, and a cursor whose epoch is
    /// not any more is refused instead of guessed at.
    /// - Parameter maySee: what the reader may not see is passed over.
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

    private func epoch(of cursor: FeedCursor) throws(CursorRefusal) -> EpochShelf.Epoch {
        guard cursor.tag == configuration.tag else { throw .expired }
        guard epochs.wasMade(cursor.epoch) else { throw .unknown }
        guard let epoch = epochs[cursor.epoch] else { throw .expired }
        guard Int(cursor.offset) <= epoch.serials.count, cursor.newest >= epoch.newest,
            cursor.newest <= newestSerial, cursor.given < .max / 2
        else { throw .unknown }
        return epoch
    }

    /// Gives from the frozen order, and passes over what has ended or may not be seen, behind the page as well.
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

    /// Gives of the streams that went live since.
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

/// The hash FNV-1a of 64 bits: the same on every machine and in every run.
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
