import Base
import Foundation
import Interaction
import Stage
import Store
import Synchronization
import TestSupport
import Testing

@testable import Node

/// What an audience does, in its stream's place: durable before it is told, and there again after a restart.
@Suite(.timeLimit(.minutes(10))) struct InteractionHosts {
    private let rig: HostRig
    private let ann = HostRig.ann
    private let bob = HostRig.bob

    init() throws {
        rig = try HostRig()
    }

    private func goLive() async throws {
        try await rig.create()
        _ = try await rig.host.perform(.goLive, from: ann)
    }

    @discardableResult
    private func write(_ text: String, key: String = "k1", as sender: Stage.Sender? = nil) async throws
        -> StreamComment
    {
        let reply = try await rig.host.perform(.comment(key: key, text: text), from: sender ?? bob)
        guard case .comment(let comment) = reply else { throw StageRefusal.overloaded }
        return comment
    }

    /// As a restart finds it.
    private func restarted() async throws -> StreamHost {
        let stored = try #require(try await rig.store.load(.one(rig.host.id)).first)
        return try StreamHost(
            stored, HostRig.environment(rig.store, rig.directory, clock: rig.clock, effects: rig.effects))
    }

    private func texts(_ page: JSON?) -> [String] {
        guard case .array(let comments) = page?["comments"] else { return [] }
        return comments.compactMap { if case .string(let text) = $0["text"] { text } else { nil } }
    }

    @Test func `tell a comment to all others when it is durable, and not before`() async throws {
        try await goLive()
        let follower = TestFollower()
        _ = try await rig.host.follow(as: nil, since: nil, follower)
        follower.forget()
        rig.store.hold()
        let answer = Task { try await write("hello") }
        try await rig.store.commitIsHeld()
        #expect(follower.types.isEmpty)
        rig.store.release()
        #expect(try await answer.value.number == 1)
        #expect(follower.types == ["interaction"])
        #expect(texts(follower.state.withLock { .object($0.messages[0]) }) == ["hello"])
    }

    @Test func `tell the latest comments, and all else, to those who come and who come back`() async throws {
        try await goLive()
        try await write("one")
        let first = try await write("two", key: "k2")
        _ = try await rig.host.perform(.pin(first.number), from: ann)
        _ = try await rig.host.perform(.react(["heart": 3]), from: bob)
        let (fresh, returned) = (TestFollower(), TestFollower())
        _ = try await rig.host.follow(as: nil, since: nil, fresh)
        let interaction = fresh.known["interaction"]
        #expect(texts(interaction) == ["one", "two"])
        #expect(interaction?["pinned"]?["text"] == .string("two"))
        #expect(interaction?["reactions"]?["heart"]?["total"] == .number(3))
        #expect(interaction?["settings"]?["comments"] == .bool(true))
        _ = try await rig.host.follow(as: nil, since: fresh.version, returned)
        #expect(returned.types == ["interaction-snapshot"])
        #expect(texts(returned.state.withLock { $0.messages[0]["interaction"] }) == ["one", "two"])
    }

    @Test func `have all of it again after a restart`() async throws {
        try await goLive()
        _ = try await rig.host.perform(
            .edit(InteractionEdit(slowMode: 7, words: ["spam"])), from: ann)
        let kept = try await write("stays")
        let gone = try await write("goes", key: "k2", as: HostRig.sender("cid", .viewer))
        _ = try await rig.host.perform(.delete(gone.number), from: ann)
        _ = try await rig.host.perform(.pin(kept.number), from: ann)
        _ = try await rig.host.perform(.silence(bob.id, seconds: 600), from: ann)
        _ = try await rig.host.perform(.react(["heart": 9]), from: bob)
        await rig.wait(.seconds(5))
        let again = try await restarted()
        #expect(texts(try await again.comments(before: nil, after: nil, limit: 9)) == ["stays"])
        let settings = try await again.interactionSettings(as: ann)
        #expect(settings["slowMode"] == .number(7) && settings["words"] == .array([.string("spam")]))
        #expect(settings["silenced"]?["bob"] != nil)
        #expect(try await again.interactionSettings(as: bob)["words"] == nil)
        let follower = TestFollower()
        _ = try await again.follow(as: nil, since: nil, follower)
        #expect(follower.known["interaction"]?["pinned"]?["text"] == .string("stays"))
        #expect(follower.known["interaction"]?["reactions"]?["heart"]?["total"] == .number(9))
        // The same request once more is the same comment, and numbers go on.
        let repeated = try await again.perform(.comment(key: "k1", text: "stays"), from: bob)
        #expect(repeated == .comment(kept))
        await #expect(throws: StageRefusal.self) {
            try await again.perform(.comment(key: "k9", text: "x"), from: bob)
        }
        let next = try await again.perform(.comment(key: "k3", text: "next"), from: ann)
        guard case .comment(let comment) = next else { return }
        #expect(comment.number == 3)
    }

    @Test func `remember which tier comments take, and tell people theirs`() async throws {
        try await goLive()
        var edit = InteractionEdit()
        edit.commentTier = .set("gold")
        _ = try await rig.host.perform(.edit(edit), from: ann)
        let again = try await restarted()
        await #expect(throws: StageRefusal.interaction(.membersOnly)) {
            try await again.perform(.comment(key: "k1", text: "x"), from: bob)
        }
        let mia = Stage.Sender(
            id: try #require(ParticipantID("mia")), authority: .viewer, tiers: ["silver", "gold"])
        let mod = Stage.Sender(
            id: try #require(ParticipantID("mod")), authority: .viewer, mayModerate: true)
        for sender in [mia, mod, ann] {
            _ = try await again.perform(.comment(key: "k1", text: "x"), from: sender)
        }
        let follower = TestFollower()
        _ = try await again.follow(as: mia, since: nil, follower)
        #expect(follower.known["interaction"]?["settings"]?["commentTier"] == .string("gold"))
        #expect(
            follower.state.withLock { $0.you?["tiers"] } == .array([.string("gold"), .string("silver")]))
    }

    @Test func `write a snapshot that is read again, after many comments`() async throws {
        try await goLive()
        for number in 0..<600 {
            rig.pass(.seconds(1))
            try await write("\(number)", key: "k\(number)")
        }
        let stored = try #require(try await rig.store.load(.one(rig.host.id)).first)
        #expect(stored.snapshot != nil && stored.records.count < 300)
        let page = try await restarted().comments(before: nil, after: nil, limit: 600)
        #expect(texts(page) == (0..<600).map(String.init))
    }

    @Test func `read logs and snapshots from before there was an audience`() throws {
        let record = try #require(StageRecord.replaying([.created(creation), .wentLive(creation.at)]))
        var stored = StoredStream(
            listing: StageCoding.listing(of: record), version: 2, snapshot: try StageCoding.bytes(record),
            records: [])
        #expect(try StageCoding.record(of: stored) == StreamRecord(stage: record))
        stored.snapshot = nil
        stored.records = try [StageChange.created(creation), .wentLive(creation.at)].map(StageCoding.bytes)
        #expect(try StageCoding.record(of: stored) == StreamRecord(stage: record))
    }

    private var creation: StageChange.Creation {
        get throws {
            let json = #"{"id":"show","origin":"made","host":"ann","at":5,"details":"#
            let details = String(decoding: try StageCoding.bytes(StageDetails()), as: UTF8.self)
            return try JSONDecoder().decode(
                StageChange.Creation.self, from: Data((json + details + "}").utf8))
        }
    }

    @Test func `go back to what is durable when the store fails`() async throws {
        try await goLive()
        try await write("one")
        rig.store.fail(with: .unavailable("full"))
        await #expect(throws: StageRefusal.storage("the data cannot be written: full")) {
            try await write("two", key: "k2")
        }
        rig.store.fail(with: nil)
        rig.pass(.seconds(9))
        #expect(try await write("three", key: "k3").number == 2)
        #expect(texts(try await rig.host.comments(before: nil, after: nil, limit: 9)) == ["one", "three"])
    }

    @Test func `tell what a shadow writes to its author alone, wherever they follow`() async throws {
        try await goLive()
        _ = try await rig.host.perform(.silence(bob.id, seconds: 60, isShadow: true), from: ann)
        let (own, other) = (TestFollower(), TestFollower())
        _ = try await rig.host.follow(as: bob, since: nil, own)
        _ = try await rig.host.follow(as: ann, since: nil, other)
        for follower in [own, other] { follower.forget() }
        try await write("psst")
        await rig.wait(.milliseconds(100))
        #expect(own.state.withLock { $0.messages.flatMap { texts(.object($0)) } } == ["psst"])
        #expect(other.state.withLock { $0.messages.flatMap { texts(.object($0)) } } == [])
        let late = TestFollower()
        _ = try await rig.host.follow(as: bob, since: nil, late)
        #expect(late.state.withLock { $0.messages.flatMap { texts(.object($0)) } } == ["psst"])
        #expect(texts(late.known["interaction"]) == [])
        #expect(texts(try await rig.host.comments(before: nil, after: nil, limit: 9, as: bob)) == ["psst"])
        #expect(texts(try await rig.host.comments(before: nil, after: nil, limit: 9, as: ann)) == [])
        let settings = try await rig.host.interactionSettings(as: ann)
        #expect(settings["silenced"]?["bob"]?["shadow"] == .bool(true))
        guard case .array(let entries) = try await restarted().audit(as: ann)["entries"] else { return }
        #expect(entries.map { $0["action"] } == [.string("shadowed")])
    }

    @Test func `sessions that follow are told of interactions, and of nothing else`() async throws {
        try await goLive()
        var random = SeededGenerator(seed: 1)
        let (session, other) = (SessionID(using: &random), SessionID(using: &random))
        let told = Shared<[[String: JSON]]>([])
        let end = ControlEnd { text in
            guard let message = try? JSONDecoder().decode([String: JSON].self, from: Data(text.utf8)) else {
                return false
            }
            told.change { $0.append(message) }
            return true
        }
        await rig.host.follow(as: bob, in: session, end)
        #expect(told.value.isEmpty, "a session that is not there is not told")
        await rig.host.connect(bob, by: .session(session))
        await rig.host.connect(ann, by: .session(other))
        try await write("before")
        _ = try await rig.host.perform(.silence(bob.id, seconds: 2, isShadow: true), from: ann)
        rig.pass(.seconds(1))
        try await write("psst", key: "k2")
        await rig.host.follow(as: bob, in: session, end)
        #expect(told.value.first?["type"] == .string("interaction-snapshot"))
        #expect(texts(told.value.first?["interaction"]) == ["before"])
        #expect(told.value.dropFirst().flatMap { texts(.object($0)) } == ["psst"], "what only they see")
        told.change { $0 = [] }
        await rig.wait(.seconds(3))
        try await write("after", key: "k3")
        // A control channel has other messages for the stage and its participants.
        _ = try await rig.host.perform(.raiseHand, from: bob)
        _ = try await rig.host.perform(.invite(bob.id), from: ann)
        _ = try await rig.host.perform(.accept, from: bob)
        _ = try await rig.host.perform(.requestMute(bob.id, .audio), from: ann)
        await rig.wait(.seconds(20))
        #expect(!told.value.isEmpty && told.value.allSatisfy { $0["type"] == .string("interaction") })
        #expect(told.value.flatMap { texts(.object($0)) } == ["after"])
        told.change { $0 = [] }
        await rig.host.refresh(other)
        await rig.host.refresh(session)
        #expect(told.value.first?["type"] == .string("interaction-snapshot"))
        await rig.host.disconnect(.session(session))
        told.change { $0 = [] }
        try await write("gone", key: "k4")
        await rig.wait(.seconds(1))
        #expect(told.value.isEmpty)
    }

    @Test func `a comment repeated by another way is the same one, and answered when durable`() async throws {
        try await goLive()
        let comment = try await write("hello", key: "same")
        let answers = Shared<[Result<Interaction.Reply, StageRefusal>]>([])
        rig.store.hold()
        await rig.host.perform(.comment(key: "same", text: "hello"), from: bob) { answer in
            answers.change { $0.append(answer) }
        }
        #expect(answers.value == [.success(.comment(comment))], "it is durable already")
        await rig.host.perform(.comment(key: "new", text: "hello"), from: bob) { answer in
            answers.change { $0.append(answer) }
        }
        #expect(answers.value.count == 1)
        rig.store.release()
        try await rig.host.settled()
        #expect(answers.value.count == 2)
        for number in 0..<30 {
            await rig.host.perform(.comment(key: "f\(number)", text: "x"), from: bob) { answer in
                answers.change { $0.append(answer) }
            }
        }
        try await rig.host.settled()
        let refused = answers.value.filter {
            if case .failure(.interaction(.tooFast)) = $0 { true } else { false }
        }
        #expect(refused.count >= 28, "all ways share one budget")
        let text = AudienceAnswer.text(.interaction(.slowMode(wait: 7)), to: .comment(key: "k", text: "x"))
        let answer = try JSONDecoder().decode([String: JSON].self, from: Data(text.utf8))
        #expect(answer["type"] == .string("refused") && answer["rule"] == .string("slow-mode"))
        #expect(answer["id"] == .string("k") && answer["wait"] == .number(7))
    }

    @Test func `refuse those who may not be there, and while nobody is let in`() async throws {
        try await rig.create()
        await #expect(throws: StageRefusal.interaction(.notOpen)) { try await write("early", as: ann) }
        _ = try await rig.host.perform(.goLive, from: ann)
        _ = try await rig.host.perform(.ban(bob.id), from: ann)
        await #expect(throws: StageRefusal.rejected(.banned)) { try await write("hello") }
        await #expect(throws: StageRefusal.interaction(.moderatorSpeaks)) {
            try await rig.host.perform(.silence(ann.id, seconds: 9), from: HostRig.sender("root", .admin))
        }
        _ = try await rig.host.perform(.end, from: ann)
        await #expect(throws: StageRefusal.rejected(.ended)) { try await write("late", as: ann) }
    }

    @Test func `count hearts without a commit for each, and write them down at the end`() async throws {
        try await goLive()
        let follower = TestFollower()
        _ = try await rig.host.follow(as: nil, since: nil, follower)
        _ = try await rig.host.perform(.react(["heart": 1]), from: bob)
        await rig.host.tick()
        let commits = rig.store.commits.count
        for number in 0..<50 {
            _ = try await rig.host.perform(.react(["heart": 2]), from: HostRig.sender("v\(number)", .viewer))
        }
        #expect(rig.store.commits.count == commits)
        await rig.wait(.milliseconds(500))
        let told = follower.state.withLock { $0.messages.last?["reactions"]?["heart"]?["total"] }
        #expect(told == .number(101))
        _ = try await rig.host.perform(.end, from: ann)
        let again = try await restarted()
        let late = TestFollower()
        _ = try await again.follow(as: nil, since: nil, late)
        #expect(late.known["interaction"]?["reactions"]?["heart"]?["total"] == .number(101))
    }

    @Test func `close a poll in time, and tell its result then`() async throws {
        try await goLive()
        let follower = TestFollower()
        _ = try await rig.host.follow(as: nil, since: nil, follower)
        follower.forget()
        var draft = Poll.Draft(question: "Tea?", options: ["Yes", "No"])
        (draft.results, draft.seconds) = (.closed, 10)
        _ = try await rig.host.perform(.openPoll(draft), from: ann)
        for number in 0..<20 {
            _ = try await rig.host.perform(
                .vote(1, options: [1]), from: HostRig.sender("v\(number)", .viewer))
        }
        await rig.wait(.milliseconds(500))
        let told = follower.state.withLock { $0.messages.compactMap { $0["poll"] } }
        #expect(told.count == 3, "opened, one vote, and the rest together")
        #expect(told.last?["voters"] == .number(20) && votes(told.last) == [nil, nil])
        #expect(try await rig.host.poll(1, as: HostRig.sender("v3", .viewer))["vote"] == .array([.number(1)]))
        #expect(votes(try await rig.host.poll(1, as: HostRig.sender("v3", .viewer))) == [nil, nil])
        #expect(votes(try await rig.host.poll(1, as: ann)) == [.number(0), .number(20)])
        #expect(try await restarted().poll(1, as: nil)["voters"] == .number(20))
        // A store that takes nothing is not asked without end.
        rig.store.fail(with: .unavailable("full"))
        await rig.wait(.milliseconds(9_500))
        let now = rig.clock.value.elapsed
        #expect(try #require(await rig.host.deadline) > now)
        rig.store.fail(with: nil)
        await rig.wait(.seconds(1))
        let last = follower.state.withLock { $0.messages.compactMap { $0["poll"] }.last }
        #expect(votes(last) == [.number(0), .number(20)] && last?["closedAt"] != .null)
        _ = try await rig.host.perform(.openPoll(draft), from: ann)
        _ = try await rig.host.perform(.end, from: ann)
        #expect(try await rig.host.poll(2, as: nil)["closedAt"] != .null, "it ends with its stream")
    }

    @Test func `show hosts what is right in a quiz, and others when it is over`() async throws {
        try await goLive()
        var draft = Poll.Draft(question: "Tea?", options: ["Yes", "No"])
        draft.right = [1]
        _ = try await rig.host.perform(.openPoll(draft), from: ann)
        _ = try await rig.host.perform(.vote(1, options: [1]), from: bob)
        let seen = try await rig.host.poll(1, as: ann)
        #expect(seen["rightVoters"] == .number(1) && right(seen) == [.bool(false), .bool(true)])
        for host in [rig.host, try await restarted()] {
            for viewer in [nil, bob] {
                let poll = try await host.poll(1, as: viewer)
                #expect(
                    poll["quiz"] == .bool(true) && right(poll) == [nil, nil] && votes(poll) == [nil, nil])
                #expect(poll["rightVoters"] == nil && poll["winners"] == nil)
            }
        }
        _ = try await rig.host.perform(.closePoll(1), from: ann)
        for host in [rig.host, try await restarted()] {
            let poll = try await host.poll(1, as: nil)
            #expect(right(poll) == [.bool(false), .bool(true)] && votes(poll) == [.number(0), .number(1)])
            guard case .array(let winners) = poll["winners"] else { throw StageRefusal.unknownStream }
            #expect(winners.map { $0["participant"] } == [.string("bob")])
        }
    }

    private func right(_ poll: JSON?) -> [JSON?] {
        guard case .array(let options) = poll?["options"] else { return [] }
        return options.map { $0["right"] }
    }

    private func votes(_ poll: JSON?) -> [JSON?] {
        guard case .array(let options) = poll?["options"] else { return [] }
        return options.map { $0["votes"] }
    }

    @Test func `tell a sample of a flood, and how many more there were`() async throws {
        try await goLive()
        let follower = TestFollower()
        _ = try await rig.host.follow(as: nil, since: nil, follower)
        follower.forget()
        for number in 0..<200 {
            try await write("x", as: HostRig.sender("v\(number)", .viewer))
            if number % 20 == 0 { await rig.wait(.milliseconds(100)) }
        }
        try await write("I am the host", as: ann)
        await rig.wait(.milliseconds(100))
        let messages = follower.state.withLock { $0.messages }
        let told = messages.flatMap { texts(.object($0)) }
        let more = messages.reduce(0) {
            if case .number(let more) = $1["more"] { $0 + Int(more) } else { $0 }
        }
        #expect(told.count <= CommentDelivery.limit + 3 && told.contains("I am the host"))
        #expect((190...201).contains(told.count + more))
        #expect(texts(try await rig.host.comments(before: nil, after: nil, limit: 500)).count == 201)
    }
}

extension InteractionEdit {
    fileprivate init(slowMode: Int, words: [String]) {
        self.init()
        (slowModeSeconds, self.words) = (slowMode, words)
    }
}
