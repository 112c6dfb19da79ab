import Base

/// What one side of a duel tells the other, all of it each time: whatever gets lost is said again by the next one.
package struct DuelMessage: Equatable, Sendable {
    package let id: DuelID
    /// Whose host is to hear it.
    package let to: StreamID
    package let terms: DuelTerms
    package let invitedAt: WallTime
    /// What the sender says.
    package let statement: Duel.Statement
    /// The revision of the addressee's statement that the sender has.
    package let known: Int
    /// Whether the sender does not know yet that the addressee has its statement.
    package let isAnswerWanted: Bool
    /// The sender's score now; what decides is the one in the statement.
    package let score: Int
    /// By the sender's clock: of two scores the later one counts.
    package let sentAt: WallTime

    /// In bytes: more than any tier has.
    private static let tierLength = 64

    /// Whether it can come of a side that keeps to the rules; all else is not looked at.
    var isSound: Bool {
        do throws(Interaction.Refusal) {
            try terms.validate()
        } catch {
            return false
        }
        let isInviter = statement.stream == id.inviter
        let latest = invitedAt.advanced(
            bySeconds: Duel.answerTime + Duel.startTime + Duel.countdownTime)
        guard statement.stream != to, isInviter || to == id.inviter,
            isInviter ? !statement.hasAccepted : statement.startsAt == nil,
            statement.startsAt.map({ $0 >= invitedAt && $0 <= latest }) ?? true,
            (statement.end == nil) == (statement.endedAt == nil),
            statement.name.map({ $0.count <= Gift.nameLength }) ?? true,
            statement.tier.map({ $0.utf8.count <= Self.tierLength }) ?? true
        else { return false }
        return ([score] + [statement.score].compactMap(\.self)).allSatisfy {
            (0...GiftTotals.highest).contains($0)
        }
    }
}

/// Tells the other side what is durable here until it has that, and the score as it grows.
///
/// Forgotten with a restart, after which all of it is told again.
struct DuelCourier: Sendable {
    /// What was not acknowledged is said again after so long.
    static let repeatInterval = Duration.seconds(1)
    /// Between two scores.
    static let scoreInterval = Duration.milliseconds(500)
    /// In seconds after the end: whoever has not answered by then does not know the duel any more.
    private static let persistence = 300

    /// Of our statement, that the other side has.
    private var acknowledged = -1
    private var sent: (revision: Int, score: Int)?
    private var sentAt: MonotonicTime?
    /// The revision of the other side's that is to be acknowledged, once it is durable here.
    private var owed: Int?
    /// The other side's, as it was told last.
    private(set) var score = 0
    private var scoredAt: WallTime?

    /// - Parameter own: the revision of our statement, durable or not.
    mutating func note(_ message: DuelMessage, own: Int) {
        acknowledged = max(acknowledged, message.known)
        if scoredAt.map({ $0 < message.sentAt }) ?? true {
            scoredAt = message.sentAt
            score = message.score
        }
        if message.isAnswerWanted || message.known < own {
            owed = max(owed ?? message.statement.revision, message.statement.revision)
        }
    }

    /// When there is something to say; nil for never.
    func deadline(_ duel: Duel, score: Int, at now: Moment) -> MonotonicTime? {
        if let owed, owed <= duel.other.revision { return .zero }
        let end = (duel.endsAt ?? duel.expiresAt).advanced(bySeconds: Self.persistence)
        guard acknowledged < duel.own.revision || sent?.score != score, now.wall < end else { return nil }
        guard let sent, let sentAt, sent.revision == duel.own.revision else { return .zero }
        return sentAt + (sent.score != score ? Self.scoreInterval : Self.repeatInterval)
    }

    /// What to say now; nil for nothing.
    mutating func take(_ duel: Duel, score: Int, at now: Moment) -> DuelMessage? {
        guard let deadline = deadline(duel, score: score, at: now), deadline <= now.elapsed else {
            return nil
        }
        owed = nil
        sent = (duel.own.revision, score)
        sentAt = now.elapsed
        return Self.message(duel, score: score, isAnswerWanted: acknowledged < duel.own.revision, at: now)
    }

    static func message(_ duel: Duel, score: Int, isAnswerWanted: Bool, at now: Moment) -> DuelMessage {
        DuelMessage(
            id: duel.id, to: duel.other.stream, terms: duel.terms, invitedAt: duel.invitedAt,
            statement: duel.own, known: duel.other.revision, isAnswerWanted: isAnswerWanted, score: score,
            sentAt: now.wall)
    }
}
