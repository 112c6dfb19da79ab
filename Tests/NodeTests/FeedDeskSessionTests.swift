import Base
import Stage
import StoryFeed
import TestSupport
import Testing

@testable import Node

@Suite struct `Sessions at the feed's desk` {
    private let directory = StreamDirectory()
    private let bob: ParticipantID
    private var desk: FeedDesk

    init() throws {
        bob = try #require(ParticipantID("bob"))
        desk = FeedDesk(directory: directory, sessionLimit: 2, tag: 1)
    }

    private func id(_ name: String) throws -> StreamID { try #require(StreamID(name)) }

    private func session(_ number: UInt64) -> SessionID {
        var numbers = SeededGenerator(seed: number)
        return SessionID(using: &numbers)
    }

    /// The directory has news of these streams, which the desk does not know yet.
    private func announce(
        _ names: [String], _ state: StreamState = .live, banned: [ParticipantID] = []
    ) throws {
        for name in names {
            var snapshot = StreamSnapshot(waitingFor: try id(name))
            snapshot.state = state
            snapshot.createdAt = WallTime(milliseconds: 1)
            for participant in banned { snapshot.banned[participant] = WallTime(milliseconds: 2) }
            directory.update(snapshot)
        }
    }

    @discardableResult
    private mutating func update() -> FeedDesk.Outcome { desk.update(directory.takeNews(), at: .zero) }

    /// The streams that a session is given, in order.
    private func attached(_ directives: [FeedDesk.Directive], to number: UInt64) -> [String] {
        directives.compactMap { directive -> String? in
            guard directive.session == session(number) else { return nil }
            return switch directive.effect {
            case .attach(_, let stream, _): stream.description
            case .promote, .release, .tell, .close: nil
            }
        }
    }

    private func anonymous(_ number: UInt64) -> FeedPlace {
        FeedPlace(
            viewer: .anonymous(session(number)),
            reader: FeedReader(scope: .all, sender: nil, standing: .all), mids: [])
    }

    private func named(_ scope: FeedReader.Scope) -> FeedPlace {
        let sender = Stage.Sender(id: bob, authority: .viewer)
        return FeedPlace(
            viewer: .named(bob), reader: FeedReader(scope: scope, sender: sender, standing: scope), mids: [])
    }

    private mutating func enter(_ number: UInt64, _ place: FeedPlace) throws -> [String] {
        let directives = try desk.enter(session(number), place, preload: .onSwipe, on: nil, at: .zero)
        return attached(directives, to: number)
    }

    private mutating func refusal(_ number: UInt64, _ place: FeedPlace) -> FeedRefusal? {
        do throws(FeedRefusal) {
            _ = try desk.enter(session(number), place, preload: .onSwipe, on: nil, at: .zero)
            return nil
        } catch {
            return error
        }
    }

    private mutating func refusal(
        of message: FeedMessage, by number: UInt64, isBusy: Bool = false
    ) -> FeedRefusal? {
        do throws(FeedRefusal) {
            _ = try desk.perform(message, request: nil, for: session(number), isBusy: isBusy, at: .zero)
            return nil
        } catch {
            return error
        }
    }

    @Test mutating func `leave nothing behind where they are refused`() throws {
        _ = try enter(1, anonymous(1))
        _ = try enter(2, named(.all))
        let refused = refusal(3, named(.one(try id("show"))))
        #expect(refused == .full)
        #expect(desk.places.count == 2)
        #expect(desk.sessions(of: .named(bob)) == [session(2)])
        // The rights of the session that was refused are not kept either.
        try announce(["show"])
        update()
        _ = desk.leave(session(2))
        #expect(desk.sessions(of: .named(bob)).isEmpty)
        let admitted = refusal(4, anonymous(4))
        #expect(admitted == nil)
    }

    @Test mutating func `share their places with players outside the feed`() throws {
        _ = try desk.enterPlayer(session(1), of: .anonymous(session(1)))
        _ = try enter(2, anonymous(2))
        let full = refusal(3, anonymous(3))
        #expect(full == .full)
        // A player is no feed session.
        #expect(desk.places.count == 1)
        _ = desk.leave(session(1))
        let admitted = refusal(3, anonymous(3))
        #expect(admitted == nil)
        #expect(desk.places.count == 2)
    }

    @Test mutating func `sessions stay when the limit is lowered`() throws {
        _ = try enter(1, anonymous(1))
        _ = try enter(2, anonymous(2))
        desk.setSessionLimit(1)
        #expect(desk.places.count == 2)
        _ = desk.leave(session(1))
        let full = refusal(3, anonymous(3))
        #expect(full == .full)
        _ = desk.leave(session(2))
        let admitted = refusal(3, anonymous(3))
        #expect(admitted == nil)
    }

    @Test mutating func `have the rights of all their viewer's sessions, while these last`() throws {
        try announce(["one", "three", "two"])
        update()
        _ = try enter(1, named(.all))
        _ = try enter(2, named(.one(try id("two"))))
        let seen = refusal(of: .focus(try id("three"), ahead: nil), by: 2)
        #expect(seen == nil)
        _ = desk.leave(session(1))
        let hidden = refusal(of: .focus(try id("one"), ahead: nil), by: 2)
        #expect(hidden == .notPermitted)
        let own = refusal(of: .focus(try id("two"), ahead: nil), by: 2)
        #expect(own == nil)
    }

    @Test mutating func `are given a stream once their viewer is let in again`() throws {
        try announce(["show"], banned: [bob])
        update()
        let none = try enter(1, named(.all))
        #expect(none.isEmpty)
        let others = try enter(2, anonymous(2))
        #expect(others == ["show"])
        try announce(["show"])
        let outcome = update()
        let (streams, people) = (outcome.unbanned.map { $0.stream }, outcome.unbanned.map { $0.participants })
        #expect(streams.map(\.description) == ["show"])
        #expect(people == [[bob]])
        #expect(attached(outcome.directives, to: 1) == ["show"])
        // Nothing changes for who was there.
        #expect(attached(outcome.directives, to: 2).isEmpty)
    }

    @Test mutating func `move on from a stream that has ended, or is not known any more`() throws {
        try announce(["one", "three", "two"])
        update()
        let given = try enter(1, anonymous(1))
        let first = try #require(given.first)
        try announce([first], .ended)
        let ended = update()
        let second = try #require(attached(ended.directives, to: 1).first)
        #expect(second != first)
        let (gone, left) = (try id(first), try id(second))
        #expect(!desk.isLive(gone) && desk.isLive(left))
        directory.remove(left)
        let removed = update()
        let third = try #require(attached(removed.directives, to: 1).first)
        #expect(Set([first, second, third]) == ["one", "two", "three"])
        #expect(!desk.isLive(left))
        // The same news again is none.
        try announce([first], .ended)
        let again = update()
        #expect(again.changes.isEmpty && again.directives.isEmpty)
    }

    @Test mutating func `pending changes are applied in a fixed order, whichever came first`() throws {
        try announce(["delta", "alpha", "charlie", "bravo"])
        let outcome = update()
        #expect(outcome.appeared.map(\.description) == ["alpha", "bravo", "charlie", "delta"])
        try announce(["charlie", "alpha", "delta", "bravo"], banned: [bob])
        let restricted = update()
        #expect(restricted.restricted.map(\.description) == ["alpha", "bravo", "charlie", "delta"])
        #expect(restricted.appeared.isEmpty)
    }

    @Test mutating func `each request of a session is counted`() throws {
        try announce(["one", "two"])
        update()
        _ = try enter(1, anonymous(1))
        let focused = refusal(of: .focus(try id("two"), ahead: nil), by: 1)
        #expect(focused == nil)
        let unknown = refusal(of: .focus(try id("nothing"), ahead: nil), by: 1)
        #expect(unknown == .notLive)
        let gone = refusal(of: .release(nil), by: 9)
        #expect(gone == .noSession)
        #expect(desk.counters.focuses == 2)
        #expect(desk.counters.releases == 1)
        #expect(desk.counters.refused == 2)
        // On a control channel of a session that is gone there is nobody to be told.
        let nobody = desk.receive(.release(nil), request: nil, from: session(9), isBusy: false, at: .zero)
        #expect(nobody.isEmpty)
        #expect(desk.counters.refused == 2)
    }

    @Test mutating func `change nothing while too much waits for their viewer`() throws {
        try announce(["one", "two"])
        update()
        let given = try enter(1, anonymous(1))
        let first = try #require(given.first)
        let other = first == "one" ? "two" : "one"
        let busy = refusal(of: .focus(try id(other), ahead: nil), by: 1, isBusy: true)
        #expect(busy == .tooManyMessages)
        let focus = desk.audience.session(session(1))?.focusedStream?.description
        #expect(focus == first)
        let later = refusal(of: .focus(try id(other), ahead: nil), by: 1)
        #expect(later == nil)
    }

    @Test mutating func `a session that asks too much in a row is told once`() throws {
        _ = try enter(1, anonymous(1))
        var answers = 0
        for _ in 0..<500 {
            let directives = desk.receive(
                .release(nil), request: nil, from: session(1), isBusy: false, at: .zero)
            for case .tell(.refused) in directives.map(\.effect) { answers += 1 }
        }
        #expect(answers == 1)
        #expect(desk.counters.refused == 1)
        #expect(desk.counters.releases == 500)
    }
}
