import Base

/// Decisions about what hosts and moderators remove, show and change.
extension Interaction {
    /// Decides about a command of a host or moderator.
    ///
    /// - Returns: the changes; none if the state is already as requested.
    func decideModeration(
        _ command: Command, _ person: Person, _ now: Moment
    ) throws(Refusal) -> [InteractionChange] {
        guard person.isModerator || person.mayModerate && command.isOfComments else { throw .notModerator }
        switch command {
        case .pin(let number):
            guard let comment = record.comment(number), !comment.isHidden else { throw .unknownComment }
            return record.pinned?.number == number ? [] : [.pinned(number)]
        case .unpin: return record.pinned == nil ? [] : [.unpinned]
        case .silence(let id, let seconds, let isShadow):
            return try silence(id, seconds, isShadow, by: person, at: now.wall)
        case .unsilence(let id):
            // A participant whom the host has silenced cannot undo that, whatever their token permits.
            guard person.isModerator || id != person.id else { throw .notModerator }
            guard record.silenced[id] != nil || record.shadowed[id] != nil else { throw .notSilenced }
            return [.unsilenced(id)]
        case .edit(let edit):
            let settings = edit.applied(to: record.settings)
            try settings.validate()
            // A sum over two currencies would have no meaning.
            if let used = record.gifts.currency, let gifts = settings.gifts, gifts.currency != used {
                throw .otherCurrency(used)
            }
            guard settings != record.settings else { return [] }
            // A removed kind keeps its taps in the total of all taps, so those not saved yet must be saved first.
            let isKindGone = counter.totals.keys.contains { !settings.reactions.contains($0) }
            return (isKindGone ? [.counted(counter.totals)] : []) + [.edited(settings)]
        case .openPoll(let draft):
            guard record.poll?.isOpen != true else { throw .pollOpen }
            return [.pollOpened(try Poll(draft, number: (record.poll?.number ?? 0) + 1, at: now.wall))]
        case .closePoll(let number):
            guard let poll = record.poll, poll.number == number else { throw .unknownPoll }
            return poll.isOpen ? [.pollClosed(now.wall)] : []
        case .showCard(let card):
            let cleaned = try card.cleaned()
            return record.card == cleaned ? [] : [.cardShown(cleaned)]
        case .removeCard: return record.card == nil ? [] : [.cardRemoved]
        case .comment, .react, .delete, .deleteArchived, .vote, .give:
            assertionFailure("only moderation is decided here")
            return []
        }
    }

    /// Silences a participant, after removing those whose time is over, since their number is limited.
    private func silence(
        _ id: ParticipantID, _ seconds: Int, _ isShadow: Bool, by person: Person, at now: WallTime
    ) throws(Refusal) -> [InteractionChange] {
        guard Self.silenceRange.contains(seconds) else { throw .invalid("seconds") }
        guard id != person.id else { throw .moderatorSpeaks }
        let all = record.silenced.merging(record.shadowed) { max($0, $1) }
        let over = all.filter { $0.value <= now }.map(\.key)
        guard all[id] != nil || all.count - over.count < Self.silenceLimit else { throw .tooManySilenced }
        let forgotten = over.filter { $0 != id }.sorted { $0.description < $1.description }
        let until = now.advanced(bySeconds: seconds)
        return forgotten.map { .unsilenced($0) }
            + [isShadow ? .shadowed(id, until: until) : .silenced(id, until: until)]
    }

    /// The audit entry for a command; nil for commands that anyone may give, or whose author everyone sees.
    func auditEntry(
        of command: Command, _ changes: [InteractionChange], by person: Person, at now: WallTime
    ) -> AuditEntry? {
        guard let last = changes.last else { return nil }
        var entry = AuditEntry(action: .unpinned, by: person.id, name: person.name, at: now)
        switch (command, last) {
        case (.delete(let number), _):
            guard let comment = record.comment(number), comment.author != person.id else { return nil }
            entry.action = .deleted
            entry.note(comment)
        case (.deleteArchived(let comment), _):
            guard comment.author != person.id else { return nil }
            entry.action = .deleted
            entry.note(comment)
        case (.pin(let number), _):
            entry.action = .pinned
            if let comment = record.comment(number) { entry.note(comment) }
        case (.unpin, _): break
        case (.silence, .silenced(let id, let until)):
            (entry.action, entry.participant, entry.until) = (.silenced, id, until)
        case (.silence, .shadowed(let id, let until)):
            (entry.action, entry.participant, entry.until) = (.shadowed, id, until)
        case (.unsilence(let id), _): (entry.action, entry.participant) = (.unsilenced, id)
        case (.showCard(let card), _): (entry.action, entry.text) = (.cardShown, card.title)
        case (.removeCard, _): entry.action = .cardRemoved
        default: return nil
        }
        return entry
    }
}

extension Interaction.Command {
    /// Whether moderators may give the command as well: it is about a comment or about its author.
    fileprivate var isOfComments: Bool {
        switch self {
        case .pin, .unpin, .silence, .unsilence: true
        default: false
        }
    }
}

/// An entry of the audit log: who removed or showed something, for hosts to look at later.
package struct AuditEntry: Equatable, Sendable, Codable {
    /// What was done.
    package enum Action: String, Sendable, Codable {
        case deleted, pinned, unpinned, silenced, shadowed, unsilenced
        case cardShown = "card-shown"
        case cardRemoved = "card-removed"
    }

    /// Latest entries kept per stream; for a short time up to a quarter more.
    package static let limit = 200
    /// Most characters of a comment's text in an entry.
    private static let textLength = 100

    /// What was done.
    package internal(set) var action: Action
    /// Who did it.
    package let by: ParticipantID
    /// Display name; nil if the token has none.
    package let name: String?
    /// When it was done, by the server's clock.
    package let at: WallTime
    /// The participant concerned; nil if there is none.
    package internal(set) var participant: ParticipantID?
    /// The number of the comment concerned; nil if there is none.
    package internal(set) var comment: Int?
    /// The beginning of the comment, or the card's title; nil if there is none, or if it was forgotten.
    package internal(set) var text: String?
    /// When the silencing ends; nil for other actions.
    package internal(set) var until: WallTime?

    fileprivate init(action: Action, by: ParticipantID, name: String?, at: WallTime) {
        self.action = action
        self.by = by
        self.name = name
        self.at = at
    }

    /// Records which comment the action is about.
    fileprivate mutating func note(_ comment: StreamComment) {
        participant = comment.author
        self.comment = comment.number
        text = String(comment.text.prefix(Self.textLength))
    }
}
