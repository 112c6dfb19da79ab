import Base
import Foundation
import TestSupport
import Testing

@testable import Interaction

/// Points for taking part, which make a fan; and ranks of a stream and of a day.
@Suite struct Fans {
    private var rig = InteractionRig()

    private static func id(_ name: String) -> ParticipantID { InteractionRig.person(name).id }

    /// Ends the minute.
    private mutating func endMinute(watching names: [String] = []) {
        rig.wait(.seconds(60))
        rig.log += rig.machine.endMinute(
            watching: names.map { (id: Self.id($0), name: $0.uppercased()) }, at: rig.now.wall)
    }

    private func fans(_ period: RankPeriod = .stream) -> [String] {
        rig.machine.record.fans.top(100, of: period, at: rig.now.wall).map { "\($0.id) \($0.value)" }
    }

    @Test mutating func `have a point for being there, two for writing, one for tapping`() throws {
        let (bob, cid, dora) = (
            InteractionRig.bob, InteractionRig.person("cid"), InteractionRig.person("dora")
        )
        try rig.write(from: bob)
        try rig.apply(.react(["heart": 1]), from: bob)
        try rig.write(from: cid)
        try rig.apply(.react(["heart": 1]), from: dora)
        endMinute(watching: ["bob", "cid", "eve"])
        // Who did something and has gone gets what that is worth.
        #expect(fans() == ["bob 4", "cid 3", "dora 1", "eve 1"])
        endMinute(watching: ["eve"])
        #expect(fans() == ["bob 4", "cid 3", "eve 2", "dora 1"])
        endMinute()
        #expect(fans() == ["bob 4", "cid 3", "eve 2", "dora 1"], "a minute without anybody is worth nothing")
    }

    @Test mutating func `get no more for being fast`() throws {
        for _ in 0..<40 {
            rig.wait(.seconds(1))
            try rig.write()
            try rig.apply(.react(["heart": 20]))
        }
        endMinute(watching: ["bob"])
        #expect(fans() == ["bob 4"])
    }

    @Test mutating func `are not made by what does not count`() throws {
        try rig.apply(.silence(Self.id("cid"), seconds: 600, isShadow: true), from: InteractionRig.ann)
        try rig.write("nobody sees it", from: InteractionRig.person("cid"))
        try rig.write("I am the host", from: InteractionRig.ann)
        try rig.apply(.react(["heart": 1]), from: InteractionRig.ann)
        let bob = try rig.write("once")
        endMinute()
        #expect(fans() == ["bob 2"])
        // The same comment again is none.
        _ = try rig.apply(.comment(key: bob.key, text: "once"))
        try rig.edit { $0.takesComments = false }
        #expect(throws: Interaction.Refusal.commentsOff) { try rig.write("refused") }
        #expect(throws: Interaction.Refusal.unknownReaction) { try rig.apply(.react(["fire": 1])) }
        endMinute()
        #expect(fans() == ["bob 2"])
    }

