import Base
import Peer
import TestSupport
import Testing
import Wire

@testable import Forwarding

/// Slots, pins and limits of a stage at their edges.
@Suite struct `A layout of a stage` {
    private var layout = StageLayout()
    private var ranking = SpeakerRanking()
    private var random = SeededGenerator(seed: 77)

    /// Somebody who sends these pictures, and has so many slots for pictures, "0", "1"….
    private mutating func add(
        _ name: String, sending mids: [String] = ["v"], slots: Int = 2, kind: MediaKind = .video
    ) throws -> SessionID {
        let id = SessionID(using: &random)
        try add(id, name, sending: mids, slots: slots, kind: kind)
        return id
    }

    private mutating func add(
        _ id: SessionID, _ name: String, sending mids: [String], slots: Int, kind: MediaKind
    ) throws {
        let participant = try #require(ParticipantID(name))
        var plan = SessionPlan(
            remoteCredentials: ICECredentials(ufrag: "x", password: Secret("y")), fingerprints: [])
        plan.sources = mids.map { SourcePlan(mid: $0, kind: kind, formats: []) }
        plan.slots = (0..<slots).map { index in
            SlotPlan(
                mid: "\(index)", kind: kind, ssrc: UInt32(index + 1), repairSSRC: nil, cname: "c",
                formats: [],
                extensions: ExtensionIDs(), allowsMixedExtensions: true)
        }
        layout.add(id, of: participant, with: plan)
        ranking.add(id)
        for mid in mids { layout.setActive(true, .init(session: id, mid: mid)) }
    }

    /// - Returns: the changes, as "slot: MID of the source, height", of one session.
    private mutating func changes(of id: SessionID) -> [String] {
        layout.takeChanges(ranking).filter { $0.session == id }.map { change in
            let height = change.assignment.maximumHeight.map { " \($0)" } ?? ""
            return "\(change.mid): \(change.assignment.source?.mid ?? "-")\(height)"
        }
    }

    private func shown(to id: SessionID) -> [StageLayout.Source?] { layout.slots(of: id).map(\.source) }

    // MARK: Members

    @Test mutating func `has each session once, with the slots that it came with`() throws {
        let ann = try add("ann")
        let bob = try add("bob")
        _ = layout.takeChanges(ranking)
        try add(ann, "eve", sending: ["x"], slots: 9, kind: .video)
        #expect(layout.sessions == [ann, bob] && layout.slots(of: ann).count == 2)
        #expect(layout.participant(of: ann)?.description == "ann")
        let again = layout.takeChanges(ranking)
        #expect(again.isEmpty)
        layout.remove(ann)
        layout.remove(ann)
        #expect(layout.sessions == [bob] && layout.participant(of: ann) == nil)
        #expect(shown(to: ann).isEmpty)
    }

    @Test mutating func `fills no more slots than a session may have`() throws {
        let ann = try add("ann", slots: 40)
        for number in 0..<40 { _ = try add("p\(number)", slots: 0) }
        _ = layout.takeChanges(ranking)
        #expect(shown(to: ann).count == StageLayout.maximumSlots)
        #expect(Set(shown(to: ann).compactMap(\.self)).count == StageLayout.maximumSlots)
    }

