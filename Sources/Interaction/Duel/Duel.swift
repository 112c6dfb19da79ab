import Base

/// A duel as one of its two streams sees it: its own statement, the opponent's latest, and what follows from both.
///
/// Each side decides only about its own statement, which only ever grows. The result is computed from the two
/// statements in the same way on both sides. So both agree as soon as each has the other's last statement, whatever
/// was lost, repeated or late before.
package struct Duel: Equatable, Sendable, Codable {
    /// Why a side ended the duel early.
    package enum End: String, Sendable, Codable, CaseIterable {
        case declined
        /// The invited stream is in another duel.
        case busy
        /// The invited stream is not live, or has no host present.
        case notLive = "not-live"
        /// The invited stream accepts no invitations.
        case duelsOff = "duels-off"
        /// The invited host declined an invitation of the same stream a short while ago.
        case declinedBefore = "declined-before"
        /// The two streams do not have the same gate, or one of them changed its gate.
        case otherGate = "other-gate"
        case expired
        case cancelled
        case left
        case hostGone = "host-gone"
        case streamEnded = "stream-ended"
    }

    /// What one side states.
    package struct Statement: Equatable, Sendable, Codable {
        /// The stream that states it.
        package let stream: StreamID
        /// The host's display name.
        package var name: String?
        /// The tier that the stream's gate requires; nil if it has no gate.
        package internal(set) var tier: String?
        /// Increases with each change; the statement with the higher revision counts.
        ///
        /// Negative before the first.
        package internal(set) var revision = -1
        /// Set by the invited side only.
        package internal(set) var hasAccepted = false
        /// When the duel begins; set by the inviter only.
        package internal(set) var startsAt: WallTime?
        /// Why this side ended the duel early; nil if it did not.
        package internal(set) var end: End?
        /// When it did, by its own clock; set together with `end`.
        package internal(set) var endedAt: WallTime?
        /// Its own score, once that does not grow any more.
        package internal(set) var score: Int?
        /// Whether it has left the penalty.
        package internal(set) var isClosed = false

        /// Whether nothing that affects the result can change any more.
        var isFinal: Bool { end != nil || score != nil }
    }

    /// The result of a duel.
    package enum Result: Equatable, Sendable {
        /// It never began.
        case calledOff(End)
        /// It was decided; a nil winner means a draw.
        case decided(winner: StreamID?, by: Reason)
    }

    /// What decided the duel.
    package enum Reason: String, Sendable, CaseIterable {
        case score, left
        case hostGone = "host-gone"
        case streamEnded = "stream-ended"
    }

    /// The stage that a duel has reached.
    package enum Phase: String, Sendable, CaseIterable {
        case invited, off, countdown, running
        /// The time is over, and the opponent's last statement is awaited.
        case settling
        case penalty, over
    }

    /// Seconds within which an invitation has to be answered.
    package static let answerTime = 10
    /// Seconds from the answer to the start.
    package static let countdownTime = 3
    /// Seconds by which an answer that was given in time may arrive late.
    static let travelTime = 1
    /// Seconds that the invited side, having accepted, waits for the start beyond the time for answering.
    static let startTime = 20
    /// Seconds to wait for the opponent's last statement.
    package static let settlingTime = 30
    /// Seconds within which an absent host may come back.
    package static let hostGrace = 20
    /// Seconds for which invitations of a stream are refused after one was declined.
    package static let declineTime = 600
    /// Seconds for which the result is shown.
    package static let resultTime = 10

    /// The same on both sides.
    package let id: DuelID
    /// As the inviter proposed them.
    package let terms: DuelTerms
    /// By the inviter's clock.
    package let invitedAt: WallTime
    /// The statement of this stream.
    package internal(set) var own: Statement
    /// The opponent's latest statement.
    package internal(set) var other: Statement
    /// The tally of this stream when scores began to count; nil before.
    package internal(set) var base: DuelTally?

    /// Whether this stream's host invited the other.
    package var isInviter: Bool { own.stream == id.inviter }
    /// Until when the invitation can be answered.
    package var expiresAt: WallTime { invitedAt.advanced(bySeconds: Self.answerTime) }
    private var inviter: Statement { isInviter ? own : other }
    private var invited: Statement { isInviter ? other : own }
    /// Both statements, the inviter's first.
    package var sides: (from: Statement, to: Statement) { (inviter, invited) }

    /// The start, the same for both sides; nil until it is known.
    package var startsAt: WallTime? { inviter.startsAt }
    /// The end of the time in which scores count; nil until the start is known.
    package var endsAt: WallTime? { startsAt?.advanced(bySeconds: terms.seconds) }

    /// The result as far as it is known; the same on both sides once each has the other's last statement.
    package var result: Result? {
        guard let startsAt, let endsAt else {
            return (inviter.end ?? invited.end).map { .calledOff(invited.end.flatMap(Self.answer) ?? $0) }
        }
        // Sides that left before the end of the time; leaving later does not matter.
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

    /// The invited side's own reason, which explains more than that the inviter gave up.
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

    /// When the two streams part; nil until that is known.
    package var overAt: WallTime? {
        guard let endsAt else { return nil }
        switch result {
        case nil: return endsAt.advanced(bySeconds: Self.settlingTime)
        case .calledOff: return nil
        // A side that has left does no penalty, and after a draw there is no loser.
        case .decided(let winner, .score):
            return winner == nil ? endsAt : endsAt.advanced(bySeconds: terms.penaltySeconds)
        case .decided: return [own, other].compactMap(\.endedAt).min()
        }
    }

    /// Until when the result is shown; nil until that is known, and for a duel that never began.
    package var shownUntil: WallTime? { overAt?.advanced(bySeconds: Self.resultTime) }

    /// The stage that the duel has reached at a time.
    package func phase(at now: WallTime) -> Phase {
        if case .calledOff = result { return .off }
        guard let startsAt, let endsAt else { return .invited }
        if let overAt, overAt <= now { return .over }
        guard result == nil else { return own.isClosed || other.isClosed ? .over : .penalty }
        if own.isFinal || endsAt <= now { return .settling }
        return now < startsAt ? .countdown : .running
    }

    /// Whether its streams may not begin another duel.
    func isOccupying(at now: WallTime) -> Bool {
        switch phase(at: now) {
        case .invited, .countdown, .running, .settling, .penalty: true
        case .off, .over: false
        }
    }

    /// The losing stream; nil if there is none, or until it is known.
    package var loser: StreamID? {
        guard case .decided(let winner?, _) = result else { return nil }
        return winner == own.stream ? other.stream : own.stream
    }

    // MARK: Changing one's own word

    /// Changes this side's statement, with a new revision.
    mutating func say(_ change: (inout Statement) -> Void) {
        change(&own)
        own.revision += 1
    }

    /// Ends the duel early, with the score at that moment.
    mutating func quit(_ end: End, _ tally: DuelTally, at now: WallTime) {
        let score = points(tally)
        say { own in
            own.end = end
            own.endedAt = now
            own.score = score
        }
    }

    /// The score of this stream so far; 0 before scores count.
    package func points(_ tally: DuelTally) -> Int {
        own.score ?? base.map { tally.points(since: $0, by: terms) } ?? 0
    }
}
