import Base
import TestSupport
import Testing

@testable import Interaction

/// A duel from the invitation to the end, with nothing in its way.
@Suite struct Duels {
    private var rig = DuelRig()
    private let ann = DuelRig.ann
    private let bob = DuelRig.bob

    private mutating func begin(_ terms: DuelTerms = DuelRig.terms()) throws -> DuelID {
        let id = try rig.apply(.invite(bob, terms), on: ann).id
        rig.deliver()
        try rig.apply(.accept(id), on: bob)
        rig.deliver()
        return id
    }

    @Test mutating func `begin for both at the same time, and count what comes from then on`() throws {
        rig[ann].situation.tally = DuelTally(gifts: 500, reactions: 40)
        _ = try begin()
        #expect(try rig.duel(ann).startsAt == rig.duel(bob).startsAt)
        #expect(rig.phase(ann) == .countdown && rig.phase(bob) == .countdown)
        rig[ann].situation.tally.reactions += 5
        rig.wait(.seconds(3))
        #expect(rig.phase(ann) == .running)
        rig[ann].situation.tally.gifts += 100
        rig[bob].situation.tally.reactions += 7
        rig.wait(.seconds(2))
        #expect(try rig[bob].side.score(against: rig.duel(bob)) == 100)
        #expect(try rig[ann].side.score(against: rig.duel(ann)) == 7)
        rig.wait(.seconds(28))
        #expect(try rig.duel(ann).result == .decided(winner: ann, by: .score))
        #expect(try rig.duel(bob).result == rig.duel(ann).result)
        #expect(try rig.duel(bob).sides == rig.duel(ann).sides)
        #expect(rig.phase(bob) == .penalty)
        rig.wait(.seconds(10))
        #expect(rig.phase(ann) == .over && rig.phase(bob) == .over)
    }

    @Test mutating func `weigh gifts and taps by their terms`() throws {
        var terms = DuelRig.terms(penalty: 0)
        terms.giftWeight = 0
        terms.reactionWeight = 10
        _ = try begin(terms)
        rig.wait(.seconds(4))
        rig[ann].situation.tally = DuelTally(gifts: 10_000, reactions: 1)
        rig[bob].situation.tally = DuelTally(gifts: 0, reactions: 2)
        rig.wait(.seconds(30))
        #expect(try rig.duel(ann).sides.from.score == 10)
        #expect(try rig.duel(ann).result == .decided(winner: bob, by: .score))
        #expect(rig.phase(ann) == .over, "without a penalty")
    }

    @Test mutating func `end in a draw at equal scores, without a penalty`() throws {
        _ = try begin()
        rig.wait(.seconds(34))
        #expect(try rig.duel(ann).result == .decided(winner: nil, by: .score))
        #expect(rig.phase(ann) == .over && rig.phase(bob) == .over)
    }

    @Test mutating func `are over unanswered after ten seconds`() throws {
        try rig.apply(.invite(bob, DuelRig.terms()), on: ann)
        rig.deliver()
        #expect(rig.phase(bob) == .invited)
        rig.wait(.seconds(12))
        #expect(try rig.duel(ann).result == .calledOff(.expired))
        #expect(try rig.duel(bob).result == .calledOff(.expired))
        let id = try rig.duel(bob).id
        #expect(throws: Interaction.Refusal.duelOver) { try rig.apply(.accept(id), on: bob) }
    }

    @Test mutating func `are declined and cancelled, once and again`() throws {
        var id = try rig.apply(.invite(bob, DuelRig.terms()), on: ann).id
        rig.deliver()
        try rig.apply(.decline(id), on: bob)
        try rig.apply(.decline(id), on: bob)
        rig.deliver()
        #expect(try rig.duel(ann).result == .calledOff(.declined))
        rig.wait(.seconds(Duel.declineTime), step: .seconds(10))
        id = try rig.apply(.invite(bob, DuelRig.terms()), on: ann).id
        rig.deliver()
        try rig.apply(.cancel(id), on: ann)
        try rig.apply(.cancel(id), on: ann)
        rig.deliver()
        #expect(try rig.duel(bob).result == .calledOff(.cancelled))
    }

