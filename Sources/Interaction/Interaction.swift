import Base

/// What a stream's audience writes and taps: who may do what, how often, and what others may remove.
///
/// It decides in memory, immediately, and returns the changes that must be durable before anyone is notified. Whether
/// a participant may watch at all is checked elsewhere. It has no clock, no disk and no network.
package struct Interaction: Sendable {
    /// Latest comments kept of a stream; for a short time up to a quarter more.
    package static let commentLimit = 1_000
    /// Participants who may be silenced at the same time, not counting those whose time is over.
    package static let silenceLimit = 1_000
    /// Seconds for which a participant may be silenced: at most thirty days.
    package static let silenceRange = 1...2_592_000
    /// Most bytes of the key that a client gives its comment, or a shop its gift.
    package static let keyLength = 64
    /// Most taps of one kind counted in one message.
    private static let tapLimit = 1_000

    /// A participant with a token, as far as it matters here.
    package struct Person: Equatable, Sendable {
        /// The token's subject.
        package let id: ParticipantID
        /// Display name; nil if the token has none.
        package let name: String?
        /// The participant's current role in the stream.
        package let role: StreamComment.Role
        /// Whether the participant has a host's rights over others.
        package let isModerator: Bool
        /// Whether the participant may delete and pin comments of others and silence their authors.
        package let mayModerate: Bool
        /// Whether the participant may report gifts.
        package let isShop: Bool
        /// The tiers that the token names.
        package let tiers: Set<String>

        /// - Parameter isModerator: a host's rights include `mayModerate`.
        package init(
            id: ParticipantID, name: String?, role: StreamComment.Role, isModerator: Bool,
            mayModerate: Bool = false,
            isShop: Bool = false, tiers: Set<String> = []
        ) {
            self.tiers = tiers
            self.mayModerate = mayModerate || isModerator
            self.isShop = isShop
            self.id = id
            self.name = name
            self.role = role
            self.isModerator = isModerator
        }

        /// Whether the participant may comment if that requires a tier; hosts, speakers and moderators always may.
        func isMember(by tier: String) -> Bool {
            role != .viewer || mayModerate || tiers.contains(tier)
        }
    }

    /// A request of a participant.
    package enum Command: Equatable, Sendable {
        /// Write a comment; the same key again means the same comment.
        case comment(key: String, text: String)
        /// Delete a comment: one's own, or as a host or moderator that of another.
        case delete(Int)
        /// The same for a comment that is not in the record any more.
        case deleteArchived(StreamComment)
        /// Pin a comment, in place of the one before.
        case pin(Int)
        case unpin
        /// Silence a participant for some seconds.
        ///
        /// As a shadow, the participant can write, but is the only one to see it.
        case silence(ParticipantID, seconds: Int, isShadow: Bool = false)
        case unsilence(ParticipantID)
        /// Tap reactions: counts by kind since the last message.
        case react([String: Int])
        case edit(InteractionEdit)
        case openPoll(Poll.Draft)
        /// Choose options of the poll with this number; once only.
        case vote(Int, options: [Int])
        case closePoll(Int)
        case showCard(StreamCard)
        case removeCard
        /// Report a gift.
        ///
        /// The caller has looked in the ledger for its key, as far as it was read.
        case give(Gift.Draft)
    }

    /// The result of a command.
    package struct Outcome: Equatable, Sendable {
        /// Must be durable before anyone is notified.
        package var changes: [InteractionChange] = []
        /// The response to the requester.
        package var reply = Reply.done
    }

    /// The response to the requester.
    package enum Reply: Equatable, Sendable {
        /// Nothing but success.
        case done
        /// The comment as it was accepted, now or earlier.
        case comment(StreamComment)
        /// How many taps were counted; those beyond what a person can do are not.
        case counted(Int)
        /// The poll as it is now.
        case poll(Poll)
        /// The gift as it was accepted, now or earlier.
        case gift(Gift)
    }

    /// While a commit is in progress, it is ahead of what is durable.
    package private(set) var record: InteractionRecord
    /// Counts taps, including those not saved yet.
    package private(set) var counter: ReactionCounter
    /// What each participant has done lately; not durable.
    private var budgets = PersonBudgets()
    /// Comments that wait for an external decision.
    private var reviews = CommentReviews()
    /// The host's list of words, prepared for searching.
    private var unwanted: WordList
    /// Activity in the current minute.
    var tally = FanTally()

    /// Restores an audience; what participants did in the last moments is not part of a record.
    package init(restoring record: InteractionRecord = InteractionRecord()) {
        self.record = record
        counter = ReactionCounter(totals: record.totals, former: record.formerTaps)
        unwanted = WordList(record.settings.words)
    }

    /// Returns to a durable record because later changes could not be saved; taps not saved yet are kept.
    package mutating func revert(to record: InteractionRecord) {
        self.record = record
        unwanted = WordList(record.settings.words)
        counter.keep(record.settings.reactions)
        counter.revert(to: record.totals, former: record.formerTaps)
    }

    // MARK: Deciding

    /// Decides about a command, and applies its changes in memory.
    ///
    /// - Throws: a refusal, which changes nothing but the participant's rate limits.
    package mutating func apply(_ command: Command, from person: Person, at now: Moment) throws(Refusal)
        -> Outcome
    {
        // Not charged to the shop, which reports as many gifts as people give.
        if case .give(let draft) = command, person.isShop { return try give(draft, at: now.wall) }
        try charge(person, at: now.elapsed)
        var outcome = Outcome()
        switch command {
        case .comment(let key, let text):
            guard Self.isKey(key) else { throw .invalid("id") }
            if let known = record.comment(of: person.id, key: key) {
                return Outcome(reply: .comment(known))
            }
            return try write(try draft(key, text, person, now), at: now)
        case .react(let taps):
            let counted = try count(taps, person, now)
            if counted > 0 { tally.noteTap(of: person) }
            outcome.reply = .counted(counted)
        case .delete(let number):
            guard let comment = record.comment(number) else { throw .unknownComment }
            outcome.changes = [try delete(comment, by: person)]
        case .deleteArchived(let comment): outcome.changes = [try delete(comment, by: person)]
        case .vote(let number, let chosen):
            outcome.changes = try vote(in: number, for: chosen, person, at: now.wall)
        case .give: throw .notShop
        default: outcome.changes = try decideModeration(command, person, now)
        }
        if let entry = auditEntry(of: command, outcome.changes, by: person, at: now.wall) {
            outcome.changes.append(.audited(entry))
        }
        for change in outcome.changes { follow(change) }
        switch command {
        case .openPoll, .vote, .closePoll:
            if let poll = record.poll { outcome.reply = .poll(poll.seen(by: person.id)) }
        default: break
        }
        return outcome
    }

    /// Decides about a vote; no reference to the poll remains, with which counting would copy all votes.
    /// - Returns: no changes if it repeats the participant's answer.
    private func vote(
        in number: Int, for chosen: [Int], _ person: Person, at now: WallTime
    ) throws(Refusal) -> [InteractionChange] {
        guard let poll = record.poll, poll.number == number else { throw .unknownPoll }
        // Repeating the same answer, in whatever order, is not an error.
        let former = poll.vote(of: person.id)?.sorted()
        guard !poll.isOpen || former != chosen.sorted() else { return [] }
        if let refusal = poll.refusal(of: chosen, by: person.id, at: now) { throw refusal }
        guard poll.quiz == nil || !person.isModerator else { throw .knowsAnswer }
        let winner = poll.quiz?.winner(choosing: chosen, person, at: now)
        return [.voted(person.id, chosen)] + (winner.map { [.won($0)] } ?? [])
    }

    /// Decides about deleting a comment; a host's comments can only be deleted by hosts.
    private func delete(_ comment: StreamComment, by person: Person) throws(Refusal) -> InteractionChange {
        let isTheirs = person.isModerator || person.mayModerate && comment.role != .host
        guard isTheirs || comment.author == person.id else { throw .notModerator }
        return .deleted(comment.number)
    }

    /// Accepts a shop's gift, or recognizes a repeated report.
    private mutating func give(_ draft: Gift.Draft, at now: WallTime) throws(Refusal) -> Outcome {
        if let known = record.gifts.gift(draft.key) {
            guard known.isSame(as: draft) else { throw .giftKeyReused }
            return Outcome(reply: .gift(known))
        }
        let gift = try record.gifts.decide(draft, from: record.settings.gifts, at: now)
        follow(.gave(gift))
        return Outcome(changes: [.gave(gift)], reply: .gift(gift))
    }

    /// Applies a change in memory, including to what is derived from the settings.
    mutating func follow(_ change: InteractionChange) {
        record.apply(change)
        guard case .edited(let settings) = change else { return }
        unwanted = WordList(settings.words)
        counter.keep(settings.reactions)
    }

    /// Charges a participant for a request of any kind, also for one that will be refused.
    private mutating func charge(_ person: Person, at now: MonotonicTime) throws(Refusal) {
        try budgets.use(person, at: now) { budget throws(Refusal) in
            if let wait = budget.requests.wait(for: PersonBudgets.requests, at: now) {
                throw .tooFast(wait: wait)
            }
            _ = budget.requests.take(1, of: PersonBudgets.requests, at: now)
        }
    }

    // MARK: Comments

    /// The result of submitting a comment that needs an external decision.
    package enum Submission: Equatable, Sendable {
        /// It was written earlier.
        case known(StreamComment)
        /// It waits under this number, since it was first submitted.
        case waiting(Int)
        /// It now waits under this number, and the decision must be requested.
        case new(Int, CommentDraft)
    }

    /// Accepts a comment that complies with the rules, for an external decision; `judge` continues it.
    ///
    /// - Throws: a refusal, as `apply` does for a comment.
    package mutating func submit(
        _ key: String, _ text: String, from person: Person, at now: Moment
    ) throws(Refusal) -> Submission {
        try charge(person, at: now.elapsed)
        guard Self.isKey(key) else { throw .invalid("id") }
        if let known = record.comment(of: person.id, key: key) { return .known(known) }
        if let number = reviews.number(of: person.id, key: key) { return .waiting(number) }
        guard !reviews.isFull else { throw .tooFast(wait: 1) }
        let draft = try draft(key, text, person, now)
        return .new(reviews.append(draft), draft)
    }

    /// Records whether a comment may be shown.
    /// - Returns: the comments that continue now, in the order in which they were submitted; those that may be shown
    ///   have to be passed to `write`.
    package mutating func judge(_ number: Int, isShown: Bool) -> [CommentReviews.Judged] {
        reviews.judge(number, isShown: isShown)
    }

    /// Writes a comment if the rules still permit it; they may have changed while it waited.
    package mutating func write(_ draft: CommentDraft, at now: Moment) throws(Refusal) -> Outcome {
        let person = draft.person
        try requireVoice(of: person, for: draft.text, at: now.wall)
        let comment = StreamComment(
            number: record.lastNumber + 1, key: draft.key, author: person.id, name: person.name,
            role: person.role, text: draft.text, at: now.wall,
            isHidden: !person.isModerator && record.shadowed[person.id].map { $0 > now.wall } ?? false,
            isByModerator: person.mayModerate && person.role != .host)
        follow(.commented(comment))
        if !comment.isHidden { tally.noteComment(of: person) }
        return Outcome(changes: [.commented(comment)], reply: .comment(comment))
    }

    /// Checks whether a participant may comment.
    /// - Parameter text: cleaned; nil to check the author only.
    private func requireVoice(
        of person: Person, for text: String? = nil, at now: WallTime
    ) throws(Refusal) {
        guard record.settings.takesComments else { throw .commentsOff }
        guard !person.isModerator else { return }
        if let tier = record.settings.commentTier, !person.isMember(by: tier) { throw .membersOnly }
        if let until = record.silenced[person.id], until > now {
            throw .silenced(wait: Self.seconds(from: now, to: until))
        }
        if let text, unwanted.isIn(text) { throw .forbiddenWord }
    }

    /// Checks a comment against the rules and the author's rate limits.
    private mutating func draft(
        _ key: String, _ written: String, _ person: Person, _ now: Moment
    ) throws(Refusal) -> CommentDraft {
        // The author first: someone who may not write is told so, whatever is wrong with the text.
        try requireVoice(of: person, at: now.wall)
        let text = try CommentText(written).text
        try requireVoice(of: person, for: text, at: now.wall)
        let slowMode = person.role == .viewer && !person.isModerator ? record.settings.slowModeSeconds : 0
        try budgets.use(person, at: now.elapsed) { budget throws(Refusal) in
            if let last = budget.lastComment {
                let left = last + .seconds(slowMode) - now.elapsed
                if left > .zero {
                    throw .slowMode(wait: Int((left.wholeNanoseconds - 1) / 1_000_000_000) + 1)
                }
            }
            guard budget.comments.take(1, of: PersonBudgets.comments, at: now.elapsed) == 1 else {
                throw .tooFast(wait: budget.comments.wait(for: PersonBudgets.comments, at: now.elapsed) ?? 1)
            }
            budget.lastComment = now.elapsed
        }
        return CommentDraft(key: key, person: person, text: text)
    }

    /// Whether it is valid as a client's or a shop's key: 1 to `keyLength` visible ASCII characters.
    static func isKey(_ key: String) -> Bool {
        (1...keyLength).contains(key.utf8.count) && key.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }

    /// Counts taps, as far as the participant's rate permits.
    private mutating func count(_ taps: [String: Int], _ person: Person, _ now: Moment) throws(Refusal) -> Int
    {
        guard !taps.isEmpty, taps.values.allSatisfy({ $0 > 0 }) else { throw .invalid("reactions") }
        guard taps.keys.allSatisfy(record.settings.reactions.contains) else { throw .unknownReaction }
        // In the order of the settings, which does not depend on hashing.
        let wanted = record.settings.reactions.compactMap { kind in
            taps[kind].map { (kind: kind, taps: min($0, Self.tapLimit)) }
        }
        let counted = budgets.use(person, at: now.elapsed) { budget in
            wanted.map { ($0.kind, budget.taps.take($0.taps, of: PersonBudgets.taps, at: now.elapsed)) }
        }
        for (kind, taps) in counted where taps > 0 { counter.add(taps, of: kind) }
        return counted.reduce(0) { $0 + $1.1 }
    }

    /// Seconds between two times, rounded up.
    private static func seconds(from now: WallTime, to later: WallTime) -> Int {
        Int(clamping: (later.milliseconds - now.milliseconds + 999) / 1_000)
    }

    // MARK: Time

    /// When a poll closes automatically; nil if none does.
    package var pollDeadline: WallTime? { record.poll.flatMap { $0.isOpen ? $0.closesAt : nil } }

    /// Closes a poll whose time is over.
    /// - Parameter isLast: whether the stream ends, which closes any poll.
    package mutating func closePoll(at now: WallTime, isLast: Bool = false) -> [InteractionChange] {
        guard record.poll?.isOpen == true, isLast || pollDeadline.map({ $0 <= now }) ?? false else {
            return []
        }
        let change = InteractionChange.pollClosed(now)
        record.apply(change)
        return [change]
    }

    /// Forgets comments that were written before a time.
    /// - Parameter hasOlder: whether there are such comments that are not in the record any more.
    package mutating func forgetComments(
        before time: WallTime, hasOlder: Bool = false
    ) -> [InteractionChange] {
        guard hasOlder || record.hasComments(before: time) else { return [] }
        let change = InteractionChange.expired(before: time)
        record.apply(change)
        return [change]
    }

    /// The reaction counts to notify everyone of now; nil if nothing is due.
    package mutating func tellReactions(at now: MonotonicTime) -> [String: ReactionCounter.Count]? {
        counter.tell(at: now)
    }

    /// Returns the change that saves the reaction counts, if that is due.
    /// - Parameter isLast: whether there will be no later call.
    package mutating func saveReactions(at now: MonotonicTime, isLast: Bool = false) -> [InteractionChange] {
        guard let totals = counter.save(at: now, isLast: isLast) else { return [] }
        let change = InteractionChange.counted(totals)
        record.apply(change)
        return [change]
    }
}
