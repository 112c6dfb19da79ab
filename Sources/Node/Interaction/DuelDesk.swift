import Base
import Interaction

/// The duels of one stream, on the stream's actor: decisions, messages to the opponent's stream, and news for
/// followers.
///
/// A decision changes `side` immediately. The opponent's stream and followers learn of it from `committed`, once it
/// is durable.
struct DuelDesk {
    /// The least time between two messages about scores.
    private static let scoreInterval = Duration.milliseconds(500)

    /// What followers were last sent of a duel; another value is news.
    private struct Sight: Equatable {
        let id: DuelID
        let phase: Duel.Phase
        let scores: [Int]

        func isSamePhase(as other: Sight?) -> Bool { id == other?.id && phase == other?.phase }
    }

    /// This stream's side, including what is not durable yet.
    private(set) var side: DuelSide
    /// The duels as far as they are durable, the latest last.
    private(set) var committed: [Duel]
    /// What all followers were last sent; nil for no duel.
    private var told: Sight?
    /// When that was.
    private var toldAt: MonotonicTime?
    /// What the host alone was last sent.
    private var confided: Sight?
    /// The opponent whose host is shown now; nil for none.
    private var shown: StreamID?
    /// When what is due is decided again, because it could not be stored; nil if nothing was refused.
    private var retryAt: MonotonicTime?
    /// How long a store that refused is left alone.
    private static let retryInterval = Duration.seconds(1)

    init(of stream: StreamID, restoring duels: [Duel]) {
        side = DuelSide(of: stream, restoring: duels)
        committed = duels
    }

    // MARK: Deciding

    /// Applies a host's command.
    /// - Returns: the duel that it concerns; the caller makes it durable.
    mutating func apply(
        _ command: DuelSide.Command, _ situation: DuelSide.Situation, at now: Moment
    ) throws(Interaction.Refusal) -> Duel {
        try side.apply(command, situation, at: now)
    }

    /// Handles a message from the opponent's stream.
    /// - Returns: the duel if it has changed, for the caller to make durable, and an answer that can be sent
    ///   immediately.
    mutating func receive(
        _ message: DuelMessage, _ situation: DuelSide.Situation, at now: Moment
    ) -> (change: Duel?, answer: DuelMessage?) {
        side.receive(message, situation, at: now)
    }

    /// Applies what is due by now.
    /// - Parameter isLast: whether the stream ends, and its duel with it.
    /// - Returns: the duel if it has changed, for the caller to make durable.
    mutating func advance(
        to now: Moment, _ situation: DuelSide.Situation, isLast: Bool = false
    ) -> Duel? {
        guard isLast || retryAt.map({ $0 <= now.elapsed }) ?? true else { return nil }
        return side.advance(to: now, situation, isLast: isLast)
    }

    /// Notes what has become durable.
    mutating func conclude(_ duels: [Duel]) {
        committed = duels
        retryAt = nil
    }

    /// Discards what could not be made durable; what is due is decided again a second later.
    mutating func revert(to duels: [Duel], at now: MonotonicTime) {
        committed = duels
        side.revert(to: duels)
        retryAt = now + Self.retryInterval
    }

    // MARK: Telling

    /// The messages that are due to the opponent's stream.
    mutating func takeMessages(_ situation: DuelSide.Situation, at now: Moment) -> [DuelMessage] {
        side.takeMessages(committed, situation, at: now)
    }

    /// The opponent whose host is to be shown from now on.
    /// - Returns: nil if that has not changed; `.some(nil)` if no opponent is shown any more.
    mutating func takeOpponent(at now: WallTime) -> StreamID?? {
        let wanted = committed.last.flatMap { duel -> StreamID? in
            switch duel.phase(at: now) {
            case .countdown, .running, .settling, .penalty: duel.other.stream
            case .invited, .off, .over: nil
            }
        }
        guard wanted != shown else { return nil }
        shown = wanted
        return .some(wanted)
    }

    /// What followers are to be sent; `null` in JSON once there is no duel to be seen.
    /// - Returns: nil if there is no news, or if only scores have changed and the last message is too recent.
    mutating func takeNews(_ tally: DuelTally, at now: Moment) -> JSON? {
        let duel = publicDuel(at: now.wall)
        let sight = duel.map { self.sight(of: $0, tally, at: now.wall) }
        guard sight != told else { return nil }
        if let told, sight?.isSamePhase(as: told) == true, let toldAt,
            now.elapsed < toldAt + Self.scoreInterval
        {
            return nil
        }
        told = sight
        toldAt = now.elapsed
        return duel.map { json($0, tally, at: now.wall) } ?? .null
    }