    @Test mutating func `are lost by whoever leaves, or is gone for too long, or ends the stream`() throws {
        var id = try begin()
        rig.wait(.seconds(10))
        try rig.apply(.leave(id), on: bob)
        rig.deliver()
        #expect(try rig.duel(ann).result == .decided(winner: ann, by: .left))
        #expect(rig.phase(ann) == .over && rig.phase(bob) == .over)

        rig = DuelRig()
        _ = try begin(DuelRig.terms(seconds: 60))
        rig[ann].situation.isHostThere = false
        rig.wait(.seconds(15))
        rig[ann].situation.isHostThere = true
        rig.wait(.seconds(1))
        #expect(rig.phase(ann) == .running, "who comes back in time goes on")
        rig[ann].situation.isHostThere = false
        rig.wait(.seconds(22))
        #expect(try rig.duel(bob).result == .decided(winner: bob, by: .hostGone))

        rig = DuelRig()
        id = try begin()
        rig.wait(.seconds(5))
        rig.advance(ann, isLast: true)
        rig.deliver()
        #expect(try rig.duel(bob).result == .decided(winner: bob, by: .streamEnded))
        #expect(try rig.duel(ann).id == id)
    }

    @Test mutating func `that are left during the countdown are called off`() throws {
        let id = try begin()
        try rig.apply(.leave(id), on: ann)
        rig.deliver()
        #expect(try rig.duel(bob).result == .calledOff(.left))
        rig.wait(.seconds(40))
        #expect(try rig.duel(ann).result == .calledOff(.left))
    }

    @Test mutating func `come again, but not at the wish of who lost before the penalty is over`() throws {
        let id = try begin()
        rig.wait(.seconds(4))
        rig[bob].situation.tally.reactions = 3
        rig.wait(.seconds(30))
        #expect(throws: Interaction.Refusal.penalty) { try rig.apply(.rematch(id), on: ann) }
        let next = try rig.apply(.rematch(id), on: bob)
        #expect(next.terms == DuelRig.terms() && next.id.inviter == bob)
        rig.deliver()
        #expect(rig.phase(ann) == .invited)
        try rig.apply(.accept(next.id), on: ann)
        rig.wait(.seconds(4))
        #expect(rig.phase(ann) == .running && rig.phase(bob) == .running)
        #expect(try rig.duel(bob).points(rig[bob].situation.tally) == 0)
    }

    @Test mutating func `end their penalty early for both when one parts`() throws {
        let id = try begin(DuelRig.terms(penalty: 60))
        rig.wait(.seconds(4))
        rig[bob].situation.tally.reactions = 3
        rig.wait(.seconds(30))
        try rig.apply(.leave(id), on: ann)
        rig.deliver()
        #expect(rig.phase(ann) == .over && rig.phase(bob) == .over)
    }

