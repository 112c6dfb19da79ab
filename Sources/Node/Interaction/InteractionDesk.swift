import Base
import Interaction

/// The audience of one stream, on the stream's actor: decisions, and news for followers once a decision is durable.
struct InteractionDesk {
    /// Comments in a new follower's snapshot.
    static let recentLimit = 100
    /// The size of their text in bytes; the whole snapshot has to fit into one message.
    private static let recentBytes = 48 * 1_024
    /// The interval between messages with comments grows with the number of followers.
    ///
    /// A message to one follower costs some 10 µs, so up to 30,000 followers take two thirds of one processor.
    private static let intervalPerFollower = Duration.microseconds(16)
    private static let shortestInterval = Duration.milliseconds(100)
    private static let longestInterval = Duration.milliseconds(500)

    /// Decides; includes what is not durable yet.
    private(set) var machine: Interaction
    /// What is durable, from which followers are sent.
    private(set) var committed: InteractionRecord
    /// Comments and the pace at which they are sent.
    private var delivery: CommentDelivery
    /// Members of the next message, besides comments and reactions; all of it is durable.
    private var news: [String: JSON] = [:]
    /// Numbers of comments that the next message reports as deleted.
    private var deleted: [Int] = []
    /// New comments that only their authors are sent.
    private var hidden: [StreamComment] = []
    private var gifts = GiftNews()
    private var ranks: RankNews
    /// How often the desk looks who takes part.
    static let fanInterval = Duration.seconds(60)
    /// When the current minute of taking part is over; nil while the stream is not live.
    private var minuteEnd: MonotonicTime?
    /// The least time between two messages about votes.
    private static let voteInterval = Duration.milliseconds(500)
    private var hasNewVotes = false
    private var votesToldAt: MonotonicTime?
    /// The time between attempts to close a poll while the store accepts no changes.
    private static let retryInterval = Duration.seconds(1)
    /// No attempt is made before this time.
    private var pollRetry: MonotonicTime?
    /// The duel that all viewers see; null for none.
    private var duel = JSON.null
    /// The content of a new follower's snapshot; nil if it has to be encoded again.
    private var overview: String?

    init(restoring record: InteractionRecord, at now: Moment) {
        machine = Interaction(restoring: record)
        committed = record
        delivery = CommentDelivery(at: now.elapsed)
        ranks = RankNews(record, at: now.wall)
    }

    // MARK: Deciding

    mutating func apply(
        _ command: Interaction.Command, from person: Interaction.Person, at now: Moment
    ) throws(Interaction.Refusal) -> Interaction.Outcome {
        try machine.apply(command, from: person, at: now)
    }

    /// Accepts a comment that has to be reviewed before it is shown.
    mutating func submit(
        _ key: String, _ text: String, from person: Interaction.Person, at now: Moment
    ) throws(Interaction.Refusal) -> Interaction.Submission {
        try machine.submit(key, text, from: person, at: now)
    }

    /// Notes the result of a review.
    /// - Returns: the comments that may go on now, in order: a comment waits for the reviews of earlier ones.
    mutating func judge(_ number: Int, isShown: Bool) -> [CommentReviews.Judged] {
        machine.judge(number, isShown: isShown)
    }

    /// Writes a comment that was reviewed.
    mutating func write(
        _ draft: CommentDraft, at now: Moment
    ) throws(Interaction.Refusal) -> Interaction.Outcome {
        try machine.write(draft, at: now)
    }

    /// Whether `advance` needs to know who watches.
    func isMinuteOver(at now: MonotonicTime) -> Bool { minuteEnd.map { $0 <= now } ?? false }

    /// Applies what is due by now: saves reactions, ends a minute of taking part, and closes a poll.
    /// - Parameters:
    ///   - isLast: whether the stream ends, and everything with it.
    ///   - isLive: whether taking part counts.
    ///   - watching: the participants who are there, without the host; needed only if the minute is over.
    /// - Returns: what is to be made durable.
    mutating func advance(
        to now: Moment, isLast: Bool = false, isLive: Bool = true,
        watching: [(id: ParticipantID, name: String?)] = []
    ) -> [StreamChange] {
        var changes = machine.saveReactions(at: now.elapsed, isLast: isLast)
        if isLast || isLive && isMinuteOver(at: now.elapsed) {
            changes += machine.endMinute(watching: watching, at: now.wall)
            minuteEnd = nil
        }
        minuteEnd = isLive && !isLast ? minuteEnd ?? now.elapsed + Self.fanInterval : nil
        if isLast || pollRetry.map({ $0 <= now.elapsed }) ?? true {
            let closing = machine.closePoll(at: now.wall, isLast: isLast)
            if !closing.isEmpty { pollRetry = now.elapsed + Self.retryInterval }
            changes += closing
        }
        return changes.map { .interaction($0) }
    }

