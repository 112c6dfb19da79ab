import Base
import Interaction
import Restream
import Stage
import Store
import Synchronization
import TestSupport
import Testing

@testable import Node

/// Whatever may happen to one stream, in any order, while its disk is slow, full, or both.
@Suite(.timeLimit(.minutes(10))) struct `A stream's host in a storm` {
    @Test(arguments: ChosenSeed.or(1...16), [false, true])
    func `has told all the same, and nothing that a restart would not know`(
        seed: UInt64, isPublished: Bool
    ) async throws {
        var storm = try Storm(seed: seed, isPublished: isPublished)
        try await storm.begin()
        for _ in 0..<6 {
            for _ in 0..<60 { try await storm.step() }
            await storm.calm()
            try await storm.check()
        }
        try await storm.end()
    }
}

extension StreamHost {
    /// What differs from what is durable while nothing is on its way to the store.
    fileprivate var differences: [String] {
        guard let kept = journal.kept else { return stage == nil ? [] : ["a stage that nobody made"] }
        var names: [String] = []
        if !journal.isSettled { names.append("the journal") }
        if stage?.record != kept.stage { names.append("the stage") }
        if durableRecord != kept.stage { names.append("the stage as others read it") }
        if interaction.committed != kept.interaction { names.append("the audience") }
        if interaction.machine.record != kept.interaction { names.append("the audience's rules") }
        if duels.committed != kept.duels { names.append("the duels") }
        if duels.side.duels != kept.duels { names.append("the duels' rules") }
        if restreams != kept.restreams { names.append("the targets") }
        if durableState.restreams != kept.restreams { names.append("the targets as others read them") }
        return names
    }
}

/// People, a disk and a clock that do what chance says, around one host.
private struct Storm {
    /// Somebody who follows the stream.
    private struct Socket {
        let sender: Stage.Sender?
        let end: TestFollower
        let number: UInt64

        var isClosed: Bool { end.state.withLock { $0.closed != nil } }

        /// Reads all that waits.
        func readOn() {
            end.state.withLock { state in
                guard state.isFull else { return }
                state.isFull = false
                // What is sent next is a snapshot, which may have the version that it knows already.
                state.version = 0
            }
        }
    }

    private let rig: WatchedHostRig
    private let isPublished: Bool
    private var random: SeededGenerator
    /// Two who may be hosts, and others.
    private let people: [Stage.Sender]
    /// Moderates, and is not there itself.
    private let root = HostRig.sender("root", .admin)
    private let shop: Stage.Sender
    private var sockets: [Socket] = []
    /// Those who went by themselves, and may come back with what they know.
    private var gone: [Socket] = []
    private var sessions: [(id: SessionID, sender: Stage.Sender?)] = []
    private var opponent: DuelOpponent
    private var isHeld = false
    private var isFailing = false
    /// Requests that wait for the disk.
    private var pending: [Task<Void, any Error>] = []
    /// Effects that what serves media has carried out.
    private var carriedOut = 0
    private var steps = 0

    private var host: StreamHost { rig.host }

