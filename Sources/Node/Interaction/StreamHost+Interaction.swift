import Base
import Interaction
import Stage

/// What the audience says and taps.
extension StreamHost {
    /// Does what somebody of the audience wants.
    /// - Returns: once it is durable; taps, of which only the sum is written down now and then, at once.
    package func perform(
        _ command: Interaction.Command, from sender: Stage.Sender
    ) async throws(StageRefusal) -> Interaction.Reply {
        if case .give(let draft) = command, let known = try await ledgerGift(draft, from: sender) {
            return .gift(known)
        }
        let reply = try interact(command, from: sender)
        if case .counted = reply { return reply }
        try await settled()
        return reply
    }

    private func interact(
        _ command: Interaction.Command, from sender: Stage.Sender
    ) throws(StageRefusal) -> Interaction.Reply {
        guard !isClosed, hasRoomToGather else { throw .overloaded }
        guard let stage else { throw .unknownStream }
        if let rejection = stage.shutsOut(sender) { throw .rejected(rejection) }
        let isOver = stage.record.phase == .ended
        switch command {
        case .comment, .react, .openPoll, .vote:
            guard !isOver else { throw .rejected(.ended) }
            // Else those who wait outside would read what is said backstage.
            guard stage.record.phase == .live || stage.areDoorsOpen else { throw .interaction(.notOpen) }
        case .give(let draft):
            // Who repeats it may come late.
            guard interaction.machine.record.gifts.gift(draft.key) == nil else { break }
            guard !isOver else { throw .rejected(.ended) }
            guard stage.record.phase == .live || stage.areDoorsOpen else { throw .interaction(.notOpen) }
        case .delete: break
        case .silence(let id, _, _) where id == stage.record.host:
            throw .interaction(
                stage.isModerator(sender) || sender.mayModerate ? .moderatorSpeaks : .notModerator)
        case .pin, .unpin, .silence, .unsilence, .edit, .closePoll, .showCard, .removeCard:
            guard !isOver else { throw .rejected(.ended) }
        }
        let person = Interaction.Person(
            id: sender.id, name: sender.name, role: Self.role(stage.standing(of: sender)),
            isModerator: stage.isModerator(sender), mayModerate: sender.mayModerate, isShop: sender.isShop)
        let outcome: Interaction.Outcome
        do throws(Interaction.Refusal) {
            outcome = try interaction.apply(command, from: person, at: environment.now())
        } catch {
            throw .interaction(error)
        }
        enter(outcome.changes.map { .interaction($0) })
        return outcome.reply
    }

    private static func role(_ standing: Stage.Standing) -> StreamComment.Role {
        switch standing {
        case .host: .host
        case .speaker: .speaker
        case .viewer: .viewer
        }
    }

    /// Comments for those who did not hear them.
    package func comments(
        before: Int?, after: Int?, limit: Int, as sender: Stage.Sender? = nil
    ) throws(StageRefusal) -> JSON {
        guard committed != nil else { throw .unknownStream }
        return interaction.page(before: before, after: after, limit: limit, for: sender?.id)
    }

    /// The latest poll, and what somebody chose in it.
    package func poll(_ number: Int, as sender: Stage.Sender?) throws(StageRefusal) -> JSON {
        guard committed != nil else { throw .unknownStream }
        if let rejection = refusal(to: sender) { throw .rejected(rejection) }
        guard let poll = interaction.committed.poll, poll.number == number else {
            throw .interaction(.unknownPoll)
        }
        var json = poll.json
        let vote = sender.flatMap { poll.vote(of: $0.id) }
        json["vote"] = vote.map { .array($0.map { .integer($0) }) } ?? .null
        return json
    }

    /// Who took what away or showed it, the latest last; for hosts.
    package func audit(as sender: Stage.Sender) throws(StageRefusal) -> JSON {
        _ = try look(as: sender)
        guard let committed, committed.isModerator(sender) else { throw .rejected(.notHost) }
        return .object(["entries": .array(interaction.committed.audit.map(\.json))])
    }

    /// What the audience may do; hosts see all of it.
    package func interactionSettings(as sender: Stage.Sender?) throws(StageRefusal) -> JSON {
        guard let committed else { throw .unknownStream }
        if let rejection = refusal(to: sender) { throw .rejected(rejection) }
        return interaction.settings(
            forModerator: sender.map { committed.isModerator($0) || $0.mayModerate } ?? false,
            at: environment.now().wall)
    }

    /// Tells followers what the audience did.
    func tellInteraction() {
        tellDuels()
        for (id, text) in interaction.takeHidden() { sync.tell(text, to: id) }
        for text in interaction.takeNews(for: sync.count, at: environment.now().elapsed) { sync.tell(text) }
    }

    /// Does what the audience's time brings.
    func advanceInteraction() { enter(interaction.advance(to: environment.now())) }

    /// Has reactions written down before the server ends.
    func saveReactions() { enter(interaction.saveReactions(at: environment.now().elapsed)) }
}
