import Base
import Stage
import Synchronization
import TestSupport
import Testing

@testable import Node

/// Reads all, and keeps nothing of it.
private final class Deaf: SyncFollower {
    func send(_ text: String) -> SyncDelivery { .queued }
    var isDrained: Bool { true }
    func close(_ reason: SyncClose) {}
}

@Suite struct `A hub of followers` {
    private var hub: SyncHub
    private let ann = HostRig.ann
    private let bob = HostRig.bob
    private let people: [ParticipantID]

    init() throws {
        hub = SyncHub(
            id: try #require(StreamID("show")),
            at: Moment(elapsed: .zero, wall: WallTime(milliseconds: 1_000)))
        people = try (1...9).map { try #require(ParticipantID("p\($0)")) }
    }

    private func time(_ milliseconds: Int64) -> MonotonicTime { .zero + .milliseconds(milliseconds) }

    @discardableResult
    private mutating func follow(
        _ sender: Stage.Sender? = nil, since: UInt64? = nil, until expiry: MonotonicTime? = nil
    ) -> (end: TestFollower, number: UInt64) {
        let end = TestFollower()
        let you = sender.map { SyncYou($0, in: nil, areDoorsOpen: false) }
        return (end, hub.add(end, for: sender, since: since, until: expiry, you: you))
    }

    private mutating func crowd(_ count: Int) {
        for _ in 0..<count { _ = hub.add(Deaf(), for: nil, since: nil, you: nil) }
    }

    /// So many have raised their hands.
    private func view(hands: Int, title: String? = nil) -> SyncView {
        var view = hub.view
        view.stream.details.title = title ?? view.stream.details.title
        view.hands = [:]
        for id in people.prefix(hands) {
            view.hands[id] = StageRecord.Entry(name: nil, since: WallTime(milliseconds: 5), order: 1)
        }
        return view
    }

    /// Announces it or holds it back, as a stream's host does.
    /// - Returns: whether followers were told.
    private mutating func announce(_ view: SyncView, at milliseconds: Int64) -> Bool {
        let now = time(milliseconds)
        if hub.holdBack(view, at: now) { return false }
        return hub.announce(view, at: now)
    }

    private func hands(_ end: TestFollower) -> Int {
        guard case .object(let hands) = end.known["raisedHands"] else { return 0 }
        return hands.count
    }

    // MARK: Holding back

    @Test mutating func `up to two hundred followers get each change at once`() {
        let (end, _) = follow()
        crowd(SyncHub.promptFollowers - 1)
        var told: [Bool] = []
        for hands in 1...5 { told.append(announce(view(hands: hands), at: 0)) }
        #expect(told == [true, true, true, true, true] && hands(end) == 5)
        #expect(hub.version == 1_005)
    }

    /// 50 µs for each follower, and 100 ms at least.
    @Test(arguments: [(201, 100), (2_000, 100), (4_000, 200)] as [(Int, Int64)])
    mutating func `with more followers, changes of participants are gathered`(followers: Int, wait: Int64) {
        let (end, _) = follow()
        crowd(followers - 1)
        var told: [Bool] = []
        for (hands, milliseconds) in [(1, 0), (2, 1), (3, wait - 1)] as [(Int, Int64)] {
            told.append(announce(view(hands: hands), at: milliseconds))
        }
        #expect(told == [true, false, false] && hands(end) == 1)
        #expect(hub.isHoldingBack && hub.deadline == time(wait))
        let last = announce(view(hands: 3), at: wait)
        #expect(last && hands(end) == 3 && !hub.isHoldingBack)
        #expect(end.types == ["snapshot", "change", "change"] && hub.version == 1_002)
    }

    /// A command was answered with that version, and its page waits for it.
    @Test mutating func `a promised version is sent even if nothing differs any more`() {
        let (end, _) = follow()
        crowd(SyncHub.promptFollowers)
        _ = announce(view(hands: 1), at: 0)
        var told: [Bool] = []
        for (hands, milliseconds) in [(2, 1), (1, 2), (1, 99), (1, 100), (1, 101)] as [(Int, Int64)] {
            told.append(announce(view(hands: hands), at: milliseconds))
        }
        #expect(told == [false, false, false, true, false])
        #expect(end.version == 1_002 && hub.version == 1_002)
        let last = end.state.withLock { $0.messages.last }
        #expect(last == ["type": .string("change"), "version": .number(1_002)])
    }

    @Test mutating func `a change of the stream is sent at once, with all that was held back`() {
        let (end, _) = follow()
        crowd(SyncHub.promptFollowers)
        _ = announce(view(hands: 1), at: 0)
        let isHeld = !announce(view(hands: 2), at: 1)
        let isTold = announce(view(hands: 2, title: "News"), at: 2)
        #expect(isHeld && isTold && hands(end) == 2)
        #expect(end.known["stream"]?["title"] == .string("News"))
        let after = announce(view(hands: 3), at: 101)
        #expect(!after, "the time counts from what was told last")
    }

    // MARK: Who is told what

    @Test mutating func `tells a session's client of the audience alone`() {
        let end = TestFollower()
        let number = hub.addListener(end, for: ann)
        _ = announce(view(hands: 1), at: 0)
        hub.announce(to: nil) { SyncYou($0, in: nil, areDoorsOpen: true) }
        hub.deliverMute(.audio, to: ann.id, from: bob.id)
        hub.tell("{}", to: ann.id)
        hub.advance(to: time(60_000)) { SyncYou($0, in: nil, areDoorsOpen: true) }
        #expect(end.types == ["interaction-snapshot"])
        hub.tell(#"{"type":"interaction","more":1}"#)
        hub.tell(#"{"type":"interaction","more":2}"#, to: ann.id, of: .audience)
        hub.tell(#"{"type":"interaction","more":3}"#, to: bob.id, of: .audience)
        let more = end.state.withLock { state in state.messages.compactMap { $0["more"] } }
        #expect(more == [.number(1), .number(2)])
        #expect(hub.count == 1 && !hub.isEmpty)
        hub.remove(number)
        #expect(hub.isEmpty)
    }

    @Test mutating func `sends away all that somebody follows by, and nobody else`() {
        let first = follow(bob)
        let listener = TestFollower()
        let second = hub.addListener(listener, for: bob)
        let others = [follow(ann), follow(nil)]
        let gone = hub.expel(bob.id, as: .banned)
        #expect(Set(gone) == [first.number, second] && hub.count == 2)
        for end in [first.end, listener] { #expect(end.state.withLock { $0.closed } == .banned) }
        for other in others { #expect(other.end.state.withLock { $0.closed } == nil) }
        let again = hub.expel(bob.id, as: .banned)
        #expect(again == [])
        first.end.forget()
        hub.deliverMute(.video, to: bob.id, from: ann.id)
        #expect(first.end.types == [])
    }

    /// Each search walks over all followers.
    @Test mutating func `looks for tokens that have ended every five seconds at most`() {
        let ends = [10, 11, 12, 15, 16].map { follow(bob, until: time($0 * 1_000)) }
        follow(bob)
        func number(_ index: Int) -> UInt64 { ends[index].number }
        var expired: [[UInt64]] = []
        for milliseconds in [9_999, 10_000, 11_000, 14_999, 15_000, 15_001, 20_000] as [Int64] {
            expired.append(hub.expire(by: time(milliseconds)).sorted())
        }
        let expected = [[], [number(0)], [], [], [number(1), number(2), number(3)], [], [number(4)]]
        #expect(expired == expected)
        #expect(ends.allSatisfy { $0.end.state.withLock { $0.closed } == .expired })
        #expect(hub.count == 1)
    }

    // MARK: Those who read slowly, and those who come back

    @Test mutating func `tells who comes back what was missed, in order, and the audience as a whole`() {
        hub.interaction = #"{"comments":[]}"#
        let start = hub.version
        for hands in 1...3 { _ = announce(view(hands: hands), at: Int64(hands)) }
        let (end, _) = follow(bob, since: start + 1)
        #expect(end.types == ["change", "change", "interaction-snapshot", "you"])
        #expect(hands(end) == 2 && end.version == start + 3)
        let (current, _) = follow(nil, since: start + 3)
        #expect(current.types == ["interaction-snapshot"])
        let (stranger, _) = follow(nil, since: start + 4)
        #expect(stranger.types == ["snapshot"], "nobody was told that version")
        #expect(stranger.known["interaction"]?["comments"] == .array([]))
    }

    @Test mutating func `tells who read too slowly nothing but a snapshot, once they have read all`() {
        let start = hub.version
        for hands in 1...3 { _ = announce(view(hands: hands), at: Int64(hands)) }
        // Already what was missed does not fit.
        let slow = TestFollower()
        slow.state.withLock { $0.isFull = true }
        let you = SyncYou(bob, in: nil, areDoorsOpen: false)
        _ = hub.add(slow, for: bob, since: start, you: you)
        let (quick, _) = follow()
        #expect(hub.hasSlowFollowers)
        _ = announce(view(hands: 4), at: 4)
        hub.advance(to: time(500)) { SyncYou($0, in: nil, areDoorsOpen: true) }
        #expect(slow.types == [] && hub.hasSlowFollowers)
        slow.state.withLock { $0.isFull = false }
        _ = announce(view(hands: 5), at: 5)
        hub.tell(#"{"type":"interaction"}"#)
        #expect(slow.types == [], "it would not fit what it knows")
        hub.advance(to: time(1_000)) { SyncYou($0, in: nil, areDoorsOpen: true) }
        #expect(slow.types == ["snapshot", "you"] && !hub.hasSlowFollowers)
        #expect(slow.known == quick.known && slow.version == quick.version)
    }
}

@Suite struct `The log of a hub` {
    /// As long as it keeps them, what came after a version is all that was told since.
    @Test(arguments: ChosenSeed.or(1...8)) func `has all that came after a version, or says that it has not`(
        seed: UInt64
    ) {
        var random = SeededGenerator(seed: seed)
        var log = SyncLog(base: 1_000)
        var base: UInt64 = 1_000
        var kept: [(version: UInt64, text: String)] = []
        var last: UInt64 = 1_000
        // Long texts fill it by their bytes, and short ones by their number.
        let longest = seed.isMultiple(of: 2) ? 2_000 : 20
        for _ in 0..<3_000 {
            last += UInt64.random(in: 1...3, using: &random)
            let text = String(repeating: "é", count: Int.random(in: 1...longest, using: &random))
            log.append(text, version: last)
            kept.append((last, text))
            while kept.count > 2_048 || kept.reduce(0, { $0 + $1.text.utf8.count }) > 262_144 {
                base = kept.removeFirst().version
            }
            guard Int.random(in: 0..<20, using: &random) == 0 else { continue }
            let since = UInt64.random(in: base - 2...last + 2, using: &random)
            let isKnown = since == base || kept.contains { $0.version == since }
            let missed = isKnown ? kept.filter { $0.version > since }.map(\.text) : nil
            #expect(log.changes(since: since) == missed, "\(since)")
        }
        #expect(log.changes(since: last) == [])
        #expect(log.changes(since: base) == kept.map(\.text))
        #expect(log.changes(since: 1_000) == nil && log.changes(since: .max) == nil)
    }

    @Test func `keeps nothing that is larger than all it may keep`() {
        var log = SyncLog(base: 1)
        log.append("small", version: 2)
        log.append(String(repeating: "x", count: 262_145), version: 3)
        #expect(log.changes(since: 2) == nil)
        #expect(log.changes(since: 3) == [])
        log.append("next", version: 4)
        #expect(log.changes(since: 3) == ["next"])
    }
}
