import Base
import Forwarding
import Peer
import TestSupport
import Testing
import Wire

/// A layout whose people send one audio and one video, "a" and "v", and have slots "a0"… and "v0"….
private struct LayoutRig {
    var layout = StageLayout()
    var ranking = SpeakerRanking()
    var random = SeededGenerator(seed: 1)
    /// What the changes add up to.
    var shown: [SessionID: [String: StageLayout.Assignment]] = [:]
    var now = MonotonicTime.zero

    mutating func add(_ name: String, audio: Int = 1, video: Int = 2, screen: Bool = false) throws
        -> SessionID
    {
        let id = SessionID(using: &random)
        let participant = try #require(ParticipantID(name))
        var plan = SessionPlan(
            remoteCredentials: ICECredentials(ufrag: "x", password: Secret("y")), fingerprints: [])
        plan.sources = [
            SourcePlan(mid: "a", kind: .audio, formats: []), SourcePlan(mid: "v", kind: .video, formats: []),
        ]
        if screen { plan.sources.append(SourcePlan(mid: "s", kind: .video, formats: [])) }
        let kinds = Array(repeating: MediaKind.audio, count: audio) + Array(repeating: .video, count: video)
        var counts: [MediaKind: Int] = [:]
        for kind in kinds {
            let mid = "\(kind == .audio ? "a" : "v")\(counts[kind, default: 0])"
            counts[kind, default: 0] += 1
            plan.slots.append(
                SlotPlan(
                    mid: mid, kind: kind, ssrc: 1, repairSSRC: nil, cname: "c", formats: [],
                    extensions: ExtensionIDs(), allowsMixedExtensions: true))
        }
        layout.add(id, of: participant, with: plan)
        ranking.add(id)
        shown[id] = [:]
        for source in plan.sources { layout.setActive(true, .init(session: id, mid: source.mid)) }
        return id
    }

    mutating func remove(_ id: SessionID) {
        layout.remove(id)
        ranking.remove(id)
        shown[id] = nil
    }

    mutating func speak(_ id: SessionID, _ milliseconds: Int64) {
        ranking.note(100, of: id)
        pass(milliseconds)
        ranking.note(0, of: id)
    }

    mutating func pass(_ milliseconds: Int64) {
        for _ in 0..<(milliseconds / 100) {
            now = now + .milliseconds(100)
            ranking.advance(to: now)
            apply()
        }
    }

    /// Mids of a session's pictures that come first, where that is new.
    mutating func favours(of id: SessionID) -> [String]? {
        layout.takeFavours().first { $0.session == id }?.mids
    }

    mutating func apply() {
        for change in layout.takeChanges(ranking) { shown[change.session]?[change.mid] = change.assignment }
    }

    func source(_ id: SessionID, _ mid: String) -> SessionID? { shown[id]?[mid]?.source?.session }
}

@Suite struct StageLayouts {
    private var rig = LayoutRig()

    @Test mutating func `show everybody else where there is room`() throws {
        let (ann, bob, cid) = (try rig.add("ann"), try rig.add("bob"), try rig.add("cid"))
        rig.apply()
        #expect([rig.source(ann, "v0"), rig.source(ann, "v1")] == [bob, cid])
        #expect([rig.source(bob, "v0"), rig.source(bob, "v1")] == [ann, cid])
        #expect(rig.source(ann, "a0") == bob)
        #expect(rig.source(bob, "a0") == ann)
    }

    @Test mutating func `have who speaks, a screen, and what is pinned come before other pictures`() throws {
        let (ann, bob, cid) = (try rig.add("ann"), try rig.add("bob"), try rig.add("cid"))
        rig.apply()
        #expect([rig.source(ann, "v0"), rig.source(ann, "v1")] == [bob, cid])
        rig.speak(cid, 1_000)
        #expect(rig.favours(of: ann) == ["v1"])
        rig.pass(1_000)
        #expect(rig.favours(of: ann) == nil, "it is as it was")
        rig.speak(bob, 1_000)
        #expect(rig.favours(of: ann) == ["v0"])
        rig.layout.pin(ParticipantID("cid"), in: "v1", of: ann)
        rig.apply()
        #expect(rig.favours(of: ann) == ["v1"], "whoever speaks")
        rig.layout.pin(nil, in: "v1", of: ann)
        rig.apply()
        #expect(rig.favours(of: ann) == ["v0"])
        let dan = try rig.add("dan", screen: true)
        rig.apply()
        #expect(rig.shown[ann]?["v1"]?.source == StageLayout.Source(session: dan, mid: "s"))
        #expect(rig.favours(of: ann) == ["v1"])
    }

