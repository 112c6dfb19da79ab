import Base
import Stage
import Store
import Synchronization
import TestSupport
import Testing

@testable import Node

@Suite(.timeLimit(.minutes(10))) struct StreamHosts {
    private let rig: HostRig
    private let bob = HostRig.bob

    init() throws {
        rig = try HostRig()
    }

    @Test func `tell nobody before it is durable`() async throws {
        try await rig.create()
        let follower = TestFollower()
        _ = try await rig.host.follow(as: nil, since: nil, follower)
        rig.store.hold()
        follower.forget()
        let answer = Task { try await rig.host.perform(.goLive, from: HostRig.ann) }
        try await rig.store.commitIsHeld()
        #expect(follower.types.isEmpty)
        #expect(rig.directory[rig.host.id]?.state == .backstage)
        rig.store.release()
        let version = try await answer.value.version
        #expect(follower.types == ["change"])
        #expect(follower.version == version)
        #expect(rig.directory[rig.host.id]?.state == .live)
    }

    /// Of a stream of that name that has long been forgotten.
    @Test func `show no picture of a backstage`() async throws {
        try await rig.create()
        let preview = StreamPreview(
            width: 360, height: 203, capturedAt: WallTime(milliseconds: 1), blurHash: "L", url: "/")
        await rig.host.setPreview(preview)
        #expect(await rig.host.snapshot.preview == nil)
        _ = try await rig.host.perform(.goLive, from: HostRig.ann)
        #expect(await rig.host.snapshot.preview == preview)
        _ = try await rig.host.perform(.end, from: HostRig.ann)
        #expect(await rig.host.snapshot.preview == preview)
    }

    @Test func `gather what comes while a commit is under way into one`() async throws {
        try await rig.create()
        rig.store.hold()
        let viewers = (0..<64).map { HostRig.sender("v\($0)", .viewer) }
        for viewer in viewers { try await rig.host.submit(.raiseHand, from: viewer) }
        #expect(await rig.host.stage?.record.hands.count == 64)
        #expect(await rig.host.committed?.hands.isEmpty == true)
        rig.store.release()
        try await rig.host.settled()
        let commits = rig.store.commits.dropFirst()
        #expect(commits.map(\.records.count).reduce(0, +) == 64)
        #expect(commits.count == 2, "one under way, one with all the rest")
        #expect(await rig.host.committed?.hands.count == 64)
    }

    @Test func `do what follows from a command only when it is durable`() async throws {
        try await rig.create()
        let follower = TestFollower()
        _ = try await rig.host.follow(as: bob, since: nil, follower)
        rig.store.hold()
        let answer = Task { try await rig.host.perform(.ban(bob.id), from: HostRig.ann) }
        try await rig.store.commitIsHeld()
        #expect(rig.effects.value.isEmpty && follower.state.withLock { $0.closed } == nil)
        rig.store.release()
        _ = try await answer.value
        #expect(rig.effects.value == [.expel(bob.id, .banned)])
        #expect(follower.state.withLock { $0.closed } == .banned)
        await #expect(throws: StageRefusal.rejected(.banned)) {
            _ = try await rig.host.follow(as: bob, since: nil, TestFollower())
        }
    }

    @Test func `send a follower away when its token ends, and only that one`() async throws {
        try await rig.create()
        _ = try await rig.host.perform(.goLive, from: HostRig.ann)
        let (short, long, anonymous) = (TestFollower(), TestFollower(), TestFollower())
        let now = rig.clock.value.wall
        _ = try await rig.host.follow(as: bob, since: nil, until: now.advanced(bySeconds: 60), short)
        _ = try await rig.host.follow(
            as: HostRig.sender("cid", .viewer), since: nil, until: now.advanced(bySeconds: 600), long)
        _ = try await rig.host.follow(as: nil, since: nil, anonymous)
        await rig.wait(.seconds(59))
        #expect(short.state.withLock { $0.closed } == nil)
        let deadline = try #require(await rig.host.deadline)
        #expect(deadline <= rig.clock.value.elapsed + .seconds(5))
        await rig.wait(.seconds(6))
        #expect(short.state.withLock { $0.closed } == .expired)
        for follower in [long, anonymous] { #expect(follower.state.withLock { $0.closed } == nil) }
        // Gone as if they had hung up: they may come back within the grace time.
        #expect(await rig.host.stage?.isPresent(bob.id) == false)
        #expect(long.known["counts"]?["viewers"] == .number(2))
        await rig.wait(.seconds(600))
        #expect(long.state.withLock { $0.closed } == .expired)
    }

    @Test func `count a viewer once who got a name after the session`() async throws {
        try await rig.create()
        _ = try await rig.host.perform(.goLive, from: HostRig.ann)
        var random = SystemRandomNumberGenerator()
        let session = Stage.Connection.session(SessionID(using: &random))
        await rig.host.connect(nil, by: session)
        let follower = TestFollower()
        _ = try await rig.host.follow(as: bob, since: nil, follower)
        await rig.wait(.seconds(1))
        #expect(follower.known["counts"]?["viewers"] == .number(2))
        await rig.host.adopt(session, as: bob)
        await rig.wait(.seconds(1))
        #expect(follower.known["counts"]?["viewers"] == .number(1))
        // What somebody has by name is nobody else's.
        await rig.host.adopt(session, as: HostRig.sender("cid", .viewer))
        #expect(await rig.host.connections[session] == .some(bob))
    }

    /// Marks are renewed while it lasts, and forgotten by themselves.
    @Test func `show for a while whose uplink is weak, and not after they have gone`() async throws {
        try await rig.create()
        var random = SystemRandomNumberGenerator()
        let sessions = (0..<2).map { _ in Stage.Connection.session(SessionID(using: &random)) }
        await rig.host.connect(HostRig.ann, by: sessions[0])
        let follower = TestFollower()
        _ = try await rig.host.follow(as: HostRig.ann, since: nil, follower)
        func isWeak() -> JSON? { follower.known["speakers"]?["ann"]?["weakUplink"] }
        #expect(isWeak() == .bool(false))
        // Of somebody who is not there.
        await rig.host.noteWeakUplink(of: sessions[1])
        #expect(isWeak() == .bool(false))
        await rig.host.noteWeakUplink(of: sessions[0])
        #expect(isWeak() == .bool(true))
        await rig.wait(.seconds(14))
        await rig.host.noteWeakUplink(of: sessions[0])
        await rig.wait(.seconds(14))
        #expect(isWeak() == .bool(true))
        await rig.wait(.seconds(1))
        #expect(isWeak() == .bool(false))
        await rig.host.noteWeakUplink(of: sessions[0])
        await rig.host.disconnect(sessions[0])
        #expect(isWeak() == .bool(false))
        #expect(await rig.host.weakUplinks.isEmpty)
    }

    @Test(arguments: [false, true])
    func `go back to what is durable when the disk is full`(isHeld: Bool) async throws {
        try await rig.create()
        let follower = TestFollower()
        _ = try await rig.host.follow(as: bob, since: nil, follower)
        rig.store.fail(with: .unavailable("full"))
        if isHeld { rig.store.hold() }
        let first = Task { try await rig.host.perform(.raiseHand, from: bob) }
        let second: Task<Void, any Error>
        if isHeld {
            try await rig.store.commitIsHeld()
            // Decided on what will not come to be.
            try await rig.host.submit(.invite(bob.id), from: HostRig.ann)
            // It waits before the disk answers, which a task need not have begun to do.
            let (refusals, answer) = AsyncStream<StageRefusal?>.makeStream()
            await rig.host.whenSettled { refusal in
                answer.yield(refusal)
                answer.finish()
            }
            second = Task { for await case let refusal? in refusals { throw refusal } }
            rig.store.release()
        } else {
            second = Task { _ = try await rig.host.perform(.invite(bob.id), from: HostRig.ann) }
        }
        await #expect(throws: StageRefusal.self) { try await first.value }
        await #expect(throws: StageRefusal.self) { try await second.value }
        #expect(await rig.host.stage?.record == rig.host.committed)
        #expect(await rig.host.committed?.hands.isEmpty == true)
        // Media and presence go on meanwhile, and commands once there is room.
        await rig.host.setSource(Stage.Source(owner: nil, name: nil, hasAudio: true, hasVideo: false))
        #expect(follower.known["programme"]?["ready"] == .bool(true))
        rig.store.fail(with: nil)
        _ = try await rig.host.perform(.raiseHand, from: bob)
        #expect(follower.known["raisedHands"]?["bob"] != nil)
    }

    /// Whoever asks next, and decides nothing, would hear of a refusal that has nothing to do with them.
    @Test func `tell who decided what the store refused at once, and nobody else`() async throws {
        try await rig.create()
        rig.store.fail(with: .unavailable("full"))
        await #expect(throws: StageRefusal.storage("\(StoreError.unavailable("full"))")) {
            try await rig.host.submit(.raiseHand, from: bob)
        }
        await #expect(throws: StageRefusal.storage("\(StoreError.unavailable("full"))")) {
            _ = try await rig.host.perform(.raiseHand, from: bob)
        }
        rig.store.fail(with: nil)
        // All that was decided is durable.
        try await rig.host.settled()
        #expect(await rig.host.stage?.record == rig.host.committed)
        _ = try await rig.host.perform(.raiseHand, from: bob)
        #expect(await rig.host.committed?.hands[bob.id] != nil)
    }

    @Test func `keep who is connected when a removal could not be stored`() async throws {
        try await rig.create()
        let sam = HostRig.sender("sam", .speaker)
        _ = try await rig.host.perform(.join, from: sam)
        _ = try await rig.host.follow(as: sam, since: nil, TestFollower())
        rig.store.fail(with: .unavailable("full"))
        await #expect(throws: StageRefusal.self) {
            _ = try await rig.host.perform(.remove(sam.id), from: HostRig.ann)
        }
        rig.store.fail(with: nil)
        #expect(await rig.host.stage?.isPresent(sam.id) == true)
        // Longer than somebody without a connection counts as present.
        await rig.wait(.seconds(16))
        try await rig.host.settled()
        #expect(await rig.host.committed?.speakers[sam.id] != nil)
    }

    @Test func `come back from the store as they were`() async throws {
        try await rig.create()
        _ = try await rig.host.perform(.goLive, from: HostRig.ann)
        for number in 0..<600 {
            _ = try await rig.host.perform(
                .setMuted(.audio, number % 2 == 0), from: HostRig.ann)
            rig.pass(.milliseconds(200))
        }
        var placement = StagePlacement.Edit()
        placement.boost = 3
        _ = try await rig.host.perform(.place(placement), from: HostRig.sender("root", .admin))
        _ = try await rig.host.perform(.join, from: HostRig.sender("sam", .speaker))
        let stored = try await rig.store.load(.one(rig.host.id))
        let again = try StreamHost(
            try #require(stored.first),
            HostRig.environment(rig.store, rig.directory, clock: rig.clock, effects: rig.effects))
        #expect(await again.committed == rig.host.committed)
        #expect(await again.snapshot.placement.boost == 3)
        #expect(stored.first.map { $0.records.count < 300 } == true, "snapshots bound what is read")
        _ = try await again.perform(.moveToViewers(HostRig.sender("sam", .viewer).id), from: HostRig.ann)
        #expect(await again.committed?.speakers.isEmpty == true)
    }

    @Test func `of published streams begin anew under the same name`() async throws {
        let source = Stage.Source(owner: HostRig.ann.id, name: "Ann", hasAudio: true, hasVideo: true)
        for _ in 0..<3 {
            #expect(try await rig.host.beginPublishing(HostRig.ann, canCreate: true) == .host)
            #expect(await rig.host.snapshot.state == .waiting)
            await rig.host.setSource(source)
            #expect(await rig.host.snapshot.state == .live)
            await rig.host.setSource(nil)
            #expect(await rig.host.snapshot.state == .ended)
        }
        await #expect(throws: StageRefusal.self) {
            _ = try await rig.host.beginPublishing(HostRig.ann, canCreate: false)
        }
        #expect(try await rig.store.load(.open).isEmpty)
    }

    @Test func `make a stream once`() async throws {
        await #expect(throws: StageRefusal.unknownStream) {
            _ = try await rig.host.perform(.goLive, from: HostRig.ann)
        }
        try await rig.create()
        await #expect(throws: StageRefusal.streamExists) { try await rig.create() }
    }

    @Test func `end by themselves when their host stays away`() async throws {
        try await rig.create()
        let follower = TestFollower()
        _ = try await rig.host.follow(as: nil, since: nil, follower)
        _ = try await rig.host.perform(.goLive, from: HostRig.ann)
        await rig.wait(.seconds(29))
        #expect(follower.known["stream"]?["state"] == .string("live"))
        await rig.wait(.seconds(1))
        #expect(follower.known["stream"]?["state"] == .string("ended"))
        #expect(follower.known["stream"]?["endReason"] == .string("host-left"))
        #expect(rig.effects.value == [.close])
    }

    /// Which may be later than the stream, and nobody else announces it.
    @Test func `stay until a recording has ended, and until nobody can go back any more`() async throws {
        try await rig.create()
        _ = try await rig.host.perform(.end, from: HostRig.ann)
        await rig.host.setRecording(true)
        #expect(await rig.host.closeIfIdle() == nil)
        await rig.host.setRecording(false)
        await rig.host.setKept(true)
        #expect(await rig.host.closeIfIdle() == nil)
        await rig.host.setKept(false)
        #expect(await rig.host.closeIfIdle() == .ended)
    }

    /// Nobody would hear of its end: the node looks for sessions before it asks the host to close.
    @Test func `stay for a session that is admitted while they are asked to close`() async throws {
        try await rig.create()
        _ = try await rig.host.perform(.end, from: HostRig.ann)
        let before = rig.host.door.arrivals
        #expect(rig.host.door.enter())
        #expect(await rig.host.closeIfIdle(since: before) == nil)
        #expect(!rig.host.isClosed)
        // The session has gone without a word.
        #expect(await rig.host.closeIfIdle(since: rig.host.door.arrivals) == .ended)
        #expect(!rig.host.door.enter(), "who comes now has to go to the next host")
    }
}

