import Base
import Peer
import TestSupport
import Testing
import Wire

@testable import Forwarding

@Suite struct RoomCompositions {
    private var room = StageRoom()
    private var random = SeededGenerator(seed: 65)
    private var nextTrack: UInt64 = 1
    private let composed: [PublishedTrack]

    init() {
        composed = [MediaKind.audio, .video].map { Self.track(900, $0, "c") }
        _ = room.setProgramme(.composed)
    }

    private static func track(_ number: UInt64, _ kind: MediaKind, _ mid: String) -> PublishedTrack {
        PublishedTrack(
            key: TrackKey(worker: 0, track: TrackID(number: number)),
            plan: SourcePlan(
                mid: mid, kind: kind,
                formats: [MediaFormat(codec: kind == .video ? .vp8 : .opus, payloadType: 96)]),
            extensions: ExtensionIDs())
    }

    /// Somebody who sends a voice and a picture, and maybe a screen.
    private mutating func join(_ name: String, screens: Int = 0) throws -> (SessionID, [StageRoom.Effect]) {
        let id = SessionID(using: &random)
        let participant = try #require(ParticipantID(name))
        let mids = ["0", "1"] + (0..<screens).map { "\($0 + 2)" }
        let sources = mids.map { mid in
            Self.track(0, mid == "0" ? .audio : .video, mid).plan
        }
        room.join(
            id, of: participant, on: 0,
            with: SessionPlan(
                remoteCredentials: ICECredentials(ufrag: "x", password: Secret("y")), fingerprints: [],
                sources: sources))
        let tracks = mids.map { mid -> PublishedTrack in
            nextTrack += 1
            return Self.track(nextTrack, mid == "0" ? .audio : .video, mid)
        }
        _ = room.receive(.published(id, tracks))
        var effects: [StageRoom.Effect] = []
        for mid in mids { effects += room.receive(.sourceChanged(id, mid: mid, isActive: true)) }
        return (id, effects)
    }

    private func composition(in effects: [StageRoom.Effect]) -> [ComposedSpeaker]? {
        for case .compose(let speakers) in effects.reversed() { return speakers }
        return nil
    }

    private func programme(in effects: [StageRoom.Effect]) -> [PublishedTrack]? {
        for case .programme(let tracks) in effects.reversed() { return tracks }
        return nil
    }

    private func namesOthers(_ effects: [StageRoom.Effect]) -> Bool {
        effects.contains { if case .announceProgramme = $0 { true } else { false } }
    }

    @Test mutating func `begin when a second person is on stage, and relay one`() throws {
        let (ann, alone) = try join("ann")
        #expect(composition(in: alone) == nil)
        #expect(programme(in: alone)?.count == 2)
        let (bob, both) = try join("bob")
        let speakers = try #require(composition(in: both))
        #expect(Set(speakers.map(\.id.session)) == [ann, bob])
        #expect(speakers.allSatisfy { $0.hasPicture && $0.video != nil && $0.audio != nil })
    }

    @Test mutating func `are the programme only once they are there, and until one is left`() throws {
        _ = try join("ann")
        let (bob, effects) = try join("bob")
        #expect(programme(in: effects) != composed)
        #expect(programme(in: room.setComposed(composed)) == composed)
        // The process died: who speaks, until there is a new one.
        let relayed = try #require(programme(in: room.setComposed([])))
        #expect(relayed.count == 2 && relayed != composed)
        #expect(programme(in: room.setComposed(composed)) == composed)
        // The one who is left is composed alone until there is a key frame to go on with.
        let left = room.leave(bob)
        #expect(composition(in: left)?.count == 1)
        #expect(programme(in: left) == nil)
        var now = MonotonicTime(nanoseconds: 1_000_000_000)
        let asked = room.advance(to: now)
        #expect(asked.contains { if case .refresh = $0 { true } else { false } })
        now = now + .milliseconds(500)
        let handed = room.advance(to: now)
        #expect(composition(in: handed)?.isEmpty == true)
        #expect(programme(in: handed) != composed)
        #expect(programme(in: handed)?.count == 2)
    }

    @Test mutating func `go on when somebody comes back while one is handed over`() throws {
        _ = try join("ann")
        let (bob, _) = try join("bob")
        _ = room.setComposed(composed)
        _ = room.leave(bob)
        let now = MonotonicTime(nanoseconds: 1_000_000_000)
        _ = room.advance(to: now)
        let (_, effects) = try join("bob")
        #expect(composition(in: effects)?.count == 2)
        #expect(programme(in: room.advance(to: now + .seconds(2))) == nil)
    }

    @Test mutating func `people in a composition are named once viewers get it, and not before`() throws {
        let people = try ["ann", "bob", "cid"].map { try #require(ParticipantID($0)) }
        let (ann, _) = try join("ann")
        let (bob, _) = try join("bob")
        #expect(room.composedParticipants.isEmpty)
        _ = room.setComposed(composed)
        #expect(room.composedParticipants == Array(people.prefix(2)))
        let (cid, joined) = try join("cid", screens: 1)
        #expect(namesOthers(joined) && programme(in: joined) == nil)
        #expect(room.composedParticipants == people)
        // Who speaks is no news.
        _ = room.receive(.voice(cid, level: 10))
        let spoken = (1...20).flatMap { room.advance(to: MonotonicTime(nanoseconds: $0 * 100_000_000)) }
        #expect(!namesOthers(spoken))
        #expect(namesOthers(room.leave(ann)))
        _ = room.leave(bob)
        #expect(room.composedParticipants == [people[2]])
        _ = room.setComposed([])
        #expect(room.composedParticipants.isEmpty)
    }

    @Test mutating func `show a card for a camera that is off or sends nothing`() throws {
        let (ann, _) = try join("ann")
        _ = try join("bob")
        let stopped = room.receive(.sourceChanged(ann, mid: "1", isActive: false))
        #expect(composition(in: stopped)?.first { $0.id.session == ann }?.hasPicture == false)
        let name = try #require(ParticipantID("bob"))
        let muted = room.setMute(.init(video: true), of: name)
        #expect(composition(in: muted)?.filter(\.hasPicture).isEmpty == true)
        let back = room.setMute(.init(), of: name)
        #expect(composition(in: back)?.filter(\.hasPicture).count == 1)
    }

    @Test mutating func `give shared screens a place of their own`() throws {
        _ = try join("ann")
        let (bob, effects) = try join("bob", screens: 1)
        let speakers = try #require(composition(in: effects))
        #expect(speakers.count == 3)
        let screen = try #require(speakers.first { $0.isScreen })
        #expect(screen.id == .init(session: bob, screen: "2"))
        #expect(screen.audio == nil)
    }

    @Test mutating func `a composition does not change streams with another programme`() throws {
        _ = try join("ann")
        _ = try join("bob")
        _ = room.setComposed(composed)
        #expect(composition(in: room.setProgramme(.activeSpeaker))?.isEmpty == true)
        let (_, effects) = try join("cid")
        #expect(composition(in: effects) == nil)
    }
}
