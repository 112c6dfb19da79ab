import Base

/// One thing that an audience did, to be remembered before anybody is told.
package enum InteractionChange: Equatable, Sendable, Codable {
    case edited(InteractionSettings)
    case commented(StreamComment)
    case deleted(Int)
    /// In place of the one that was pinned.
    case pinned(Int)
    case unpinned
    /// Again, it ends at the new time.
    case silenced(ParticipantID, until: WallTime)
    /// The same, but they do not know.
    case shadowed(ParticipantID, until: WallTime)
    case unsilenced(ParticipantID)
    case audited(AuditEntry)
    /// All reactions so far, by kind.
    case counted([String: Int])
    /// In place of the one before.
    case pollOpened(Poll)
    case voted(ParticipantID, [Int])
    /// After the vote with which somebody was among the first who were right in a quiz.
    case won(Quiz.Winner)
    case pollClosed(WallTime)
    case gave(Gift)
    /// A minute of those who took part is over.
    case cheered(FanMinute)
    /// In place of the one before.
    case cardShown(StreamCard)
    case cardRemoved
    /// Comments that were written before are forgotten.
    case expired(before: WallTime)
}

/// What is remembered of a stream's audience.
///
/// Changes only by `apply`, so that the changes in order give the same record again.
package struct InteractionRecord: Equatable, Sendable, Codable {
    package internal(set) var settings = InteractionSettings()
    /// The latest `Interaction.commentLimit`, the oldest first; those before are kept elsewhere.
    package internal(set) var comments: [StreamComment] = []
    /// Of the latest comment; 0 before the first.
    package internal(set) var lastNumber = 0
    /// A copy, which stays when the comment itself is forgotten.
    package internal(set) var pinned: StreamComment?
    /// Until when; at most `Interaction.silenceLimit`.
    package internal(set) var silenced: [ParticipantID: WallTime] = [:]
    /// Nil for nobody, as it was when there were no shadows.
    private var shadows: [ParticipantID: WallTime]?
    /// Who writes for themselves alone, until when; with the silenced at most `Interaction.silenceLimit`.
    package var shadowed: [ParticipantID: WallTime] { shadows ?? [:] }
    private var audited: [AuditEntry]?
    /// The latest `AuditEntry.limit`, the oldest first.
    package var audit: ArraySlice<AuditEntry> { (audited ?? []).suffix(AuditEntry.limit) }
    /// By kind, as of when they were last written down; only kinds that the settings name.
    package internal(set) var totals: [String: Int] = [:]
    /// Nil where there were none, as it was when they were forgotten.
    private var former: Int?
    /// Of kinds that the settings no longer name.
    package var formerTaps: Int { former ?? 0 }

    /// The latest, open or not; nil before the first.
    package internal(set) var poll: Poll?
    /// What is shown now; nil for nothing.
    package internal(set) var card: StreamCard?
    /// Nil before the first gift.
    private var given: GiftTotals?
    /// What was given so far.
    package var gifts: GiftTotals { given ?? GiftTotals() }
    /// Nil before the first point.
    private var points: Ranking?
    /// Who took part most; at most `FanMinute.fanLimit`.
    package var fans: Ranking { points ?? Ranking() }

    package init() {}

    /// Takes over what was decided; never asks whether it was right.
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
            // In portions: to move all of them for each new one would cost more than the comment.
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
            // Not two copies, or every gift would copy the others.
            var totals = gifts
            given = nil
            totals.apply(gift)
            given = totals
        case .cheered(let minute): apply(minute)
        }
    }

    private mutating func apply(_ minute: FanMinute) {
        // Not two copies, as with gifts.
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

    /// With what else repeats their words.
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

    /// Whether anything would be forgotten of comments that were written before.
    package func hasComments(before time: WallTime) -> Bool {
        comments.first.map { $0.at < time } ?? false || pinned.map { $0.at < time } ?? false
            || audit.contains { $0.text != nil && $0.comment != nil && $0.at < time }
    }

    /// Nil for one that is not known any more, or was deleted.
    package func comment(_ number: Int) -> StreamComment? {
        guard let index = index(of: number), !comments[index].isDeleted else { return nil }
        return comments[index]
    }

    /// Numbers have no gaps, so that the place follows from the first one.
    private func index(of number: Int) -> Int? {
        guard let first = comments.first?.number, number >= first, number <= lastNumber else { return nil }
        let index = number - first
        return comments.indices.contains(index) ? index : nil
    }

    /// The one that somebody's client calls so, deleted or not.
    func comment(of author: ParticipantID, key: String) -> StreamComment? {
        comments.last { $0.key == key && $0.author == author }
    }

    /// Comments in order, of which none was deleted.
    /// - Parameters:
    ///   - before: only those with a lower number; nil for no bound.
    ///   - after: only those with a higher number: the first of them are given instead of the last.
    ///   - reader: who also sees what only they may see; nil for nobody.
    /// - Returns: at most `limit`, and whether there are more on that side.
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

    /// Comments that all may see, written within some time, in order.
    /// - Parameter number: only those with a higher one.
    /// - Returns: at most `limit`, and whether there are more.
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
