import Base
import Interaction
import Stage

/// What the audience says and taps.
extension StreamHost {
    /// What somebody is answered; must not block.
    package typealias Answer = @Sendable (Result<Interaction.Reply, StageRefusal>) -> Void

    /// Does what somebody of the audience wants.
    /// - Returns: once it is durable; taps, of which only the sum is written down now and then, at once.
    package func perform(
        _ command: Interaction.Command, from sender: Stage.Sender
    ) async throws(StageRefusal) -> Interaction.Reply {
        if case .give(let draft) = command, let known = try await ledgerGift(draft, from: sender) {
            return .gift(known)
        }
        var command = command
        if case .delete(let number) = command, let comment = try await archivedComment(number) {
            command = .deleteArchived(comment)
        }
        let result = await withCheckedContinuation { [command] continuation in
            perform(command, from: sender) { continuation.resume(returning: $0) }
        }
        return try result.get()
    }

    /// The same for those who cannot wait; of gifts, only for those of whom `ledgerGift` knows nothing.
    func perform(
        _ command: Interaction.Command, from sender: Stage.Sender, then answer: @escaping Answer
    ) {
        do throws(StageRefusal) {
            if let reviewer = environment.review, case .comment(let key, let text) = command {
                try review(key, text, from: sender, by: reviewer, then: answer)
            } else {
                reply(try interact(command, from: sender), to: answer)
            }
        } catch {
            answer(.failure(error))
        }
    }

    /// Answers once what was decided is durable.
    func reply(_ reply: Interaction.Reply, to answer: @escaping Answer) {
        if case .counted = reply { return answer(.success(reply)) }
        whenSettled { refusal in answer(refusal.map { .failure($0) } ?? .success(reply)) }
    }

    private func interact(
        _ command: Interaction.Command, from sender: Stage.Sender
    ) throws(StageRefusal) -> Interaction.Reply {
        let stage = try openStage(to: sender)
        let isOver = stage.record.phase == .ended
        switch command {
        case .comment, .react, .openPoll, .vote: try requireOpen(stage)
        case .give(let draft):
            // Who repeats it may come late.
            guard interaction.machine.record.gifts.gift(draft.key) == nil else { break }
            try requireOpen(stage)
        case .delete, .deleteArchived: break
        case .silence(let id, _, _) where id == stage.record.host:
            throw .interaction(
                stage.isModerator(sender) || sender.mayModerate ? .moderatorSpeaks : .notModerator)
        case .pin, .unpin, .silence, .unsilence, .edit, .closePoll, .showCard, .removeCard:
            guard !isOver else { throw .rejected(.ended) }
        }
        let person = Self.person(sender, on: stage)
        let outcome: Interaction.Outcome
        do throws(Interaction.Refusal) {
            outcome = try interaction.apply(command, from: person, at: environment.now())
        } catch {
            throw .interaction(error)
        }
        enter(outcome.changes.map { .interaction($0) })
        return outcome.reply
    }

    /// The stage, for somebody who may do something in its stream now.
    func openStage(to sender: Stage.Sender) throws(StageRefusal) -> Stage {
        guard !isClosed, hasRoomToGather else { throw .overloaded }
        guard let stage else { throw .unknownStream }
        if let rejection = stage.shutsOut(sender) { throw .rejected(rejection) }
        return stage
    }

    /// Whether the audience is there; else those who wait outside would read what is said backstage.
    func requireOpen(_ stage: Stage) throws(StageRefusal) {
        guard stage.record.phase != .ended else { throw .rejected(.ended) }
        guard stage.record.phase == .live || stage.areDoorsOpen else { throw .interaction(.notOpen) }
    }

    static func person(_ sender: Stage.Sender, on stage: Stage) -> Interaction.Person {
        Interaction.Person(
            id: sender.id, name: sender.name, role: Self.role(stage.standing(of: sender)),
            isModerator: stage.isModerator(sender), mayModerate: sender.mayModerate, isShop: sender.isShop,
            tiers: sender.tiers)
    }

    private static func role(_ standing: Stage.Standing) -> StreamComment.Role {
        switch standing {
        case .host: .host
        case .speaker: .speaker
        case .viewer: .viewer
        }
    }

    /// The latest poll, and what somebody chose in it.
    package func poll(_ number: Int, as sender: Stage.Sender?) throws(StageRefusal) -> JSON {
        guard let committed else { throw .unknownStream }
        if let rejection = refusal(to: sender) { throw .rejected(rejection) }
        guard let poll = interaction.committed.poll, poll.number == number else {
            throw .interaction(.unknownPoll)
        }
        var json = poll.json(forHost: sender.map(committed.isModerator) ?? false)
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
        for (id, text) in interaction.takeHidden() { sync.tell(text, to: id, of: .audience) }
        let leaders = interaction.leaders
        defer { if interaction.leaders != leaders { sync.isAudienceChanged = true } }
        for text in interaction.takeNews(for: sync.count, at: environment.now()) { sync.tell(text) }
    }

    /// Does what the audience's time brings.
    func advanceInteraction() {
        let now = environment.now()
        let watching = interaction.isMinuteOver(at: now.elapsed) ? watchers : []
        enter(interaction.advance(to: now, isLive: isLive, watching: watching))
    }

    /// Whether minutes are worth something to who takes part.
    var isLive: Bool { stage?.record.phase == .live }

    /// Who is there without the host, each once.
    private var watchers: [(id: ParticipantID, name: String?)] {
        let named = connections.values.compactMap(\.self).filter { $0.id != stage?.record.host }
        // In an order that hashing does not decide, by name too.
        let inOrder = named.sorted {
            ($0.id.description, $0.name ?? "") < ($1.id.description, $1.name ?? "")
        }
        var people: [(id: ParticipantID, name: String?)] = []
        for sender in inOrder where people.last?.id != sender.id {
            people.append((id: sender.id, name: sender.name))
        }
        return people
    }

    /// Has reactions written down before the server ends.
    func saveReactions() { enter(interaction.saveReactions(at: environment.now().elapsed)) }
}
