import Base

/// What hosts and moderators take away, show and change.
extension Interaction {
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
            // Whom the host has silenced does not take that back, whatever their token says.
            guard person.isModerator || id != person.id else { throw .notModerator }
            guard record.silenced[id] != nil || record.shadowed[id] != nil else { throw .notSilenced }
            return [.unsilenced(id)]
        case .edit(let edit):
            let settings = edit.applied(to: record.settings)
            try settings.validate()
            // Sums of two currencies would mean nothing.
            if let used = record.gifts.currency, let gifts = settings.gifts, gifts.currency != used {
                throw .otherCurrency(used)
            }
            guard settings != record.settings else { return [] }
            // What is remembered of a kind that goes has the taps that were not written down yet.
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

    /// What is remembered of who did it; nil for what everybody may do, or sees who did.
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
    /// What moderators may do as well: with what somebody wrote, and with who did.
    fileprivate var isOfComments: Bool {
        switch self {
        case .pin, .unpin, .silence, .unsilence: true
        default: false
        }
    }
}

/// Who took what away or showed it, for hosts to look at later.
package struct AuditEntry: Equatable, Sendable, Codable {
    /// What was done.
    package enum Action: String, Sendable, Codable {
        case deleted, pinned, unpinned, silenced, shadowed, unsilenced
        case cardShown = "card-shown"
        case cardRemoved = "card-removed"
    }

    /// The latest ones of a stream are kept; a quarter more for moments.
    package static let limit = 200
    /// In characters, of a text.
    private static let textLength = 100

    package internal(set) var action: Action
    /// Who did it.
    package let by: ParticipantID
    /// For people; nil where their token has none.
    package let name: String?
    /// By the server's clock.
    package let at: WallTime
    /// Whom it is about; nil for what is about nobody.
    package internal(set) var participant: ParticipantID?
    /// The number of the comment that it is about.
    package internal(set) var comment: Int?
    /// How that begins, or a card's title.
    package internal(set) var text: String?
    /// When it ends by itself.
    package internal(set) var until: WallTime?

    fileprivate init(action: Action, by: ParticipantID, name: String?, at: WallTime) {
        self.action = action
        self.by = by
        self.name = name
        self.at = at
    }

    fileprivate mutating func note(_ comment: StreamComment) {
        participant = comment.author
        self.comment = comment.number
        text = String(comment.text.prefix(Self.textLength))
    }
}
