import Base
import TestSupport
import Testing

@testable import StoryFeed

@Suite struct FeedPages {
    @Test func `follow each other to the end`() throws {
        var rig = FeedRig(streams: 5)
        let first = try rig.page(2)
        #expect(first.numbers == [1, 2])
        #expect(!first.isLast)
        let second = try rig.page(2, after: first.next)
        #expect(second.numbers == [3, 4])
        #expect(second.entries.map(\.position) == [2, 3])
        let third = try rig.page(2, after: second.next)
        #expect(third.numbers == [5])
        #expect(third.isLast)
        #expect(try rig.page(2, after: third.next).numbers == [])
    }

    @Test func `say that nothing follows when they are just full`() throws {
        var rig = FeedRig(streams: 4)
        _ = rig.feed.end(FeedRig.id(4))
        #expect(try rig.page(3).isLast)
        rig.hidden = [FeedRig.id(3)]
        #expect(try rig.page(2).isLast)
    }

    @Test func `keep a reader's order when streams move across its place`() throws {
        var rig = FeedRig(streams: 6)
        let first = try rig.page(3)
        // From ahead of the reader to behind it, and the other way.
        _ = try rig.feed.pin(FeedRig.id(5), at: 0)
        rig.feed.setViewers(FeedRig.id(6), 1_000_000)
        _ = try rig.feed.boost(FeedRig.id(1), by: -1_000)
        _ = rig.feed.advance(to: rig.now)
        #expect(rig.order == [5, 6, 2, 3, 4, 1])
        #expect(try rig.page(10, after: first.next).numbers == [4, 5, 6])
        #expect(try rig.page(10).numbers == [5, 6, 2, 3, 4, 1])
    }

    @Test func `leave out what has ended and put what is new ahead`() throws {
        var rig = FeedRig(streams: 6)
        let first = try rig.page(2)
        _ = rig.feed.end(FeedRig.id(4))
        _ = try rig.feed.goLive(FeedRig.item(0))
        _ = try rig.feed.goLive(FeedRig.item(9))
        let second = try rig.page(3, after: first.next)
        #expect(second.numbers == [0, 9, 3])
        #expect(second.entries.map(\.position) == [2, 3, 4])
        let third = try rig.page(3, after: second.next)
        #expect(third.numbers == [5, 6])
        #expect(third.isLast)
        _ = try rig.feed.goLive(FeedRig.item(4))
        #expect(try rig.page(3, after: third.next).numbers == [4])
    }

    @Test func `are half of new streams at most while others wait`() throws {
        var rig = FeedRig(streams: 4)
        let first = try rig.page(1)
        for number in 11...19 { _ = try rig.feed.goLive(FeedRig.item(number)) }
        let second = try rig.page(4, after: first.next)
        #expect(second.numbers == [11, 12, 2, 3])
        let third = try rig.page(4, after: second.next)
        #expect(third.numbers == [13, 14, 4, 15])
    }

    @Test func `hold only what the reader may see`() throws {
        var rig = FeedRig(streams: 5)
        rig.hidden = [FeedRig.id(1), FeedRig.id(3)]
        let first = try rig.page(2)
        #expect(first.numbers == [2, 4])
        _ = try rig.feed.goLive(FeedRig.item(6))
        rig.hidden.insert(FeedRig.id(6))
        #expect(try rig.page(2, after: first.next).numbers == [5])
    }

    @Test func `have a fingerprint that changes with what they show`() throws {
        var rig = FeedRig(streams: 3)
        let fingerprint = try rig.page(2).fingerprint
        #expect(try rig.page(2).fingerprint == fingerprint)
        rig.feed.setViewers(FeedRig.id(3), 5)
        #expect(try rig.page(2).fingerprint == fingerprint)
        rig.feed.setViewers(FeedRig.id(2), 5)
        #expect(try rig.page(2).fingerprint != fingerprint)
        #expect(try rig.page(1).fingerprint != rig.page(2).fingerprint)
    }

    @Test func `are clamped in size`() throws {
        var rig = FeedRig(streams: 150)
        #expect(try rig.page(.max).numbers.count == StoryFeed.pageLimit)
        #expect(try rig.page(-5).numbers.count == 1)
    }

    @Test func `look at hardly more streams than they show`() throws {
        var rig = FeedRig(streams: 5_000)
        var looks = 0
        var page = try rig.feed.page(limit: 20, at: rig.now) { _ in
            looks += 1
            return true
        }
        for _ in 0..<9 {
            _ = try rig.feed.boost(FeedRig.id(looks), by: 3)
            page = try rig.feed.page(limit: 20, after: page.next, at: rig.now) { _ in
                looks += 1
                return true
            }
        }
        #expect(looks == 210)
    }

    @Test func `begin with an order that is hardly old when it changes all the time`() throws {
        var rig = FeedRig(streams: 2) {
            $0.epochBurst = 2
            $0.epochLimit = 3
        }
        let first = try rig.page(1)
        // The first epoch costs nothing, the burst is two more.
        for number in [-1, -2] {
            _ = try rig.feed.goLive(FeedRig.item(10 - number))
            _ = try rig.feed.pin(FeedRig.id(10 - number), at: 2)
            #expect(try rig.page(1).numbers == [11])
        }
        _ = try rig.feed.pin(FeedRig.id(2), at: 0)
        #expect(try rig.page(1).numbers == [11])
        #expect(try rig.page(5, after: first.next).numbers == [11, 12, 2])
        rig.pass(.seconds(3))
        #expect(try rig.page(1).numbers == [2])
        #expect(throws: CursorRefusal.expired) { try rig.page(5, after: first.next) }
    }

