import Base
import Peer
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// What a stage makes workers and clients do, effect by effect.
@Suite struct `The choices of a stage` {
    private var room = StageRoom()
    private var random = SeededGenerator(seed: 17)
    private var now = MonotonicTime(nanoseconds: 1_000_000_000)
    private var names: [SessionID: String] = [:]
    private var tracks: [TrackKey: String] = [:]

    /// Somebody with one m-line of sound and of video, who may also share a screen, with slots for two others.
    /// - Returns: the session, before anything has come from it.
    private mutating func join(_ name: String, worker: Int = 0, isHost: Bool = false) throws -> SessionID {
        let (id, participant) = (SessionID(using: &random), try #require(ParticipantID(name)))
        let kinds: [(mid: String, kind: MediaKind)] = [("a", .audio), ("v", .video), ("s", .video)]
        let sources = kinds.map { SourcePlan(mid: $0.mid, kind: $0.kind, formats: []) }
        var plan = SessionPlan(
            remoteCredentials: ICECredentials(ufrag: "x", password: Secret("y")), fingerprints: [],
            sources: sources)
        let places: [(mid: String, kind: MediaKind)] = [("a0", .audio), ("v0", .video), ("v1", .video)]
        plan.slots = places.map { mid, kind in
            SlotPlan(
                mid: mid, kind: kind, ssrc: 1, repairSSRC: nil, cname: "c", formats: [],
                extensions: ExtensionIDs(), allowsMixedExtensions: true)
        }
        room.join(id, of: participant, on: worker, with: plan, isHost: isHost)
        names[id] = name
        let published = sources.enumerated().map { index, source in
            PublishedTrack(
                key: TrackKey(worker: worker, track: TrackID(number: UInt64(names.count * 10 + index))),
                plan: source, extensions: ExtensionIDs())
        }
        for track in published { tracks[track.key] = name + "." + track.plan.mid }
        let effects = room.receive(.published(id, published))
        #expect(effects.isEmpty)
        return id
    }

    /// Somebody who sends sound and a picture.
    private mutating func enter(_ name: String, worker: Int = 0, isHost: Bool = false) throws -> SessionID {
        let id = try join(name, worker: worker, isHost: isHost)
        for mid in ["a", "v"] { _ = room.receive(.sourceChanged(id, mid: mid, isActive: true)) }
        return id
    }

    /// Lets time pass in which somebody speaks, or nobody.
    private mutating func pass(_ milliseconds: Int64, speaking id: SessionID? = nil) -> [String] {
        if let id { _ = room.receive(.voice(id, level: 100)) }
        var all: [String] = []
        for _ in 0..<(milliseconds / 100) {
            now = now + .milliseconds(100)
            all += describe(room.advance(to: now))
        }
        if let id { _ = room.receive(.voice(id, level: 0)) }
        return all
    }

    private func describe(_ effects: [StageRoom.Effect]) -> [String] {
        effects.map { effect in
            switch effect {
            case .command(.attach(let id, let mid, let track, let height), let worker):
                let source = track.flatMap { tracks[$0.key] } ?? "nothing"
                let limit = height.map { String($0) } ?? "any"
                return "\(name(id)) \(mid): \(source) \(limit) @\(worker)"
            case .command(.favour(let id, let mids), let worker):
                return "\(name(id)) favours \(mids.joined(separator: ",")) @\(worker)"
            case .command: return "another command"
            case .announce(let id): return "announce to \(name(id))"
            case .programme(let chosen): return "programme " + list(chosen)
            case .announceProgramme: return "announce programme"
            case .compose(let speakers): return "compose \(speakers.count)"
            case .refresh(let track): return "refresh \(tracks[track.key] ?? "?")"
            }
        }
    }

    private func name(_ id: SessionID) -> String { names[id] ?? "?" }

    private func list(_ chosen: [PublishedTrack]) -> String {
        chosen.map { tracks[$0.key] ?? "?" }.joined(separator: ",")
    }

    /// Whom a session gets in its slots, in the order of its offer.
    private func shown(to id: SessionID) -> [String] {
        room.layout.slots(of: id).map { slot in slot.source.map { name($0.session) } ?? "" }
    }

    @Test mutating func `a new source is attached on its receivers' workers, and only they hear it`() throws {
        let ann = try enter("ann")
        let bob = try join("bob", worker: 1)
        var effects = describe(room.receive(.sourceChanged(bob, mid: "a", isActive: true)))
        #expect(
            effects == [
                "programme ann.a", "ann a0: bob.a any @0", "bob a0: ann.a any @1", "bob v0: ann.v 540 @1",
                "bob v1: nothing 540 @1", "announce to ann", "announce to bob",
            ])
        effects = describe(room.receive(.sourceChanged(bob, mid: "v", isActive: true)))
        #expect(effects == ["ann v0: bob.v 540 @0", "announce to ann"])
        effects = describe(room.receive(.sourceChanged(ann, mid: "a", isActive: false)))
        #expect(effects == ["programme ", "bob a0: nothing any @1", "announce to bob"])
        effects = describe(room.receive(.sourceChanged(ann, mid: "a", isActive: false)))
        #expect(effects.isEmpty)
        effects = describe(room.leave(ann))
        #expect(effects == ["bob v0: nothing 540 @1", "announce to bob"])
    }

