import Base
import Stage
import StoryFeed
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
        state: StreamState = .live, viewers: Int = 0, banned: [ParticipantID] = []
    ) -> FeedDesk.Outcome {
        var snapshot = StreamSnapshot(waitingFor: show)
        snapshot.state = state
        snapshot.createdAt = WallTime(milliseconds: 1)
        snapshot.viewers = viewers
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
}
