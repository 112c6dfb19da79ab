import Base

/// A duel as one of its two streams knows it: its own word, the other's last word, and what follows from both.
///
/// Each side decides on its own statement alone, which only ever grows; what became of the duel is computed from the
/// two statements in the same way on both sides. So they agree as soon as each has the other's last one, whatever got
/// lost, came twice or came late before.
package struct Duel: Equatable, Sendable, Codable {
    /// Why a side ended it before its time.
    package enum End: String, Sendable, Codable, CaseIterable {
        case declined
        /// Whoever is invited is in another duel.
        case busy
        /// Whoever is invited is not live, or its host is not there.
        case notLive = "not-live"
        /// Whoever is invited takes no invitations.
        case duelsOff = "duels-off"
        /// Whoever is invited declined one of the same stream a short while ago.
        case declinedBefore = "declined-before"
        /// Not both streams have the same gate, or one of them changed it.
        case otherGate = "other-gate"
        case expired
        case cancelled
        case left
        case hostGone = "host-gone"
        case streamEnded = "stream-ended"
    }

    /// What one side says.
    package struct Statement: Equatable, Sendable, Codable {
        /// Whose it is.
        package let stream: StreamID
        /// The host's name, for people.
        package var name: String?
        /// What its gate takes; nil where it has none.
        package internal(set) var tier: String?
        /// Grows with each change: of two statements the higher one counts; below 0 before the first.
        package internal(set) var revision = -1
        /// Of who is invited.
        package internal(set) var hasAccepted = false
        /// The inviter alone says when it begins.
        package internal(set) var startsAt: WallTime?
        /// Nil while it goes on.
        package internal(set) var end: End?
        /// By its own clock; there with `end`.
        package internal(set) var endedAt: WallTime?
        /// Its own, once it grows no more.
        package internal(set) var score: Int?
        /// Whether it does not stay for the penalty.
        package internal(set) var isClosed = false

        /// Whether nothing that decides changes any more.
        var isFinal: Bool { end != nil || score != nil }
    }

    /// What became of it.
    package enum Result: Equatable, Sendable {
        /// It never began.
        case calledOff(End)
        /// Nil for a draw.
        case decided(winner: StreamID?, by: Reason)
    }

    /// What decided it.
    package enum Reason: String, Sendable, CaseIterable {
        case score, left
        case hostGone = "host-gone"
        case streamEnded = "stream-ended"
    }

    /// How far it is.
    package enum Phase: String, Sendable, CaseIterable {
        case invited, off, countdown, running
        /// The time is over, and the other side's last word is awaited.
        case settling
        case penalty, over
    }

    /// In seconds: an invitation is answered within this.
    package static let answerTime = 10
    /// In seconds: from the answer to the start.
    package static let countdownTime = 3
    /// In seconds: an answer that was given in time may come so much later.
    static let travelTime = 1
    /// In seconds: who has accepted waits so long for the start, beyond the time for an answer.
    static let startTime = 20
    /// In seconds: the other side's last word is awaited so long.
    package static let settlingTime = 30
    /// In seconds: a host who is not there may come back within this.
    package static let hostGrace = 20
    /// In seconds: whose invitation was declined is not heard again for so long.
    package static let declineTime = 600
    /// In seconds: how long the result is shown after the end.
    package static let resultTime = 10

    package let id: DuelID
    /// What the inviter proposed.
    package let terms: DuelTerms
    /// By the inviter's clock.
    package let invitedAt: WallTime
    /// What we say.
    package internal(set) var own: Statement
    /// What the opponent said last.
    package internal(set) var other: Statement
    /// What our stream had when scores began to count; nil before.
    package internal(set) var base: DuelTally?

    /// Whether our host asked for it.
    package var isInviter: Bool { own.stream == id.inviter }
    package var expiresAt: WallTime { invitedAt.advanced(bySeconds: Self.answerTime) }
    private var inviter: Statement { isInviter ? own : other }
    private var invited: Statement { isInviter ? other : own }
    /// Both statements, the inviter's first.
    package var sides: (from: Statement, to: Statement) { (inviter, invited) }

    /// Common to both; nil before it is known.
    package var startsAt: WallTime? { inviter.startsAt }
    package var endsAt: WallTime? { startsAt?.advanced(bySeconds: terms.seconds) }

    /// What became of it, as far as is known; the same on both sides once both have all that was said.
    package var result: Result? {
        guard let startsAt, let endsAt else {
            return (inviter.end ?? invited.end).map { .calledOff(invited.end.flatMap(Self.answer) ?? $0) }
        }
        let quits = [inviter, invited].compactMap { side -> (stream: StreamID, end: End, at: WallTime)? in
            guard let end = side.end, let at = side.endedAt, at < endsAt else { return nil }
            return (side.stream, end, at)
        }
        if let early = quits.filter({ $0.at < startsAt }).min(by: { $0.at < $1.at }) {
            return .calledOff(early.end)
        }
        guard inviter.isFinal, invited.isFinal else { return nil }
        if let first = quits.min(by: { $0.at < $1.at }) {
            let isTie = quits.count == 2 && quits.allSatisfy { $0.at == first.at }
            let winner = first.stream == inviter.stream ? invited.stream : inviter.stream
            return .decided(winner: isTie ? nil : winner, by: Self.reason(first.end))
        }
        let (from, to) = (inviter.score ?? 0, invited.score ?? 0)
        guard from != to else { return .decided(winner: nil, by: .score) }
        return .decided(winner: from > to ? inviter.stream : invited.stream, by: .score)
    }

    /// What the invited side said of its own accord, which explains more than that the inviter gave up.
    private static func answer(_ end: End) -> End? {
        switch end {
        case .declined, .busy, .notLive, .duelsOff, .declinedBefore, .otherGate: end
        case .expired, .cancelled, .left, .hostGone, .streamEnded: nil
        }
    }

    private static func reason(_ end: End) -> Reason {
        switch end {
        case .hostGone: .hostGone
        case .streamEnded: .streamEnded
        case .declined, .busy, .notLive, .duelsOff, .declinedBefore, .otherGate, .expired, .cancelled, .left:
            .left
        }
    }

    /// When both part; nil as long as that is open.
    package var overAt: WallTime? {
        guard let endsAt else { return nil }
        switch result {
        case nil: return endsAt.advanced(bySeconds: Self.settlingTime)
        case .calledOff: return nil
        // Who has gone does no penalty, and after a draw nobody has lost.
        case .decided(let winner, .score):
            return winner == nil ? endsAt : endsAt.advanced(bySeconds: terms.penaltySeconds)
        case .decided: return [own, other].compactMap(\.endedAt).min()
        }
    }

    /// Until when all are shown what became of it; nil as long as that is open, and for what never began.
    package var shownUntil: WallTime? { overAt?.advanced(bySeconds: Self.resultTime) }

    /// How far it is at that time.
    package func phase(at now: WallTime) -> Phase {
        if case .calledOff = result { return .off }
        guard let startsAt, let endsAt else { return .invited }
        if let overAt, overAt <= now { return .over }
        guard result == nil else { return own.isClosed || other.isClosed ? .over : .penalty }
        if own.isFinal || endsAt <= now { return .settling }
        return now < startsAt ? .countdown : .running
    }

    /// Whether a host may not be in another one.
    func isOccupying(at now: WallTime) -> Bool {
        switch phase(at: now) {
        case .invited, .countdown, .running, .settling, .penalty: true
        case .off, .over: false
        }
    }

    /// Who lost; nil for nobody, or as long as that is open.
    package var loser: StreamID? {
        guard case .decided(let winner?, _) = result else { return nil }
        return winner == own.stream ? other.stream : own.stream
    }

    // MARK: Changing one's own word

    mutating func say(_ change: (inout Statement) -> Void) {
        change(&own)
        own.revision += 1
    }

    mutating func quit(_ end: End, _ tally: DuelTally, at now: WallTime) {
        let score = points(tally)
        say { own in
            own.end = end
            own.endedAt = now
            own.score = score
        }
    }

    /// What our stream has so far; 0 before it counts.
    package func points(_ tally: DuelTally) -> Int {
        own.score ?? base.map { tally.points(since: $0, by: terms) } ?? 0
    }
}
