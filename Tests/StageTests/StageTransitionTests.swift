import Base
import Stage
import TestSupport
import Testing

@Suite struct StageTransitions {
    private var rig: StageRig
    private let ann = StageRig.ann
    private let bob = StageRig.viewer("bob")
    private let speaker = StageRig.sender("sam", .speaker)

    init() throws {
        rig = try StageRig()
    }

    @Test mutating func `a stream goes from backstage to live to ended`() throws {
        #expect(rig.stage.record.phase == .backstage)
        let live = try rig.apply(.goLive)
        #expect(live.changes == [.wentLive(rig.now.wall)])
        #expect(live.events.contains(.live))
        #expect(rig.stage.record.phase == .live)
        let end = try rig.apply(.end)
        #expect(end.effects == [.close])
        #expect(rig.stage.record.endReason == .ended)
    }

    @Test mutating func `a repeated command changes nothing`() throws {
        try rig.apply(.goLive)
        #expect(try rig.apply(.goLive).isEmpty)
        rig.connect(bob)
        try rig.apply(.raiseHand, from: bob)
        #expect(try rig.apply(.raiseHand, from: bob).isEmpty)
        try rig.apply(.invite(bob.id))
        #expect(try rig.apply(.invite(bob.id)).isEmpty)
        try rig.apply(.accept, from: bob)
        #expect(try rig.apply(.accept, from: bob).isEmpty)
        try rig.apply(.setMuted(.audio, true), from: bob)
        #expect(try rig.apply(.setMuted(.audio, true), from: bob).isEmpty)
        try rig.apply(.end)
        #expect(try rig.apply(.end).isEmpty)
    }

    @Test mutating func `an operator can boost and pin a stream`() throws {
        let root = StageRig.sender("root", .admin)
        var edit = StagePlacement.Edit()
        #expect(try rig.apply(.place(edit), from: root).isEmpty)
        edit.boost = -4
        edit.pinned = .set(2)
        let placed = try rig.apply(.place(edit), from: root)
        #expect(placed.changes.count == 1 && placed.effects.isEmpty && placed.events.isEmpty)
        #expect(try rig.apply(.place(edit), from: root).isEmpty)
        var unpin = StagePlacement.Edit()
        unpin.pinned = .clear
        try rig.apply(.place(unpin), from: root)
        #expect(rig.stage.record.placement?.pinned == nil && rig.stage.record.placement?.boost == -4)
        #expect(!rig.stage.isPresent(root.id))
    }

    @Test mutating func `an invited viewer can join the stage and step down`() throws {
        rig.connect(bob)
        try rig.apply(.raiseHand, from: bob)
        #expect(rig.stage.record.hands[bob.id]?.name == "BOB")
        try rig.apply(.invite(bob.id))
        #expect(rig.stage.standing(of: bob) == .viewer)
        let accepted = try rig.apply(.accept, from: bob)
        #expect(accepted.events == [.promoted(bob.id)])
        #expect(rig.stage.standing(of: bob) == .speaker)
        #expect(rig.stage.record.hands.isEmpty && rig.stage.record.invitations.isEmpty)
        let down = try rig.apply(.stepDown, from: bob)
        #expect(down.effects == [.retire(bob.id)])
        #expect(rig.stage.standing(of: bob) == .viewer)
    }

    @Test mutating func `declining an invitation lowers the hand too`() throws {
        rig.connect(bob)
        try rig.apply(.raiseHand, from: bob)
        try rig.apply(.invite(bob.id))
        let outcome = try rig.apply(.decline, from: bob)
        #expect(outcome.changes == [.invitationEnded(bob.id), .handLowered(bob.id)])
    }

    @Test mutating func `the host can withdraw an invitation and lower a hand`() throws {
        rig.connect(bob)
        try rig.apply(.raiseHand, from: bob)
        try rig.apply(.invite(bob.id))
        try rig.apply(.withdrawInvitation(bob.id))
        try rig.apply(.lowerHand(bob.id))
        #expect(rig.stage.record.invitations.isEmpty && rig.stage.record.hands.isEmpty)
        #expect(try rig.apply(.lowerHand(bob.id)).isEmpty)
        #expect(try rig.apply(.withdrawInvitation(bob.id)).isEmpty)
    }