    @Test mutating func `are as many as are remembered, and of a minute as many as count`() throws {
        for number in 0..<FanMinute.limit + 10 {
            try rig.apply(.react(["heart": 1]), from: InteractionRig.person("p\(number)"))
        }
        rig.wait(.seconds(60))
        let changes = rig.machine.endMinute(watching: [(id: Self.id("late"), name: nil)], at: rig.now.wall)
        guard case .cheered(let minute) = changes.first else { return #expect(Bool(false), "no minute") }
        #expect(minute.people.count == FanMinute.limit && minute.people.last?.id == Self.id("p1999"))
        #expect(rig.machine.record.fans.all.entries.count == FanMinute.fanLimit)
        #expect(rig.machine.record.fans.all.entries[Self.id("p0")] != nil, "who was there first stays")
        // Of those who only watch, fans come before others.
        let crowd = (0..<FanMinute.limit).map { (id: Self.id("c\($0)"), name: String?.none) }
        let next = rig.machine.endMinute(
            watching: crowd + [(id: Self.id("p0"), name: nil)], at: rig.now.wall)
        guard case .cheered(let minute) = next.first else { return #expect(Bool(false), "no minute") }
        #expect(minute.people.count == FanMinute.limit && minute.people.first?.id == Self.id("p0"))
    }

    @Test mutating func `are ranked by the day, which ends at midnight UTC`() throws {
        // 2027-01-15T08:00:00Z.
        #expect(rig.now.wall.text == "2027-01-15T08:00:00.000Z")
        #expect(rig.now.wall.nextDay.text == "2027-01-16T00:00:00.000Z")
        endMinute(watching: ["bob"])
        endMinute(watching: ["bob", "cid"])
        #expect(fans(.day) == fans() && rig.machine.record.fans.isOfOneDay(at: rig.now.wall))
        rig.wait(.seconds(16 * 3_600))
        #expect(fans(.day) == [] && !rig.machine.record.fans.isOfOneDay(at: rig.now.wall))
        endMinute(watching: ["cid"])
        #expect(fans(.day) == ["cid 1"])
        #expect(fans() == ["bob 2", "cid 2"])
        rig.wait(.seconds(86_400))
        endMinute(watching: ["dora"])
        #expect(fans(.day) == ["dora 1"], "of an earlier day nothing is left")
        #expect(fans() == ["bob 2", "cid 2", "dora 1"])
    }

    @Test mutating func `and givers have a day of their own`() throws {
        try rig.edit { $0.gifts = InteractionRig.catalogue }
        func givers(_ period: RankPeriod) -> [String] {
            rig.machine.record.gifts.givers.top(9, of: period, at: rig.now.wall).map {
                "\($0.id) \($0.value)"
            }
        }
        try rig.give(InteractionRig.gift("k1", from: "bob", count: 3))
        #expect(givers(.day) == ["bob 300"])
        rig.wait(.seconds(86_400))
        try rig.give(InteractionRig.gift("k2", from: "cid"))
        #expect(givers(.day) == ["cid 100"] && givers(.stream) == ["bob 300", "cid 100"])
    }

    @Test(arguments: [
        (-1, -1), (0, 0), (86_399_999, 0), (86_400_000, 1), (-86_400_000, -1), (-86_400_001, -2),
    ])
    func `have days as calendars do`(milliseconds: Int64, day: Int64) {
        #expect(WallTime(milliseconds: milliseconds).day == day)
        #expect(WallTime(milliseconds: milliseconds).nextDay.milliseconds == (day + 1) * 86_400_000)
        #expect(WallTime(milliseconds: .max).nextDay > .latest && WallTime(milliseconds: .min).day < 0)
    }

    @Test mutating func `are the same when what happened is told again`() throws {
        var random = SeededGenerator(seed: 7)
        try rig.edit { $0.gifts = InteractionRig.catalogue }
        for step in 0..<400 {
            rig.wait(.seconds(Int.random(in: 1..<2_000, using: &random)))
            let name = "p\(Int.random(in: 0..<40, using: &random))"
            if Bool.random(using: &random) { try rig.give(InteractionRig.gift("k\(step)", from: name)) }
            _ = try? rig.write(from: InteractionRig.person(name))
            if step % 3 == 0 { endMinute(watching: [name, "eve"]) }
        }
        var replayed = InteractionRecord()
        for change in rig.log { replayed.apply(change) }
        #expect(replayed == rig.machine.record)
        for change in rig.log {
            #expect(
                try JSONDecoder().decode(
                    InteractionChange.self, from: JSONEncoder().encode(change)) == change)
        }
        let coded = try JSONEncoder().encode(rig.machine.record)
        #expect(try JSONDecoder().decode(InteractionRecord.self, from: coded) == rig.machine.record)
    }

    /// Sums of givers were once a table alone.
    @Test func `read what was written before days were counted`() throws {
        let json = #"["bob",{"name":"Bob","value":300,"lastGift":2},"cid",{"value":100,"lastGift":1}]"#
        var ranking = try JSONDecoder().decode(Ranking.self, from: Data(json.utf8))
        let now = WallTime(milliseconds: 1_800_000_000_000)
        #expect(
            ranking.top(9, at: now).map { "\($0.id) \($0.name ?? "-") \($0.value)" } == [
                "bob Bob 300", "cid - 100",
            ])
        #expect(ranking.top(9, of: .day, at: now).isEmpty, "nobody knows when that was")
        ranking.add(5, to: Self.id("cid"), name: "Cid", last: 3, limit: 9, at: now)
        #expect(ranking.top(9, of: .day, at: now).map(\.value) == [5])
        #expect(ranking.top(9, at: now).map(\.value) == [300, 105])
    }

    @Test mutating func `stand beside settings that say what pages show`() throws {
        let usual: [InteractionSettings.Widget] = [
            .comments, .composer, .reactions, .gifts, .ranks, .poll, .card, .duel,
        ]
        #expect(rig.machine.record.settings.widgets == usual)
        try rig.edit { $0.widgets = [.barrage, .card] }
        #expect(rig.machine.record.settings.widgets == [.barrage, .card])
        #expect(throws: Interaction.Refusal.invalid("widgets")) {
            try rig.edit { $0.widgets = [.card, .card] }
        }
        try rig.edit { $0.widgets = [] }
        try rig.edit { $0.slowModeSeconds = 5 }
        #expect(rig.machine.record.settings.widgets == [], "what is not named stays")
        let old = #"{"takesComments":true,"reactions":["heart"],"slowModeSeconds":0,"words":[]}"#
        #expect(try JSONDecoder().decode(InteractionSettings.self, from: Data(old.utf8)).widgets == usual)
    }

    @Test mutating func `and comments say who moderates`() throws {
        #expect(try rig.write(from: InteractionRig.mod).isByModerator)
        #expect(try !rig.write(from: InteractionRig.bob).isByModerator)
        #expect(try !rig.write(from: InteractionRig.ann).isByModerator, "the host has a badge already")
    }
}
