import Base
import Forwarding
import Peer
import TestSupport
import Testing
import Wire

@Suite struct StageRooms {
    private var room = StageRoom()
    private var random = SeededGenerator(seed: 64)

    private mutating func join(_ name: String) throws -> SessionID {
        let id = SessionID(using: &random)
        let participant = try #require(ParticipantID(name))
        let credentials = ICECredentials(ufrag: "x", password: Secret("y"))
        room.join(
            id, of: participant, on: 0, with: SessionPlan(remoteCredentials: credentials, fingerprints: []))
        return id
    }

    @Test mutating func `the oldest session of a participant is forgotten when there are too many`() throws {
        let bob = try join("bob")
        let own = try (0..<100).map { _ in try join("ann") }
        #expect(room.layout.sessions == [bob] + own.suffix(StageRoom.maximumOwn))
        #expect(!room.isFull)
        #expect(room.leave(own[0]).isEmpty)
    }

    @Test mutating func `a room takes no more sessions than its limit`() throws {
        let ids = try (0..<100).map { try join("p\($0)") }
        #expect(room.isFull)
        #expect(room.layout.sessions == Array(ids.prefix(StageRoom.maximumSessions)))
        _ = room.leave(ids[0])
        #expect(room.worker(of: ids[0]) == nil)
        #expect(!room.isFull)
    }

    @Test mutating func `keep a mute state for as long as somebody is there`() throws {
        let (ann, again) = (try join("ann"), try join("ann"))
        let name = try #require(ParticipantID("ann"))
        _ = room.setMute(.init(audio: true), of: name)
        _ = room.leave(ann)
        #expect(room.mute(of: name) == .init(audio: true))
        _ = room.leave(again)
        #expect(room.mute(of: name) == .init())
        _ = room.setMute(.init(audio: true), of: name)
        #expect(room.mute(of: name) == .init())
        #expect(room.isEmpty)
    }
}