    @Test mutating func `a speaker's token joins the stage by joining or publishing`() throws {
        try rig.apply(.join, from: speaker)
        #expect(rig.stage.standing(of: speaker) == .speaker)
        #expect(try rig.apply(.join, from: speaker).isEmpty)
        let other = StageRig.sender("sue", .host)
        try rig.apply(.publish, from: other)
        #expect(rig.stage.standing(of: other) == .speaker)
        #expect(try rig.apply(.join, from: bob).changes.isEmpty)
        #expect(rig.stage.standing(of: bob) == .viewer)
    }

    @Test mutating func `a speaker moved to the viewers needs an invitation to return`() throws {
        try rig.apply(.join, from: speaker)
        try rig.apply(.moveToViewers(speaker.id))
        try rig.apply(.join, from: speaker)
        #expect(rig.stage.standing(of: speaker) == .viewer)
        #expect(throws: Rejection.notOnStage) { try rig.apply(.publish, from: speaker) }
        rig.connect(speaker)
        try rig.apply(.invite(speaker.id))
        try rig.apply(.accept, from: speaker)
        #expect(rig.stage.standing(of: speaker) == .speaker)
    }

    @Test mutating func `a removed speaker is expelled and may come back as a viewer`() throws {
        try rig.bringOnStage(bob)
        let outcome = try rig.apply(.remove(bob.id))
        #expect(outcome.effects == [.expel(bob.id, nil)])
        #expect(outcome.events == [.removed(bob.id, isBanned: false)])
        #expect(rig.stage.standing(of: bob) == .viewer && !rig.stage.isPresent(bob.id))
        try rig.apply(.join, from: bob)
        #expect(rig.stage.standing(of: bob) == .viewer)
    }

    @Test mutating func `a banned person stays out until the ban is lifted`() throws {
        try rig.bringOnStage(bob)
        let outcome = try rig.apply(.ban(bob.id))
        #expect(outcome.effects == [.expel(bob.id, .banned)])
        #expect(throws: Rejection.banned) { try rig.apply(.join, from: bob) }
        #expect(throws: Rejection.banned) { try rig.stage.admit(bob) }
        #expect(try rig.apply(.ban(bob.id)).isEmpty)
        try rig.apply(.unban(bob.id))
        try rig.apply(.join, from: bob)
    }

    @Test mutating func `a request to mute is passed on and mutes nobody`() throws {
        try rig.bringOnStage(bob)
        let outcome = try rig.apply(.requestMute(bob.id, .audio))
        #expect(outcome.effects == [.requestMute(of: bob.id, .audio, by: ann.id)])
        #expect(outcome.changes.isEmpty)
        #expect(rig.stage.record.speakers[bob.id]?.isAudioMuted == false)
    }

    @Test mutating func `people on stage can mute and pause themselves`() throws {
        try rig.bringOnStage(bob)
        try rig.apply(.setMuted(.audio, true), from: bob)
        try rig.apply(.setMuted(.video, true), from: bob)
        try rig.apply(.setPaused(true))
        let member = try #require(rig.stage.record.speakers[bob.id])
        #expect(member.isAudioMuted && member.isVideoMuted && !member.isPaused)
        #expect(rig.stage.record.hostMember.isPaused)
    }

    @Test mutating func `a person who says so leaves at once`() throws {
        try rig.bringOnStage(bob)
        let outcome = try rig.apply(.leave, from: bob)
        #expect(outcome.changes == [.left(bob.id)])
        #expect(outcome.events == [.left(bob.id)])
        #expect(rig.stage.standing(of: bob) == .viewer)
    }

    @Test mutating func `the host can change title and schedule`() throws {
        var edit = StageEdit()
        edit.title = .set("Evening")
        edit.startsAt = .set(rig.now.wall.advanced(bySeconds: 60))
        edit.programme = .activeSpeaker
        edit.layers = [.player]
        try rig.apply(.edit(edit))
        #expect(rig.stage.record.details.title == "Evening")
        #expect(try rig.apply(.edit(edit)).isEmpty)
        edit = StageEdit()
        edit.title = .clear
        try rig.apply(.edit(edit), from: StageRig.sender("root", .admin))
        #expect(rig.stage.record.details.title == nil)
        #expect(rig.stage.record.details.startsAt != nil)
    }
}

@Suite struct StagePresence {
    private var rig: StageRig
    private let bob = StageRig.viewer("bob")

    init() throws {
        rig = try StageRig()
    }

    @Test mutating func `a live stream ends when its host stays away`() throws {
        let socket = rig.connect(StageRig.ann)
        try rig.apply(.goLive)
        rig.disconnect(StageRig.ann, socket)
        #expect(rig.wait(29).changes.isEmpty)
        let outcome = rig.wait(1)
        #expect(outcome.changes == [.ended(rig.now.wall, .hostLeft)])
        #expect(outcome.effects == [.close])
    }