    @Test mutating func `notices about unknown sessions are ignored`() throws {
        let ann = try enter("ann")
        let stranger = SessionID(using: &random)
        var effects = room.receive(.sourceChanged(stranger, mid: "v", isActive: true))
        effects += room.receive(.sourceChanged(ann, mid: "x", isActive: true))
        effects += room.receive(.voice(stranger, level: 127))
        effects += room.receive(.controlOpened(stranger))
        effects += room.receive(.published(stranger, []))
        effects += room.receive(.passed(3))
        effects += room.leave(stranger)
        effects += room.makeHost(stranger)
        effects += room.pin(ParticipantID("ann"), in: "v0", of: stranger)
        effects += room.limit("x", of: ann, to: 1)
        effects += room.setVisible(false, "x", of: ann)
        #expect(effects.isEmpty)
        #expect(room.layout.sessions == [ann] && room.worker(of: stranger) == nil)
        let opened = describe(room.receive(.controlOpened(ann)))
        #expect(opened == ["announce to ann"])
    }

    @Test mutating func `a hidden slot gets nothing, and the same source again when it is shown`()
        throws
    {
        let ann = try enter("ann")
        _ = try enter("bob")
        var effects = describe(room.setVisible(false, "v0", of: ann))
        #expect(effects == ["ann v0: nothing 540 @0", "announce to ann"])
        // A third picture goes into the next slot, and not into the hidden one.
        _ = try enter("cid")
        #expect(shown(to: ann) == ["bob", "bob", "cid"])
        effects = describe(room.setVisible(true, "v0", of: ann))
        // There are two pictures only now, of which one takes priority.
        #expect(effects == ["ann v0: bob.v 540 @0", "ann favours v0 @0", "announce to ann"])
        effects = describe(room.limit("v0", of: ann, to: 180))
        #expect(effects == ["ann v0: bob.v 180 @0", "announce to ann"])
        effects = describe(room.limit("v0", of: ann, to: 180))
        #expect(effects.isEmpty)
        effects = describe(room.limit("v0", of: ann, to: nil))
        #expect(effects == ["ann v0: bob.v 540 @0", "announce to ann"])
    }

