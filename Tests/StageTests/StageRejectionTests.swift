import Base
import Stage
import TestSupport
import Testing

@Suite struct StageRejections {
    private var rig: StageRig
    private let bob = StageRig.viewer("bob")
    private let nobody = StageRig.id("nobody")

    init() throws {
        rig = try StageRig()
        rig.connect(bob)
    }

    private mutating func expect(
        _ rejection: Rejection, _ command: Stage.Command, from sender: Stage.Sender = StageRig.ann
    ) {
        let before = rig.stage
        #expect(throws: rejection) { try rig.apply(command, from: sender) }
        #expect(rig.stage == before, "a refused command changed something")
    }

    private static let moderation: [Stage.Command] = [
        .edit(StageEdit()), .makeLink, .revokeLinks(speakers: true, viewers: true), .goLive, .end,
        .lowerHand(StageRig.id("cid")), .moveHand(StageRig.id("cid"), place: 1),
        .holdHand(StageRig.id("cid"), true), .invite(StageRig.id("cid")),
        .withdrawInvitation(StageRig.id("cid")), .moveToViewers(StageRig.id("cid")),
        .remove(StageRig.id("cid")), .ban(StageRig.id("cid")), .unban(StageRig.id("cid")),
        .requestMute(StageRig.id("cid"), .audio),
    ]

    @Test(arguments: moderation)
    mutating func `only the host can use the host's commands`(command: Stage.Command) throws {
        try rig.bringOnStage(StageRig.viewer("cid"))
        let sam = StageRig.sender("sam", .speaker)
        try rig.apply(.join, from: sam)
        for sender in [bob, sam, StageRig.sender("ann", .viewer), StageRig.sender("eve", .host)] {
            expect(.notHost, command, from: sender)
        }
    }

    @Test mutating func `only an operator can place a stream, within the allowed numbers`() throws {
        var edit = StagePlacement.Edit()
        edit.boost = 1
        for sender in [StageRig.ann, bob] { expect(.notOperator, .place(edit), from: sender) }
        let root = StageRig.sender("root", .admin)
        for boost in [-1_001, 1_001] {
            edit.boost = boost
            expect(.invalid("boost"), .place(edit), from: root)
        }
        edit.boost = nil
        for place in [-1, 1_000_001] {
            edit.pinned = .set(place)
            expect(.invalid("pinned"), .place(edit), from: root)
        }
    }

    @Test(
        arguments: moderation + [
            .join, .raiseHand, .accept, .decline, .stepDown, .setMuted(.audio, true), .setPaused(true),
            .publish,
        ])
    mutating func `every command is refused after the end`(command: Stage.Command) throws {
        try rig.apply(.end)
        guard command != .end else { return }
        expect(.ended, command)
        expect(.ended, command, from: bob)
    }

    @Test(
        arguments: moderation + [
            .join, .leave, .raiseHand, .accept, .decline, .stepDown, .setMuted(.audio, true), .publish,
        ])
    mutating func `every command of a banned person is refused`(command: Stage.Command) throws {
        try rig.apply(.ban(bob.id))
        expect(.banned, command, from: bob)
    }

    @Test mutating func `the host cannot leave, be moved, removed or banned`() {
        for command: Stage.Command in [
            .stepDown, .leave, .moveToViewers(StageRig.ann.id), .remove(StageRig.ann.id),
            .ban(StageRig.ann.id),
        ] { expect(.hostStays, command) }
        expect(.notHost, .leave, from: StageRig.viewer("ann"))
    }

    @Test mutating func `people on stage can neither raise a hand nor be invited`() throws {
        expect(.alreadyOnStage, .raiseHand)
        expect(.alreadyOnStage, .invite(StageRig.ann.id))
    }

    @Test mutating func `commands for people on stage are refused from and about viewers`() {
        for command: Stage.Command in [
            .stepDown, .setMuted(.audio, true), .setPaused(true), .publish,
        ] { expect(.notOnStage, command, from: bob) }
        expect(.targetNotOnStage, .moveToViewers(bob.id))
        expect(.targetNotOnStage, .requestMute(bob.id, .audio))
    }

