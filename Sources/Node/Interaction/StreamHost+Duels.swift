import Base
import Interaction
import Stage

/// What leaves a stream because of a duel.
package enum DuelOrder: InboxElement {
    /// To the opponent's stream.
    case message(DuelMessage)
    /// Whose host a stream shows beside its own; nil for nobody.
    case show(StreamID?, in: StreamID)

    package enum Topic: Hashable, Sendable {
        case message(DuelID, to: StreamID)
        case show(StreamID)
    }

    /// A later message says all that an earlier one did.
    package var topic: Topic? {
        switch self {
        case .message(let message): .message(message.id, to: message.to)
        case .show(_, let stream): .show(stream)
        }
    }

    package var isNeeded: Bool {
        // What gets lost is said again.
        if case .message = self { false } else { true }
    }
}

/// Duels with other streams.
extension StreamHost {
    /// Does what the host wants.
    /// - Parameter isOpponentLive: of who is invited, as far as is known here.
    /// - Returns: the duel, once what was decided is durable.
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
        if !before.contains(duel) { keep(duel, before) }
        try await settled()
        let current = duels.committed.last { $0.id == duel.id } ?? duel
        return duels.json(current, duelSituation.tally, at: environment.now().wall)
    }

    /// Which streams a duel is between.
    package func sides(of duel: DuelID) throws(StageRefusal) -> (from: StreamID, to: StreamID) {
        guard let duel = duels.committed.last(where: { $0.id == duel }) else {
            throw .interaction(.unknownDuel)
        }
        let (from, to) = duel.sides
        return (from.stream, to.stream)
    }

    /// A duel as this stream knows it; what hosts have not agreed on is for hosts.
    package func duel(_ duel: DuelID, as sender: Stage.Sender?) throws(StageRefusal) -> JSON {
        guard let committed else { throw .unknownStream }
        if let rejection = refusal(to: sender) { throw .rejected(rejection) }
        let json = duels.json(
            of: duel, duelSituation.tally, forModerator: sender.map(committed.isModerator) ?? false,
            at: environment.now().wall)
        guard let json else { throw .interaction(.unknownDuel) }
        return json
    }

    /// Takes in what the opponent's stream says.
    package func receive(_ message: DuelMessage) {
        // Where nothing more can gather it is lost, and said again.
        guard !isClosed, hasRoomToGather, stage != nil else { return }
        let before = duels.side.duels
        let (change, answer) = duels.receive(message, duelSituation, at: environment.now())
        if let answer { environment.duels(.message(answer)) }
        if let change {
            keep(change, before)
        } else {
            tellInteraction()
            scheduleTick()
        }
    }

    /// What a duel counts, and what it depends on.
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

    /// Has a duel remembered, and webhooks told that it began or what came of it.
    private func keep(_ duel: Duel, _ before: [Duel]) {
        enter([.duel(duel)], reporting: duelReports(duel, before))
    }

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

    /// Does what time brings.
    func advanceDuels() {
        let before = duels.side.duels
        guard let duel = duels.advance(to: environment.now(), duelSituation) else { return }
        keep(duel, before)
    }

    /// The last word of a stream that ends.
    func endDuel() -> (changes: [StreamChange], reports: [CommitBatch.DuelReport]) {
        let before = duels.side.duels
        guard let duel = duels.advance(to: environment.now(), duelSituation, isLast: true) else {
            return ([], [])
        }
        return ([.duel(duel)], duelReports(duel, before))
    }

    /// Tells the opponent's stream, followers and the host what is durable, and has the opponent's host shown.
    func tellDuels() {
        let (now, situation) = (environment.now(), duelSituation)
        for message in duels.takeMessages(situation, at: now) { environment.duels(.message(message)) }
        if let opponent = duels.takeOpponent(at: now.wall) { environment.duels(.show(opponent, in: id)) }
        if let news = duels.takeNews(situation.tally, at: now) { interaction.show(duel: news) }
        if let text = duels.takeInvitation(situation.tally, at: now.wall), let host = committed?.host {
            sync.tell(text, to: host, of: .audience)
        }
    }

    /// What is told to somebody who comes, beside all that viewers see.
    func tellInvitation(to sender: Stage.Sender) {
        guard sender.id == committed?.host,
            let text = duels.invitation(duelSituation.tally, at: environment.now().wall)
        else { return }
        sync.tell(text, to: sender.id, of: .audience)
    }
}