    @Test mutating func `a live stream goes on when its host comes back in time`() throws {
        let socket = rig.connect(StageRig.ann)
        try rig.apply(.goLive)
        rig.disconnect(StageRig.ann, socket)
        rig.wait(29)
        rig.connect(StageRig.ann)
        rig.wait(3_600)
        #expect(rig.stage.record.phase == .live)
    }

    @Test mutating func `a backstage stream goes on without its host`() throws {
        let socket = rig.connect(StageRig.ann)
        rig.disconnect(StageRig.ann, socket)
        rig.wait(86_400)
        #expect(rig.stage.record.phase == .backstage)
    }

    @Test mutating func `a stream that goes live without a host ends`() throws {
        try rig.apply(.goLive, from: StageRig.sender("root", .admin))
        rig.wait(30)
        #expect(rig.stage.record.phase == .ended)
    }

    @Test mutating func `a viewer who stays away loses the hand after the grace time`() throws {
        let socket = rig.connect(bob)
        try rig.apply(.raiseHand, from: bob)
        rig.disconnect(bob, socket)
        #expect(rig.wait(14).changes.isEmpty)
        #expect(rig.wait(1).changes == [.left(bob.id)])
        #expect(rig.stage.record.hands.isEmpty)
    }

    @Test mutating func `a viewer is present as long as one connection is open`() throws {
        let socket = rig.connect(bob)
        let other = rig.connect(bob)
        try rig.apply(.raiseHand, from: bob)
        rig.disconnect(bob, socket)
        rig.disconnect(bob, socket)
        rig.wait(60)
        #expect(rig.stage.isPresent(bob.id))
        rig.disconnect(bob, other)
        rig.connect(bob)
        rig.wait(60)
        #expect(rig.stage.record.hands.count == 1)
    }

    @Test mutating func `a command without a connection counts as presence for the grace time`() throws {
        try rig.apply(.raiseHand, from: bob)
        #expect(rig.stage.record.hands.count == 1)
        rig.wait(15)
        #expect(rig.stage.record.hands.isEmpty)
    }

    @Test mutating func `the grace time runs from the latest command`() throws {
        try rig.apply(.raiseHand, from: bob)
        rig.wait(10)
        try rig.apply(.lowerHand(bob.id), from: bob)
        rig.wait(4)
        try rig.apply(.raiseHand, from: bob)
        // A second after the first command's grace time: the hand is two seconds old.
        rig.wait(2)
        #expect(rig.stage.record.hands.count == 1)
        #expect(rig.wait(12).changes.isEmpty)
        #expect(rig.wait(1).changes == [.left(bob.id)])
        #expect(rig.stage.record.hands.isEmpty)
    }

    @Test mutating func `a command extends the presence of a viewer who has disconnected`() throws {
        let socket = rig.connect(bob)
        rig.disconnect(bob, socket)
        rig.wait(14)
        try rig.apply(.raiseHand, from: bob)
        #expect(rig.wait(14).changes.isEmpty)
        #expect(rig.wait(1).changes == [.left(bob.id)])
    }

    /// As `sfu-bench sync` does for as long as it runs.
    @Test mutating func `an operator without a connection keeps a raised hand until it is lowered`() throws {
        let root = StageRig.sender("root", .admin)
        for _ in 0..<60 {
            try rig.apply(.raiseHand, from: root)
            rig.wait(1)
            #expect(rig.stage.record.hands.count == 1)
            let lowered = try rig.apply(.lowerHand(root.id), from: root)
            #expect(lowered.changes == [.handLowered(root.id)])
        }
        // Commands alone do not make an operator present.
        #expect(rig.wait(15).events == [.left(root.id)])
    }