    @Test mutating func `have no hidden picture come before those that are shown`() throws {
        let (ann, bob) = (try rig.add("ann", video: 3), try rig.add("bob"))
        _ = (try rig.add("cid"), try rig.add("dan"))
        rig.speak(bob, 1_000)
        #expect(rig.source(ann, "v0") == bob)
        #expect(rig.favours(of: ann) == ["v0"])
        rig.layout.setVisible(false, "v0", of: ann)
        rig.apply()
        #expect(rig.favours(of: ann) == ["v1"])
        rig.layout.pin(ParticipantID("dan"), in: "v0", of: ann)
        rig.apply()
        #expect(rig.favours(of: ann) == ["v2"], "bob's picture, which made way for what is pinned")
        rig.layout.setVisible(true, "v0", of: ann)
        rig.apply()
        #expect(rig.favours(of: ann) == ["v0"])
        for mid in ["v0", "v1"] { rig.layout.setVisible(false, mid, of: ann) }
        rig.apply()
        #expect(rig.favours(of: ann) == [], "there is only one")
    }

    @Test mutating func `have no picture before others where there is only one`() throws {
        let (ann, bob) = (try rig.add("ann"), try rig.add("bob"))
        rig.speak(bob, 1_000)
        #expect(rig.favours(of: ann) == nil)
    }

    @Test mutating func `give the slot of whoever was silent longest to who speaks now`() throws {
        let ids = try ["ann", "bob", "cid", "dan"].map { try rig.add($0) }
        rig.speak(ids[1], 1_000)
        rig.pass(1_000)
        rig.speak(ids[2], 1_000)
        rig.pass(1_000)
        let before = (rig.source(ids[0], "v0"), rig.source(ids[0], "v1"))
        rig.speak(ids[3], 1_000)
        #expect(rig.source(ids[0], "v0") == (before.0 == ids[1] ? ids[3] : before.0))
        #expect(rig.source(ids[0], "v1") == (before.1 == ids[1] ? ids[3] : before.1))
        #expect(Set([rig.source(ids[0], "v0"), rig.source(ids[0], "v1")]) == [ids[2], ids[3]])
        #expect(rig.source(ids[0], "a0") == ids[3])
    }

    @Test mutating func `keep a pin, and do not show the pinned twice`() throws {
        let ids = try ["ann", "bob", "cid", "dan"].map { try rig.add($0) }
        rig.layout.pin(ParticipantID("dan"), in: "v1", of: ids[0])
        rig.apply()
        #expect([rig.source(ids[0], "v0"), rig.source(ids[0], "v1")] == [ids[1], ids[3]])
        rig.speak(ids[3], 1_000)
        rig.speak(ids[2], 1_500)
        #expect([rig.source(ids[0], "v0"), rig.source(ids[0], "v1")] == [ids[2], ids[3]])
        // A second pin of the same takes the first away.
        rig.layout.pin(ParticipantID("dan"), in: "v0", of: ids[0])
        rig.apply()
        #expect([rig.source(ids[0], "v0"), rig.source(ids[0], "v1")] == [ids[3], ids[2]])
        rig.layout.pin(nil, in: "v0", of: ids[0])
        rig.apply()
        #expect(Set([rig.source(ids[0], "v0"), rig.source(ids[0], "v1")]) == [ids[2], ids[3]])
    }

    @Test mutating func `ignore a pin of oneself and of nobody`() throws {
        let (ann, bob) = (try rig.add("ann"), try rig.add("bob"))
        rig.layout.pin(ParticipantID("ann"), in: "v0", of: ann)
        rig.layout.pin(ParticipantID("eve"), in: "v1", of: ann)
        rig.layout.pin(ParticipantID("bob"), in: "a0", of: ann)
        rig.apply()
        #expect(rig.source(ann, "v0") == bob)
        #expect(rig.source(ann, "v1") == nil)
    }

