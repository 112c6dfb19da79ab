import Base
import Testing

@testable import StoryFeed

/// How often something may happen.
@Suite struct RateBudgets {
    private let start = MonotonicTime.zero + .seconds(1_000)

    @Test func `allow a burst, and then one for each interval`() {
        var budget = RateBudget(interval: .milliseconds(50), burst: 3)
        var allowed: [Bool] = []
        for milliseconds in [0, 0, 0, 0, 49, 50, 50, 100, 101] {
            allowed.append(budget.spend(at: start + .milliseconds(milliseconds)))
        }
        #expect(allowed == [true, true, true, false, false, true, false, true, false])
    }

    @Test func `save no more than a burst while nothing happens`() {
        var budget = RateBudget(interval: .milliseconds(50), burst: 3)
        var allowed = 0
        for hours in 0..<4 {
            for _ in 0..<10 where budget.spend(at: start + .seconds(hours * 3_600)) { allowed += 1 }
            #expect(allowed == (hours + 1) * 3)
        }
    }

    @Test func `give nothing for a time that goes back, and take nothing for what they refuse`() {
        var budget = RateBudget(interval: .seconds(1), burst: 2)
        let first = [budget.spend(at: start), budget.spend(at: start)]
        var earlier = 0
        for _ in 0..<100 where budget.spend(at: start - .seconds(10)) { earlier += 1 }
        let later = [budget.spend(at: start + .seconds(1)), budget.spend(at: start + .seconds(1))]
        #expect(first == [true, true] && earlier == 0 && later == [true, false])
    }
}

/// The streams of one viewer in all sessions.
@Suite struct ViewerAttachmentRules {
    private let ann = FeedViewer.anonymous(FeedRig.sessionID(1))
    private let bob = FeedViewer.anonymous(FeedRig.sessionID(2))

    /// So many sessions that hold so many streams, the oldest first.
    private func filled(_ counts: [Int]) -> ViewerAttachments {
        var attachments = ViewerAttachments()
        for (index, count) in counts.enumerated() {
            _ = attachments.enter(UInt64(index + 1), of: ann)
            _ = attachments.hold(count, by: UInt64(index + 1), of: ann)
        }
        return attachments
    }

    @Test(
        arguments: [
            ([2, 0], 2, [1], 2), ([1, 1, 0], 1, [1], 2), ([1, 1, 0], 2, [1, 2], 2),
            ([0, 1, 0], 1, [], 2), ([0, 2, 0], 1, [2], 1), ([0, 1, 0], 2, [2], 2),
            ([1, 0, 1, 0], 1, [1], 2), ([1, 0, 0], 0, [], 1),
        ] as [([Int], Int, [UInt64], Int)])
    func `end the oldest sessions with streams for the newest`(
        counts: [Int], wanted: Int, ended: [UInt64], left: Int
    ) {
        var attachments = filled(counts)
        let newest = UInt64(counts.count)
        #expect(attachments.room(for: newest, of: ann) == 2)
        let gone = attachments.hold(wanted, by: newest, of: ann)
        #expect(gone == ended)
        #expect(attachments.count(of: ann) == left)
    }

    @Test func `give an older session what newer ones leave, and end none of these`() {
        var attachments = filled([1, 0, 1])
        #expect(attachments.room(for: 1, of: ann) == 1 && attachments.room(for: 2, of: ann) == 1)
        // The second takes the place of the first, not that of the third.
        let gone = attachments.hold(1, by: 2, of: ann)
        #expect(gone == [1] && attachments.room(for: 3, of: ann) == 2)
        attachments.leave(3, of: ann)
        #expect(attachments.room(for: 2, of: ann) == 2)
        let none = attachments.hold(2, by: 2, of: ann)
        #expect(none.isEmpty && attachments.count(of: ann) == 2)
    }

    @Test func `know nothing of sessions that have ended, nor of other viewers`() {
        var attachments = filled([1, 1])
        attachments.leave(1, of: bob)
        #expect(attachments.count(of: ann) == 2, "it is not theirs")
        attachments.leave(1, of: ann)
        let gone = attachments.hold(2, by: 1, of: ann)
        #expect(gone.isEmpty && attachments.count(of: ann) == 1)
        let others = attachments.hold(1, by: 2, of: bob)
        #expect(others.isEmpty && attachments.count(of: bob) == 0)
        attachments.leave(2, of: ann)
        #expect(attachments == ViewerAttachments(), "nothing is kept of who has gone")
    }