    @Test mutating func `all viewers are counted, and a hundred of them are listed`() throws {
        var sockets: [Stage.Connection] = []
        for number in 0..<150 { sockets.append(rig.connect(StageRig.viewer("v\(number)"))) }
        rig.connect(nil)
        let session = SessionID("0123456789abcdef0123456789abcdef")
        _ = rig.stage.connect(nil, by: .session(try #require(session)), at: rig.now)
        rig.connect(StageRig.ann)
        #expect(rig.stage.counts == Stage.Counts(viewers: 0, waiting: 151))
        try rig.apply(.goLive)
        #expect(rig.stage.counts == Stage.Counts(viewers: 151, waiting: 0))
        let first = rig.stage.listViewers()
        #expect(first.map(\.id) == (0..<100).map { StageRig.id("v\($0)") })
        rig.disconnect(StageRig.viewer("v7"), sockets[7])
        let second = rig.stage.listViewers()
        #expect(second.count == 100)
        #expect(
            Set(second.map(\.id)).symmetricDifference(first.map(\.id)) == [
                StageRig.id("v7"), StageRig.id("v100"),
            ])
    }

    @Test mutating func `after a restart, remembered people have the grace time to come back`() throws {
        try rig.bringOnStage(bob)
        let cid = StageRig.viewer("cid")
        rig.connect(cid)
        try rig.apply(.raiseHand, from: cid)
        try rig.apply(.goLive)
        rig.stage = Stage(restoring: rig.stage.record, at: rig.now)
        rig.connect(cid)
        let outcome = rig.wait(15)
        #expect(outcome.changes == [.left(bob.id)])
        #expect(rig.wait(15).changes == [.ended(rig.now.wall, .hostLeft)])
    }
}

@Suite struct StageDoors {
    private let bob = StageRig.viewer("bob")

    @Test func `viewers are refused backstage, and told when the stream begins`() throws {
        var rig = try StageRig(startsIn: 600, joinAhead: 60)
        rig.connect(bob)
        rig.connect(nil)
        let startsAt = rig.now.wall.advanced(bySeconds: 600)
        #expect(throws: Rejection.backstage(startsAt: startsAt, waiting: 2)) { try rig.stage.admit(bob) }
        #expect(throws: Rejection.backstage(startsAt: startsAt, waiting: 2)) { try rig.stage.admit(nil) }
    }

    @Test func `host, speakers, admins and viewers with the capability may enter backstage`() throws {
        let rig = try StageRig()
        try rig.stage.admit(StageRig.ann)
        try rig.stage.admit(StageRig.sender("sam", .speaker))
        try rig.stage.admit(StageRig.sender("root", .admin))
        try rig.stage.admit(StageRig.sender("bob", .viewer, mayJoinBackstage: true))
        #expect(throws: Rejection.self) { try rig.stage.admit(StageRig.viewer("ann")) }
    }

    @Test func `the doors open by themselves ahead of the start`() throws {
        var rig = try StageRig(startsIn: 600, joinAhead: 60)
        #expect(rig.stage.deadline == rig.now.elapsed + .seconds(540))
        rig.wait(539)
        #expect(throws: Rejection.self) { try rig.stage.admit(bob) }
        rig.wait(1)
        #expect(rig.stage.areDoorsOpen)
        try rig.stage.admit(bob)
        #expect(rig.stage.deadline == nil)
    }

    @Test func `the doors open when the stream is live, and close when it ends`() throws {
        var rig = try StageRig()
        try rig.apply(.goLive)
        try rig.stage.admit(nil)
        try rig.apply(.end)
        #expect(throws: Rejection.ended) { try rig.stage.admit(nil) }
    }
}

@Suite struct PublishedStreams {
    private var rig: StageRig

    init() throws {
        rig = try StageRig(origin: .published)
    }

    @Test mutating func `a published stream goes live with its source and ends with it`() {
        #expect(rig.setSource("ann").changes == [.wentLive(rig.now.wall)])
        let outcome = rig.setSource(nil)
        #expect(outcome.changes == [.ended(rig.now.wall, .sourceLeft)])
        #expect(outcome.effects == [.close])
    }

    @Test mutating func `a published stream without a source lasts as long as its host is there`() {
        let socket = rig.connect(StageRig.ann)
        rig.wait(600)
        #expect(rig.stage.record.phase == .backstage)
        rig.disconnect(StageRig.ann, socket)
        rig.wait(60)
        #expect(rig.stage.record.endReason == .sourceLeft)
    }

    @Test mutating func `the host who published last is the host of the stream`() throws {
        _ = rig.setSource("ann")
        let bob = StageRig.sender("bob", .host)
        let member = StageRecord.Member(name: bob.name, since: rig.now.wall)
        #expect(try rig.apply(.publish, from: bob).changes == [.hostReplaced(bob.id, member)])
        #expect(rig.setSource("bob").changes.isEmpty)
        #expect(rig.stage.record.host == bob.id)
        #expect(rig.stage.standing(of: StageRig.ann) == .viewer)
        _ = rig.setSource(nil)
        #expect(rig.stage.record.phase == .ended)
    }