    @Test mutating func `show a shared screen before any camera`() throws {
        let ids = try ["ann", "bob", "cid"].map { try rig.add($0) } + [try rig.add("dan", screen: true)]
        rig.apply()
        let screen = StageLayout.Source(session: ids[3], mid: "s")
        #expect(rig.layout.isScreen(screen))
        #expect(!rig.layout.isScreen(.init(session: ids[3], mid: "v")))
        #expect(rig.shown[ids[0]]?["v0"]?.source == screen)
        rig.layout.setActive(false, screen)
        rig.apply()
        #expect(rig.source(ids[0], "v0") == ids[2])
    }

    @Test mutating func `empty the slot of somebody who stops sending or leaves`() throws {
        let (ann, bob) = (try rig.add("ann"), try rig.add("bob"))
        rig.apply()
        rig.layout.setActive(false, .init(session: bob, mid: "v"))
        rig.apply()
        #expect(rig.source(ann, "v0") == nil)
        #expect(rig.source(ann, "a0") == bob)
        rig.remove(bob)
        rig.apply()
        #expect(rig.source(ann, "a0") == nil)
    }

    @Test mutating func `limit the pictures of a large grid, or as wished`() throws {
        let ann = try rig.add("ann", video: 9)
        let bob = try rig.add("bob", video: 1)
        rig.apply()
        #expect(rig.shown[ann]?["v0"]?.maximumHeight == 360)
        #expect(rig.shown[ann]?["a0"]?.maximumHeight == nil)
        #expect(rig.shown[bob]?["v0"]?.maximumHeight == nil)
        rig.layout.limit("v0", of: ann, to: 720)
        rig.layout.setVisible(false, "v1", of: ann)
        rig.apply()
        #expect(rig.shown[ann]?["v0"]?.maximumHeight == 720)
        #expect(rig.shown[ann]?["v1"]?.isVisible == false)
    }

    @Test(arguments: 1...30 as ClosedRange<UInt64>)
    mutating func `hold their rules over random lives`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let names = (0..<20).map { "p\($0)" }
        var here: [String: SessionID] = [:]
        for _ in 0..<150 {
            let name = names.randomElement(using: &random) ?? ""
            switch (here[name], Int.random(in: 0..<8, using: &random)) {
            case (nil, _):
                here[name] = try rig.add(
                    name, audio: .random(in: 0...3, using: &random), video: .random(in: 0...9, using: &random)
                )
            case (let id?, 0):
                rig.remove(id)
                here[name] = nil
            case (let id?, 1):
                rig.layout.pin(
                    ParticipantID(names.randomElement(using: &random) ?? ""),
                    in: "v\(Int.random(in: 0..<9, using: &random))", of: id)
            case (let id?, 2): rig.layout.setActive(Bool.random(using: &random), .init(session: id, mid: "v"))
            case (let id?, 3): rig.layout.setActive(Bool.random(using: &random), .init(session: id, mid: "a"))
            case (let id?, _): rig.ranking.note(.random(in: 0...127, using: &random), of: id)
            }
            rig.pass(200)
            check(here)
        }
    }

    /// Nobody gets oneself or anybody twice, what is shown is there, and no slot is empty that could be filled.
    private func check(_ here: [String: SessionID]) {
        for id in here.values {
            let slots = rig.layout.slots(of: id)
            for kind in [MediaKind.audio, .video] {
                let sources = slots.filter { $0.kind == kind }.map(\.source)
                let filled = sources.compactMap(\.self)
                #expect(Set(filled).count == filled.count)
                #expect(!filled.contains { $0.session == id })
                #expect(filled.allSatisfy { here.values.contains($0.session) })
                let others = rig.layout.activeSources(kind).filter { $0.session != id }
                #expect(filled.count == min(sources.count, others.count))
                #expect(filled.allSatisfy(others.contains))
            }
        }
    }
}
