import Base

/// What a stream's audience says and taps: who may, how often, and what others may take away.
///
/// Decides in memory, at once, and says what has to be remembered before anybody may be told. Whether somebody may
/// watch is not asked here. Knows neither a clock nor a disk nor a network.
package struct Interaction: Sendable {
    /// Kept of a stream, the latest ones; a quarter more for moments.
    package static let commentLimit = 1_000
    /// Silenced at once; of those whose time is over none counts.
    package static let silenceLimit = 1_000
    /// In seconds: at most thirty days.
    package static let silenceRange = 1...2_592_000
    /// In bytes, of a client's name for its comment, or a shop's for its gift.
    package static let keyLength = 64
    /// Of one kind in one message; more are not looked at.
    private static let tapLimit = 1_000

    /// Somebody with a token, as far as this has to know.
    package struct Person: Equatable, Sendable {
        /// The token's subject.
        package let id: ParticipantID
        /// Shown to others; nil where the token has none.
        package let name: String?
        /// What they are in the stream now.
        package let role: StreamComment.Role
        /// Whether they have a host's rights over others.
        package let isModerator: Bool
        /// Whether they may take away what others wrote, silence them and pin.
        package let mayModerate: Bool
        /// Whether they may say that somebody gave something.
        package let isShop: Bool
        /// What they have paid for, or been given.
        package let tiers: Set<String>

        /// - Parameter isModerator: includes the right to take comments away.
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

        /// Whether they may comment where that takes a tier.
        func isMember(by tier: String) -> Bool {
            role != .viewer || mayModerate || tiers.contains(tier)
        }
    }

    /// What somebody wants.
    package enum Command: Equatable, Sendable {
        /// The same key once more is the same comment.
        case comment(key: String, text: String)
        /// One's own, or as a host anybody's.
        case delete(Int)
        /// The same for one that is not in the record any more.
        case deleteArchived(StreamComment)
        case pin(Int)
        case unpin
        /// For so many seconds; as a shadow, they can write, and only they see it.
        case silence(ParticipantID, seconds: Int, isShadow: Bool = false)
        case unsilence(ParticipantID)
        /// Taps by kind, since the last time.
        case react([String: Int])
        case edit(InteractionEdit)
        case openPoll(Poll.Draft)
        /// In the poll of that number; once.
        case vote(Int, options: [Int])
        case closePoll(Int)
        case showCard(StreamCard)
        case removeCard
        /// Under a key that is not in the ledger, as far as that was read.
        case give(Gift.Draft)
    }

    /// What a command brings about.
    package struct Outcome: Equatable, Sendable {
        /// To be durable before anybody is told.
        package var changes: [InteractionChange] = []
        /// What whoever asked is answered.
        package var reply = Reply.done
    }

    /// What whoever asked is answered.
    package enum Reply: Equatable, Sendable {
        case done
        /// As it was taken, now or before.
        case comment(StreamComment)
        /// Taps that count; beyond what a person can do they do not.
        case counted(Int)
        case poll(Poll)
        /// As it was taken, now or before.
        case gift(Gift)
    }

    /// Ahead of what is durable while a commit is under way.
    package private(set) var record: InteractionRecord
    /// Of taps that were not written down yet.
    package private(set) var counter: ReactionCounter
    private var budgets = PersonBudgets()
    private var reviews = CommentReviews()
    private var unwanted: WordList
    /// Of the minute that runs.
    var tally = FanTally()

    /// An audience as it was remembered; what people did in the last moments is not.
    package init(restoring record: InteractionRecord = InteractionRecord()) {
        self.record = record
        counter = ReactionCounter(totals: record.totals, former: record.formerTaps)
        unwanted = WordList(record.settings.words)
    }

    /// Goes back to what was remembered, because the changes since then could not be; taps stay.
    package mutating func revert(to record: InteractionRecord) {
        self.record = record
        unwanted = WordList(record.settings.words)
        counter.keep(record.settings.reactions)
        counter.revert(to: record.totals)
    }

    // MARK: Deciding

    /// Decides about a command, and acts on it in memory.
    package mutating func apply(_ command: Command, from person: Person, at now: Moment) throws(Refusal)
        -> Outcome
    {
        // Of shops, who sell as fast as people give.
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
            guard let poll = record.poll, poll.number == number else { throw .unknownPoll }
            outcome.reply = .poll(poll)
            // The same answer once more is no mistake.
            guard !poll.isOpen || poll.vote(of: person.id) != chosen else { return outcome }
            if let refusal = poll.refusal(of: chosen, by: person.id, at: now.wall) { throw refusal }
            guard poll.quiz == nil || !person.isModerator else { throw .knowsAnswer }
            outcome.changes = [.voted(person.id, chosen)]
            if let winner = poll.quiz?.winner(choosing: chosen, person, at: now.wall) {
                outcome.changes.append(.won(winner))
            }
        case .give: throw .notShop
        default: outcome.changes = try decideModeration(command, person, now)
        }
        if let entry = auditEntry(of: command, outcome.changes, by: person, at: now.wall) {
            outcome.changes.append(.audited(entry))
        }
        for change in outcome.changes { follow(change) }
        switch command {
        case .openPoll, .vote, .closePoll: if let poll = record.poll { outcome.reply = .poll(poll) }
        default: break
        }
        return outcome
    }

    private func delete(_ comment: StreamComment, by person: Person) throws(Refusal) -> InteractionChange {
        let isTheirs = person.isModerator || person.mayModerate && comment.role != .host
        guard isTheirs || comment.author == person.id else { throw .notModerator }
        return .deleted(comment.number)
    }

    private mutating func give(_ draft: Gift.Draft, at now: WallTime) throws(Refusal) -> Outcome {
        if let known = record.gifts.gift(draft.key) {
            guard known.isSame(as: draft) else { throw .giftKeyReused }
            return Outcome(reply: .gift(known))
        }
        let gift = try record.gifts.decide(draft, from: record.settings.gifts, at: now)
        follow(.gave(gift))
        return Outcome(changes: [.gave(gift)], reply: .gift(gift))
    }

    mutating func follow(_ change: InteractionChange) {
        record.apply(change)
        guard case .edited(let settings) = change else { return }
        unwanted = WordList(settings.words)
        counter.keep(settings.reactions)
    }

    /// Of what anybody asks for, also of what is refused.
    private mutating func charge(_ person: Person, at now: MonotonicTime) throws(Refusal) {
        try budgets.use(person, at: now) { budget throws(Refusal) in
            if let wait = budget.requests.wait(for: PersonBudgets.requests, at: now) {
                throw .tooFast(wait: wait)
            }
            _ = budget.requests.take(1, of: PersonBudgets.requests, at: now)
        }
    }

    // MARK: Comments

    /// What became of a comment that somebody outside is to look at before anybody is shown it.
    package enum Submission: Equatable, Sendable {
        /// It was written before.
        case known(StreamComment)
        /// It waits under that number, as it does since it came the first time.
        case waiting(Int)
        /// The same, and nobody was asked so far.
        case new(Int, CommentDraft)
    }

    /// Takes in a comment that keeps to the rules, for somebody outside to look at; `judge` has it go on.
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

    /// Notes whether a comment may be shown.
    /// - Returns: those that go on now, in the order in which they came, each for `write` if it may be shown.
    package mutating func judge(_ number: Int, isShown: Bool) -> [CommentReviews.Judged] {
        reviews.judge(number, isShown: isShown)
    }

    /// Writes a comment, if the rules still let its author: they may have changed while it waited.
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

    /// - Parameter text: cleaned; nil while only the author is looked at.
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

    private mutating func draft(
        _ key: String, _ written: String, _ person: Person, _ now: Moment
    ) throws(Refusal) -> CommentDraft {
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

    /// Whether it can be a client's name for something.
    static func isKey(_ key: String) -> Bool {
        (1...keyLength).contains(key.utf8.count) && key.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }

    private mutating func count(_ taps: [String: Int], _ person: Person, _ now: Moment) throws(Refusal) -> Int
    {
        guard !taps.isEmpty, taps.values.allSatisfy({ $0 > 0 }) else { throw .invalid("reactions") }
        guard taps.keys.allSatisfy(record.settings.reactions.contains) else { throw .unknownReaction }
        // In the settings' order, which hashing does not decide.
        let wanted = record.settings.reactions.compactMap { kind in
            taps[kind].map { (kind: kind, taps: min($0, Self.tapLimit)) }
        }
        let counted = budgets.use(person, at: now.elapsed) { budget in
            wanted.map { ($0.kind, budget.taps.take($0.taps, of: PersonBudgets.taps, at: now.elapsed)) }
        }
        for (kind, taps) in counted where taps > 0 { counter.add(taps, of: kind) }
        return counted.reduce(0) { $0 + $1.1 }
    }

    /// Rounded up.
    private static func seconds(from now: WallTime, to later: WallTime) -> Int {
        Int(clamping: (later.milliseconds - now.milliseconds + 999) / 1_000)
    }

    // MARK: Time

    /// When a poll closes by itself; nil if none does.
    package var pollDeadline: WallTime? { record.poll.flatMap { $0.isOpen ? $0.closesAt : nil } }

    /// Closes a poll whose time is over.
    /// - Parameter isLast: whether the stream ends, and every poll with it.
    package mutating func closePoll(at now: WallTime, isLast: Bool = false) -> [InteractionChange] {
        guard record.poll?.isOpen == true, isLast || pollDeadline.map({ $0 <= now }) ?? false else {
            return []
        }
        let change = InteractionChange.pollClosed(now)
        record.apply(change)
        return [change]
    }

    /// Has comments forgotten that were written before a time.
    /// - Parameter hasOlder: whether there are some that the record does not hold any more.
    package mutating func forgetComments(
        before time: WallTime, hasOlder: Bool = false
    ) -> [InteractionChange] {
        guard hasOlder || record.hasComments(before: time) else { return [] }
        let change = InteractionChange.expired(before: time)
        record.apply(change)
        return [change]
    }

    /// What everybody is told of reactions now; nil for nothing.
    package mutating func tellReactions(at now: MonotonicTime) -> [String: ReactionCounter.Count]? {
        counter.tell(at: now)
    }

    /// Has reactions written down whose time has come.
    /// - Parameter isLast: whether there will be no later occasion.
    package mutating func saveReactions(at now: MonotonicTime, isLast: Bool = false) -> [InteractionChange] {
        guard let totals = counter.save(at: now, isLast: isLast) else { return [] }
        let change = InteractionChange.counted(totals)
        record.apply(change)
        return [change]
    }
}