    @Test mutating func `a published stream goes on when a speaker's source ends`() throws {
        _ = rig.setSource("ann")
        let sam = StageRig.sender("sam", .speaker)
        try rig.apply(.publish, from: sam)
        _ = rig.setSource("sam")
        #expect(rig.stage.record.host == StageRig.ann.id)
        #expect(rig.setSource(nil).changes.isEmpty)
        #expect(rig.stage.record.phase == .live)
    }

    @Test(arguments: [false, true])
    mutating func `a second host takes over when the first one's source is lost`(isThere: Bool) throws {
        let (ann, bob) = (StageRig.ann, StageRig.sender("bob", .host))
        let socket = rig.connect(ann)
        _ = rig.setSource("ann")
        rig.connect(bob)
        try rig.apply(.join, from: bob)
        try rig.apply(.publish, from: bob)
        #expect(rig.stage.standing(of: bob) == .speaker)
        if !isThere { rig.disconnect(ann, socket) }
        #expect(rig.setSource("bob", isSuccessor: true).changes.count == (isThere ? 2 : 1))
        #expect(rig.stage.standing(of: bob) == .host)
        #expect(rig.stage.standing(of: ann) == (isThere ? .speaker : .viewer))
        #expect(rig.wait(600).changes.isEmpty)
        #expect(rig.stage.record.phase == .live)
        // Ann comes back to a stage with another host.
        rig.connect(ann)
        try rig.apply(.join, from: ann)
        try rig.apply(.publish, from: ann)
        #expect(rig.stage.standing(of: ann) == .speaker)
        #expect(rig.stage.record.host == bob.id)
        #expect(rig.setSource(nil).changes == [.ended(rig.now.wall, .sourceLeft)])
    }

    @Test mutating func `a published stream waits for its source after a restart`() {
        _ = rig.setSource("ann")
        rig.stage = Stage(restoring: rig.stage.record, at: rig.now)
        rig.wait(29)
        #expect(rig.setSource("ann").changes.isEmpty)
        rig.wait(100)
        #expect(rig.stage.record.phase == .live)
        rig.stage = Stage(restoring: rig.stage.record, at: rig.now)
        #expect(rig.wait(30).changes == [.ended(rig.now.wall, .sourceLeft)])
    }

    /// A source that goes on is not reported again, so the stage has to try again by itself.
    @Test mutating func `the change to a second host is tried again after the store refused it`() throws {
        let (ann, bob) = (StageRig.ann, StageRig.sender("bob", .host))
        rig.connect(ann)
        _ = rig.setSource("ann")
        rig.connect(bob)
        try rig.apply(.join, from: bob)
        let before = rig.stage.record
        for _ in 0..<2 {
            _ = rig.setSource("bob", isSuccessor: true)
            rig.stage.revert(to: before, at: rig.now)
            #expect(rig.stage.record.host == ann.id)
        }
        let early = rig.wait(4)
        #expect(early.changes.isEmpty)
        let (deadline, next) = (rig.stage.deadline, rig.now.elapsed + .seconds(1))
        #expect(deadline == next)
        let late = rig.wait(1)
        #expect(late.changes.count == 2)
        #expect(rig.stage.standing(of: bob) == .host && rig.stage.standing(of: ann) == .speaker)
        #expect(rig.stage.deadline == nil, "once")
    }

    @Test mutating func `going live is tried again after the store refused it`() {
        let before = rig.stage.record
        _ = rig.setSource("ann")
        rig.stage.revert(to: before, at: rig.now)
        #expect(rig.stage.record.phase == .backstage)
        let late = rig.wait(5)
        #expect(late.changes == [.wentLive(rig.now.wall)] && late.events == [.live])
        #expect(rig.stage.record.phase == .live)
    }

    @Test mutating func `a change that the store refused is not tried again once the source is gone`() {
        let before = rig.stage.record
        _ = rig.setSource("ann")
        rig.stage.revert(to: before, at: rig.now)
        _ = rig.setSource(nil)
        let late = rig.wait(5)
        #expect(late.changes.isEmpty)
        #expect(rig.stage.record.phase == .backstage)
    }

    @Test mutating func `a stream whose end the store refused waits again for its source`() {
        _ = rig.setSource("ann")
        let before = rig.stage.record
        _ = rig.setSource(nil)
        rig.stage.revert(to: before, at: rig.now)
        let early = rig.wait(59)
        #expect(early.changes.isEmpty)
        let late = rig.wait(1)
        #expect(late.changes == [.ended(rig.now.wall, .sourceLeft)])
    }
}