    @Test mutating func `are refused in words that fit`() throws {
        #expect(throws: Interaction.Refusal.invalid("to")) {
            try rig.apply(.invite(ann, DuelTerms()), on: ann)
        }
        for (terms, field) in [
            (DuelRig.terms(seconds: 29), "duelSeconds"), (DuelRig.terms(seconds: 901), "duelSeconds"),
            (DuelRig.terms(penalty: -1), "penaltySeconds"), (DuelRig.terms(penalty: 601), "penaltySeconds"),
        ] {
            #expect(throws: Interaction.Refusal.invalid(field)) {
                try rig.apply(.invite(bob, terms), on: ann)
            }
        }
        let unknown = DuelID(inviter: ann, number: 1)
        for command in [
            DuelSide.Command.accept(unknown), .decline(unknown), .cancel(unknown), .leave(unknown),
            .rematch(unknown),
        ] {
            #expect(throws: Interaction.Refusal.unknownDuel) { try rig.apply(command, on: ann) }
        }
        rig[ann].situation.isHostThere = false
        #expect(throws: Interaction.Refusal.notLive) { try rig.apply(.invite(bob, DuelTerms()), on: ann) }
        rig[ann].situation.isHostThere = true
        let id = try rig.apply(.invite(bob, DuelTerms()), on: ann).id
        rig.deliver()
        #expect(throws: Interaction.Refusal.inDuel) { try rig.apply(.invite(bob, DuelTerms()), on: ann) }
        #expect(throws: Interaction.Refusal.inDuel) { try rig.apply(.rematch(id), on: ann) }
        #expect(throws: Interaction.Refusal.notInvited) { try rig.apply(.accept(id), on: ann) }
        #expect(throws: Interaction.Refusal.notInvited) { try rig.apply(.cancel(id), on: bob) }
    }

    @Test mutating func `are answered for who is busy or not live, and nothing is remembered of it`() throws {
        rig[bob].situation.isLive = false
        try rig.apply(.invite(bob, DuelRig.terms()), on: ann)
        rig.deliver()
        #expect(try rig.duel(ann).result == .calledOff(.notLive))
        rig[bob].situation.isLive = true
        try rig.apply(.invite(DuelRig.id("eve"), DuelRig.terms()), on: bob)
        rig.forgetMessages()
        try rig.apply(.invite(bob, DuelRig.terms()), on: ann)
        rig.deliver()
        #expect(try rig.duel(ann).result == .calledOff(.busy))
        #expect(rig[bob].durable.count == 1)
    }

    @Test mutating func `are not offered to a host who takes no invitations`() throws {
        rig[bob].situation.takesInvitations = false
        try rig.apply(.invite(bob, DuelRig.terms()), on: ann)
        rig.deliver()
        #expect(try rig.duel(ann).result == .calledOff(.duelsOff))
        #expect(rig[bob].durable.isEmpty, "the host is not asked, and nothing is remembered")
        // The host's own invitations are another matter.
        try rig.apply(.invite(ann, DuelRig.terms()), on: bob)
        rig.deliver()
        #expect(rig.phase(ann) == .invited)
    }

    @Test mutating func `are not offered again for ten minutes to who declined`() throws {
        func invite() throws -> DuelID {
            let id = try rig.apply(.invite(bob, DuelRig.terms()), on: ann).id
            rig.deliver()
            return id
        }
        try rig.apply(.decline(try invite()), on: bob)
        rig.deliver()
        rig.wait(.seconds(Duel.declineTime - 20), step: .seconds(10))
        _ = try invite()
        #expect(try rig.duel(ann).result == .calledOff(.declinedBefore))
        #expect(rig[bob].durable.count == 1)
        rig.wait(.seconds(20), step: .seconds(10))
        let next = try invite()
        #expect(rig.phase(bob) == .invited, "then it is asked again")
        try rig.apply(.decline(next), on: bob)
        rig.deliver()
        // Who asks the other after saying no has changed their mind.
        let own = try rig.apply(.invite(ann, DuelRig.terms()), on: bob).id
        rig.deliver()
        try rig.apply(.cancel(own), on: bob)
        rig.deliver()
        _ = try invite()
        #expect(rig.phase(bob) == .invited)
    }

    @Test mutating func `need the same gate on both sides, as long as they go on`() throws {
        rig[ann].situation.tier = "gold"
        try rig.apply(.invite(bob, DuelRig.terms()), on: ann)
        rig.deliver()
        #expect(try rig.duel(ann).result == .calledOff(.otherGate))
        #expect(rig[bob].durable.isEmpty)
        rig[bob].situation.tier = "gold"
        _ = try begin()
        rig.wait(.seconds(5))
        #expect(rig.phase(ann) == .running && rig.phase(bob) == .running)
        #expect(rig[bob].side.deadline(rig[bob].durable, rig[bob].situation, at: rig.now(bob)) != .zero)
        rig[bob].situation.tier = nil
        let due = rig[bob].side.deadline(rig[bob].durable, rig[bob].situation, at: rig.now(bob))
        #expect(try #require(due) <= rig.elapsed, "it is looked at at once")
        rig.advance(bob)
        rig.deliver()
        #expect(try rig.duel(ann).result == .decided(winner: ann, by: .left), "who opens the gate leaves")
        #expect(rig.phase(ann) == .over && rig.phase(bob) == .over)
    }

    @Test mutating func `part in the penalty when a gate changes`() throws {
        _ = try begin(DuelRig.terms(penalty: 60))
        rig.wait(.seconds(4))
        rig[bob].situation.tally.reactions = 3
        rig.wait(.seconds(30))
        #expect(rig.phase(ann) == .penalty)
        rig[ann].situation.tier = "gold"
        rig.wait(.milliseconds(100))
        #expect(rig.phase(ann) == .over && rig.phase(bob) == .over)
        #expect(rig[ann].side.deadline(rig[ann].durable, rig[ann].situation, at: rig.now(ann)) != rig.elapsed)
        #expect(try rig.duel(ann).result == .decided(winner: bob, by: .score), "the result stays")
    }

    /// - Parameter skew: how far one clock is ahead of the other, in milliseconds.
    @Test(arguments: [-200, -50, 0, 120, 200])
    mutating func `start no farther apart than the clocks are, whenever each looks`(skew: Int) throws {
        rig[bob].skew = Int64(skew)
        _ = try begin()
        var started: [StreamID: MonotonicTime] = [:]
        for _ in 0..<5_000 where started.count < 2 {
            let due = [ann, bob].compactMap { stream in
                rig[stream].side.deadline(rig[stream].durable, rig[stream].situation, at: rig.now(stream))
            }
            rig.elapsed = max(try #require(due.min()), rig.elapsed + .milliseconds(1))
            for stream in [ann, bob] {
                rig.advance(stream)
                if started[stream] == nil, rig.phase(stream) == .running { started[stream] = rig.elapsed }
            }
            rig.deliver()
        }
        let (one, other) = (try #require(started[ann]), try #require(started[bob]))
        #expect(abs(one.nanoseconds(since: other)) <= Int64(abs(skew) + 1) * 1_000_000)
        #expect(rig[ann].durable.last?.base != nil && rig[bob].durable.last?.base != nil)
    }

    @Test mutating func `are offered three times at once, and then every ten seconds`() throws {
        for _ in 0..<3 {
            let id = try rig.apply(.invite(bob, DuelRig.terms()), on: ann).id
            try rig.apply(.cancel(id), on: ann)
        }
        #expect(throws: Interaction.Refusal.tooFast(wait: 10)) {
            try rig.apply(.invite(bob, DuelRig.terms()), on: ann)
        }
        rig.wait(.seconds(10))
        try rig.apply(.invite(bob, DuelRig.terms()), on: ann)
        rig.deliver()
        #expect(rig.phase(bob) == .invited)
    }

    @Test mutating func `take no word of a third stream, nor one that cannot be`() throws {
        let id = try begin()
        let before = rig[ann].durable
        var forged = Duel.Statement(stream: DuelRig.id("eve"))
        forged.revision = 99
        forged.end = .left
        forged.endedAt = rig.now(ann).wall
        func message(_ statement: Duel.Statement) -> DuelMessage {
            DuelMessage(
                id: id, to: ann, terms: DuelRig.terms(), invitedAt: before[0].invitedAt, statement: statement,
                known: 0, isAnswerWanted: true, score: 0, sentAt: rig.now(ann).wall)
        }
        rig.receive(message(forged))
        var absurd = before[0].other
        absurd.revision = 99
        // Only the inviter says when it begins.
        absurd.startsAt = rig.now(ann).wall
        rig.receive(message(absurd))
        absurd.startsAt = nil
        absurd.score = -1
        rig.receive(message(absurd))
        absurd.score = nil
        absurd.tier = String(repeating: "x", count: 65)
        rig.receive(message(absurd))
        #expect(rig[ann].durable == before)
    }

    @Test(arguments: ["", ".", "a.", ".1", "a.0", "a.-1", "a.01", "a.1.2", "a b.1", "a.99999999999999999999"])
    func `have no names like these`(text: String) {
        #expect(DuelID(text) == nil)
    }

    @Test func `are called by their stream and a number`() throws {
        let id = try #require(DuelID("talk.1893528000000"))
        #expect(id.inviter.description == "talk" && id.number == 1_893_528_000_000)
        #expect(DuelID(id.description) == id)
    }

    @Test func `count no more than JSON has whole numbers for`() {
        var terms = DuelTerms()
        terms.giftWeight = 1_000
        let highest = 9_007_199_254_740_991
        #expect(DuelTally(gifts: .max, reactions: .max).points(since: DuelTally(), by: terms) == highest)
        #expect(DuelTally(gifts: .max).points(since: DuelTally(gifts: .min), by: terms) == 0)
        #expect(DuelTally(gifts: 1).points(since: DuelTally(gifts: 5), by: terms) == 0)
    }
}