@Suite struct SyncFollowers {
    private let rig: HostRig
    private let bob = HostRig.bob

    init() throws {
        rig = try HostRig()
    }

    @Test func `get a snapshot, then changes, and what is private to them`() async throws {
        try await rig.create()
        let (follower, stranger) = (TestFollower(), TestFollower())
        _ = try await rig.host.follow(as: bob, since: nil, follower)
        _ = try await rig.host.follow(as: nil, since: nil, stranger)
        #expect(follower.types == ["snapshot", "you"])
        #expect(stranger.types == ["snapshot"])
        _ = try await rig.host.perform(.invite(bob.id), from: HostRig.ann)
        #expect(follower.state.withLock { $0.you?["invited"] } == .bool(true))
        #expect(follower.state.withLock { $0.you?["admitted"] } == .bool(false))
        _ = try await rig.host.perform(.accept, from: bob)
        #expect(follower.state.withLock { $0.you?["role"] } == .string("speaker"))
        _ = try await rig.host.perform(.goLive, from: HostRig.ann)
        #expect(follower.state.withLock { $0.you?["admitted"] } == .bool(true))
        #expect(!stranger.types.contains("you"))
        #expect(stranger.known == follower.known)
        _ = try await rig.host.perform(.requestMute(bob.id, .audio), from: HostRig.ann)
        #expect(follower.types.last == "mute" && !stranger.types.contains("mute"))
    }

