import Base
import Interaction

/// A stream's duels, in its stream's place: what is decided at once, what the opponent's stream is told of what is
/// durable, and what followers see of it.
struct DuelDesk {
    /// Scores are told so often at most.
    private static let scoreInterval = Duration.milliseconds(500)

    /// What was told last, and what a difference to it makes news.
    private struct Sight: Equatable {
        let id: DuelID
        let phase: Duel.Phase
        let scores: [Int]

        func isSamePhase(as other: Sight?) -> Bool { id == other?.id && phase == other?.phase }
    }

    private(set) var side: DuelSide
    /// What is durable.
    private(set) var committed: [Duel]
    private var told: Sight?
    private var toldAt: MonotonicTime?
    /// What only the host was told.
    private var confided: Sight?
    private var shown: StreamID?

    init(of stream: StreamID, restoring duels: [Duel]) {
        side = DuelSide(of: stream, restoring: duels)
        committed = duels
    }

    // MARK: Deciding

    mutating func apply(
        _ command: DuelSide.Command, _ situation: DuelSide.Situation, at now: Moment
    ) throws(Interaction.Refusal) -> Duel {
        try side.apply(command, situation, at: now)
    }

    mutating func receive(
        _ message: DuelMessage, _ situation: DuelSide.Situation, at now: Moment
    ) -> (change: Duel?, answer: DuelMessage?) {
        side.receive(message, situation, at: now)
    }

    mutating func advance(
        to now: Moment, _ situation: DuelSide.Situation, isLast: Bool = false
    ) -> Duel? {
        side.advance(to: now, situation, isLast: isLast)
    }

    /// Notes what is durable now.
    mutating func conclude(_ duels: [Duel]) { committed = duels }

    /// Goes back to what is durable.
    mutating func revert(to duels: [Duel]) {
        committed = duels
        side.revert(to: duels)
    }

    // MARK: Telling

    /// For the opponent's stream.
    mutating func takeMessages(_ situation: DuelSide.Situation, at now: Moment) -> [DuelMessage] {
        side.takeMessages(committed, situation, at: now)
    }

    /// Whose host is to be shown beside ours from now on, where that changed; nil within for nobody.
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

    /// What everybody is told, where that is news: null once nothing is to be seen any more.
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

    /// What the host alone is told: of an invitation, and that nothing came of it.
    mutating func takeInvitation(_ tally: DuelTally, at now: WallTime) -> String? {
        guard let duel = committed.last else { return nil }
        let sight = sight(of: duel, tally, at: now)
        guard sight != confided else { return nil }
        let wasTold = confided?.id == duel.id
        confided = sight
        switch sight.phase {
        case .invited: break
        // After a restart nobody waits for it.
        case .off where wasTold: break
        default: return nil
        }
        return Self.message(json(duel, tally, at: now))
    }

    /// An invitation that is open, for a host who comes; nil for none.
    func invitation(_ tally: DuelTally, at now: WallTime) -> String? {
        guard let duel = committed.last, duel.phase(at: now) == .invited else { return nil }
        return Self.message(json(duel, tally, at: now))
    }

    private static func message(_ duel: JSON) -> String { SyncNotice.interaction.text(["duel": duel]) }

    /// When there is something to decide, to tell, or to look at; nil for never.
    func deadline(_ situation: DuelSide.Situation, at now: Moment) -> MonotonicTime? {
        var next = side.deadline(committed, situation, at: now)
        if let told, let toldAt, let duel = publicDuel(at: now.wall),
            sight(of: duel, situation.tally, at: now.wall) != told
        {
            next = min(next ?? .distantFuture, toldAt + Self.scoreInterval)
        }
        return next
    }

    /// What viewers see: nothing of what only hosts agree on.
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

    /// A duel that is known; nil for one that is not, or that is not for everybody yet.
    func json(of id: DuelID, _ tally: DuelTally, forModerator isModerator: Bool, at now: WallTime) -> JSON? {
        guard let duel = committed.last(where: { $0.id == id }) else { return nil }
        switch duel.phase(at: now) {
        case .invited, .off: guard isModerator else { return nil }
        case .countdown, .running, .settling, .penalty, .over: break
        }
        return json(duel, tally, at: now)
    }

    /// The same from either side, but for how old the other's score is.
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
