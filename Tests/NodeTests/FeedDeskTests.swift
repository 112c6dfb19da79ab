import Base
import Stage
import StoryFeed
import TestSupport
import Testing

@testable import Node

@Suite struct `The feed's desk` {
    private let directory = StreamDirectory()
    private let show: StreamID
    private let bob: ParticipantID
    private let cleo: ParticipantID
    private var desk: FeedDesk

    init() throws {
        show = try #require(StreamID("show"))
        bob = try #require(ParticipantID("bob"))
        cleo = try #require(ParticipantID("cleo"))
        desk = FeedDesk(directory: directory, sessionLimit: 100, tag: 1)
    }

    private mutating func update(
        state: StreamState = .live, viewers: Int = 0, banned: [ParticipantID] = [],
        viewersRevoked: WallTime? = nil
    ) -> FeedDesk.Outcome {
        var snapshot = StreamSnapshot(waitingFor: show)
        snapshot.state = state
        snapshot.createdAt = WallTime(milliseconds: 1)
        snapshot.viewers = viewers
        snapshot.linkRevocations.viewers = viewersRevoked
        for participant in banned { snapshot.banned[participant] = WallTime(milliseconds: 2) }
        directory.update(snapshot)
        return desk.update(directory.takeNews(), at: .zero)
    }

    /// Each look costs as much as there are who watch.
    @Test mutating func `looks who may see a stream when that changes, not with each news of it`() {
        #expect(update(banned: [bob]).appeared == [show])
        for viewers in 1...100 {
            let outcome = update(viewers: viewers, banned: [bob])
            #expect(outcome.restricted.isEmpty && outcome.appeared.isEmpty)
        }
        #expect(update(banned: [bob, cleo]).restricted == [show])
        #expect(update(banned: [cleo]).restricted.isEmpty)
        #expect(update(banned: [bob]).restricted == [show])
        #expect(update(state: .ended, banned: [bob]).restricted.isEmpty)
        #expect(update(banned: [bob]).appeared == [show])
    }

    private func session(_ number: UInt64) -> SessionID {
        var numbers = SeededGenerator(seed: number)
        return SessionID(using: &numbers)
    }

    private mutating func enter(_ number: UInt64, _ id: ParticipantID, linkIssued: Int) throws -> [StreamID] {
        let link = Stage.Link(makesSpeakers: false, issued: linkIssued)
        let sender = Stage.Sender(id: id, authority: .viewer, link: link)
        let reader = FeedReader(scope: .one(show), sender: sender, standing: .one(show))
        let place = FeedPlace(viewer: .named(id), reader: reader, mids: [])
        let directives = try desk.enter(session(number), place, preload: .eager, on: show, at: .zero)
        let attached = directives.compactMap { directive -> StreamID? in
            if case .attach(_, let stream, _) = directive.effect { stream } else { nil }
        }
        #expect(
            try desk.page(limit: 9, after: nil, for: reader, at: .zero).entries.map(\.item.id) == attached)
        return attached
    }

    @Test
    mutating func `shows nothing to who comes by a revoked link, and takes nothing from who came before`()
        throws
    {
        _ = update()
        #expect(try enter(1, bob, linkIssued: 100) == [show])
        _ = update(viewersRevoked: WallTime(milliseconds: 200_000))
        #expect(try enter(2, cleo, linkIssued: 150).isEmpty)
        #expect(desk.audience.session(session(2))?.focusedStream == nil)
        // All who watch are looked at again.
        let outcome = update(banned: [cleo], viewersRevoked: WallTime(milliseconds: 200_000))
        #expect(outcome.restricted == [show])
        #expect(outcome.directives.isEmpty)
        #expect(desk.audience.session(session(1))?.focusedStream == show)
        #expect(try enter(3, cleo, linkIssued: 201).isEmpty)
        _ = update(viewersRevoked: WallTime(milliseconds: 200_000))
        #expect(try enter(4, cleo, linkIssued: 201) == [show])
    }
}
