import Base
import Foundation
import Stage
import Testing

@Suite struct RevokedLinks {
    private var rig: StageRig

    init() throws {
        rig = try StageRig()
    }

    /// Somebody who came by a link that was made at the rig's time, or some seconds later.
    private func guest(
        _ name: String, _ authority: Stage.Sender.Authority = .speaker, after seconds: Int = 0
    ) -> Stage.Sender {
        let link = Stage.Link(
            makesSpeakers: authority == .speaker, issued: Int(rig.now.wall.milliseconds / 1_000) + seconds)
        return Stage.Sender(
            id: StageRig.id(name), name: name, authority: authority, mayJoinBackstage: authority == .speaker,
            link: link)
    }

    private static let wishes: [Stage.Command] = [
        .join, .publish, .raiseHand, .accept, .decline, .stepDown, .setMuted(.audio, true),
        .lowerHand(StageRig.id("sam")),
    ]

    @Test(arguments: wishes)
    mutating func `a revoked link admits nobody who is not there already`(command: Stage.Command) throws {
        let (sam, vic) = (guest("sam"), guest("vic", .viewer))
        try rig.apply(.revokeLinks(speakers: true, viewers: false))
        #expect(throws: Rejection.linkRevoked) { try rig.apply(command, from: sam) }
        #expect(throws: Rejection.linkRevoked) { try rig.stage.admit(sam) }
        try rig.apply(.leave, from: sam)
        // The other kind still counts, and so do a later link and a token that was made for somebody.
        try rig.apply(.raiseHand, from: vic)
        for sender in [guest("sue", after: 1), StageRig.sender("sid", .speaker)] {
            try rig.apply(.join, from: sender)
            #expect(rig.stage.standing(of: sender) == .speaker)
        }
        try rig.apply(.revokeLinks(speakers: false, viewers: true))
        #expect(throws: Rejection.linkRevoked) { try rig.apply(.raiseHand, from: guest("val", .viewer)) }
    }

    @Test mutating func `speakers whose link is revoked stay on stage, but cannot return by it`() throws {
        let sam = guest("sam")
        let connection = rig.connect(sam)
        try rig.apply(.join, from: sam)
        try rig.apply(.revokeLinks(speakers: true, viewers: true))
        try rig.apply(.setMuted(.audio, true), from: sam)
        rig.disconnect(sam, connection)
        rig.wait(5)
        try rig.apply(.publish, from: sam)
        #expect(rig.stage.standing(of: sam) == .speaker, "a short break is none")
        rig.wait(15)
        #expect(rig.stage.standing(of: sam) == .viewer)
        #expect(throws: Rejection.linkRevoked) { try rig.apply(.publish, from: sam) }
    }

    @Test(arguments: [Stage.Command.join, .publish])
    mutating func `viewers stay when their link is revoked, and need an invitation for the stage`(
        command: Stage.Command
    ) throws {
        let sam = guest("sam")
        rig.connect(sam)
        try rig.apply(.revokeLinks(speakers: true, viewers: false))
        try rig.apply(.raiseHand, from: sam)
        try rig.stage.admit(sam)
        #expect(throws: Rejection.linkRevoked) { try rig.apply(command, from: sam) }
        try rig.apply(.invite(sam.id))
        try rig.apply(.accept, from: sam)
        #expect(rig.stage.standing(of: sam) == .speaker)
        try rig.apply(.remove(sam.id))
        #expect(throws: Rejection.linkRevoked) { try rig.apply(.raiseHand, from: sam) }
    }

    @Test mutating func `can be revoked again and again without running ahead of the clock`() throws {
        for _ in 0..<1_000 { try rig.apply(.revokeLinks(speakers: true, viewers: true)) }
        #expect(rig.stage.record.linkRevocations?.speakers == rig.now.wall)
        // A link made since then counts from a later second, and the next revocation revokes it.
        try rig.apply(.makeLink)
        let sam = guest("sam", after: 1)
        try rig.apply(.revokeLinks(speakers: true, viewers: false))
        #expect(throws: Rejection.linkRevoked) { try rig.apply(.join, from: sam) }
        #expect(rig.stage.record.linkRevocations?.viewers == rig.now.wall)
        try rig.apply(.revokeLinks(speakers: false, viewers: true))
        #expect(rig.stage.record.linkRevocations?.viewers == rig.now.wall.advanced(bySeconds: 1))
    }