    @Test func `end the oldest of too many sessions, whatever it holds`() {
        var attachments = filled([1, 0, 0, 1])
        let gone = attachments.enter(5, of: ann)
        #expect(gone == [1] && attachments.count(of: ann) == 1)
        let next = attachments.enter(6, of: ann)
        #expect(next == [2])
        let other = attachments.enter(7, of: bob)
        #expect(other.isEmpty)
    }
}

/// Many sessions at once.
@Suite struct FeedCrowds {
    private var rig = FeedRig(streams: 5)
    private var audience = FeedAudience()

    private mutating func begin(_ number: UInt64, _ preload: FeedPreload = .eager) throws {
        let id = FeedRig.sessionID(number)
        _ = try audience.begin(
            id, viewer: .anonymous(id), preload: preload, on: FeedRig.id(1), in: rig.scene)
    }

    /// The sessions that get a neighbour now, in order.
    private mutating func advance() -> [SessionID] {
        let directives = audience.advance(in: rig.scene)
        return directives.compactMap { directive in
            if case .attach(_, _, .preview) = directive.effect { directive.session } else { nil }
        }
    }

    @Test mutating func `are preloaded in the order in which they settled, each once`() throws {
        for number in 0..<200 as Range<UInt64> {
            try begin(number)
            rig.pass(.milliseconds(1))
        }
        let early = advance()
        #expect(early.isEmpty)
        rig.pass(.milliseconds(199))
        let first = advance()
        let settled = (0..<100).map(FeedRig.sessionID)
        #expect(first == settled)
        // One swipes away before it has settled.
        let swiper = FeedRig.sessionID(150)
        _ = audience.receive(.focus(FeedRig.id(3), ahead: nil), from: swiper, in: rig.scene)
        rig.pass(.milliseconds(100))
        let second = advance()
        let others = (100..<200).map(FeedRig.sessionID).filter { $0 != swiper }
        #expect(second == others)
        let due = MonotonicTime.zero + .milliseconds(699)
        #expect(audience.deadline == due)
        rig.pass(.milliseconds(200))
        let last = audience.advance(in: rig.scene)
        #expect(last.first?.session == swiper)
        #expect(last.first?.effect == .attach(.first, FeedRig.id(4), .preview))
        #expect(audience.deadline == nil)
        rig.pass(.seconds(10))
        let none = advance()
        #expect(none.isEmpty)
    }

    @Test mutating func `watch what is in their slots, and nothing else`() throws {
        try begin(1, .onSwipe)
        try begin(2, .onSwipe)
        let first = FeedRig.sessionID(1)
        #expect(audience.isWatched(FeedRig.id(1)) && !audience.isWatched(FeedRig.id(2)))
        _ = audience.receive(.peek(FeedRig.id(2), direction: nil), from: first, in: rig.scene)
        #expect(audience.isWatched(FeedRig.id(2)))
        _ = audience.receive(.focus(FeedRig.id(2), ahead: nil), from: first, in: rig.scene)
        #expect(audience.isWatched(FeedRig.id(1)), "by the other")
        let gone = audience.end(FeedRig.sessionID(2))
        #expect(gone.map(\.effect) == [.release(.first, FeedRig.id(1))])
        #expect(!audience.isWatched(FeedRig.id(1)) && audience.isWatched(FeedRig.id(2)))
        let again = audience.end(FeedRig.sessionID(2))
        #expect(again.isEmpty)
        _ = audience.end(first)
        #expect(!audience.isWatched(FeedRig.id(2)) && audience.count == 0)
    }

    @Test mutating func `stay when the limit falls below them, but let nobody else in`() throws {
        for number in 1...3 as ClosedRange<UInt64> { try begin(number) }
        audience.setSessionLimit(2)
        #expect(audience.count == 3)
        #expect(throws: FeedRefusal.full) { try begin(4) }
        _ = audience.end(FeedRig.sessionID(1))
        #expect(throws: FeedRefusal.full) { try begin(4) }
        _ = audience.end(FeedRig.sessionID(2))
        try begin(4)
        #expect(audience.count == 2 && audience.session(FeedRig.sessionID(3)) != nil)
    }
}