    /// Forgets comments that were written before a time.
    /// - Parameter hasOlder: whether the archive has further comments, which have to go as well.
    /// - Returns: what is to be made durable, and how many of the comments in memory it concerns.
    mutating func forgetComments(
        before time: WallTime, hasOlder: Bool
    ) -> (changes: [StreamChange], comments: Int) {
        let count = machine.record.comments.count
        let changes = machine.forgetComments(before: time, hasOlder: hasOlder)
        return (changes.map { .interaction($0) }, count - machine.record.comments.count)
    }

    /// Saves reactions before the server stops; the stream does not end.
    mutating func saveReactions(at now: MonotonicTime) -> [StreamChange] {
        machine.saveReactions(at: now, isLast: true).map { .interaction($0) }
    }

    /// Notes what has become durable, and prepares the news about it.
    mutating func conclude(_ changes: [InteractionChange], _ record: InteractionRecord) {
        committed = record
        guard !changes.isEmpty else { return }
        overview = nil
        for change in changes {
            switch change {
            case .commented(let comment) where comment.isHidden: hidden.append(comment)
            case .commented(let comment): delivery.append(comment, isOfHost: comment.role == .host)
            case .deleted(let number):
                delivery.remove(number)
                deleted.append(number)
            case .edited: news["settings"] = Self.json(record.settings)
            case .pollOpened, .pollClosed: news["poll"] = record.poll?.json
            case .voted: hasNewVotes = true
            case .cardShown, .cardRemoved: news["card"] = record.card?.json ?? .null
            case .gave(let gift):
                gifts.append(gift)
                ranks.note()
            case .cheered: ranks.note()
            case .expired, .pinned, .unpinned, .silenced, .shadowed, .unsilenced, .counted, .audited,
                .won:
                break
            }
        }
        // A pinned comment also ends when it is deleted or expires.
        let isPinChange = changes.contains {
            switch $0 {
            case .pinned, .unpinned, .deleted, .expired: true
            default: false
            }
        }
        if isPinChange { news["pinned"] = Self.json(pinned: record.pinned) }
    }

    /// Discards what could not be made durable.
    mutating func revert(to record: InteractionRecord) {
        // Another one is that of the next programme under the stream's name, which did not begin.
        let isOther = committed != record
        committed = record
        machine.revert(to: record)
        guard isOther else { return }
        overview = nil
        ranks.note()
    }

    /// Sets the duel that all viewers see.
    mutating func show(duel: JSON) {
        self.duel = duel
        news["duel"] = duel
        overview = nil
    }

    // MARK: Telling

    /// What all followers are to be sent now: usually one message, several if there are very many gifts.
    /// - Parameter followers: their number, which determines how often comments are sent.
    mutating func takeNews(for followers: Int, at moment: Moment) -> [String] {
        let now = moment.elapsed
        delivery.interval = min(
            max(Self.intervalPerFollower * followers, Self.shortestInterval), Self.longestInterval)
        var message = news
        news = [:]
        if !deleted.isEmpty {
            message["deleted"] = .array(deleted.map { .integer($0) })
            deleted = []
        }
        if hasNewVotes, votesToldAt.map({ $0 + Self.voteInterval <= now }) ?? true {
            message["poll"] = committed.poll?.json
            hasNewVotes = false
            votesToldAt = now
        }
        if let comments = delivery.take(at: now) {
            message["comments"] = .array(comments.comments.map(\.json))
            if comments.more > 0 { message["more"] = .integer(comments.more) }
        }
        if let counts = machine.tellReactions(at: now) {
            message["reactions"] = Self.json(counts)
            overview = nil
        }
        if let lists = ranks.take(committed, at: moment) {
            message["ranks"] = lists
            overview = nil
        }
        var messages = gifts.take(committed.gifts, at: now)
        if messages.isEmpty {
            if !message.isEmpty { messages = [message] }
        } else {
            messages[0].merge(message) { gifts, _ in gifts }
        }
        return messages.map { SyncNotice.interaction.text($0) }
    }

    /// Messages for single participants: comments that only their authors see.
    mutating func takeHidden() -> [(ParticipantID, String)] {
        defer { hidden = [] }
        return hidden.map { ($0.author, Self.message([$0])) }
    }

    /// The latest comments that only their author sees, for that author's snapshot; nil if there are none.
    func hiddenComments(of id: ParticipantID) -> String? {
        let comments = committed.page(limit: Self.recentLimit, for: id).comments.filter(\.isHidden)
        return comments.isEmpty ? nil : Self.message(comments)
    }

