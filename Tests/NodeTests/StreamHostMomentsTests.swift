import Base
import Interaction
import Stage
import Store
import Synchronization
import TestSupport
import Testing

@testable import Node

/// What comes to a stream's host while something else of it waits for the disk.
@Suite(.timeLimit(.minutes(10))) struct `A stream's host amid other things` {
    private let rig: WatchedHostRig
    private let ann = HostRig.ann
    private let bob = HostRig.bob

    init() throws {
        rig = try WatchedHostRig()
    }

    private func goLive() async throws {
        _ = try await rig.host.create(host: ann.id, name: "Ann", edit: StageEdit())
        _ = try await rig.host.perform(.goLive, from: ann)
        await rig.host.connect(ann, by: .socket(1_000))
    }

    /// Has the host decide a command while the disk takes nothing.
    private func decide(_ command: Stage.Command, from sender: Stage.Sender) async throws
        -> Task<StageAnswer, any Error>
    {
        let host = rig.host
        return try await rig.decide { try await host.perform(command, from: sender) }
    }

    // MARK: People who are sent away

    /// Without a ban they may come again at once, before anybody was told that they are gone.
    @Test func `counts nobody who came again before their removal was durable`() async throws {
        try await goLive()
        let first = try await rig.host.follow(as: bob, since: nil, TestFollower())
        rig.store.hold()
        let removal = try await decide(.remove(bob.id), from: ann)
        let again = TestFollower()
        let second = try await rig.host.follow(as: bob, since: nil, again)
        #expect(await rig.host.stage?.isPresent(bob.id) == true)
        rig.store.release()
        _ = try await removal.value
        #expect(again.state.withLock { $0.closed } == .removed)
        #expect(await rig.host.stage?.isPresent(bob.id) == false)
        // As their connections' ends say.
        for number in [first, second] { await rig.host.unfollow(number) }
        await rig.wait(.seconds(1))
        #expect(await rig.host.snapshot.viewers == 0)
        let connections = await rig.host.connections
        #expect(Array(connections.keys) == [.socket(1_000)], "that of the host")
        // Once the grace time is over, nothing is left of them.
        await rig.wait(Stage.presenceGrace)
        #expect(await rig.host.stage?.hasPresence(of: bob.id) == false)
    }

    @Test func `keeps nobody out whose removal the disk did not take`() async throws {
        try await goLive()
        let follower = TestFollower()
        _ = try await rig.host.follow(as: bob, since: nil, follower)
        rig.store.hold()
        let removal = try await decide(.ban(bob.id), from: ann)
        await #expect(throws: StageRefusal.rejected(.banned)) {
            _ = try await rig.host.follow(as: bob, since: nil, TestFollower())
        }
        await rig.wait(.seconds(1))
        rig.store.fail(with: .unavailable("full"))
        rig.store.release()
        await #expect(throws: StageRefusal.self) { _ = try await removal.value }
        await rig.wait(.seconds(1))
        #expect(await rig.host.snapshot.viewers == 1, "who was counted out meanwhile")
        #expect(follower.state.withLock { $0.closed } == nil)
        #expect(await rig.host.stage?.isPresent(bob.id) == true)
        rig.store.fail(with: nil)
        let comment = try await rig.host.perform(.comment(key: "a", text: "still here"), from: bob)
        guard case .comment(let written) = comment else { throw StageRefusal.overloaded }
        #expect(written.author == bob.id)
    }

    /// The decision stands from the moment of the ban, also for what is written before that is durable.
    @Test func `takes no comment of somebody whose ban waits for the disk`() async throws {
        try await goLive()
        rig.store.hold()
        let ban = try await decide(.ban(bob.id), from: ann)
        await #expect(throws: StageRefusal.rejected(.banned)) {
            try await rig.host.perform(.comment(key: "a", text: "hello"), from: bob)
        }
        await #expect(throws: StageRefusal.rejected(.banned)) {
            try await rig.host.perform(.react(["heart": 1]), from: bob)
        }
        #expect(rig.effects.value.isEmpty)
        rig.store.release()
        _ = try await ban.value
        #expect(rig.effects.value == [.expel(bob.id, .banned)])
    }

    // MARK: Invitations and hands

    @Test func `brings nobody on stage whom the host removes while they accept`() async throws {
        try await goLive()
        _ = try await rig.host.perform(.raiseHand, from: bob)
        _ = try await rig.host.perform(.invite(bob.id), from: ann)
        rig.store.hold()
        let acceptance = try await decide(.accept, from: bob)
        let removal = try await decide(.remove(bob.id), from: ann)
        #expect(await rig.host.committed?.speakers.isEmpty == true)
        rig.store.release()
        _ = try await acceptance.value
        _ = try await removal.value
        let record = try #require(await rig.host.committed)
        #expect(record.speakers.isEmpty && record.hands.isEmpty && record.invitations.isEmpty)
        #expect(record.hasLeftStage(bob.id), "a speaker's token does not bring them back")
        #expect(rig.effects.value.last == .expel(bob.id, nil))
        await #expect(throws: StageRefusal.rejected(.notInvited)) {
            _ = try await rig.host.perform(.accept, from: bob)
        }
    }

    @Test func `lets one invitation be accepted once where the last place is asked for twice`() async throws {
        try await goLive()
        var edit = StageEdit()
        edit.maxSpeakers = 1
        _ = try await rig.host.perform(.edit(edit), from: ann)
        let cid = HostRig.sender("cid", .viewer)
        for sender in [bob, cid] {
            _ = try await rig.host.perform(.raiseHand, from: sender)
            _ = try await rig.host.perform(.invite(sender.id), from: ann)
        }
        rig.store.hold()
        let first = try await decide(.accept, from: bob)
        await #expect(throws: StageRefusal.rejected(.stageFull(limit: 1))) {
            _ = try await rig.host.perform(.accept, from: cid)
        }
        rig.store.fail(with: .unavailable("full"))
        rig.store.release()
        await #expect(throws: StageRefusal.self) { _ = try await first.value }
        rig.store.fail(with: nil)
        // The place is free again, because the first one did not get it.
        let answer = try await rig.host.perform(.accept, from: cid)
        #expect(answer.you.standing == .speaker)
        let record = try #require(await rig.host.committed)
        #expect(Array(record.invitations.keys) == [bob.id] && Array(record.speakers.keys) == [cid.id])
    }

    @Test func `tells all who wait their new places when somebody in front goes`() async throws {
        try await goLive()
        let people = (1...4).map { HostRig.sender("v\($0)", .viewer) }
        var followers: [TestFollower] = []
        for person in people {
            let follower = TestFollower()
            followers.append(follower)
            _ = try await rig.host.follow(as: person, since: nil, follower)
            _ = try await rig.host.perform(.raiseHand, from: person)
        }
        func places() -> [JSON?] {
            followers.map { follower in follower.state.withLock { $0.you?["handPlace"] } }
        }
        #expect(places() == [.number(1), .number(2), .number(3), .number(4)])
        _ = try await rig.host.perform(.holdHand(people[1].id, true), from: ann)
        #expect(places() == [.number(1), .null, .number(2), .number(3)])
        _ = try await rig.host.perform(.moveHand(people[3].id, place: 1), from: ann)
        #expect(places() == [.number(2), .null, .number(3), .number(1)])
        _ = try await rig.host.perform(.ban(people[3].id), from: ann)
        #expect(places().prefix(3) == [.number(1), .null, .number(2)])
        _ = try await rig.host.perform(.moveHand(people[1].id, place: 9), from: ann)
        #expect(places().prefix(3) == [.number(1), .number(3), .number(2)])
        let again = try await rig.restarted()
        #expect(await again.committed?.handsInOrder == [people[0].id, people[2].id, people[1].id])
    }

    // MARK: The end

    @Test func `refuses what comes after the end, before that is durable, too`() async throws {
        try await goLive()
        _ = try await rig.host.perform(
            .openPoll(Poll.Draft(question: "Tea?", options: ["Yes", "No"])), from: ann)
        rig.store.hold()
        let end = try await decide(.end, from: ann)
        let commands: [Interaction.Command] = [
            .comment(key: "a", text: "late"), .react(["heart": 1]), .vote(1, options: [0]), .pin(1),
            .showCard(StreamCard(title: "x", link: "https://x.example/", picture: nil, data: nil)),
        ]
        for command in commands {
            await #expect(throws: StageRefusal.rejected(.ended)) {
                try await rig.host.perform(command, from: ann)
            }
        }
        for command in [Stage.Command.raiseHand, .join, .publish] {
            await #expect(throws: StageRefusal.rejected(.ended)) {
                _ = try await rig.host.perform(command, from: bob)
            }
        }
        #expect(await rig.host.snapshot.state == .live, "as far as anybody was told")
        rig.store.release()
        _ = try await end.value
        #expect(await rig.host.snapshot.state == .ended)
        #expect(rig.effects.value == [.close])
        // A second one changes nothing, and is no error.
        _ = try await rig.host.perform(.end, from: ann)
        #expect(rig.effects.value == [.close])
    }

    @Test func `goes on where the disk does not take its end, for the whole grace time`() async throws {
        try await goLive()
        await rig.host.disconnect(.socket(1_000))
        rig.store.fail(with: .unavailable("full"))
        await rig.wait(.seconds(30))
        #expect(await rig.host.snapshot.state == .live)
        let deadline = try #require(await rig.host.deadline)
        #expect(deadline > rig.now.elapsed, "it does not ask the disk without end")
        rig.store.fail(with: nil)
        await rig.wait(.seconds(29))
        #expect(await rig.host.snapshot.state == .live)
        await rig.wait(.seconds(1))
        #expect(await rig.host.snapshot.state == .ended)
        #expect(await rig.host.snapshot.endReason == .hostLeft)
    }

    /// It would wake a thousand times a second, for as long as somebody waits for the stream.
    @Test(arguments: [false, true]) func `a stream whose creation was not stored has no deadline`(
        isSlow: Bool
    ) async throws {
        let follower = TestFollower()
        _ = try await rig.host.follow(as: bob, since: nil, follower)
        let (host, ann) = (rig.host, ann)
        if isSlow {
            rig.store.hold()
            let creation = try await rig.decide { try await host.beginPublishing(ann, canCreate: true) }
            rig.store.fail(with: .unavailable("full"))
            rig.store.release()
            await #expect(throws: StageRefusal.self) { _ = try await creation.value }
        } else {
            rig.store.fail(with: .unavailable("full"))
            await #expect(throws: StageRefusal.self) {
                _ = try await host.beginPublishing(ann, canCreate: true)
            }
        }
        #expect(await rig.host.stage == nil)
        await rig.host.tick()
        let deadline = try #require(await rig.host.deadline)
        #expect(deadline > rig.now.elapsed, "that of a heartbeat")
        rig.store.fail(with: nil)
        #expect(try await rig.host.beginPublishing(ann, canCreate: true) == .host)
        await rig.wait(.seconds(1))
        #expect(await rig.host.snapshot.waiting == 1)
        #expect(follower.known["counts"]?["waiting"] == .number(1))
    }

    /// Whose last second is the stream's last second.
    @Test func `closes its poll and saves its hearts with its end, all due at one moment`() async throws {
        try await goLive()
        var draft = Poll.Draft(question: "Tea?", options: ["Yes", "No"])
        draft.seconds = 30
        _ = try await rig.host.perform(.openPoll(draft), from: ann)
        _ = try await rig.host.perform(.vote(1, options: [1]), from: bob)
        _ = try await rig.host.perform(.react(["heart": 3]), from: bob)
        await rig.host.disconnect(.socket(1_000))
        let commits = rig.store.commits.count
        await rig.wait(.seconds(30))
        #expect(rig.store.commits.count == commits + 1, "they are one commit")
        #expect(await rig.host.snapshot.state == .ended)
        let again = try await rig.restarted()
        let poll = try await again.poll(1, as: nil)
        #expect(poll["closedAt"] == .time(rig.now.wall) && poll["voters"] == .number(1))
        let record = try #require(await again.kept?.interaction)
        #expect(record.totals == ["heart": 3])
        #expect(record.fans.top(9, at: rig.now.wall).map(\.value) == [FanMinute.reactionWeight])
    }

    @Test func `closes for good when its place in the store was taken by another`() async throws {
        try await goLive()
        let follower = TestFollower()
        _ = try await rig.host.follow(as: bob, since: nil, follower)
        rig.store.fail(with: .conflict(current: 99))
        await #expect(throws: StageRefusal.storage("the stream has changed meanwhile, to version 99")) {
            _ = try await rig.host.perform(.raiseHand, from: bob)
        }
        #expect(follower.state.withLock { $0.closed } == .unavailable)
        #expect(rig.host.isClosed)
        rig.store.fail(with: nil)
        await #expect(throws: StageRefusal.overloaded) {
            _ = try await rig.host.perform(.raiseHand, from: bob)
        }
        await #expect(throws: StageRefusal.overloaded) {
            try await rig.host.perform(.comment(key: "a", text: "hello"), from: bob)
        }
        await #expect(throws: StageRefusal.overloaded) {
            _ = try await rig.host.follow(as: bob, since: nil, TestFollower())
        }
        await rig.wait(.seconds(1))
        #expect(rig.store.commits.last?.records.isEmpty == false)
        // The stream is live and somebody is connected, but nothing happens on this host any more.
        #expect(await rig.host.closeIfIdle() == .ended)
    }
}
