import Base
import Interaction
import Stage

/// Commands of the audience: comments, reactions, votes, gifts and moderation.
extension StreamHost {
    /// Receives the result of a command; must not block.
    package typealias Answer = @Sendable (Result<Interaction.Reply, StageRefusal>) -> Void

    /// Applies a command of a member of the audience.
    /// - Returns: the reply, once the change is durable. Reactions are answered immediately, because only their sums
    ///   are saved, from time to time.
    package func perform(
        _ command: Interaction.Command, from sender: Stage.Sender
    ) async throws(StageRefusal) -> Interaction.Reply {
        // A gift or a comment that is no longer in memory has to be read from the store before the decision.
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

    /// Applies a command without awaiting the result.
    ///
    /// For a gift, `ledgerGift` must have returned nil immediately before. A deletion of an archived comment has to
    /// come as `deleteArchived`.
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

    /// Answers once the decision is durable.
    func reply(_ reply: Interaction.Reply, to answer: @escaping Answer) {
        if case .counted = reply { return answer(.success(reply)) }
        whenSettled { refusal in answer(refusal.map { .failure($0) } ?? .success(reply)) }
    }

    /// Checks what the stage knows, such as bans and the phase of the stream, then applies the command.
    private func interact(
        _ command: Interaction.Command, from sender: Stage.Sender
    ) throws(StageRefusal) -> Interaction.Reply {
        let stage = try openStage(to: sender)
        let isOver = stage.record.phase == .ended
        switch command {
        case .comment, .react, .openPoll, .vote: try requireOpen(stage)
        case .give(let draft):
            // The shop may repeat a gift after the stream has ended; the answer is then the gift that is known.
            guard interaction.machine.record.gifts.gift(draft.key) == nil else { break }
            try requireOpen(stage)
        case .delete, .deleteArchived: break
        // The host cannot be silenced; the refusal depends on whether the sender could silence anyone.
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
        try enter(outcome.changes.map { .interaction($0) })
        return outcome.reply
    }

    /// The stage, if the sender may act in its stream now.
    /// - Throws: `.overloaded` if no more changes can wait for the store, `.unknownStream`, or why the sender is shut
    ///   out.
    func openStage(to sender: Stage.Sender) throws(StageRefusal) -> Stage {
        guard !isClosed, hasRoomToGather else { throw .overloaded }
        guard let stage else { throw .unknownStream }
        if let rejection = stage.shutsOut(sender) { throw .rejected(rejection) }
        return stage
    }

    /// Throws unless the audience has been let in; otherwise people who wait outside could read what is said
    /// backstage.
    func requireOpen(_ stage: Stage) throws(StageRefusal) {
        guard stage.record.phase != .ended else { throw .rejected(.ended) }
        guard stage.record.phase == .live || stage.areDoorsOpen else { throw .interaction(.notOpen) }
    }

    /// The sender as the rules of interaction see them: role and rights, as of now.
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

    /// The latest poll, and the sender's vote in it.
    /// - Throws: `.interaction(.unknownPoll)` if `number` is not that of the latest poll.
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

    /// The log of moderation, the latest entry last; for hosts only.
    package func audit(as sender: Stage.Sender) throws(StageRefusal) -> JSON {
        _ = try look(as: sender)
        guard let committed, committed.isModerator(sender) else { throw .rejected(.notHost) }
        return .object(["entries": .array(interaction.committed.audit.map(\.json))])
    }

    /// What the audience may do; moderators see all settings.
    package func interactionSettings(as sender: Stage.Sender?) throws(StageRefusal) -> JSON {
        guard let committed else { throw .unknownStream }
        if let rejection = refusal(to: sender) { throw .rejected(rejection) }
        return interaction.settings(
            forModerator: sender.map { committed.isModerator($0) || $0.mayModerate } ?? false,
            at: environment.now().wall)
    }

    /// Sends followers what is new of the audience, and the opponent's stream what is new of a duel.
    func tellInteraction() {
        tellDuels()
        for (id, text) in interaction.takeHidden() { sync.tell(text, to: id, of: .audience) }
        let leaders = interaction.leaders
        // The list of those who are there begins with the leaders, so it changes with them.
        defer { if interaction.leaders != leaders { sync.isAudienceChanged = true } }
        for text in interaction.takeNews(for: sync.count, at: environment.now()) { sync.tell(text) }
    }

    /// Applies what is due by now for the audience.
    func advanceInteraction() {
        let now = environment.now()
        // Collected only once a minute: it walks over all connections.
        let watching = interaction.isMinuteOver(at: now.elapsed) ? watchers : []
        // What the store refuses is taken back, and due again.
        try? enter(interaction.advance(to: now, isLive: isLive, watching: watching))
    }

    /// Whether taking part counts for the ranks of fans.
    var isLive: Bool { stage?.record.phase == .live }

    /// The participants who are connected, without the host, each once.
    private var watchers: [(id: ParticipantID, name: String?)] {
        let named = connections.values.compactMap(\.self).filter { $0.id != stage?.record.host }
        // Sorted by name as well, so that the result does not depend on hashing if a participant has two names.
        let inOrder = named.sorted {
            ($0.id.description, $0.name ?? "") < ($1.id.description, $1.name ?? "")
        }
        var people: [(id: ParticipantID, name: String?)] = []
        for sender in inOrder where people.last?.id != sender.id {
            people.append((id: sender.id, name: sender.name))
        }
        return people
    }

    /// Saves reactions before the server stops; those that the store refuses are lost.
    func saveReactions() { try? enter(interaction.saveReactions(at: environment.now().elapsed)) }
}