    init(seed: UInt64, isPublished: Bool) throws {
        rig = try WatchedHostRig()
        random = SeededGenerator(seed: seed)
        self.isPublished = isPublished
        opponent = DuelOpponent(try #require(StreamID("quiz")))
        shop = Stage.Sender(id: try #require(ParticipantID("shop")), authority: .viewer, mayGiveGifts: true)
        people = [
            HostRig.ann, HostRig.sender("cleo", .host), HostRig.sender("bob", .speaker),
            HostRig.sender("dan", .viewer), HostRig.sender("eve", .viewer), HostRig.sender("fay", .viewer),
        ]
    }

    private mutating func chance(_ range: Range<Int>) -> Int { Int.random(in: range, using: &random) }

    private mutating func anybody() -> Stage.Sender {
        let index = chance(0..<people.count)
        return people[index]
    }

    private mutating func isHeads() -> Bool { chance(0..<2) == 0 }

    // MARK: What happens

    mutating func begin() async throws {
        guard !isPublished else { return }
        _ = try await host.create(host: HostRig.ann.id, name: "Ann", edit: StageEdit())
        await enter(HostRig.ann)
        _ = try await host.perform(.goLive, from: root)
    }

    mutating func step() async throws {
        steps += 1
        switch chance(0..<22) {
        case 0...5: await command()
        case 6...10: await interact()
        case 11, 12: await come()
        case 13: await go()
        case 14: if isHeld { await release() } else { hold() }
        case 15: fail(isFailing ? false : isHeads())
        case 16, 17: await rig.wait(.milliseconds(chance(1..<2_000)))
        case 18: try await programme()
        case 19: try await duel()
        case 20: try await restream()
        default: await happen()
        }
    }

    private mutating func command() async {
        let (sender, other) = (anybody(), anybody())
        var edit = StageEdit()
        edit.maxSpeakers = chance(1..<4)
        edit.title = .set("Title \(steps)")
        let commands: [(Stage.Command, Stage.Sender)] = [
            (.raiseHand, sender), (.lowerHand(sender.id), sender), (.invite(other.id), root),
            (.withdrawInvitation(other.id), root), (.accept, sender), (.acceptSoundOnly, sender),
            (.decline, sender), (.stepDown, sender), (.join, sender), (.leave, sender),
            (.moveHand(other.id, place: chance(1..<4)), root), (.holdHand(other.id, isHeads()), root),
            (.moveToViewers(other.id), root), (.remove(other.id), root), (.ban(other.id), root),
            (.unban(other.id), root), (.unban(sender.id), root), (.requestMute(other.id, .audio), root),
            (.setMuted(.video, isHeads()), sender), (.setPaused(isHeads()), sender), (.edit(edit), root),
        ]
        let index = chance(0..<commands.count)
        try? await host.submit(commands[index].0, from: commands[index].1)
    }

    private mutating func interact() async {
        let (sender, other) = (anybody(), anybody())
        let record = await host.audienceRecord
        let (comment, poll) = (chance(0..<record.lastNumber + 1), record.poll?.number ?? 1)
        var draft = Poll.Draft(question: "Tea \(steps)?", options: ["Yes", "No"])
        if isHeads() { draft.seconds = 10 }
        let card = StreamCard(title: "Card \(steps)", link: "https://shop.example/", picture: nil, data: nil)
        let gift = Gift.Draft(
            key: "g\(steps)", giver: other.id, name: other.name, kind: "rose", count: 1,
            price: 100 * chance(1..<9), currency: "EUR")
        var edit = InteractionEdit()
        edit.gifts = GiftCatalogue(
            currency: "EUR", kinds: [GiftCatalogue.Kind(id: "rose", name: "Rose", picture: "🌹", price: 100)])
        edit.reactions = isHeads() ? ["heart"] : ["heart", "fire"]
        let word = Interaction.Command.comment(key: "k\(steps)", text: "Comment \(steps)")
        let commands: [(Interaction.Command, Stage.Sender)] = [
            (word, sender), (word, sender), (word, root), (.react(["heart": chance(1..<9)]), sender),
            (.react(["fire": 1]), sender), (.openPoll(draft), root),
            (.vote(poll, options: [chance(0..<2)]), sender), (.closePoll(poll), root), (.pin(comment), root),
            (.unpin, root), (.delete(comment), root),
            (.silence(other.id, seconds: 5, isShadow: isHeads()), root), (.unsilence(other.id), root),
            (.edit(edit), root), (.give(gift), shop), (.give(gift), shop), (.showCard(card), root),
            (.removeCard, root),
        ]
        let index = chance(0..<commands.count)
        await host.perform(commands[index].0, from: commands[index].1) { _ in }
    }

    /// Somebody opens a page, whose peer connection comes with it or not, or comes back to one.
    private mutating func come() async {
        let sender = chance(0..<4) == 0 ? nil : anybody()
        guard chance(0..<3) > 0 else { return await enter(sender) }
        if isHeads(), let last = gone.popLast() {
            await follow(last.sender, since: last.end.version, last.end)
        } else {
            await follow(sender, since: nil, TestFollower())
        }
    }

    private mutating func follow(_ sender: Stage.Sender?, since: UInt64?, _ end: TestFollower) async {
        guard let number = try? await host.follow(as: sender, since: since, end) else { return }
        sockets.append(Socket(sender: sender, end: end, number: number))
    }

    private mutating func enter(_ sender: Stage.Sender?) async {
        guard await host.refusal(to: sender) == nil else { return }
        let id = SessionID(using: &random)
        await host.connect(sender, by: .session(id))
        sessions.append((id, sender))
    }

    private mutating func go() async {
        if isHeads(), !sockets.isEmpty {
            let index = chance(0..<sockets.count)
            let socket = sockets.remove(at: index)
            await host.unfollow(socket.number)
            socket.readOn()
            if !socket.isClosed { gone.append(socket) }
        } else if !sessions.isEmpty {
            let index = chance(0..<sessions.count)
            await host.disconnect(.session(sessions.remove(at: index).id))
        }
    }

    /// A source comes or goes, and a host begins; or where the stream was made, it seldom ends.
    private mutating func programme() async throws {
        if !sessions.contains(where: { $0.sender == HostRig.ann }) { await enter(HostRig.ann) }
        guard isPublished else {
            if chance(0..<40) == 0 { try? await host.submit(.end, from: root) }
            return
        }
        let index = chance(0..<2)
        let (host, publisher) = (rig.host, people[index])
        switch chance(0..<3) {
        case 0: await host.setSource(nil)
        case 1:
            await host.setSource(
                Stage.Source(owner: publisher.id, name: publisher.name, hasAudio: true, hasVideo: true))
        default:
            // No two programmes begin at the same moment.
            rig.pass(.milliseconds(1))
            try await request { _ = try await host.beginPublishing(publisher, canCreate: true) }
        }
    }

    private mutating func duel() async throws {
        let (host, root) = (rig.host, root)
        for message in opponent.takeMessages(at: rig.now) where chance(0..<4) > 0 {
            await host.receive(message)
        }
        opponent.receive(rig.orders, at: rig.now)
        if let id = opponent.side.duels.last?.id, chance(0..<3) > 0 {
            let answer: DuelSide.Command = chance(0..<6) == 0 ? .leave(id) : .accept(id)
            // It may be too late for that.
            try? opponent.apply(answer, at: rig.now)
        }
        guard await host.stage?.record.phase == .live else { return }
        var command = DuelSide.Command.invite(opponent.side.stream, DuelTerms())
        if let id = await host.latestDuel, chance(0..<3) == 0 { command = .leave(id) }
        try await request { [command] in
            _ = try await host.perform(command, from: root, isOpponentLive: true)
        }
    }

    private mutating func restream() async throws {
        let (host, key) = (rig.host, Secret("key \(steps)"))
        guard let record = await host.stage?.record, record.phase != .ended else { return }
        let targets = await host.restreams.targets
        if let last = targets.last, chance(0..<3) == 0 {
            try await request { try await host.removeRestream(last.number) }
        } else if targets.count < RestreamList.limit {
            let address = try RestreamAddress("rtmp://live.example/app")
            try await request { _ = try await host.addRestream(to: address, key: key) }
        }
    }

    /// What others tell the host.
    private mutating func happen() async {
        switch chance(0..<5) {
        case 0: await host.setRecording(isHeads())
        case 1: await host.setKept(isHeads())
        case 2:
            await host.setPreview(
                StreamPreview(
                    width: 360, height: 203, capturedAt: WallTime(milliseconds: Int64(steps)), blurHash: "L",
                    url: nil))
        case 3: sockets.randomElement(using: &random)?.end.state.withLock { $0.isFull = true }
        default:
            guard let session = sessions.randomElement(using: &random) else { break }
            await host.noteWeakUplink(of: .session(session.id))
        }
        await carryOut()
    }

    /// Ends the sessions of those who were sent away, as what serves media does.
    private mutating func carryOut() async {
        let effects = rig.effects.value.dropFirst(carriedOut)
        carriedOut += effects.count
        for effect in effects {
            var ended: [SessionID] = []
            switch effect {
            case .expel(let id, _): ended = sessions.filter { $0.sender?.id == id }.map(\.id)
            case .close: ended = sessions.map(\.id)
            case .requestMute, .showMute, .setProgramme, .retire: break
            }
            for id in ended { await host.disconnect(.session(id)) }
            sessions.removeAll { ended.contains($0.id) }
        }
    }

    // MARK: The disk

    private mutating func hold() {
        rig.store.hold()
        isHeld = true
    }

    private mutating func fail(_ isFailing: Bool) {
        rig.store.fail(with: isFailing ? .unavailable("full") : nil)
        self.isFailing = isFailing
    }

    private mutating func release() async {
        rig.store.release()
        isHeld = false
        for request in pending { _ = await request.result }
        pending = []
        try? await host.settled()
    }

    /// Makes a request that the host looks at the clock for, and has its answer unless the disk is slow.
    private mutating func request(_ body: @escaping @Sendable () async throws -> Void) async throws {
        let answer = try await rig.decide(body)
        if isHeld {
            pending.append(answer)
        } else {
            _ = await answer.result
        }
    }

    // MARK: What is so when it is over

    /// The disk works, everybody reads, and nothing happens for a while.
    mutating func calm() async {
        fail(false)
        await release()
        await carryOut()
        for socket in sockets { socket.readOn() }
        for socket in sockets where socket.isClosed { await host.unfollow(socket.number) }
        sockets.removeAll { $0.isClosed }
        for _ in 0..<3 { await rig.wait(.milliseconds(500)) }
        await rig.wait(.zero)
    }

    /// How many people watch: each once, and of the strangers as many as can be told apart.
    private func viewers(of record: StageRecord) -> Int {
        let senders = sockets.map(\.sender) + sessions.map(\.sender)
        let people = Set(senders.compactMap { $0?.id }).filter { !record.isOnStage($0) }
        let strangers = (sockets.count { $0.sender == nil }, sessions.count { $0.sender == nil })
        return people.count + max(strangers.0, strangers.1)
    }

    /// What a follower knows of the stage.
    private static func stage(_ end: TestFollower) -> JSON {
        var known = end.known
        known["interaction"] = nil
        return known
    }

    func check() async throws {
        let differences = await host.differences
        #expect(differences == [])
        if let deadline = await host.deadline {
            #expect(deadline > rig.now.elapsed, "it is not awake for nothing")
        }
        for socket in sockets {
            guard let sender = socket.sender, let answer = try? await host.look(as: sender) else { continue }
            #expect(socket.end.state.withLock { $0.you } == answer.you.json, "\(sender.id)")
        }
        let newcomer = TestFollower()
        let snapshot = await host.snapshot
        let told = rig.directory[host.id]
        let number = try await host.follow(as: nil, since: nil, newcomer)
        for socket in sockets { #expect(Self.stage(socket.end) == Self.stage(newcomer), "\(socket.number)") }
        await host.unfollow(number)
        guard let kept = await host.kept else { return }
        #expect(told == snapshot)
        #expect(snapshot.viewers + snapshot.waiting == viewers(of: kept.stage))
        // A restart, as if the process had died here.
        let again = try await rig.restarted()
        let read = await again.kept
        #expect(read == kept)
        let other = TestFollower()
        _ = try await again.follow(as: nil, since: nil, other)
        for name in ["comments", "pinned", "settings", "poll", "card", "gifts", "ranks"] {
            let (one, two) = (newcomer.known["interaction"]?[name], other.known["interaction"]?[name])
            #expect(one == two, "\(name)")
        }
    }

    /// Ends the stream, and leaves nothing behind.
    mutating func end() async throws {
        try? await host.submit(.end, from: root)
        await calm()
        await host.setSource(nil)
        await host.setRecording(false)
        await host.setKept(false)
        for socket in sockets { await host.unfollow(socket.number) }
        for session in sessions { await host.disconnect(.session(session.id)) }
        await rig.wait(Stage.presenceGrace)
        let differences = await host.differences
        #expect(differences == [])
        let isMade = await host.committed != nil
        let idle = await host.closeIfIdle()
        #expect(idle == (isMade ? StreamHost.IdleStream.ended : .unmade))
    }
}