    @Test mutating func `a person who is not there cannot be invited, removed or unbanned`() {
        expect(.unknownParticipant, .invite(nobody))
        expect(.unknownParticipant, .remove(nobody))
        expect(.notBanned, .unban(nobody))
    }

    @Test mutating func `nobody can accept or decline without an invitation`() {
        expect(.notInvited, .accept, from: bob)
        expect(.notInvited, .decline, from: bob)
    }

    @Test mutating func `the schedule cannot change once the stream is live`() throws {
        try rig.apply(.goLive)
        var edit = StageEdit()
        edit.startsAt = .set(rig.now.wall)
        expect(.alreadyLive, .edit(edit))
        edit = StageEdit()
        edit.joinAheadSeconds = 5
        expect(.alreadyLive, .edit(edit))
        edit = StageEdit()
        edit.title = .set("still mine")
        try rig.apply(.edit(edit))
    }

    @Test mutating func `refuse details out of range`() {
        func edit(_ change: (inout StageEdit) -> Void) -> Stage.Command {
            var edit = StageEdit()
            change(&edit)
            return .edit(edit)
        }
        for title in ["", "a\u{0}b", "a\u{202E}b", String(repeating: "x", count: 201)] {
            expect(.invalid("title"), edit { $0.title = .set(title) })
        }
        let past = rig.now.wall.advanced(bySeconds: -61)
        for time in [past, WallTime(milliseconds: .min), WallTime(milliseconds: .max)] {
            expect(.invalid("startsAt"), edit { $0.startsAt = .set(time) })
        }
        for seconds in [-1, 86_401, .max] {
            expect(.invalid("joinAheadSeconds"), edit { $0.joinAheadSeconds = seconds })
        }
        for seconds in [-1, 3_601, .min] {
            expect(.invalid("hostGraceSeconds"), edit { $0.hostGraceSeconds = seconds })
        }
        expect(.invalid("layers"), edit { $0.layers = [.float, .float] })
    }

    @Test mutating func `the stage is full with fifty people`() throws {
        for number in 1..<Stage.stageLimit {
            try rig.apply(.join, from: StageRig.sender("s\(number)", .speaker))
        }
        #expect(rig.stage.record.speakers.count == 49)
        expect(.stageFull(limit: 49), .join, from: StageRig.sender("late", .speaker))
        expect(.stageFull(limit: 49), .publish, from: StageRig.sender("late", .speaker))
        expect(.stageFull(limit: 49), .invite(bob.id))
        try rig.apply(.moveToViewers(StageRig.id("s1")))
        try rig.apply(.invite(bob.id))
        try rig.apply(.join, from: StageRig.sender("late", .speaker))
        expect(.stageFull(limit: 49), .accept, from: bob)
    }

    @Test mutating func `a stream has at most a hundred hands and a hundred invitations`() throws {
        for number in 0..<100 {
            let viewer = StageRig.viewer("v\(number)")
            try rig.apply(.raiseHand, from: viewer)
            try rig.apply(.invite(viewer.id))
        }
        expect(.tooManyHands, .raiseHand, from: bob)
        expect(.tooManyInvitations, .invite(bob.id))
        try rig.apply(.lowerHand(StageRig.id("v0")))
        try rig.apply(.raiseHand, from: bob)
    }

    @Test mutating func `a stream has at most ten thousand bans`() throws {
        for number in 0..<Stage.banLimit { try rig.apply(.ban(StageRig.id("b\(number)"))) }
        expect(.tooManyBans, .ban(bob.id))
    }

    @Test func `each rejection has a name of its own and an explanation`() {
        let all: [Rejection] = [
            .ended, .alreadyLive, .backstage(startsAt: nil, waiting: 0), .banned, .linkRevoked, .notHost,
            .notOnStage, .alreadyOnStage, .hostStays, .stageFull(limit: 49), .tooManyHands,
            .tooManyInvitations,
            .tooManyBans, .tooManyKeys, .notInvited, .notBanned, .handNotRaised, .unknownParticipant,
            .targetNotOnStage, .invalid("x"),
        ]
        #expect(Set(all.map(\.name)).count == all.count)
        #expect(all.allSatisfy { !$0.explanation.isEmpty })
    }
}
