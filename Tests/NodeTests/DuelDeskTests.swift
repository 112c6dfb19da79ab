import Base
import Interaction
import Testing

@testable import Node

/// Both desks of a duel, of which messages reach each other at once.
@Suite struct `The desk of a stream's duels` {
    /// One stream's desk, with what its store has.
    private struct Place {
        var desk: DuelDesk
        var durable: [Duel] = []
        var situation: DuelSide.Situation

        init(_ stream: StreamID, name: String) {
            desk = DuelDesk(of: stream, restoring: [])
            situation = DuelSide.Situation(
                isLive: true, isHostThere: true, name: name, tally: DuelTally())
        }

        mutating func keep(_ duel: Duel?) {
            guard let duel else { return }
            DuelSide.keep(duel, in: &durable)
            desk.conclude(durable)
        }

        /// As a restart finds it.
        mutating func restart(_ stream: StreamID) { desk = DuelDesk(of: stream, restoring: durable) }
    }

    private let talk: StreamID
    private let quiz: StreamID
    private var inviter: Place
    private var invited: Place
    private var elapsed = MonotonicTime.zero + .seconds(100)

    init() throws {
        talk = try #require(StreamID("talk"))
        quiz = try #require(StreamID("quiz"))
        inviter = Place(talk, name: "Ann")
        invited = Place(quiz, name: "Cleo")
    }

    private var now: Moment {
        let milliseconds = 1_800_000_000_000 + elapsed.nanoseconds(since: .zero) / 1_000_000
        return Moment(elapsed: elapsed, wall: WallTime(milliseconds: milliseconds))
    }

    private mutating func wait(_ interval: Duration) { elapsed = elapsed + interval }

    /// Does what is due on both sides, and hands over what they say.
    private mutating func settle() {
        let now = now
        for _ in 0..<20 {
            let due = inviter.desk.advance(to: now, inviter.situation)
            inviter.keep(due)
            let dueThere = invited.desk.advance(to: now, invited.situation)
            invited.keep(dueThere)
            let there = inviter.desk.takeMessages(inviter.situation, at: now)
            let back = invited.desk.takeMessages(invited.situation, at: now)
            guard !there.isEmpty || !back.isEmpty else { return }
            for message in there {
                let news = invited.desk.receive(message, invited.situation, at: now)
                invited.keep(news.change)
            }
            for message in back {
                let news = inviter.desk.receive(message, inviter.situation, at: now)
                inviter.keep(news.change)
            }
        }
    }

    private mutating func invite() throws -> DuelID {
        var terms = DuelTerms()
        terms.seconds = 30
        terms.penaltySeconds = 10
        let duel = try inviter.desk.apply(.invite(quiz, terms), inviter.situation, at: now)
        inviter.keep(duel)
        settle()
        return duel.id
    }

    /// An accepted duel, in its countdown.
    private mutating func begin() throws -> DuelID {
        let id = try invite()
        try accept(id)
        settle()
        return id
    }

    private mutating func accept(_ id: DuelID) throws {
        let duel = try invited.desk.apply(.accept(id), invited.situation, at: now)
        invited.keep(duel)
    }

    /// Whose host is shown from now on, in a word.
    private mutating func takeOpponent() -> String {
        switch inviter.desk.takeOpponent(at: now.wall) {
        case nil: "as before"
        case .some(nil): "nobody"
        case .some(let stream?): stream.description
        }
    }

    private mutating func takeNews() -> JSON? { inviter.desk.takeNews(inviter.situation.tally, at: now) }

