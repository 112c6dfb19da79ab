// Fuzz entry of the feed's cursors: each has one text, and a forged one gives at most a part of the list, in order.
// Seeds: Queries/*cursors.txt

import Base
import StoryFeed

func fuzzFeedCursor(_ input: Span<UInt8>) {
    var bytes: [UInt8] = []
    for index in input.indices { bytes.append(input[index]) }
    var feed = StoryFeed(StoryFeed.Configuration(tag: 7))
    for number in 1...6 {
        add(number, to: &feed)
        // Readers began with two streams, and with four.
        guard number == 2 || number == 4 else { continue }
        _ = try? feed.page(limit: 1, at: MonotonicTime.zero + .seconds(number)) { _ in true }
    }
    let later = MonotonicTime.zero + .seconds(9)
    // Each line is a cursor, with which a reader goes on to the end.
    for line in bytes.split(separator: 0x0A).prefix(64) {
        let text = String(decoding: line, as: UTF8.self)
        guard var cursor = FeedCursor(text) else { continue }
        guard cursor.description.utf8.elementsEqual(text.utf8),
            text.utf8.count <= FeedCursor.lengthLimit
        else {
            fatalError("two texts of one cursor: \(text.debugDescription), \(cursor)")
        }
        var seen: Set<StreamID> = []
        var isLast = false
        // A page has a stream, or is the last one.
        for _ in 0...feed.count where !isLast {
            let page = try? feed.page(limit: 2, after: cursor, at: later) { _ in true }
            guard let page else { break }
            guard page.entries.count <= 2, page.isLast || !page.entries.isEmpty,
                page.entries.allSatisfy({ seen.insert($0.item.id).inserted })
            else { fatalError("\(cursor) gives too many streams, or one twice") }
            guard FeedCursor(page.next.description) == page.next else {
                fatalError("\(page.next) is not itself")
            }
            (cursor, isLast) = (page.next, page.isLast)
        }
    }
}

private func add(_ number: Int, to feed: inout StoryFeed) {
    guard let id = StreamID("s\(number)") else { fatalError("no stream's name") }
    _ = try? feed.goLive(FeedItem(id: id, startedAt: WallTime(milliseconds: Int64(number) * 60_000)))
}
