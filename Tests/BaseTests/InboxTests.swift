import TestSupport
import Testing

@testable import Base

/// What an actor is told.
private struct Note: InboxElement, Equatable {
    let text: String
    var topic: String?
    var isNeeded = false

    init(_ text: String, topic: String? = nil, isNeeded: Bool = false) {
        self.text = text
        self.topic = topic
        self.isNeeded = isNeeded
    }
}

/// The same rules in a plain list.
private struct PlainInbox {
    let limit: Int
    var notes: [Note] = []
    var dropped: UInt64 = 0

    mutating func put(_ note: Note) -> Bool {
        if let topic = note.topic, let place = notes.firstIndex(where: { $0.topic == topic }) {
            notes[place] = note
            return true
        }
        guard note.isNeeded || notes.count < limit else {
            dropped += 1
            return false
        }
        notes.append(note)
        return true
    }

    mutating func take(where isReady: (Note) -> Bool) -> [Note] {
        let taken = notes.filter(isReady)
        notes.removeAll(where: isReady)
        return taken
    }
}

@Suite(.timeLimit(.minutes(5))) struct `An inbox` {
    private let inbox = Inbox<Note>(limit: 3)

    private var texts: [String] { inbox.takeAll().map(\.text) }

    @Test func `keeps the latest of each topic, in the place of the first`() {
        for note in [
            Note("1", topic: "a"), Note("2"), Note("3", topic: "b"), Note("4", topic: "a"),
            Note("5", topic: "b"), Note("6", topic: "a"),
        ] {
            let isKept = inbox.put(note)
            #expect(isKept)
        }
        #expect(inbox.counters == InboxCounters(waiting: 3))
        #expect(texts == ["6", "2", "5"])
    }

    @Test func `takes a topic for a new one once the one before was taken`() {
        inbox.put(Note("1", topic: "a"))
        inbox.put(Note("2", topic: "b"))
        #expect(texts == ["1", "2"])
        inbox.put(Note("3", topic: "b"))
        inbox.put(Note("4", topic: "a"))
        inbox.put(Note("5", topic: "b"))
        #expect(texts == ["5", "4"])
        #expect(texts.isEmpty)
    }

    @Test func `drops what is beyond its limit, unless it is needed or replaces something`() {
        for number in 1...3 { inbox.put(Note("\(number)", topic: "\(number)")) }
        let isDropped = !inbox.put(Note("4"))
        let isReplaced = inbox.put(Note("5", topic: "2"))
        let isNeeded = inbox.put(Note("6", isNeeded: true))
        let isDroppedToo = !inbox.put(Note("7", topic: "7"))
        #expect(isDropped && isReplaced && isNeeded && isDroppedToo)
        #expect(inbox.counters == InboxCounters(waiting: 4, dropped: 2))
        #expect(texts == ["1", "5", "3", "6"])
        // There is room again, and what was dropped left no trace.
        let isKept = inbox.put(Note("8", topic: "7"))
        #expect(isKept)
        #expect(texts == ["8"])
        #expect(inbox.counters == InboxCounters(waiting: 0, dropped: 2))
    }

    @Test func `says whether there is room, and counts who was refused for it`() {
        for number in 1...2 { inbox.put(Note("\(number)")) }
        #expect(inbox.hasRoom())
        inbox.put(Note("3", isNeeded: true))
        #expect(!inbox.hasRoom())
        inbox.put(Note("4", isNeeded: true))
        #expect(!inbox.hasRoom())
        #expect(inbox.counters == InboxCounters(waiting: 4, refused: 2))
        _ = inbox.takeAll()
        #expect(inbox.hasRoom())
        #expect(inbox.counters == InboxCounters(refused: 2))
    }

    @Test func `knows its topics' places after some elements were taken from between them`() {
        let inbox = Inbox<Note>(limit: 9)
        for note in [
            Note("1", topic: "a"), Note("2"), Note("3", topic: "b"), Note("4"), Note("5", topic: "c"),
        ] {
            inbox.put(note)
        }
        let taken = inbox.take { $0.topic == nil || $0.topic == "a" }
        #expect(taken.map(\.text) == ["1", "2", "4"])
        inbox.put(Note("6", topic: "c"))
        inbox.put(Note("7", topic: "a"))
        inbox.put(Note("8", topic: "b"))
        #expect(inbox.counters.waiting == 3)
        #expect(inbox.takeAll().map(\.text) == ["8", "6", "7"])
    }

    @Test func `tells its news once until something is taken`() async {
        var news = inbox.news.makeAsyncIterator()
        inbox.put(Note("1", topic: "a"))
        let isTold = await news.next() != nil
        #expect(isTold)
        // Told already: whoever comes will find these, too.
        inbox.put(Note("2"))
        inbox.put(Note("3", topic: "a"))
        #expect(texts == ["3", "2"])
        inbox.put(Note("4"))
        let isToldAgain = await news.next() != nil
        #expect(isToldAgain)
        inbox.put(Note("5"))
        inbox.close()
        let isToldOnceMore = await news.next() != nil
        #expect(!isToldOnceMore)
        // What was put into it is still there for whoever clears up.
        #expect(texts == ["4", "5"])
    }

    @Test func `tells no news of what was dropped, or takes the place of what was left`() async {
        let inbox = Inbox<Note>(limit: 1)
        var news = inbox.news.makeAsyncIterator()
        inbox.put(Note("1", topic: "a"))
        let isTold = await news.next() != nil
        let taken = inbox.take { _ in false }
        #expect(isTold && taken.isEmpty)
        inbox.put(Note("2"))
        inbox.put(Note("3", topic: "a"))
        inbox.close()
        let isToldAgain = await news.next() != nil
        #expect(!isToldAgain)
        #expect(inbox.takeAll().map(\.text) == ["3"])
    }

    @Test func `tells news when it is told to, and of what comes after something was left`() async {
        var news = inbox.news.makeAsyncIterator()
        inbox.put(Note("1"))
        let isTold = await news.next() != nil
        _ = inbox.take { _ in false }
        inbox.announce()
        let isAnnounced = await news.next() != nil
        inbox.put(Note("2"))
        let isToldAgain = await news.next() != nil
        #expect(isTold && isAnnounced && isToldAgain)
        #expect(texts == ["1", "2"])
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `keeps to its rules whatever comes and goes`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let inbox = Inbox<Note>(limit: 6)
        var plain = PlainInbox(limit: 6)
        for number in 0..<600 {
            let lane = Int.random(in: 0...4, using: &random)
            switch Int.random(in: 0...19, using: &random) {
            case 0:
                let all = inbox.takeAll()
                let expected = plain.take { _ in true }
                #expect(all == expected)
            case 1, 2:
                let isReady = { (note: Note) in note.text.hasSuffix("\(lane)") }
                let taken = inbox.take(where: isReady)
                let expected = plain.take(where: isReady)
                #expect(taken == expected)
            default:
                let hasTopic = Bool.random(using: &random)
                let note = Note(
                    "\(number) \(lane)", topic: hasTopic ? "\(lane)" : nil,
                    isNeeded: Int.random(in: 0...5, using: &random) == 0)
                let isKept = inbox.put(note)
                let mayBeKept = plain.put(note)
                #expect(isKept == mayBeKept)
            }
            #expect(inbox.counters == InboxCounters(waiting: plain.notes.count, dropped: plain.dropped))
        }
        #expect(plain.dropped > 0)
    }
}