    @Test mutating func `after a restart, links of the current second count as new and are revoked`() throws {
        try rig.apply(.revokeLinks(speakers: true, viewers: true))
        rig.stage = Stage(restoring: rig.stage.record, at: rig.now)
        try rig.apply(.revokeLinks(speakers: true, viewers: true))
        #expect(rig.stage.record.linkRevocations?.speakers == rig.now.wall.advanced(bySeconds: 1))
    }

    @Test mutating func `replacing a stream key revokes neither links nor the keys of others`() throws {
        let sam = StageRig.sender("sam", .speaker)
        let ann = StageRig.sender("ann", .speaker)
        let second = Int(rig.now.wall.milliseconds / 1_000)
        for sender in [sam, ann] { try rig.apply(.join, from: sender) }
        try rig.apply(.replaceKey, from: sam)
        let after = try #require(rig.stage.record.linkRevocations)
        #expect(!after.allowsKey(of: sam.id, issued: second) && after.allowsKey(of: ann.id, issued: second))
        let next = after.firstKey(of: sam.id)
        #expect(after.allowsKey(of: sam.id, issued: next) && after.firstKey(of: ann.id) == 0)
        #expect(after.allows(Stage.Link(makesSpeakers: true, issued: second)), "links count as before")
        // A key that was made just now is revoked too.
        try rig.apply(.replaceKey, from: sam)
        let again = try #require(rig.stage.record.linkRevocations)
        #expect(!again.allowsKey(of: sam.id, issued: next))
        // When the host revokes links, all stream keys are revoked as well.
        rig.wait(5)
        try rig.apply(.revokeLinks(speakers: true, viewers: false))
        let revoked = try #require(rig.stage.record.linkRevocations)
        #expect(!revoked.allowsKey(of: ann.id, issued: second + 5))
        #expect(revoked.allowsKey(of: ann.id, issued: revoked.firstKey(of: ann.id)))
        #expect(throws: Rejection.notOnStage) { try rig.apply(.replaceKey, from: StageRig.viewer("vic")) }
    }

    @Test mutating func `the host can replace a key even when the list of replaced keys is full`() throws {
        for number in 0..<Stage.keyLimit {
            let sender = StageRig.sender("k\(number)", .speaker)
            try rig.apply(.replaceKey, from: sender)
        }
        let one = StageRig.sender("one", .speaker)
        #expect(throws: Rejection.tooManyKeys) { try rig.apply(.replaceKey, from: one) }
        try rig.apply(.replaceKey, from: StageRig.sender("k7", .speaker))
        try rig.apply(.replaceKey)
    }
}

@Suite struct ThoseWhoLeftTheStage {
    @Test func `the host can move people off the stage however many have left it`() throws {
        var rig = try StageRig()
        let moved = StageRig.sender("moved", .speaker)
        try rig.apply(.join, from: moved)
        try rig.apply(.moveToViewers(moved.id))
        for number in 0...Stage.banLimit {
            let guest = StageRig.sender("g\(number)", .speaker)
            try rig.apply(.join, from: guest)
            try rig.apply(.stepDown, from: guest)
        }
        let (sam, sue) = (StageRig.sender("sam", .speaker), StageRig.sender("sue", .speaker))
        for sender in [sam, sue] { try rig.apply(.join, from: sender) }
        try rig.apply(.remove(sam.id))
        try rig.apply(.moveToViewers(sue.id))
        // People whom the host took off are remembered; of those who stepped down, the first one is forgotten.
        for sender in [moved, sam, sue, StageRig.sender("g\(Stage.banLimit)", .speaker)] {
            try rig.apply(.join, from: sender)
            #expect(rig.stage.standing(of: sender) == .viewer)
        }
        let first = StageRig.sender("g0", .speaker)
        try rig.apply(.join, from: first)
        #expect(rig.stage.standing(of: first) == .speaker)
        #expect(StageRecord.replaying(rig.log) == rig.stage.record)
    }

    @Test func `a record written before there were two lists is still read`() throws {
        var rig = try StageRig()
        for name in ["sam", "sue"] {
            try rig.apply(.join, from: StageRig.sender(name, .speaker))
            try rig.apply(.moveToViewers(StageRig.id(name)))
        }
        let bytes = try JSONEncoder().encode(rig.stage.record)
        let members = try #require(try JSONSerialization.jsonObject(with: bytes) as? [String: Any])
        #expect(members["steppedDown"] == nil)
        #expect(members["demoted"] as? [String] == ["sam", "sue"])
        let record = try JSONDecoder().decode(StageRecord.self, from: bytes)
        #expect(record == rig.stage.record && record.hasLeftStage(StageRig.id("sam")))
    }
}
