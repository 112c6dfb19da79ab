import Base
import Interaction
import Stage

/// What a stream wants outside itself because of a duel.
package enum DuelOrder: InboxElement {
    /// Deliver a message to the opponent's stream.
    case message(DuelMessage)
    /// Show the host of an opponent in a stream, beside its own; nil for no opponent.
    case show(StreamID?, in: StreamID)

    /// Identifies orders of which only the latest counts.
    package enum Topic: Hashable, Sendable {
        case message(DuelID, to: StreamID)
        case show(StreamID)
    }

    /// The stream that has to do something; the orders to different streams are independent.
    var concerned: StreamID {
        switch self {
        case .message(let message): message.to
        case .show(_, let stream): stream
        }
    }

    /// A later message contains everything that an earlier one of the same duel did.
    package var topic: Topic? {
        switch self {
        case .message(let message): .message(message.id, to: message.to)
        case .show(_, let stream): .show(stream)
        }
    }

    package var isNeeded: Bool {
        // A message that is lost is repeated.
        if case .message = self { false } else { true }
    }
}

/// Duels with other streams.
extension StreamHost {
    /// Applies a host's command.
    /// - Parameter isOpponentLive: for an invitation, whether the opponent's stream is live as far as this server
    ///   knows.
    /// - Returns: the duel, once the decision is durable.
    package func perform(
        _ command: DuelSide.Command, from sender: Stage.Sender, isOpponentLive: Bool
    ) async throws(StageRefusal) -> JSON {
        guard !isClosed, hasRoomToGather else { throw .overloaded }
        guard let stage else { throw .unknownStream }
        if let rejection = stage.shutsOut(sender) { throw .rejected(rejection) }
        guard stage.record.phase != .ended else { throw .rejected(.ended) }
        guard stage.isModerator(sender) else { throw .interaction(.notModerator) }
        if case .invite(let opponent, _) = command, opponent != id, !isOpponentLive {
            throw .interaction(.notLive)
        }
        let before = duels.side.duels
        let duel: Duel
        do throws(Interaction.Refusal) {
            duel = try duels.apply(command, duelSituation, at: environment.now())
        } catch {
            throw .interaction(error)
        }
        if !before.contains(duel) { try keep(duel, before) }
        try await settled()
        // The duel may have changed again while the decision was made durable.
        let current = duels.committed.last { $0.id == duel.id } ?? duel
        return duels.json(current, duelSituation.tally, at: environment.now().wall)
    }

    /// The two streams of a duel.
    package func sides(of duel: DuelID) throws(StageRefusal) -> (from: StreamID, to: StreamID) {
        guard let duel = duels.committed.last(where: { $0.id == duel }) else {
            throw .interaction(.unknownDuel)
        }
        let (from, to) = duel.sides
        return (from.stream, to.stream)
    }

    /// A duel as this stream knows it; before both hosts have agreed, only for hosts.
    package func duel(_ duel: DuelID, as sender: Stage.Sender?) throws(StageRefusal) -> JSON {
        guard let committed else { throw .unknownStream }
        if let rejection = refusal(to: sender) { throw .rejected(rejection) }
        let json = duels.json(
            of: duel, duelSituation.tally, forModerator: sender.map(committed.isModerator) ?? false,
            at: environment.now().wall)
        guard let json else { throw .interaction(.unknownDuel) }
        return json
    }

    /// Handles a message from the opponent's stream.
    package func receive(_ message: DuelMessage) {
        // Without room for another change the message is dropped; the opponent repeats it.
        guard !isClosed, hasRoomToGather, stage != nil else { return }
        let before = duels.side.duels
        let (change, answer) = duels.receive(message, duelSituation, at: environment.now())
        if let answer { environment.duels(.message(answer)) }
        if let change {
            // Of what the store refuses nothing happens; the opponent repeats the message.
            try? keep(change, before)
        } else {
            // Without a change, the opponent's score may still be new.
            tellInteraction()
            scheduleTick()
        }
    }

    /// What the rules of duels depend on, and what has been counted so far.
    var duelSituation: DuelSide.Situation {
        let record = stage?.record
        return DuelSide.Situation(
            isLive: record?.phase == .live,
            isHostThere: record.map { stage?.isPresent($0.host) ?? false } ?? false,
            name: record.flatMap { $0.hostMember.name ?? $0.details.title },
            tally: DuelTally(
                gifts: interaction.committed.gifts.value, reactions: interaction.machine.counter.taps),
            tier: record?.details.gate?.tier,
            takesInvitations: interaction.committed.settings.takesDuels)
    }

    /// Makes a duel durable, together with the webhook events that follow from the change.
    private func keep(_ duel: Duel, _ before: [Duel]) throws(StageRefusal) {
        try enter([.duel(duel)], reporting: duelReports(duel, before))
    }

    /// The webhook events for the difference between a duel before and after a change.
    private func duelReports(_ duel: Duel, _ before: [Duel]) -> [CommitBatch.DuelReport] {
        let old = before.last { $0.id == duel.id }
        var names: [String] = []
        if duel.startsAt != nil, old?.startsAt == nil { names.append("duel.started") }
        if case .decided = duel.result, old?.result == nil { names.append("duel.ended") }
        let now = environment.now().wall
        return names.map {
            CommitBatch.DuelReport(type: $0, duel: duels.json(duel, duelSituation.tally, at: now))
        }
    }

    /// Applies what is due by now.
    func advanceDuels() {
        let before = duels.side.duels
        guard let duel = duels.advance(to: environment.now(), duelSituation) else { return }
        // What the store refuses is decided again a second later.
        try? keep(duel, before)
    }

    /// Ends the duel of a stream that ends.
    /// - Returns: what is to be made durable together with the end of the stream.
    func endDuel() -> (changes: [StreamChange], reports: [CommitBatch.DuelReport]) {
        let before = duels.side.duels
        guard let duel = duels.advance(to: environment.now(), duelSituation, isLast: true) else {
            return ([], [])
        }
        return ([.duel(duel)], duelReports(duel, before))
    }

    /// Sends opponents the last word of the duels in changes of an earlier programme under this stream's name.
    ///
    /// It is sent once, because this stream has forgotten these duels. An opponent who misses it waits for
    /// `Duel.settlingTime`.
    func tellFormerDuels(_ changes: ArraySlice<StreamChange>) {
        var former: [Duel] = []
        for case .duel(let duel) in changes { DuelSide.keep(duel, in: &former) }
        guard !former.isEmpty else { return }
        var side = DuelSide(of: id, restoring: former)
        for message in side.takeMessages(former, duelSituation, at: environment.now()) {
            environment.duels(.message(message))
        }
    }

    /// Sends what is durable to the opponent's stream, to followers and to the host, and has the opponent's host
    /// shown.
    func tellDuels() {
        let (now, situation) = (environment.now(), duelSituation)
        for message in duels.takeMessages(situation, at: now) { environment.duels(.message(message)) }
        if let opponent = duels.takeOpponent(at: now.wall) { environment.duels(.show(opponent, in: id)) }
        if let news = duels.takeNews(situation.tally, at: now) { interaction.show(duel: news) }
        if let text = duels.takeInvitation(situation.tally, at: now.wall), let host = committed?.host {
            sync.tell(text, to: host, of: .audience)
        }
    }

    /// Sends an open invitation to a host who connects; viewers do not see invitations.
    func tellInvitation(to sender: Stage.Sender) {
        guard sender.id == committed?.host,
            let text = duels.invitation(duelSituation.tally, at: environment.now().wall)
        else { return }
        sync.tell(text, to: sender.id, of: .audience)
    }
}