    /// Somebody who is there with a browser and an encoder does not see the one with the other.
    @Test mutating func `shows no one what is sent by another session of theirs`() throws {
        let (first, second, bob) = (try add("ann"), try add("ann"), try add("bob"))
        _ = layout.takeChanges(ranking)
        let own = StageLayout.Source(session: bob, mid: "v")
        #expect(shown(to: first) == [own, nil] && shown(to: second) == [own, nil])
        #expect(
            shown(to: bob) == [
                StageLayout.Source(session: first, mid: "v"), StageLayout.Source(session: second, mid: "v"),
            ])
    }

    // MARK: Changes

    @Test mutating func `a change is reported once, and not if it was undone before`() throws {
        let ann = try add("ann")
        let bob = try add("bob", slots: 0)
        let first = changes(of: ann)
        #expect(first == ["0: v 540", "1: - 540"])
        layout.setVisible(false, "0", of: ann)
        layout.setVisible(true, "0", of: ann)
        layout.setActive(false, .init(session: bob, mid: "v"))
        layout.setActive(true, .init(session: bob, mid: "v"))
        layout.limit("0", of: ann, to: 180)
        layout.limit("0", of: ann, to: nil)
        let none = changes(of: ann)
        #expect(none.isEmpty)
        layout.setActive(false, .init(session: bob, mid: "v"))
        let last = changes(of: ann)
        #expect(last == ["0: - 540"])
    }

    @Test mutating func `unknown slots and sources change nothing`() throws {
        let ann = try add("ann")
        let bob = try add("bob", slots: 0)
        _ = layout.takeChanges(ranking)
        let stranger = SessionID(using: &random)
        for (session, mid) in [(ann, "9"), (bob, "0"), (stranger, "0")] {
            layout.limit(mid, of: session, to: 180)
            layout.setVisible(false, mid, of: session)
            layout.pin(ParticipantID("bob"), in: mid, of: session)
        }
        layout.setActive(true, .init(session: bob, mid: "w"))
        layout.setActive(true, .init(session: stranger, mid: "v"))
        let (changes, favours) = (layout.takeChanges(ranking), layout.takeFavours())
        #expect(changes.isEmpty && favours.isEmpty)
        #expect(layout.activeSources(.video).count == 2)
    }

    @Test(arguments: [
        (0, 1), (-5, 1), (Int.min, 1), (1, 1), (16_384, 16_384), (16_385, 16_384), (Int.max, 16_384),
    ])
    mutating func `limits of pictures are clamped to allowed heights`(wanted: Int, height: Int) throws {
        let ann = try add("ann")
        _ = changes(of: ann)
        layout.limit("1", of: ann, to: wanted)
        let told = changes(of: ann)
        #expect(told == ["1: - \(height)"])
    }

    @Test(arguments: [(1, ""), (2, " 540"), (4, " 540"), (5, " 360"), (32, " 360")])
    mutating func `limits pictures by how many there are beside them`(slots: Int, height: String) throws {
        let ann = try add("ann", slots: slots)
        _ = try add("bob", slots: 0)
        let first = changes(of: ann).first
        #expect(first == "0: v\(height)")
    }

    // MARK: Pins

    @Test mutating func `pins somebody in one slot, the last one`() throws {
        let ann = try add("ann", slots: 3)
        let people = try ["bob", "cid", "dan"].map { try add($0, slots: 0) }
        let pictures = people.map { StageLayout.Source(session: $0, mid: "v") }
        let dan = try #require(ParticipantID("dan"))
        for mid in ["0", "1"] { layout.pin(dan, in: mid, of: ann) }
        _ = layout.takeChanges(ranking)
        #expect(shown(to: ann)[1] == pictures[2])
        #expect(Set(shown(to: ann).compactMap(\.self)) == Set(pictures))
        let favours = layout.takeFavours()
        #expect(favours.map(\.mids) == [["1"]])
        // Once the pinned one goes, the slot is like any other, and the pin is there for when they come back.
        layout.remove(people[2])
        ranking.remove(people[2])
        _ = layout.takeChanges(ranking)
        #expect(Set(shown(to: ann).compactMap(\.self)) == Set(pictures.prefix(2)))
        let again = try add("dan", slots: 0)
        _ = layout.takeChanges(ranking)
        #expect(shown(to: ann)[1] == StageLayout.Source(session: again, mid: "v"))
    }

    @Test mutating func `pins the screen of somebody who shares one, and shows the camera too`() throws {
        let ann = try add("ann")
        let bob = try add("bob", sending: ["v", "s"], slots: 0)
        let (camera, screen) = (
            StageLayout.Source(session: bob, mid: "v"), StageLayout.Source(session: bob, mid: "s")
        )
        _ = layout.takeChanges(ranking)
        #expect(shown(to: ann) == [screen, camera])
        layout.pin(ParticipantID("bob"), in: "1", of: ann)
        _ = layout.takeChanges(ranking)
        #expect(shown(to: ann) == [camera, screen])
        layout.setActive(false, screen)
        _ = layout.takeChanges(ranking)
        #expect(shown(to: ann) == [nil, camera], "what is pinned is the person")
    }

    @Test mutating func `takes only later pictures for screens, whether the first is sent or not`() throws {
        let ann = try add("ann", sending: ["v", "s", "t"])
        let bob = try add("bob", sending: ["x", "y"], kind: .audio)
        layout.setActive(false, .init(session: ann, mid: "v"))
        let screens = ["v", "s", "t", "u"].map { layout.isScreen(.init(session: ann, mid: $0)) }
        #expect(screens == [false, true, true, false])
        let others = [(bob, "x"), (bob, "y"), (SessionID(using: &random), "s")]
        let more = others.map { layout.isScreen(.init(session: $0.0, mid: $0.1)) }
        #expect(more == [false, false, false])
    }

    @Test mutating func `pins nobody to a slot for sound`() throws {
        let ann = try add("ann", sending: ["a"], slots: 1, kind: .audio)
        let bob = try add("bob", sending: ["a"], slots: 0, kind: .audio)
        _ = try add("cid", sending: ["a"], slots: 0, kind: .audio)
        layout.pin(ParticipantID("cid"), in: "0", of: ann)
        _ = layout.takeChanges(ranking)
        #expect(shown(to: ann) == [StageLayout.Source(session: bob, mid: "a")])
        let favours = layout.takeFavours()
        #expect(favours.isEmpty)
    }
}

