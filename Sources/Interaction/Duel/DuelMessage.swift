import Base

/// A message from one side of a duel to the other; it is always complete, so the next one makes up for a lost one.
package struct DuelMessage: Equatable, Sendable {
    /// The duel that it is about.
    package let id: DuelID
    /// The stream that it is addressed to.
    package let to: StreamID
    /// As the inviter proposed them.
    package let terms: DuelTerms
    /// By the inviter's clock.
    package let invitedAt: WallTime
    /// The sender's statement.
    package let statement: Duel.Statement
    /// The revision of the addressee's statement that the sender has.
    package let known: Int
    /// Whether the sender does not know yet whether the addressee has its statement.
    package let isAnswerWanted: Bool
    /// The sender's current score, for display; the result uses the one in the statement.
    package let score: Int
    /// By the sender's clock; of two scores the later one counts.
    package let sentAt: WallTime

    /// Most bytes of a tier; longer than any that is valid.
    private static let tierLength = 64

    /// Whether a side that complies with the rules can have sent it; other messages are ignored.
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

/// Sends the durable statement to the other side until that has it, and the score as it grows.
///
/// It is not durable; after a restart everything is sent again.
struct DuelCourier: Sendable {
    /// Time after which an unacknowledged statement is sent again.
    static let repeatInterval = Duration.seconds(1)
    /// Time between two scores.
    static let scoreInterval = Duration.milliseconds(500)
    /// Seconds after the end: an opponent that has not answered by then does not know the duel any more.
    private static let persistence = 300

    /// The revision of this side's statement that the other side has.
    private var acknowledged = -1
    /// Revision and score in the latest message.
    private var sent: (revision: Int, score: Int)?
    private var sentAt: MonotonicTime?
    /// The revision of the other side's statement to acknowledge, once it is durable here.
    private var owed: Int?
    /// The other side's score as last received.
    private(set) var score = 0
    /// When that was sent, by the other side's clock.
    private var scoredAt: WallTime?

    /// Records what a message says about the other side.
    /// - Parameter own: the revision of this side's statement, durable or not.
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

    /// When there is something to send; nil if there is nothing.
    func deadline(_ duel: Duel, score: Int, at now: Moment) -> MonotonicTime? {
        if let owed, owed <= duel.other.revision { return .zero }
        let end = (duel.endsAt ?? duel.expiresAt).advanced(bySeconds: Self.persistence)
        guard acknowledged < duel.own.revision || sent?.score != score, now.wall < end else { return nil }
        guard let sent, let sentAt, sent.revision == duel.own.revision else { return .zero }
        return sentAt + (sent.score != score ? Self.scoreInterval : Self.repeatInterval)
    }

    /// Takes the message to send now; nil if none is due.
    mutating func take(_ duel: Duel, score: Int, at now: Moment) -> DuelMessage? {
        guard let deadline = deadline(duel, score: score, at: now), deadline <= now.elapsed else {
            return nil
        }
        owed = nil
        sent = (duel.own.revision, score)
        sentAt = now.elapsed
        return Self.message(duel, score: score, isAnswerWanted: acknowledged < duel.own.revision, at: now)
    }

    /// A complete message about a duel.
    static func message(_ duel: Duel, score: Int, isAnswerWanted: Bool, at now: Moment) -> DuelMessage {
        DuelMessage(
            id: duel.id, to: duel.other.stream, terms: duel.terms, invitedAt: duel.invitedAt,
            statement: duel.own, known: duel.other.revision, isAnswerWanted: isAnswerWanted, score: score,
            sentAt: now.wall)
    }
}