    @Test func `cannot be asked for with another process's, a foreign or a forged cursor`() throws {
        var rig = FeedRig(streams: 3)
        let next = try rig.page(1).next
        let forgeries: [(FeedCursor, CursorRefusal)] = [
            (FeedCursor(tag: 8, epoch: 1, offset: 1, newest: 3, given: 1), .expired),
            (FeedCursor(tag: 7, epoch: 2, offset: 1, newest: 3, given: 1), .unknown),
            (FeedCursor(tag: 7, epoch: 0, offset: 1, newest: 3, given: 1), .unknown),
            (FeedCursor(tag: 7, epoch: 1, offset: 4, newest: 3, given: 1), .unknown),
            (FeedCursor(tag: 7, epoch: 1, offset: 1, newest: 2, given: 1), .unknown),
            (FeedCursor(tag: 7, epoch: 1, offset: 1, newest: .max, given: 1), .unknown),
            (FeedCursor(tag: 7, epoch: 1, offset: 1, newest: 3, given: .max), .unknown),
        ]
        for (cursor, refusal) in forgeries {
            #expect(throws: refusal) { try rig.page(1, after: cursor) }
        }
        #expect(next == FeedCursor(tag: 7, epoch: 1, offset: 1, newest: 3, given: 1))
    }

    /// A reader turns pages while everything moves: streams go live, end, come back, are pinned and scored again.
    @Test(arguments: 0..<200) func `show nothing twice and skip nothing that stays`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var rig = FeedRig(streams: Int.random(in: 0...60, using: &random)) { $0.epochBurst = 4 }
        var steady = Set(rig.order)
        // What has been given since it last went live.
        var given: Set<Int> = []
        var cursor: FeedCursor?
        var isDone = false
        var position = 0
        while !isDone {
            for _ in 0..<Int.random(in: 0...12, using: &random) {
                let number = Int.random(in: 1...80, using: &random)
                switch Int.random(in: 0..<8, using: &random) {
                case 0: _ = try rig.feed.goLive(FeedRig.item(number))
                case 1:
                    guard rig.feed.end(FeedRig.id(number)) != nil else { break }
                    steady.remove(number)
                    given.remove(number)
                case 2: _ = try? rig.feed.pin(FeedRig.id(number), at: number % 2 == 0 ? nil : number)
                case 3: _ = try? rig.feed.boost(FeedRig.id(number), by: number % 9)
                case 4: _ = try rig.page(5)
                default: rig.feed.setViewers(FeedRig.id(number), Int.random(in: 0...9_999, using: &random))
                }
                rig.pass(.milliseconds(300))
                _ = rig.feed.advance(to: rig.now)
            }
            if cursor == nil { steady = Set(rig.order) }
            let page = try rig.page(Int.random(in: 1...7, using: &random), after: cursor)
            for (number, entry) in zip(page.numbers, page.entries) {
                #expect(given.insert(number).inserted)
                #expect(rig.feed.isLive(FeedRig.id(number)))
                #expect(entry.position == position)
                position += 1
            }
            isDone = page.isLast
            // As over the wire.
            let parsed: FeedCursor = try #require(FeedCursor(page.next.description))
            cursor = parsed
        }
        #expect(steady.isSubset(of: given))
        #expect(given == Set(rig.order))
    }
}

@Suite struct FeedCursorText {
    private static let cursors = [
        FeedCursor(tag: 0, epoch: 0, offset: 0, newest: 0, given: 0),
        FeedCursor(tag: .max, epoch: .max, offset: .max, newest: .max, given: .max),
        FeedCursor(tag: 7, epoch: 12, offset: 40, newest: 99, given: 41),
    ]

    @Test(arguments: cursors) func `gives the cursor back`(cursor: FeedCursor) {
        #expect(FeedCursor(cursor.description) == cursor)
        #expect(cursor.description.utf8.count <= FeedCursor.lengthLimit)
    }

    @Test func `is refused when it is cut, longer, or spelled otherwise`() {
        let text = FeedCursor(tag: 36, epoch: 1, offset: 2, newest: 3, given: 4).description
        #expect(text == "10.1.2.3.4")
        for length in 0..<text.count { #expect(FeedCursor(text.prefix(length)) == nil) }
        let others = [
            text + ".5", text + ".", "." + text, "010.1.2.3.4", "+10.1.2.3.4", "1O.1.2.3.4", "A.1.2.3.4",
            "10.1.2.3.-4", "10.1..3.4", " 10.1.2.3.4", "10.1.2.3.4\n", "10.1.2.3.é",
            "1z141z4.1.2.3.4", "10.3w5e11264sgsg.2.3.4", "10.1.2.3.1z141z4",
            String(repeating: "0", count: 1_000_000), String(repeating: ".", count: 80),
        ]
        for other in others { #expect(FeedCursor(other) == nil, "\(other.prefix(40))") }
    }

    @Test func `takes random bytes without a trap`() {
        var random = SeededGenerator(seed: 1)
        let alphabet = Array("0123456789abcxyz......+-é\u{0}")
        var rig = FeedRig(streams: 3)
        _ = try? rig.page(1)
        for _ in 0..<20_000 {
            let length = Int.random(in: 0...30, using: &random)
            let text = String(
                (0..<length).map { _ in alphabet[Int.random(in: 0..<alphabet.count, using: &random)] })
            guard let cursor = FeedCursor(text) else { continue }
            #expect(cursor.description == text)
            _ = try? rig.page(3, after: cursor)
        }
    }
}
