import Base

/// One stream's side in its duels: what its host requests, what the opponent's stream sends, and what is due with
/// time.
///
/// It is pure logic, written as if the opponent were on another machine: the two sides share nothing, and messages
/// between them may be lost, late or repeated. Changes are made durable before the other side is notified of them.
package struct DuelSide: Sendable {
    /// A request of a host.
    package enum Command: Equatable, Sendable {
        case invite(StreamID, DuelTerms)
        case accept(DuelID)
        case decline(DuelID)
        case cancel(DuelID)
        case leave(DuelID)
        /// Invite the same opponent again, on the same terms.
        case rematch(DuelID)
    }

    /// The current state of the stream, as far as it matters here.
    package struct Situation: Equatable, Sendable {
        /// Whether the stream is live.
        package var isLive: Bool
        /// Whether a host is present.
        package var isHostThere: Bool
        /// The host's display name, shortened to the longest that is sent.
        package var name: String?
        /// What the stream was given and how often it was tapped so far.
        package var tally: DuelTally
        /// The tier that the stream's gate requires; nil if it has no gate.
        package var tier: String?
        /// Whether other hosts may invite this one.
        package var takesInvitations: Bool

        /// The name is shortened if necessary.
        package init(
            isLive: Bool, isHostThere: Bool, name: String?, tally: DuelTally, tier: String? = nil,
            takesInvitations: Bool = true
        ) {
            self.tier = tier
            self.takesInvitations = takesInvitations
            self.isLive = isLive
            self.isHostThere = isHostThere
            self.name = name.map { String($0.prefix(Gift.nameLength)) }
            self.tally = tally
        }
    }

    /// Latest duels of a stream that are kept and can be queried.
    package static let limit = 8
    /// Invitations by one host: three at once, and then one every ten seconds.
    static let invitations = Rate(burst: 3, perSecond: 0.1)

    /// The stream whose side it is.
    package let stream: StreamID
    /// While a commit is in progress, they are ahead of what is durable; the latest is last, at most `limit`.
    package private(set) var duels: [Duel]
    /// Nil before the first invitation.
    private var allowance: Allowance?
    /// Since when no host has been present; nil while one is.
    private var hostGoneSince: MonotonicTime?
    /// What was sent and acknowledged, by duel.
    private var couriers: [DuelID: DuelCourier] = [:]

    /// Restores a stream's duels.
    package init(of stream: StreamID, restoring duels: [Duel] = []) {
        self.stream = stream
        self.duels = duels
    }

    /// Returns to the durable duels because later changes could not be saved.
    package mutating func revert(to duels: [Duel]) { self.duels = duels }

    /// Adds or replaces a duel in a list, which is how the log restores the same list.
    package static func keep(_ duel: Duel, in duels: inout [Duel]) {
        if let index = duels.firstIndex(where: { $0.id == duel.id }) {
            duels[index] = duel
        } else {
            duels.append(duel)
            if duels.count > limit { duels.removeFirst(duels.count - limit) }
        }
    }

    /// Keeps a duel, and forgets the couriers of duels that are not kept any more.
    private mutating func keep(_ duel: Duel) -> Duel {
        Self.keep(duel, in: &duels)
        couriers = couriers.filter { courier in duels.contains { $0.id == courier.key } }
        return duel
    }

    // MARK: What the host wants

    /// Decides about a host's request.
    /// - Returns: the duel as it is now; if it has changed, it must be durable before anyone is notified.
    package mutating func apply(
        _ command: Command, _ situation: Situation, at now: Moment
    ) throws(Interaction.Refusal) -> Duel {
        switch command {
        case .invite(let opponent, let terms):
            guard opponent != stream else { throw .invalid("to") }
            try terms.validate()
            guard duels.last?.isOccupying(at: now.wall) != true else { throw .inDuel }
            return try invite(opponent, terms, situation, at: now)
        case .rematch(let id):
            guard let duel = duels.last, duel.id == id else {
                throw duels.contains { $0.id == id } ? .duelOver : .unknownDuel
            }
            switch duel.phase(at: now.wall) {
            case .over: break
            case .penalty: guard duel.loser != stream else { throw .penalty }
            case .invited, .off, .countdown, .running, .settling: throw .inDuel
            }
            return try invite(duel.other.stream, duel.terms, situation, at: now)
        case .accept(let id): return try answer(id, isAccepted: true, situation, at: now)
        case .decline(let id): return try answer(id, isAccepted: false, situation, at: now)
        case .cancel(let id):
            var duel = try find(id)
            guard duel.isInviter else { throw .notInvited }
            guard !isCalledOff(duel) else { return duel }
            guard duel.phase(at: now.wall) == .invited else { throw .duelOver }
            duel.quit(.cancelled, situation.tally, at: now.wall)
            return keep(duel)
        case .leave(let id): return try leave(id, situation, at: now)
        }
    }

    private func find(_ id: DuelID) throws(Interaction.Refusal) -> Duel {
        guard let duel = duels.last(where: { $0.id == id }) else { throw .unknownDuel }
        return duel
    }

    /// Whether the duel ended without having begun.
    private func isCalledOff(_ duel: Duel) -> Bool {
        if case .calledOff = duel.result { true } else { false }
    }

    /// Creates an invitation, if the host's rate permits it.
    private mutating func invite(
        _ opponent: StreamID, _ terms: DuelTerms, _ situation: Situation, at now: Moment
    ) throws(Interaction.Refusal) -> Duel {
        guard situation.isLive, situation.isHostThere else { throw .notLive }
        var allowance = self.allowance ?? Allowance(Self.invitations, at: now.elapsed)
        defer { self.allowance = allowance }
        guard allowance.take(1, of: Self.invitations, at: now.elapsed) == 1 else {
            throw .tooFast(wait: allowance.wait(for: Self.invitations, at: now.elapsed) ?? 1)
        }
        let last = duels.last { $0.isInviter }?.id.number ?? 0
        let number = max(Int(clamping: now.wall.milliseconds), last + 1, 1)
        var duel = Duel(
            id: DuelID(inviter: stream, number: number), terms: terms, invitedAt: now.wall,
            own: Duel.Statement(stream: stream, name: situation.name, tier: situation.tier),
            other: Duel.Statement(stream: opponent))
        duel.say { _ in }
        return keep(duel)
    }

    /// Accepts or declines an invitation.
    private mutating func answer(
        _ id: DuelID, isAccepted: Bool, _ situation: Situation, at now: Moment
    ) throws(Interaction.Refusal) -> Duel {
        var duel = try find(id)
        guard !duel.isInviter else { throw .notInvited }
        // Repeating the same answer is not an error.
        if isAccepted ? duel.own.hasAccepted && duel.own.end == nil : duel.own.end == .declined {
            return duel
        }
        guard duel.phase(at: now.wall) == .invited, !duel.own.hasAccepted, now.wall < duel.expiresAt else {
            throw .duelOver
        }
        if isAccepted {
            guard situation.isLive, situation.isHostThere else { throw .notLive }
            duel.say { $0.hasAccepted = true }
        } else {
            duel.quit(.declined, situation.tally, at: now.wall)
        }
        return keep(duel)
    }

    /// Leaves a duel, in whatever stage it is.
    private mutating func leave(
        _ id: DuelID, _ situation: Situation, at now: Moment
    ) throws(Interaction.Refusal) -> Duel {
        var duel = try find(id)
        switch duel.phase(at: now.wall) {
        case .invited:
            let end: Duel.End = duel.isInviter ? .cancelled : duel.own.hasAccepted ? .left : .declined
            duel.quit(end, situation.tally, at: now.wall)
        case .countdown, .running: duel.quit(.left, situation.tally, at: now.wall)
        case .penalty: duel.say { $0.isClosed = true }
        case .settling, .off, .over: return duel
        }
        return keep(duel)
    }

    // MARK: What the opponent's stream says

    /// Receives a message of the opponent's stream.
    /// - Returns: the duel that has to become durable, and a message to send about a duel that is not kept.
    package mutating func receive(
        _ message: DuelMessage, _ situation: Situation, at now: Moment
    ) -> (change: Duel?, answer: DuelMessage?) {
        guard message.to == stream, message.isSound else { return (nil, nil) }
        guard var duel = duels.last(where: { $0.id == message.id }) else {
            return meet(message, situation, at: now)
        }
        guard message.statement.stream == duel.other.stream else { return (nil, nil) }
        let before = duel
        if message.statement.revision > duel.other.revision {
            duel.other = message.statement
            react(&duel, situation, at: now)
        }
        couriers[duel.id, default: DuelCourier()].note(message, own: duel.own.revision)
        return (duel == before ? nil : keep(duel), nil)
    }

    /// Handles the message of an unknown duel, which can only be an invitation.
    private mutating func meet(
        _ message: DuelMessage, _ situation: Situation, at now: Moment
    ) -> (change: Duel?, answer: DuelMessage?) {
        // A duel of this stream that was forgotten; nothing can be said about it.
        guard message.id.inviter == message.statement.stream else { return (nil, nil) }
        var duel = Duel(
            id: message.id, terms: message.terms, invitedAt: message.invitedAt,
            own: Duel.Statement(stream: stream, name: situation.name, tier: situation.tier),
            other: message.statement)
        guard let refusal = refusal(of: duel, situation, at: now.wall) else {
            duel.say { _ in }
            couriers[duel.id, default: DuelCourier()].note(message, own: duel.own.revision)
            return (keep(duel), nil)
        }
        // Not kept, because inviting streams could fill the list.
        duel.quit(refusal, situation.tally, at: now.wall)
        guard message.isAnswerWanted || message.known < duel.own.revision else { return (nil, nil) }
        return (nil, DuelCourier.message(duel, score: 0, isAnswerWanted: false, at: now))
    }

    /// Why the host is not even asked about an invitation; nil if the host is asked.
    private func refusal(of duel: Duel, _ situation: Situation, at now: WallTime) -> Duel.End? {
        if duel.other.end != nil || duel.expiresAt <= now { return .expired }
        guard situation.isLive, situation.isHostThere else { return .notLive }
        guard situation.takesInvitations else { return .duelsOff }
        if let last = duels.last, last.isOccupying(at: now), !isRematch(duel, of: last, at: now) {
            return .busy
        }
        guard !hasDeclined(duel.other.stream, at: now) else { return .declinedBefore }
        // Each audience sees the other stream's host, which must not show gated content to viewers without the tier.
        return duel.other.tier == situation.tier ? nil : .otherGate
    }

    /// Whether this host declined an invitation of a stream a short while ago and has not invited it since.
    private func hasDeclined(_ opponent: StreamID, at now: WallTime) -> Bool {
        let word = duels.last { $0.other.stream == opponent && ($0.isInviter || $0.own.end == .declined) }
        guard let word, !word.isInviter, let at = word.own.endedAt else { return false }
        return now < at.advanced(bySeconds: Duel.declineTime)
    }

    /// Whether the gate has changed since the duel began, so that it cannot continue.
    private func hasOtherGate(_ duel: Duel, _ situation: Situation, at now: WallTime) -> Bool {
        guard duel.own.tier != situation.tier else { return false }
        return !duel.own.isFinal || duel.phase(at: now) == .penalty && !duel.own.isClosed
    }

    /// Whether an invitation is a rematch, for which the penalty need not end: the opponent must not have lost.
    private func isRematch(_ duel: Duel, of last: Duel, at now: WallTime) -> Bool {
        last.phase(at: now) == .penalty && last.other.stream == duel.other.stream
            && last.loser != duel.other.stream
    }

    /// Reacts to the other side's new statement.
    private func react(_ duel: inout Duel, _ situation: Situation, at now: Moment) {
        guard !duel.own.isFinal else { return }
        if duel.startsAt != nil {
            guard duel.other.end != nil else { return }
            let score = duel.points(situation.tally)
            duel.say { $0.score = score }
        } else if let end = duel.other.end {
            duel.quit(end, situation.tally, at: now.wall)
        } else if duel.isInviter, duel.other.hasAccepted {
            guard now.wall < duel.expiresAt.advanced(bySeconds: Duel.travelTime) else { return }
            let start = now.wall.advanced(bySeconds: Duel.countdownTime)
            duel.say { $0.startsAt = start }
        }
    }

    // MARK: Time

    /// Does what is due.
    /// - Parameter isLast: whether the stream ends.
    package mutating func advance(
        to now: Moment, _ situation: Situation, isLast: Bool = false
    ) -> Duel? {
        if situation.isHostThere { hostGoneSince = nil }
        guard var duel = duels.last else { return nil }
        let isParting = hasOtherGate(duel, situation, at: now.wall)
        if isParting, duel.own.isFinal {
            duel.say { $0.isClosed = true }
            return keep(duel)
        }
        guard !duel.own.isFinal else { return nil }
        let before = duel
        if !situation.isHostThere { hostGoneSince = hostGoneSince ?? now.elapsed }
        let isHostGone = hostGoneSince.map { now.elapsed >= $0 + .seconds(Duel.hostGrace) } ?? false
        if let endsAt = duel.endsAt, endsAt <= now.wall {
            duel.base = duel.base ?? situation.tally
            let score = duel.points(situation.tally)
            duel.say { $0.score = score }
        } else if isLast || !situation.isLive {
            duel.quit(.streamEnded, situation.tally, at: now.wall)
        } else if isHostGone {
            duel.quit(.hostGone, situation.tally, at: now.wall)
        } else if isParting {
            duel.quit(.otherGate, situation.tally, at: now.wall)
        } else if let startsAt = duel.startsAt {
            if duel.base == nil, startsAt <= now.wall { duel.base = situation.tally }
        } else if Self.answerEnd(duel) <= now.wall {
            duel.quit(.expired, situation.tally, at: now.wall)
        }
        return duel == before ? nil : keep(duel)
    }

    /// When this side stops waiting for an answer, or for the start.
    private static func answerEnd(_ duel: Duel) -> WallTime {
        let extra = duel.isInviter ? Duel.travelTime : duel.own.hasAccepted ? Duel.startTime : 0
        return duel.expiresAt.advanced(bySeconds: extra)
    }

    /// When `advance` or `takeMessages` have something to do, or something is displayed differently; nil if never.
    /// - Parameter durable: the duels that are durable.
    package func deadline(_ durable: [Duel], _ situation: Situation, at now: Moment) -> MonotonicTime? {
        var times = durable.compactMap { duel in
            (couriers[duel.id] ?? DuelCourier()).deadline(
                duel, score: duel.points(situation.tally), at: now)
        }
        guard let duel = duels.last else { return times.min() }
        if hasOtherGate(duel, situation, at: now.wall) { times.append(now.elapsed) }
        if !duel.own.isFinal {
            let due =
                duel.startsAt == nil ? Self.answerEnd(duel) : duel.base == nil ? duel.startsAt : duel.endsAt
            times += [due].compactMap(\.self).map { now.elapsed(at: $0) }
            if let hostGoneSince {
                times.append(hostGoneSince + .seconds(Duel.hostGrace))
            } else if !situation.isHostThere {
                times.append(now.elapsed)
            }
        }
        let looks = [duel.startsAt, duel.endsAt, duel.overAt, duel.shownUntil].compactMap(\.self)
        return (times + looks.filter { $0 > now.wall }.map { now.elapsed(at: $0) }).min()
    }

    // MARK: What the opponent's stream is told

    /// Takes the messages for the other sides about what is durable, and about the score.
    package mutating func takeMessages(
        _ durable: [Duel], _ situation: Situation, at now: Moment
    ) -> [DuelMessage] {
        durable.compactMap { duel in
            couriers[duel.id, default: DuelCourier()].take(
                duel, score: duel.points(situation.tally), at: now)
        }
    }

    /// The opponent's score as far as it is known.
    package func score(against duel: Duel) -> Int { duel.other.score ?? couriers[duel.id]?.score ?? 0 }
}