    @Test func `who come back after 1,000 missed changes know the same as those who stayed`() async throws {
        try await rig.create()
        let (stayed, left) = (TestFollower(), TestFollower())
        _ = try await rig.host.follow(as: nil, since: nil, stayed)
        let number = try await rig.host.follow(as: nil, since: nil, left)
        _ = try await rig.host.perform(.goLive, from: HostRig.ann)
        await rig.host.unfollow(number)
        let missedFrom = left.version
        var random = SeededGenerator(seed: 7)
        while stayed.version - missedFrom < 1_000 {
            let viewer = HostRig.sender("v\(Int.random(in: 0..<40, using: &random))", .viewer)
            let commands: [(Stage.Command, Stage.Sender)] = [
                (.raiseHand, viewer), (.lowerHand(viewer.id), viewer), (.invite(viewer.id), HostRig.ann),
                (.accept, viewer), (.decline, viewer), (.stepDown, viewer), (.setMuted(.audio, true), viewer),
                (.setMuted(.audio, false), viewer), (.moveToViewers(viewer.id), HostRig.ann),
            ]
            let (command, sender) = commands[Int.random(in: 0..<commands.count, using: &random)]
            _ = try? await rig.host.perform(command, from: sender)
            rig.pass(.milliseconds(500))
        }
        left.forget()
        let again = try await rig.host.follow(as: nil, since: left.version, left)
        let changes = left.types.filter { $0 == "change" }
        #expect(changes.count >= 1_000)
        let others = left.types.filter { $0 != "change" }
        #expect(others == ["interaction-snapshot"], "what has no version is told as a whole")
        #expect(left.version - missedFrom == UInt64(changes.count), "none is told twice, and none is not")
        #expect(left.known == stayed.known)
        #expect(left.version == stayed.version)
        // And a newcomer, who gets a snapshot.
        let newcomer = TestFollower()
        _ = try await rig.host.follow(as: nil, since: nil, newcomer)
        #expect(newcomer.known == stayed.known)
        await rig.host.unfollow(again)
    }