    @Test mutating func `tells followers nothing before both hosts have agreed`() throws {
        let id = try invite()
        let early = takeNews()
        #expect(early == nil)
        let tally = inviter.situation.tally
        let hidden = inviter.desk.json(of: id, tally, forModerator: false, at: now.wall)
        #expect(hidden == nil)
        let known = inviter.desk.json(of: id, tally, forModerator: true, at: now.wall)
        #expect(known?["state"] == .string("invited"))
        try accept(id)
        settle()
        let news = takeNews()
        #expect(news?["state"] == .string("countdown"))
        #expect(news?["from"]?["name"] == .string("Ann"))
        #expect(news?["to"]?["name"] == .string("Cleo"))
        let shown = inviter.desk.json(of: id, tally, forModerator: false, at: now.wall)
        #expect(shown?["state"] == .string("countdown"))
    }

    @Test mutating func `tells the same news once`() throws {
        _ = try begin()
        let first = takeNews()
        #expect(first != nil)
        let second = takeNews()
        #expect(second == nil)
    }

    @Test mutating func `tells scores twice a second at most, and phases at once`() throws {
        _ = try begin()
        _ = takeNews()
        wait(.seconds(3))
        settle()
        let running = takeNews()
        #expect(running?["state"] == .string("running"))
        inviter.situation.tally.reactions = 4
        settle()
        let atOnce = takeNews()
        #expect(atOnce == nil)
        wait(.milliseconds(499))
        let early = takeNews()
        #expect(early == nil)
        let deadline = inviter.desk.deadline(inviter.situation, at: now)
        let next = elapsed + .milliseconds(1)
        #expect(deadline == next)
        wait(.milliseconds(1))
        let scores = takeNews()
        #expect(scores?["from"]?["score"] == .number(4))
        inviter.situation.tally.reactions = 5
        wait(.milliseconds(10))
        let last = inviter.desk.advance(to: now, inviter.situation, isLast: true)
        inviter.keep(last)
        // The end does not wait for the next scores.
        let end = takeNews()
        #expect(end != nil)
        #expect(end?["from"]?["score"] == .number(5))
    }

    @Test mutating func `shows the opponent from the countdown to the end of the penalty`() throws {
        let id = try invite()
        let before = takeOpponent()
        #expect(before == "as before")
        try accept(id)
        settle()
        let shown = takeOpponent()
        #expect(shown == "quiz")
        let again = takeOpponent()
        #expect(again == "as before")
        wait(.seconds(3))
        settle()
        inviter.situation.tally.reactions = 1
        wait(.seconds(30))
        settle()
        let inPenalty = takeOpponent()
        #expect(inPenalty == "as before")
        #expect(inviter.desk.committed.last?.phase(at: now.wall) == .penalty)
        wait(.seconds(10))
        let over = takeOpponent()
        #expect(over == "nobody")
    }

    @Test mutating func `shows the result for ten seconds, and then that there is nothing`() throws {
        let id = try begin()
        wait(.seconds(3))
        settle()
        _ = takeNews()
        inviter.situation.tally.reactions = 3
        invited.situation.tally.reactions = 1
        wait(.seconds(30))
        settle()
        let penalty = takeNews()
        #expect(penalty?["state"] == .string("penalty"))
        #expect(penalty?["winner"] == .string("talk"))
        #expect(penalty?["reason"] == .string("score"))
        wait(.seconds(10))
        let over = takeNews()
        #expect(over?["state"] == .string("over"))
        wait(.milliseconds(9_999))
        let still = takeNews()
        #expect(still == nil)
        wait(.milliseconds(1))
        let nothing = takeNews()
        #expect(nothing == .some(.null))
        let more = takeNews()
        #expect(more == nil)
        // Who asks for it by its ID is still told.
        let known = inviter.desk.json(of: id, inviter.situation.tally, forModerator: false, at: now.wall)
        #expect(known?["winner"] == .string("talk"))
    }

