import Base
import Interaction

/// What a stream's audience does, in its stream's place: what is decided at once, and what followers hear of it once it
/// is durable.
struct InteractionDesk {
    /// Comments for somebody who comes.
    static let recentLimit = 100
    /// Of their text, in bytes: what is sent to somebody who comes has to fit into one message with all else.
    private static let recentBytes = 48 * 1_024
    /// To many followers, comments are told less often: a message to one of them costs some 10 µs, so that up to
    /// 30,000 take two thirds of one processor.
    private static let intervalPerFollower = Duration.microseconds(16)
    private static let shortestInterval = Duration.milliseconds(100)
    private static let longestInterval = Duration.milliseconds(500)

    private(set) var machine: Interaction
    /// What is durable.
    private(set) var committed: InteractionRecord
    private var delivery: CommentDelivery
    /// Durable, and not told yet, beside comments and reactions.
    private var news: [String: JSON] = [:]
    private var deleted: [Int] = []
    /// Comments that only their authors are told of.
    private var hidden: [StreamComment] = []
    private var gifts = GiftNews()
    private var ranks: RankNews
    /// Between two looks at who takes part.
    static let fanInterval = Duration.seconds(60)
    /// When the minute of those who take part is over; nil while the stream is not live.
    private var minuteEnd: MonotonicTime?
    /// Votes are told so often at most.
    private static let voteInterval = Duration.milliseconds(500)
    private var hasNewVotes = false
    private var votesToldAt: MonotonicTime?
    /// A poll that could not be closed, because nothing can be written, is tried again so late.
    private static let retryInterval = Duration.seconds(1)
    private var pollRetry: MonotonicTime?
    /// What all see of a duel; null for nothing.
    private var duel = JSON.null
    /// What those who come are told; nil when it has to be written anew.
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

    /// Takes in a comment that somebody is asked about.
    mutating func submit(
        _ key: String, _ text: String, from person: Interaction.Person, at now: Moment
    ) throws(Interaction.Refusal) -> Interaction.Submission {
        try machine.submit(key, text, from: person, at: now)
    }

    /// Notes whether a comment may be shown.
    /// - Returns: those that go on now, in order.
    mutating func judge(_ number: Int, isShown: Bool) -> [CommentReviews.Judged] {
        machine.judge(number, isShown: isShown)
    }

    mutating func write(
        _ draft: CommentDraft, at now: Moment
    ) throws(Interaction.Refusal) -> Interaction.Outcome {
        try machine.write(draft, at: now)
    }

    /// Whether it is to be looked now who takes part.
    func isMinuteOver(at now: MonotonicTime) -> Bool { minuteEnd.map { $0 <= now } ?? false }

    /// Has reactions written down whose time has come, a poll closed and a minute ended whose time is over.
    /// - Parameters:
    ///   - isLast: whether the stream ends, and all of it with it.
    ///   - isLive: whether a minute is worth anything.
    ///   - watching: who is there without the host, if the minute is over.
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

    /// Has comments forgotten that were written before a time.
    /// - Parameter hasOlder: whether there are others than the machine knows, which go as well.
    /// - Returns: what is to be made durable, and how many of the machine's comments it concerns.
    mutating func forgetComments(
        before time: WallTime, hasOlder: Bool
    ) -> (changes: [StreamChange], comments: Int) {
        let count = machine.record.comments.count
        let changes = machine.forgetComments(before: time, hasOlder: hasOlder)
        return (changes.map { .interaction($0) }, count - machine.record.comments.count)
    }

    /// The server ends, and the stream does not.
    mutating func saveReactions(at now: MonotonicTime) -> [StreamChange] {
        machine.saveReactions(at: now, isLast: true).map { .interaction($0) }
    }

    /// Notes what is durable now.
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
        let isPinChange = changes.contains {
            switch $0 {
            case .pinned, .unpinned, .deleted, .expired: true
            default: false
            }
        }
        if isPinChange { news["pinned"] = Self.json(pinned: record.pinned) }
    }

    /// Goes back to what is durable.
    mutating func revert(to record: InteractionRecord) {
        committed = record
        machine.revert(to: record)
    }

    /// Notes what all see of a duel from now on.
    mutating func show(duel: JSON) {
        self.duel = duel
        news["duel"] = duel
        overview = nil
    }

    // MARK: Telling

    /// What followers are told now: in one message, but for a great many gifts.
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

    /// What only some are told now.
    mutating func takeHidden() -> [(ParticipantID, String)] {
        defer { hidden = [] }
        return hidden.map { ($0.author, Self.message([$0])) }
    }

    /// Of the latest comments, those that only their author sees; nil for none.
    func hiddenComments(of id: ParticipantID) -> String? {
        let comments = committed.page(limit: Self.recentLimit, for: id).comments.filter(\.isHidden)
        return comments.isEmpty ? nil : Self.message(comments)
    }

    private static func message(_ comments: [StreamComment]) -> String {
        SyncNotice.interaction.text(["comments": .array(comments.map(\.json))])
    }

    /// Those whom pages show before others who are there.
    var leaders: [ParticipantID] { ranks.leaders }

    /// What stands beside somebody's name, such as `giver-1`.
    func badges(of id: ParticipantID) -> [String] { ranks.badges(of: id) }

    /// When there is something to tell or to write; nil if never.
    /// - Parameter isLive: whether a minute is worth anything.
    func deadline(at now: Moment, isLive: Bool) -> MonotonicTime? {
        let minute = isLive ? minuteEnd ?? .zero : nil
        let votes = hasNewVotes ? votesToldAt.map { $0 + Self.voteInterval } ?? .zero : nil
        let end = machine.pollDeadline.map { max(now.elapsed(at: $0), pollRetry ?? .zero) }
        return [
            delivery.deadline, machine.counter.deadline, gifts.deadline, ranks.deadline(at: now), votes, end,
            minute,
        ].compactMap(\.self).min()
    }

    /// What those who come are told, as JSON; written once for all who come before something changes.
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

    /// Without what viewers need not know.
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

    /// The settings as a host sees them.
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
    /// As followers and clients see it.
    package var json: JSON {
        .object([
            "number": .integer(number), "id": .string(key), "author": .string(author.description),
            "name": .text(name), "role": .string(role.rawValue), "moderator": .bool(isByModerator),
            "text": .string(text), "at": .time(at),
        ])
    }
}

extension AuditEntry {
    /// As hosts see it.
    package var json: JSON {
        .object([
            "action": .string(action.rawValue), "by": .string(by.description), "name": .text(name),
            "at": .time(at), "participant": .text(participant?.description),
            "comment": comment.map { .integer($0) } ?? .null, "text": .text(text), "until": .time(until),
        ])
    }
}

extension StreamCard {
    /// As followers and clients see it.
    package var json: JSON {
        .object([
            "title": .string(title), "link": .string(link), "picture": .text(picture), "data": data ?? .null,
        ])
    }
}