    @Test(arguments: [0, 1, 1_700_000_000_000, 9_000_000_000_000, .max] as [UInt64])
    func `who name a version nobody was told get a snapshot`(version: UInt64) async throws {
        try await rig.create()
        let follower = TestFollower()
        _ = try await rig.host.follow(as: nil, since: version, follower)
        #expect(follower.types == ["snapshot"])
    }

    @Test func `who read too slowly get a snapshot instead of a queue`() async throws {
        try await rig.create()
        let (slow, quick) = (TestFollower(), TestFollower())
        _ = try await rig.host.follow(as: bob, since: nil, slow)
        _ = try await rig.host.follow(as: nil, since: nil, quick)
        slow.state.withLock { $0.isFull = true }
        for number in 0..<50 {
            _ = try await rig.host.perform(.raiseHand, from: HostRig.sender("v\(number)", .viewer))
        }
        _ = try await rig.host.perform(.invite(bob.id), from: HostRig.ann)
        await rig.wait(.seconds(1))
        slow.forget()
        slow.state.withLock { $0.isFull = false }
        await rig.wait(.seconds(1))
        #expect(slow.types.starts(with: ["snapshot", "you"]))
        #expect(slow.known == quick.known)
        #expect(slow.state.withLock { $0.you?["invited"] } == .bool(true))
    }

