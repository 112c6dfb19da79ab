import Base
import Stage
import Synchronization
import Testing

@testable import Node

@Suite struct CommandBudgets {
    private let rig: HostRig
    private let bob = HostRig.bob
    private let follower = TestFollower()

    /// One of many who follow, and not the one who is looked at.
    private struct Crowd: SyncFollower {
        func send(_ text: String) -> SyncDelivery { .queued }
        var isDrained: Bool { true }
        func close(_ reason: SyncClose) {}
    }

    init() throws {
        rig = try HostRig()
    }

    /// A live stream with a thousand followers.
    private func begin() async throws {
        try await rig.create()
        _ = try await rig.host.perform(.goLive, from: HostRig.ann)
        _ = try await rig.host.follow(as: nil, since: nil, follower)
        for _ in 1..<1_000 { _ = try await rig.host.follow(as: nil, since: nil, Crowd()) }
        await settle()
    }

    /// The audience was counted, and that is some time ago.
    private func settle() async {
        await rig.wait(.seconds(1))
        await rig.wait(.milliseconds(200))
        follower.forget()
    }

    /// - Returns: in how many seconds it may be done; nil when it was.
    private func wait(_ command: Stage.Command, _ sender: Stage.Sender) async throws -> Int? {
        do throws(StageRefusal) {
            _ = try await rig.host.perform(command, from: sender)
            return nil
        } catch {
            guard case .tooManyCommands(let wait) = error else { throw error }
            return wait
        }
    }

    private var changes: Int { follower.types.count { $0 == "change" } }

    @Test func `one viewer's commands cost the others little`() async throws {
        try await begin()
        var refused = 0
        for step in 0..<100 {
            let command: Stage.Command = step % 2 == 0 ? .raiseHand : .lowerHand(bob.id)
            if let seconds = try await wait(command, bob) {
                refused += 1
                #expect((1...2).contains(seconds))
            }
            await rig.wait(.milliseconds(20))
        }
        #expect(refused >= 40)
        #expect(changes <= 12)
        // Nobody else has to wait for it.
        await rig.wait(.milliseconds(200))
        _ = try await rig.host.perform(.raiseHand, from: HostRig.sender("cid", .viewer))
        #expect(follower.known["raisedHands"]?["cid"] != nil)
        await rig.wait(.seconds(2))
        #expect(try await wait(.raiseHand, bob) == nil)
    }

    @Test func `let people gather where many follow`() async throws {
        try await begin()
        let own = TestFollower()
        _ = try await rig.host.follow(as: bob, since: nil, own)
        await settle()
        var versions: [UInt64] = []
        for number in 0..<50 {
            let viewer = HostRig.sender("v\(number)", .viewer)
            versions.append(try await rig.host.perform(.raiseHand, from: viewer).version)
        }
        #expect(changes == 1, "the first one is told at once")
        #expect(versions.first == follower.version)
        _ = try await rig.host.perform(.invite(bob.id), from: HostRig.ann)
        #expect(own.state.withLock { $0.you?["invited"] } == .bool(true), "what is private does not wait")
        let deadline = try #require(await rig.host.deadline)
        #expect(deadline <= rig.clock.value.elapsed + .milliseconds(110))
        await rig.wait(.milliseconds(110))
        #expect(changes == 2)
        #expect(versions.last == follower.version)
        #expect(follower.known["counts"]?["raisedHands"] == .number(50))
        #expect(follower.known["invitations"]?["bob"] != nil)
        // A change of the stream itself does not wait, and takes the others along.
        _ = try await rig.host.perform(.lowerHand(HostRig.sender("v0", .viewer).id), from: HostRig.ann)
        #expect(changes == 2)
        _ = try await rig.host.perform(.end, from: HostRig.ann)
        #expect(changes == 3 && follower.known["stream"]?["state"] == .string("ended"))
        #expect(own.known == follower.known)
    }

    @Test func `a promised version is sent even if its change was undone`() async throws {
        try await begin()
        _ = try await rig.host.perform(.raiseHand, from: HostRig.sender("v0", .viewer))
        let version = try await rig.host.perform(.raiseHand, from: bob).version
        #expect(version == follower.version + 1)
        #expect(try await rig.host.perform(.lowerHand(bob.id), from: bob).version == version)
        #expect(changes == 1)
        await rig.wait(.milliseconds(110))
        #expect(changes == 2 && follower.version == version)
        await rig.wait(.milliseconds(110))
        #expect(changes == 2)
    }

    @Test func `muting, leaving and withdrawing are never refused`() async throws {
        try await rig.create()
        let sam = HostRig.sender("sam", .speaker)
        _ = try await rig.host.perform(.join, from: sam)
        var refused = 0
        for _ in 0..<50 {
            #expect(try await wait(.setMuted(.audio, true), sam) == nil)
            if try await wait(.setMuted(.audio, false), sam) != nil { refused += 1 }
        }
        #expect(refused > 30)
        #expect(try await wait(.publish, sam) == nil, "a session that is made anew is no change")
        #expect(try await wait(.stepDown, sam) == nil)
        #expect(try await wait(.raiseHand, sam) != nil)
        #expect(try await wait(.leave, sam) == nil)
    }

    @Test func `let a speaker mute and unmute as fast as people do`() async throws {
        try await rig.create()
        let sam = HostRig.sender("sam", .speaker)
        _ = try await rig.host.perform(.join, from: sam)
        for step in 0..<600 {
            #expect(try await wait(.setMuted(.audio, step % 2 == 0), sam) == nil)
            rig.pass(.seconds(1))
        }
    }

    @Test func `let a host act for a full stage, and an admin without end`() async throws {
        try await rig.create()
        for number in 0..<49 {
            let guest = HostRig.sender("g\(number)", .viewer)
            _ = try await rig.host.follow(as: guest, since: nil, Crowd())
            #expect(try await wait(.invite(guest.id), HostRig.ann) == nil)
            #expect(try await wait(.accept, guest) == nil)
        }
        for number in 0..<49 {
            #expect(
                try await wait(.moveToViewers(HostRig.sender("g\(number)", .viewer).id), HostRig.ann) == nil)
        }
        let root = HostRig.sender("root", .admin)
        for number in 0..<500 {
            var edit = StageEdit()
            edit.title = .set("Title \(number)")
            #expect(try await wait(.edit(edit), root) == nil)
        }
    }

    @Test func `do not bring back who came by a link that was revoked`() async throws {
        try await rig.create()
        let link = Stage.Link(
            makesSpeakers: false, issued: Int(rig.clock.value.wall.milliseconds / 1_000))
        let (here, away) = (TestFollower(), HostRig.sender("eve", .viewer, link: link))
        let there = HostRig.sender("vic", .viewer, link: link)
        _ = try await rig.host.perform(.goLive, from: HostRig.ann)
        _ = try await rig.host.follow(as: there, since: nil, here)
        _ = try await rig.host.perform(.revokeLinks(speakers: true, viewers: true), from: HostRig.ann)
        #expect(here.state.withLock { $0.closed } == nil)
        #expect(try await rig.host.admit(there))
        _ = try await rig.host.look(as: there)
        let refusal = StageRefusal.rejected(.linkRevoked)
        await #expect(throws: refusal) { try await rig.host.admit(away) }
        await #expect(throws: refusal) { _ = try await rig.host.look(as: away) }
        #expect(rig.host.durableRecord?.shutsOut(away, isPresent: false) == .linkRevoked)
        #expect(rig.host.durableRecord?.shutsOut(there, isPresent: true) == nil)
        await #expect(throws: refusal) { _ = try await rig.host.follow(as: away, since: nil, TestFollower()) }
    }
}