/// When somebody counts as speaking, step by step.
@Suite struct `A ranking of speakers` {
    private var ranking = SpeakerRanking()
    private let ids: [SessionID]

    init() {
        var random = SeededGenerator(seed: 78)
        ids = (0..<3).map { _ in SessionID(using: &random) }
        for id in ids { ranking.add(id) }
    }

    private func time(_ milliseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: 5_000_000_000 + milliseconds * 1_000_000)
    }

    /// At which of these times the first one counts as speaking.
    private mutating func speaking(at times: [Int64]) -> [Int64] {
        times.filter { milliseconds in
            ranking.advance(to: time(milliseconds))
            return ranking.isSpeaking(ids[0])
        }
    }

    @Test mutating func `hears nothing before its second look, and then a voice after two steps`() {
        ranking.note(127, of: ids[0])
        let heard = speaking(at: [0, 99, 100, 199, 200, 300])
        #expect(heard == [200, 300])
    }

    @Test mutating func `adds up the rests of steps`() {
        ranking.note(127, of: ids[0])
        let heard = speaking(at: [0, 150, 200])
        #expect(heard == [200])
    }

    @Test mutating func `stands still while a clock goes back`() {
        ranking.note(127, of: ids[0])
        let heard = speaking(at: [0, 100, -900, 50, 199, 200])
        #expect(heard == [200])
    }

    @Test mutating func `takes the loudest there may be for any louder one, and no stranger's level`() {
        var random = SeededGenerator(seed: 79)
        let stranger = SessionID(using: &random)
        ranking.note(255, of: ids[0])
        ranking.note(127, of: ids[1])
        ranking.note(127, of: stranger)
        for step in Int64(0)...20 { ranking.advance(to: time(step * 100)) }
        #expect(ranking.isSpeaking(ids[0]) && ranking.isSpeaking(ids[1]) && !ranking.isSpeaking(stranger))
        #expect(ranking.loudest == ids, "neither is louder than the other")
        ranking.remove(stranger)
        ranking.add(ids[1])
        #expect(ranking.loudest.count == 3 && ranking.latest.count == 3)
    }

    @Test mutating func `begins anew with somebody who comes back`() {
        ranking.note(127, of: ids[2])
        for step in Int64(0)...20 { ranking.advance(to: time(step * 100)) }
        #expect(ranking.loudest.first == ids[2] && ranking.latest.first == ids[2])
        ranking.remove(ids[2])
        ranking.add(ids[2])
        #expect(ranking.loudest == ids && ranking.latest == ids && !ranking.isSpeaking(ids[2]))
        ranking.advance(to: time(4_000))
        #expect(ranking.latest == ids, "the level from before says nothing")
    }
}