    /// What the host alone is to be sent: that an invitation is open, or that it was called off.
    /// - Returns: nil if there is no news of that kind.
    mutating func takeInvitation(_ tally: DuelTally, at now: WallTime) -> String? {
        guard let duel = committed.last else { return nil }
        let sight = sight(of: duel, tally, at: now)
        guard sight != confided else { return nil }
        let wasTold = confided?.id == duel.id
        confided = sight
        switch sight.phase {
        case .invited: break
        // After a restart the host does not wait for an invitation that was called off before.
        case .off where wasTold: break
        default: return nil
        }
        return Self.message(json(duel, tally, at: now))
    }

    /// An open invitation, for a host who connects; nil if there is none.
    func invitation(_ tally: DuelTally, at now: WallTime) -> String? {
        guard let duel = committed.last, duel.phase(at: now) == .invited else { return nil }
        return Self.message(json(duel, tally, at: now))
    }

    private static func message(_ duel: JSON) -> String { SyncNotice.interaction.text(["duel": duel]) }

    /// When something is to be decided or sent; nil if nothing is due.
    func deadline(_ situation: DuelSide.Situation, at now: Moment) -> MonotonicTime? {
        var next = side.deadline(committed, situation, at: now)
        if let retryAt { next = next.map { max($0, retryAt) } }
        if let told, let toldAt, let duel = publicDuel(at: now.wall),
            sight(of: duel, situation.tally, at: now.wall) != told
        {
            next = min(next ?? .distantFuture, toldAt + Self.scoreInterval)
        }
        return next
    }

    /// The duel that viewers see; nil before both hosts have agreed, and some time after the result.
    private func publicDuel(at now: WallTime) -> Duel? {
        guard let duel = committed.last else { return nil }
        switch duel.phase(at: now) {
        case .invited, .off: return nil
        case .countdown, .running, .settling, .penalty: return duel
        case .over: return duel.shownUntil.map { now < $0 } ?? false ? duel : nil
        }
    }

    private func sight(of duel: Duel, _ tally: DuelTally, at now: WallTime) -> Sight {
        Sight(
            id: duel.id, phase: duel.phase(at: now),
            scores: [duel.points(tally), side.score(against: duel)])
    }

    // MARK: JSON

    /// A duel by its ID; nil if it is unknown, or not yet public and the caller is no moderator.
    func json(of id: DuelID, _ tally: DuelTally, forModerator isModerator: Bool, at now: WallTime) -> JSON? {
        guard let duel = committed.last(where: { $0.id == id }) else { return nil }
        switch duel.phase(at: now) {
        case .invited, .off: guard isModerator else { return nil }
        case .countdown, .running, .settling, .penalty, .over: break
        }
        return json(duel, tally, at: now)
    }

    /// The representation for clients, the same from either stream except for the age of the opponent's score.
    func json(_ duel: Duel, _ tally: DuelTally, at now: WallTime) -> JSON {
        let scores = [
            duel.own.stream: duel.points(tally), duel.other.stream: side.score(against: duel),
        ]
        let (from, to) = duel.sides
        let sides = [from, to].map { side in
            JSON.object([
                "stream": .string(side.stream.description), "name": .text(side.name),
                "score": .integer(scores[side.stream] ?? 0),
            ])
        }
        let terms = duel.terms
        let weights = JSON.object([
            "gifts": .integer(terms.giftWeight), "reactions": .integer(terms.reactionWeight),
        ])
        var (winner, reason): (StreamID?, String?)
        switch duel.result {
        case .calledOff(let end): reason = end.rawValue
        case .decided(let who, let why): (winner, reason) = (who, why.rawValue)
        case nil: break
        }
        return .object([
            "id": .string(duel.id.description), "state": .string(duel.phase(at: now).rawValue),
            "from": sides[0], "to": sides[1], "seconds": .integer(terms.seconds),
            "penaltySeconds": .integer(terms.penaltySeconds), "weights": weights,
            "invitedAt": .time(duel.invitedAt), "expiresAt": .time(duel.expiresAt),
            "startsAt": .time(duel.startsAt), "endsAt": .time(duel.endsAt),
            "overAt": .time(duel.result == nil ? nil : duel.overAt), "winner": .text(winner?.description),
            "reason": .text(reason), "at": .time(now),
        ])
    }
}
