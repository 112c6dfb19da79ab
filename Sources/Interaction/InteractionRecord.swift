import Base

/// A change of an audience's record, which must be durable before anyone is notified.
package enum InteractionChange: Equatable, Sendable, Codable {
    case edited(InteractionSettings)
    case commented(StreamComment)
    case deleted(Int)
    /// The comment with this number is pinned, in place of the one before.
    case pinned(Int)
    case unpinned
    /// A participant is silenced; repeated, the new time applies.
    case silenced(ParticipantID, until: WallTime)
    /// The same, but without the participant noticing.
    case shadowed(ParticipantID, until: WallTime)
    case unsilenced(ParticipantID)
    case audited(AuditEntry)
    /// All reaction counts, by kind.
    case counted([String: Int])
    /// In place of the poll before.
    case pollOpened(Poll)
    case voted(ParticipantID, [Int])
    /// A participant was among the first to answer a quiz correctly; follows the vote.
    case won(Quiz.Winner)
    case pollClosed(WallTime)
    case gave(Gift)
    /// A minute has ended, with its participants' points.
    case cheered(FanMinute)
    /// In place of the card before.
    case cardShown(StreamCard)
    case cardRemoved
    /// Comments written before this time are forgotten.
    case expired(before: WallTime)
}

/// What is durable about a stream's audience.
///
/// It changes by `apply` only, so applying the same changes in order yields the same record.
package struct InteractionRecord: Equatable, Sendable, Codable {
    /// As the host has set them.
    package internal(set) var settings = InteractionSettings()
    /// The latest `Interaction.commentLimit`, the oldest first; earlier ones are kept elsewhere.
    package internal(set) var comments: [StreamComment] = []
    /// Number of the latest comment; 0 before the first.
    package internal(set) var lastNumber = 0
    /// A copy, which remains when the comment itself leaves `comments`.
    package internal(set) var pinned: StreamComment?
    /// Silenced participants and when that ends; at most `Interaction.silenceLimit`.
    package internal(set) var silenced: [ParticipantID: WallTime] = [:]
    /// Nil if there are none; also nil in records from before there were any.
    private var shadows: [ParticipantID: WallTime]?
    /// Participants whose comments only they see, and when that ends; with the silenced at most
    /// `Interaction.silenceLimit`.
    package var shadowed: [ParticipantID: WallTime] { shadows ?? [:] }
    private var audited: [AuditEntry]?
    /// The latest `AuditEntry.limit` entries, the oldest first.
    package var audit: ArraySlice<AuditEntry> { (audited ?? []).suffix(AuditEntry.limit) }
    /// Reaction counts by kind as last saved; only kinds that the settings name.
    package internal(set) var totals: [String: Int] = [:]
    /// Nil if there were none; also nil in records from before these were kept.
    private var former: Int?
    /// Taps of kinds that the settings no longer name.
    package var formerTaps: Int { former ?? 0 }

    /// The latest poll, open or not; nil before the first.
    package internal(set) var poll: Poll?
    /// The card that is shown now; nil if there is none.
    package internal(set) var card: StreamCard?
    /// Nil before the first gift.
    private var given: GiftTotals?
    /// Totals of the gifts so far.
    package var gifts: GiftTotals { given ?? GiftTotals() }
    /// Nil before the first points.
    private var points: Ranking?
    /// The participants with the most points; at most `FanMinute.fanLimit`.
    package var fans: Ranking { points ?? Ranking() }

    /// The record of a new stream.
    package init() {}

    /// Applies a change without checking it: that was done when it was decided.
    package mutating func apply(_ change: InteractionChange) {
        switch change {
        case .edited(let new):
            settings = new
            for (kind, taps) in totals where !new.reactions.contains(kind) {
                totals[kind] = nil
                former = ReactionCounter.sum(formerTaps, taps)
            }
        case .commented(let comment):
            lastNumber = comment.number
            comments.append(comment)
            // In portions, because moving all comments for each new one would cost more than the comment itself.
            if comments.count >= Interaction.commentLimit + Interaction.commentLimit / 4 {
                comments.removeFirst(comments.count - Interaction.commentLimit)
            }
        case .deleted(let number):
            if let index = index(of: number) { comments[index].text = "" }
            if pinned?.number == number { pinned = nil }
        case .pinned(let number): pinned = comment(number)
        case .unpinned: pinned = nil
        case .silenced(let id, let time):
            silenced[id] = time
            shadows?[id] = nil
        case .shadowed(let id, let time):
            silenced[id] = nil
            shadows = shadowed.merging([id: time]) { $1 }
        case .unsilenced(let id):
            silenced[id] = nil
            shadows?[id] = nil
        case .audited(let entry):
            audited = (audited ?? []) + [entry]
            if let count = audited?.count, count >= AuditEntry.limit + AuditEntry.limit / 4 {
                audited?.removeFirst(count - AuditEntry.limit)
            }
        case .counted(let totals): self.totals = totals
        case .pollOpened(let new): poll = new
        case .voted(let id, let chosen): poll?.count(chosen, of: id)
        case .won(let winner): poll?.quiz?.append(winner)
        case .pollClosed(let time): poll?.close(at: time)
        case .cardShown(let new): card = new
        case .cardRemoved: card = nil
        case .expired(let time): forgetComments(before: time)
        case .gave(let gift):
            // With a second reference, changing the totals would copy all gifts each time.
            var totals = gifts
            given = nil
            totals.apply(gift)
            given = totals
        case .cheered(let minute): apply(minute)
        }
    }

    private mutating func apply(_ minute: FanMinute) {
        // Without a second reference, as for gifts.
        var ranking = fans
        points = nil
        for person in minute.people {
            ranking.add(
                person.points, to: person.id, name: person.name,
                last: Int(clamping: minute.at.milliseconds / 60_000), limit: FanMinute.fanLimit, at: minute.at
            )
        }
        points = ranking
    }

    /// Forgets comments written before a time, and everything else that repeats their words.
    private mutating func forgetComments(before time: WallTime) {
        comments.removeFirst(comments.prefix { $0.at < time }.count)
        if let pinned, pinned.at < time { self.pinned = nil }
        audited = audited?.map { entry in
            guard entry.comment != nil, entry.at < time else { return entry }
            var entry = entry
            entry.text = nil
            return entry
        }
    }

    /// Whether `forgetComments` would change anything.
    package func hasComments(before time: WallTime) -> Bool {
        comments.first.map { $0.at < time } ?? false || pinned.map { $0.at < time } ?? false
            || audit.contains { $0.text != nil && $0.comment != nil && $0.at < time }
    }

    /// A comment by number; nil if it is not in the record any more, or was deleted.
    package func comment(_ number: Int) -> StreamComment? {
        guard let index = index(of: number), !comments[index].isDeleted else { return nil }
        return comments[index]
    }

    /// The index of a comment; computed from the first one's number, because the numbers have no gaps.
    private func index(of number: Int) -> Int? {
        guard let first = comments.first?.number, number >= first, number <= lastNumber else { return nil }
        let index = number - first
        return comments.indices.contains(index) ? index : nil
    }

    /// A comment by the key that its author's client gave it, deleted or not.
    func comment(of author: ParticipantID, key: String) -> StreamComment? {
        comments.last { $0.key == key && $0.author == author }
    }

    /// A page of comments in order, without deleted ones.
    /// - Parameters:
    ///   - before: only comments with lower numbers; nil for no bound.
    ///   - after: only comments with higher numbers, and the first of them instead of the last.
    ///   - reader: a participant whose own hidden comments are included; nil for none.
    /// - Returns: at most `limit` comments, and whether there are more in that direction.
    package func page(before: Int? = nil, after: Int? = nil, limit: Int, for reader: ParticipantID? = nil)
        -> (
            comments: [StreamComment], isMore: Bool
        )
    {
        let chosen = comments.lazy.filter {
            !$0.isDeleted && (!$0.isHidden || $0.author == reader) && $0.number < before ?? .max
                && $0.number > after ?? .min
        }
        if after != nil {
            let page = Array(chosen.prefix(limit + 1))
            return (Array(page.prefix(limit)), page.count > limit)
        }
        let page = Array(chosen.reversed().prefix(limit + 1))
        return (page.prefix(limit).reversed(), page.count > limit)
    }

    /// A page of comments that everyone may see and that were written within a range of time, in order.
    /// - Parameter number: only comments with higher numbers.
    /// - Returns: at most `limit` comments, and whether there are more.
    package func page(
        writtenIn time: Range<WallTime>, after number: Int, limit: Int
    ) -> (comments: [StreamComment], isMore: Bool) {
        let chosen = comments.lazy.filter {
            !$0.isDeleted && !$0.isHidden && $0.number > number && time.contains($0.at)
        }
        let page = Array(chosen.prefix(limit + 1))
        return (Array(page.prefix(limit)), page.count > limit)
    }
}