    @Test mutating func `a pinned participant is first until unpinned or gone`() throws {
        let ann = try enter("ann")
        _ = try enter("bob")
        let cid = try enter("cid")
        #expect(shown(to: ann) == ["bob", "bob", "cid"])
        let pinned = try #require(ParticipantID("cid"))
        var effects = describe(room.pin(pinned, in: "v1", of: ann))
        #expect(effects == ["ann favours v1 @0"], "it is there already")
        effects = describe(room.pin(pinned, in: "v0", of: ann))
        #expect(
            effects == [
                "ann v0: cid.v 540 @0", "ann v1: bob.v 540 @0", "ann favours v0 @0", "announce to ann",
            ])
        _ = room.leave(cid)
        #expect(shown(to: ann) == ["bob", "", "bob"])
        effects = describe(room.pin(nil, in: "v0", of: ann))
        #expect(effects.isEmpty, "there is nobody else to show")
    }

    // MARK: Mute states

    @Test mutating func `a muted microphone is reported once, to those who hear it`() throws {
        _ = try enter("ann")
        _ = try enter("bob")
        let (bob, stranger) = (try #require(ParticipantID("bob")), try #require(ParticipantID("eve")))
        var effects = describe(room.setMute(.init(audio: true), of: bob))
        #expect(effects == ["announce to ann"])
        effects = describe(room.setMute(.init(audio: true), of: bob))
        effects += describe(room.setMute(.init(audio: true), of: stranger))
        #expect(effects.isEmpty)
        #expect(room.mute(of: bob) == .init(audio: true) && room.mute(of: stranger) == .init())
        effects = describe(room.setMute(.init(video: true), of: bob))
        #expect(effects == ["announce to ann"])
        // Nobody shows who sends nothing.
        let cid = try join("cid")
        effects = describe(room.setMute(.init(audio: true), of: try #require(ParticipantID("cid"))))
        #expect(effects.isEmpty && !room.hasSent(cid) && room.hasLostPicture(of: cid))
    }

    // MARK: What viewers get

    @Test mutating func `let viewers hear who speaks, and see the host alone`() throws {
        let ann = try enter("ann", isHost: true)
        #expect(room.programmeTracks.isEmpty, "the source's own packets do")
        let bob = try enter("bob")
        #expect(list(room.programmeTracks) == "ann.a")
        var changes = pass(1_500, speaking: bob).filter { $0.hasPrefix("programme") }
        #expect(changes == ["programme bob.a"])
        #expect(room.programmeSession(.audio) == bob && room.programmeSession(.video) == nil)
        _ = room.receive(.sourceChanged(bob, mid: "s", isActive: true))
        #expect(!room.showsScreen, "what is not the host's is not shown")
        changes = describe(room.receive(.sourceChanged(ann, mid: "s", isActive: true)))
        #expect(changes.filter { $0.hasPrefix("programme") } == ["programme bob.a,ann.s"])
        #expect(room.showsScreen && room.programmeSession(.video) == ann)
        _ = room.leave(bob)
        #expect(list(room.programmeTracks) == "ann.s")
    }

    @Test mutating func `let viewers see who speaks where the stream says so`() throws {
        let ann = try enter("ann", isHost: true)
        let bob = try enter("bob")
        _ = room.setProgramme(.activeSpeaker)
        #expect(list(room.programmeTracks) == "ann.a,ann.v")
        let changes = pass(1_500, speaking: bob).filter { $0.hasPrefix("programme") }
        #expect(changes.last == "programme bob.a,bob.v")
        // Whose camera is off is heard, and another one is seen.
        let off = describe(room.receive(.sourceChanged(bob, mid: "v", isActive: false)))
        #expect(off.contains("programme bob.a,ann.v"))
        #expect(room.hasLostPicture(of: bob) && !room.hasLostPicture(of: ann))
        _ = room.setProgramme(.host)
        #expect(list(room.programmeTracks) == "bob.a")
    }

    /// Two streams' hosts meet on each other's stages, which may be full.
    @Test mutating func `take a guest in as soon as there is room for one`() throws {
        let ann = try enter("ann", isHost: true)
        var others: [SessionID] = []
        for number in 1..<StageRoom.maximumSessions { others.append(try join("p\(number)")) }
        let cleo = try #require(ParticipantID("cleo@quiz"))
        let guest = StageGuest(
            session: SessionID(using: &random), participant: cleo, worker: 1,
            sources: [SourcePlan(mid: "a", kind: .audio, formats: [])], tracks: [:], active: ["a"],
            hasSent: true, mute: .init())
        #expect(room.isFull)
        _ = room.setGuest(guest)
        #expect(room.worker(of: guest.session) == nil && room.guest == nil)
        _ = room.leave(others[5])
        _ = room.setGuest(guest)
        #expect(room.worker(of: guest.session) == 1 && !room.hasSent(guest.session))
        _ = room.leave(ann)
        for other in others { _ = room.leave(other) }
        #expect(room.isEmpty && room.layout.sessions == [guest.session])
        _ = room.setGuest(nil)
        #expect(room.layout.sessions.isEmpty)
    }
}
