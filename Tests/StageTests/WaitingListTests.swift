import Base
import Foundation
import TestSupport
import Testing

@testable import Stage

/// Those who want to speak, in the order in which the host means to invite them; and who is taken onto the stage.
@Suite struct WaitingList {
    private var rig: StageRig
    private let names = ["bob", "cid", "dora", "eve"]

    init() throws {
        rig = try StageRig()
    }

    private mutating func raiseAll() throws {
        for name in names {
            try rig.apply(.raiseHand, from: StageRig.viewer(name))
            rig.now = Moment(elapsed: rig.now.elapsed, wall: rig.now.wall.advanced(bySeconds: 1))
        }
    }

    private var order: [String] { rig.stage.record.handsInOrder.map(\.description) }

    private func place(_ name: String) -> Int? { rig.stage.record.handPlace(of: StageRig.id(name)) }

    @Test mutating func `is in the order in which hands were raised`() throws {
        try raiseAll()
        #expect(order == names)
        #expect(names.map(place) == [1, 2, 3, 4])
        #expect(place("ann") == nil)
        try rig.apply(.lowerHand(StageRig.id("cid")))
        #expect(names.map(place) == [1, nil, 2, 3])
        try rig.apply(.raiseHand, from: StageRig.viewer("cid"))
        #expect(place("cid") == 4, "who lowers it and raises it anew is last")
    }

    @Test mutating func `the host can move a hand to any place`() throws {
        try raiseAll()
        try rig.apply(.moveHand(StageRig.id("eve"), place: 1))
        #expect(order == ["eve", "bob", "cid", "dora"])
        try rig.apply(.moveHand(StageRig.id("eve"), place: 3))
        #expect(order == ["bob", "cid", "eve", "dora"])
        #expect(try rig.apply(.moveHand(StageRig.id("eve"), place: 3)).isEmpty, "it is there already")
        try rig.apply(.moveHand(StageRig.id("bob"), place: 100))
        #expect(order == ["cid", "eve", "dora", "bob"], "beyond the last is last")
        try rig.apply(.raiseHand, from: StageRig.viewer("fay"))
        #expect(place("fay") == 5)
    }

    @Test mutating func `a held hand has no place, but stays raised`() throws {
        try raiseAll()
        try rig.apply(.holdHand(StageRig.id("bob"), true))
        #expect(names.map(place) == [nil, 1, 2, 3])
        #expect(rig.stage.record.hands[StageRig.id("bob")] != nil, "the hand is still up")
        // A place counts only hands that are not held.
        try rig.apply(.moveHand(StageRig.id("eve"), place: 1))
        #expect(names.map(place) == [nil, 2, 3, 1])
        try rig.apply(.holdHand(StageRig.id("bob"), false))
        #expect(place("bob") == 1, "it comes back to where it was")
        try rig.apply(.holdHand(StageRig.id("bob"), true))
        try rig.apply(.moveHand(StageRig.id("bob"), place: 2))
        #expect(names.map(place) == [2, 3, 4, 1], "a place puts it back as well")
    }