    @Test mutating func `tells the host of an invitation, and that it is off, each once`() throws {
        let id = try invite()
        let tally = invited.situation.tally
        let open = invited.desk.takeInvitation(tally, at: now.wall)
        #expect(open?.contains(#""state":"invited""#) == true)
        #expect(open?.contains(id.description) == true)
        let again = invited.desk.takeInvitation(tally, at: now.wall)
        #expect(again == nil)
        // Who connects meanwhile is told, too.
        #expect(invited.desk.invitation(tally, at: now.wall) != nil)
        let cancelled = try inviter.desk.apply(.cancel(id), inviter.situation, at: now)
        inviter.keep(cancelled)
        settle()
        let off = invited.desk.takeInvitation(tally, at: now.wall)
        #expect(off?.contains(#""reason":"cancelled""#) == true)
        let last = invited.desk.takeInvitation(tally, at: now.wall)
        #expect(last == nil)
        #expect(invited.desk.invitation(tally, at: now.wall) == nil)
    }

    @Test mutating func `tells nobody after a restart of what was called off before`() throws {
        let id = try invite()
        let declined = try invited.desk.apply(.decline(id), invited.situation, at: now)
        invited.keep(declined)
        invited.restart(quiz)
        let off = invited.desk.takeInvitation(invited.situation.tally, at: now.wall)
        #expect(off == nil)
        let news = invited.desk.takeNews(invited.situation.tally, at: now)
        #expect(news == nil)
    }

    @Test mutating func `tells of an invitation that is open after a restart`() throws {
        _ = try invite()
        invited.restart(quiz)
        let open = invited.desk.takeInvitation(invited.situation.tally, at: now.wall)
        #expect(open?.contains(#""state":"invited""#) == true)
    }

    @Test mutating func `nothing is announced before it is durable`() throws {
        let id = try invite()
        _ = try invited.desk.apply(.accept(id), invited.situation, at: now)
        #expect(invited.desk.committed.last?.own.hasAccepted == false)
        let messages = invited.desk.takeMessages(invited.situation, at: now)
        let acceptances = messages.filter(\.statement.hasAccepted)
        #expect(acceptances.isEmpty)
        invited.desk.revert(to: invited.durable, at: elapsed)
        #expect(invited.desk.side.duels == invited.durable)
        // It can be accepted again.
        try accept(id)
        #expect(invited.desk.committed.last?.own.hasAccepted == true)
    }

    @Test mutating func `a decision that the store refused is tried again after a second`() throws {
        _ = try invite()
        // Nobody answers in time.
        wait(.seconds(11))
        let due = inviter.desk.advance(to: now, inviter.situation)
        #expect(due?.phase(at: now.wall) == .off)
        inviter.desk.revert(to: inviter.durable, at: elapsed)
        let deadline = inviter.desk.deadline(inviter.situation, at: now)
        let next = elapsed + .seconds(1)
        #expect(deadline == next)
        wait(.milliseconds(999))
        let early = inviter.desk.advance(to: now, inviter.situation)
        #expect(early == nil)
        var atTheEnd = inviter.desk
        let last = atTheEnd.advance(to: now, inviter.situation, isLast: true)
        #expect(last != nil)
        wait(.milliseconds(1))
        let again = inviter.desk.advance(to: now, inviter.situation)
        #expect(again?.phase(at: now.wall) == .off)
        inviter.keep(again)
        // Now that it is durable the other side is told.
        let messages = inviter.desk.takeMessages(inviter.situation, at: now)
        #expect(messages.map(\.statement.end) == [.expired])
    }

    @Test mutating func `both sides show the same duel`() throws {
        let id = try begin()
        wait(.seconds(3))
        settle()
        inviter.situation.tally = DuelTally(gifts: 7, reactions: 2)
        invited.situation.tally.reactions = 4
        wait(.seconds(30))
        settle()
        let own = inviter.desk.json(of: id, inviter.situation.tally, forModerator: false, at: now.wall)
        let other = invited.desk.json(of: id, invited.situation.tally, forModerator: false, at: now.wall)
        #expect(own == other)
        #expect(own?["from"]?["score"] == .number(9))
        #expect(own?["to"]?["score"] == .number(4))
        #expect(own?["winner"] == .string("talk"))
    }
}