    @Test func `hear of viewers at most twice a second`() async throws {
        try await rig.create()
        _ = try await rig.host.perform(.goLive, from: HostRig.ann)
        let follower = TestFollower()
        _ = try await rig.host.follow(as: nil, since: nil, follower)
        await rig.wait(.seconds(1))
        follower.forget()
        var sockets: [UInt64] = []
        for step in 0..<40 {
            let viewer = HostRig.sender("w\(step)", .viewer)
            sockets.append(try await rig.host.follow(as: viewer, since: nil, TestFollower()))
            await rig.wait(.milliseconds(100))
        }
        #expect(follower.types.count { $0 == "change" } <= 9)
        await rig.wait(.seconds(1))
        #expect(follower.known["counts"]?["viewers"] == .number(41))
        for socket in sockets { await rig.host.unfollow(socket) }
        await rig.wait(.seconds(1))
        #expect(follower.known["counts"]?["viewers"] == .number(1))
        #expect(follower.known["viewers"] == .object([:]))
    }

    @Test func `hear a heartbeat when nothing happens`() async throws {
        try await rig.create()
        let follower = TestFollower()
        _ = try await rig.host.follow(as: nil, since: nil, follower)
        await rig.wait(.seconds(1))
        follower.forget()
        for _ in 0..<30 { await rig.wait(.seconds(1)) }
        #expect(follower.types.count { $0 == "heartbeat" } == 6)
        #expect(await rig.host.deadline != nil)
    }

    @Test func `of a stream that nobody made see it begin`() async throws {
        let follower = TestFollower()
        _ = try await rig.host.follow(as: nil, since: nil, follower)
        #expect(follower.known["stream"]?["state"] == .string("waiting"))
        _ = try await rig.host.beginPublishing(HostRig.ann, canCreate: true)
        await rig.host.setSource(
            Stage.Source(owner: HostRig.ann.id, name: nil, hasAudio: true, hasVideo: true))
        #expect(follower.known["stream"]?["state"] == .string("live"))
        await rig.wait(.seconds(1))
        #expect(follower.known["counts"]?["viewers"] == .number(1))
    }
}