    @Test mutating func `only the host can arrange hands, and only raised ones`() throws {
        try raiseAll()
        let before = rig.stage
        for command in [
            Stage.Command.moveHand(StageRig.id("eve"), place: 1), .holdHand(StageRig.id("eve"), true),
        ] {
            #expect(throws: Rejection.notHost) { try rig.apply(command, from: StageRig.viewer("eve")) }
        }
        for command in [
            Stage.Command.moveHand(StageRig.id("zoe"), place: 1), .holdHand(StageRig.id("zoe"), true),
        ] {
            #expect(throws: Rejection.handNotRaised) { try rig.apply(command) }
        }
        for place in [0, -1, 101, .max] {
            #expect(throws: Rejection.invalid("place")) {
                try rig.apply(.moveHand(StageRig.id("eve"), place: place))
            }
        }
        #expect(rig.stage == before)
    }

    @Test mutating func `a banned identity cannot raise a hand, not even an admin's`() throws {
        try rig.apply(.ban(StageRig.id("bob")))
        #expect(throws: Rejection.banned) { try rig.apply(.raiseHand, from: StageRig.sender("bob", .admin)) }
    }

    @Test mutating func `a change that moves other hands says so`() throws {
        try raiseAll()
        for command in [
            Stage.Command.moveHand(StageRig.id("eve"), place: 1), .holdHand(StageRig.id("eve"), true),
        ] {
            #expect(try rig.apply(command).changes.contains { $0.movesHands })
        }
        #expect(try rig.apply(.lowerHand(StageRig.id("eve"))).changes.contains { $0.movesHands })
    }

    /// Hands that were raised before hosts could arrange them have no number.
    @Test func `a stored hand without an order is still read`() throws {
        let json = #"{"name":"Bob","since":5}"#
        let entry = try JSONDecoder().decode(StageRecord.Entry.self, from: Data(json.utf8))
        #expect(entry.order == nil && !entry.isHeld)
        #expect(entry == StageRecord.Entry(name: "Bob", since: WallTime(milliseconds: 5)))
    }

    /// Whatever happens, it is what a plain list would be.
    @Test(arguments: 0..<30)
    mutating func `agrees with a plain list`(seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        var (waiting, held) = ([String](), Set<String>())
        for _ in 0..<300 {
            let name = "p\(Int.random(in: 0..<12, using: &random))"
            switch Int.random(in: 0..<6, using: &random) {
            case 0, 1:
                try rig.apply(.raiseHand, from: StageRig.viewer(name))
                if !waiting.contains(name) { waiting.append(name) }
            case 2:
                try rig.apply(.lowerHand(StageRig.id(name)))
                waiting.removeAll { $0 == name }
                held.remove(name)
            case 3 where waiting.contains(name):
                let isHeld = Bool.random(using: &random)
                try rig.apply(.holdHand(StageRig.id(name), isHeld))
                if isHeld { held.insert(name) } else { held.remove(name) }
            case 4 where waiting.contains(name):
                let place = Int.random(in: 1...12, using: &random)
                try rig.apply(.moveHand(StageRig.id(name), place: place))
                held.remove(name)
                let others = waiting.filter { $0 != name && !held.contains($0) }
                #expect(self.place(name) == min(place, others.count + 1))
                #expect(others.compactMap(self.place).sorted() == others.compactMap(self.place))
                waiting = order
            default: break
            }
            #expect(order == waiting)
            let free = waiting.filter { !held.contains($0) }
            #expect(free.map(place) == free.indices.map { $0 + 1 })
            #expect(held.allSatisfy { place($0) == nil })
        }
        let record = StageRecord.replaying(rig.log)
        #expect(record == rig.stage.record)
    }

    // MARK: Onto the stage

    @Test mutating func `an invited viewer can join the stage with sound alone`() throws {
        let (bob, cid) = (StageRig.viewer("bob"), StageRig.viewer("cid"))
        try rig.invite(bob)
        try rig.apply(.acceptSoundOnly, from: bob)
        #expect(rig.stage.record.member(bob.id)?.isVideoMuted == true)
        #expect(rig.stage.record.member(bob.id)?.isAudioMuted == false)
        // A picture may come later.
        try rig.apply(.setMuted(.video, false), from: bob)
        #expect(rig.stage.record.member(bob.id)?.isVideoMuted == false)
        #expect(throws: Rejection.notInvited) { try rig.apply(.acceptSoundOnly, from: cid) }
        try rig.invite(cid)
        try rig.apply(.accept, from: cid)
        #expect(rig.stage.record.member(cid.id)?.isVideoMuted == false)
    }

    @Test mutating func `the host decides how many guests may be on stage`() throws {
        #expect(rig.stage.record.details.maxSpeakers == 49)
        var edit = StageEdit()
        for number in [-1, 50, .max] {
            edit.maxSpeakers = number
            #expect(throws: Rejection.invalid("maxSpeakers")) { try rig.apply(.edit(edit)) }
        }
        let (bob, cid, dora) = (StageRig.viewer("bob"), StageRig.viewer("cid"), StageRig.viewer("dora"))
        try rig.invite(dora)
        try rig.bringOnStage(bob)
        try rig.bringOnStage(cid)
        edit.maxSpeakers = 1
        try rig.apply(.edit(edit))
        #expect(rig.stage.record.speakers.count == 2, "who is there stays")
        rig.connect(StageRig.viewer("eve"))
        let full = Rejection.stageFull(limit: 1)
        #expect(throws: full) { try rig.apply(.invite(StageRig.id("eve"))) }
        for command in [Stage.Command.accept, .acceptSoundOnly] {
            #expect(throws: full) { try rig.apply(command, from: dora) }
        }
        for command in [Stage.Command.join, .publish] {
            #expect(throws: full) { try rig.apply(command, from: StageRig.sender("sam", .speaker)) }
        }
        try rig.apply(.moveToViewers(bob.id))
        #expect(throws: full) { try rig.apply(.accept, from: dora) }
        try rig.apply(.moveToViewers(cid.id))
        try rig.apply(.accept, from: dora)
        edit.maxSpeakers = 0
        try rig.apply(.edit(edit))
        #expect(throws: Rejection.stageFull(limit: 0)) { try rig.apply(.invite(StageRig.id("eve"))) }
    }

    @Test func `a stored stream without a guest limit allows 49 guests`() throws {
        let coded = try JSONEncoder().encode(StageDetails())
        #expect(!String(decoding: coded, as: UTF8.self).contains("guestLimit"))
        #expect(try JSONDecoder().decode(StageDetails.self, from: coded).maxSpeakers == 49)
    }

    // MARK: Who is there

    @Test mutating func `lists leaders among viewers, however many came before`() throws {
        for number in 0..<120 { rig.connect(StageRig.viewer("v\(number)")) }
        rig.connect(
            Stage.Sender(id: StageRig.id("mod"), name: nil, authority: .viewer, mayModerate: true))
        let leaders = ["v119", "away", "v3", "mod"].map(StageRig.id)
        let listed = rig.stage.listViewers(leaders: leaders)
        #expect(listed.count == Stage.listedViewerLimit && Set(listed.map(\.id)).count == listed.count)
        #expect(listed.prefix(3).map(\.id.description) == ["v119", "v3", "mod"])
        #expect(listed.filter(\.isModerator).map(\.id.description) == ["mod"])
        #expect(listed[3].id == StageRig.id("v0"), "then those who came first")
        // A former leader stays listed, and a new one takes one place.
        let again = rig.stage.listViewers(leaders: [StageRig.id("v118")])
        #expect(again.count == Stage.listedViewerLimit && again[0].id == StageRig.id("v118"))
        #expect(Set(again.map(\.id)).subtracting(listed.map(\.id)) == [StageRig.id("v118")])
    }
}