    private static func message(_ comments: [StreamComment]) -> String {
        SyncNotice.interaction.text(["comments": .array(comments.map(\.json))])
    }

    /// The participants whom pages list before the others who are there.
    var leaders: [ParticipantID] { ranks.leaders }

    /// The badges beside a participant's name, such as `giver-1`.
    func badges(of id: ParticipantID) -> [String] { ranks.badges(of: id) }

    /// When something is to be sent or saved; nil if nothing is due.
    /// - Parameter isLive: whether taking part counts.
    func deadline(at now: Moment, isLive: Bool) -> MonotonicTime? {
        let minute = isLive ? minuteEnd ?? .zero : nil
        let votes = hasNewVotes ? votesToldAt.map { $0 + Self.voteInterval } ?? .zero : nil
        let end = machine.pollDeadline.map { max(now.elapsed(at: $0), pollRetry ?? .zero) }
        return [
            delivery.deadline, machine.counter.deadline, gifts.deadline, ranks.deadline(at: now), votes, end,
            minute,
        ].compactMap(\.self).min()
    }

    /// The content of a new follower's snapshot, as JSON.
    ///
    /// Encoded once for all followers who connect before something changes.
    mutating func describe(at now: MonotonicTime) -> String {
        if let overview { return overview }
        let text = JSON.object([
            "comments": .array(recent.map(\.json)), "pinned": Self.json(pinned: committed.pinned),
            "reactions": Self.json(machine.counter.counts(at: now)),
            "settings": Self.json(committed.settings), "poll": committed.poll?.json ?? .null,
            "card": committed.card?.json ?? .null, "gifts": committed.gifts.json,
            "ranks": ranks.json, "duel": duel,
        ]).text
        overview = text
        return text
    }

    /// The latest comments that fit into `recentBytes`, in order.
    private var recent: [StreamComment] {
        var bytes = 0
        let latest = committed.page(limit: Self.recentLimit).comments.reversed().prefix { comment in
            bytes += comment.text.utf8.count
            return bytes <= Self.recentBytes
        }
        return latest.reversed()
    }

    // MARK: JSON

    private static func json(pinned comment: StreamComment?) -> JSON { comment?.json ?? .null }

    private static func json(_ counts: [String: ReactionCounter.Count]) -> JSON {
        .object(
            counts.mapValues { .object(["total": .integer($0.total), "rate": .integer($0.rate)]) })
    }

    /// The settings as viewers see them, without blocked words and silenced participants.
    private static func json(_ settings: InteractionSettings) -> JSON { .object(members(of: settings)) }

    private static func members(of settings: InteractionSettings) -> [String: JSON] {
        [
            "comments": .bool(settings.takesComments),
            "reactions": .array(settings.reactions.map { .string($0) }),
            "slowMode": .integer(settings.slowModeSeconds), "commentTier": .text(settings.commentTier),
            "gifts": settings.gifts?.json ?? .null,
            "widgets": .array(settings.widgets.map { .string($0.rawValue) }),
            "duels": .bool(settings.takesDuels),
        ]
    }

    /// The settings; for moderators with blocked words and with the participants who are silenced now.
    func settings(forModerator isModerator: Bool, at now: WallTime) -> JSON {
        var members = Self.members(of: committed.settings)
        if isModerator {
            members["words"] = .array(committed.settings.words.map { .string($0) })
            var silenced: [String: JSON] = [:]
            for (id, until) in committed.silenced where until > now {
                silenced[id.description] = .object(["until": .time(until), "shadow": .bool(false)])
            }
            for (id, until) in committed.shadowed where until > now {
                silenced[id.description] = .object(["until": .time(until), "shadow": .bool(true)])
            }
            members["silenced"] = .object(silenced)
        }
        return .object(members)
    }
}

extension StreamComment {
    /// The representation for followers and clients.
    package var json: JSON {
        .object([
            "number": .integer(number), "id": .string(key), "author": .string(author.description),
            "name": .text(name), "role": .string(role.rawValue), "moderator": .bool(isByModerator),
            "text": .string(text), "at": .time(at),
        ])
    }
}

extension AuditEntry {
    /// The representation for hosts.
    package var json: JSON {
        .object([
            "action": .string(action.rawValue), "by": .string(by.description), "name": .text(name),
            "at": .time(at), "participant": .text(participant?.description),
            "comment": comment.map { .integer($0) } ?? .null, "text": .text(text), "until": .time(until),
        ])
    }
}

extension StreamCard {
    /// The representation for followers and clients.
    package var json: JSON {
        .object([
            "title": .string(title), "link": .string(link), "picture": .text(picture), "data": data ?? .null,
        ])
    }
}
