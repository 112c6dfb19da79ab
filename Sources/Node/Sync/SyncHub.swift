import Base
import Stage

/// Everybody who follows one stream, and what they were told.
///
/// Each change is written once and shared by all. Nobody is waited for: who reads too slowly misses changes, and gets
/// a snapshot once they have read what there was.
struct SyncHub {
    /// What a follower is told.
    enum Interest {
        case everything
        /// What the audience does, and nothing of the stage.
        case audience
    }

    private struct Follower {
        let end: any SyncFollower
        let interest: Interest
        let sender: Stage.Sender?
        /// When their token ends; nil for those without.
        let expiry: MonotonicTime?
        var you: SyncYou?
        var isBehind = false
    }

    /// At most two a second.
    static let audienceInterval = Duration.milliseconds(500)
    /// Up to so many followers are told of each change at once.
    static let promptFollowers = 200
    /// Beyond, between two messages about people: to tell one follower takes about 10 µs, so that a fifth of one
    /// processor is spent on it at most.
    static let holdTimePerFollower = Duration.microseconds(50)
    static let shortestHoldTime = Duration.milliseconds(100)
    /// Between two looks for tokens that have ended.
    static let expiryInterval = Duration.seconds(5)

    /// What was announced last.
    var view: SyncView
    private(set) var version: UInt64
    private var log: SyncLog
    /// What those who come are told of the audience, as JSON; set before anybody may come.
    var interaction = "{}"
    private var followers: [UInt64: Follower] = [:]
    private var followersOf: [ParticipantID: Set<UInt64>] = [:]
    private var behind: Set<UInt64> = []
    private var nextNumber: UInt64 = 1
    private var lastChange: MonotonicTime?
    /// Whether there is something that followers are told of a little later, with the next version.
    private(set) var isHoldingBack = false
    /// Whether somebody was told that there will be another version, though what it was to tell may be undone.
    private var owesVersion = false
    /// Viewers came or went since they were counted.
    var isAudienceChanged = false
    private(set) var audience = (counts: Stage.Counts(), viewers: [Stage.ListedViewer]())
    private var lastAudience: MonotonicTime?
    private var heartbeats: HeartbeatRound
    /// The first at which a token ends, and when it was last looked for such.
    private var nextExpiry: MonotonicTime?
    private var lastExpiry = MonotonicTime.zero

    /// Versions go on from the time of day, so that after a restart none means something else than before.
    init(id: StreamID, at now: Moment) {
        view = SyncView(stream: StreamSnapshot(waitingFor: id))
        version = UInt64(max(now.wall.milliseconds, 1))
        log = SyncLog(base: version)
        heartbeats = HeartbeatRound(at: now.elapsed)
    }

    var isEmpty: Bool { followers.isEmpty }

    var count: Int { followers.count }

    // MARK: Followers

    /// - Parameters:
    ///   - since: the version that the follower knows already.
    ///   - expiry: when they are sent away.
    /// - Returns: the follower's number.
    mutating func add(
        _ end: any SyncFollower, for sender: Stage.Sender?, since: UInt64?,
        until expiry: MonotonicTime? = nil,
        you: SyncYou?
    ) -> UInt64 {
        let number = nextNumber
        nextNumber += 1
        followers[number] = Follower(end: end, interest: .everything, sender: sender, expiry: expiry)
        heartbeats.add(number)
        if let expiry { nextExpiry = min(nextExpiry ?? expiry, expiry) }
        if let sender { followersOf[sender.id, default: []].insert(number) }
        if let missed = since.flatMap({ log.changes(since: $0) }) {
            for text in missed where followers[number]?.isBehind == false { send(text, to: number) }
            if followers[number]?.isBehind == false { tellAudience(to: number) }
        } else {
            send(snapshotText, to: number)
        }
        if let you { tell(you, to: number) }
        return number
    }

    /// Tells somebody what the audience does, and nothing else.
    /// - Returns: the follower's number.
    mutating func addListener(_ end: any SyncFollower, for sender: Stage.Sender?) -> UInt64 {
        let number = nextNumber
        nextNumber += 1
        followers[number] = Follower(end: end, interest: .audience, sender: sender, expiry: nil)
        if let sender { followersOf[sender.id, default: []].insert(number) }
        tellAudience(to: number)
        return number
    }

    /// All of the audience, for who knows the rest already, or need not.
    mutating func tellAudience(to number: UInt64) {
        let kind = SyncNotice.interactionSnapshot.rawValue
        send(#"{"interaction":\#(interaction),"type":"\#(kind)"}"#, to: number)
    }

    mutating func remove(_ number: UInt64) {
        guard let follower = followers.removeValue(forKey: number) else { return }
        behind.remove(number)
        heartbeats.remove(number)
        guard let id = follower.sender?.id else { return }
        followersOf[id]?.remove(number)
        if followersOf[id]?.isEmpty == true { followersOf[id] = nil }
    }

    /// - Returns: whom it concerned.
    mutating func expel(_ id: ParticipantID, as reason: SyncClose) -> [UInt64] {
        let numbers = Array(followersOf[id] ?? [])
        for number in numbers {
            followers[number]?.end.close(reason)
            remove(number)
        }
        return numbers
    }

    mutating func closeAll(_ reason: SyncClose) {
        for follower in followers.values { follower.end.close(reason) }
        (followers, followersOf, behind) = ([:], [:], [])
        heartbeats.removeAll()
    }

    // MARK: Telling

    /// Whether what is new can wait, so that it is told in one message with what comes next: hands, invitations and
    /// mutes do where there are many followers, while the last message is fresh.
    mutating func holdBack(_ new: SyncView, at now: MonotonicTime) -> Bool {
        owesVersion = isHoldingBack
        isHoldingBack = false
        guard let releaseTime, now < releaseTime, new.isSameStream(as: view) else { return false }
        isHoldingBack = owesVersion || new != view
        return isHoldingBack
    }

    private var releaseTime: MonotonicTime? {
        guard followers.count > Self.promptFollowers else { return nil }
        return lastChange.map { $0 + max(Self.holdTimePerFollower * followers.count, Self.shortestHoldTime) }
    }

    /// Announces what is different in `new`.
    /// - Returns: whether anything is.
    mutating func announce(_ new: SyncView, at now: MonotonicTime) -> Bool {
        let patch = new.patch(from: view)
        // What followers are not told of may have changed all the same.
        view = new
        guard !patch.isEmpty || owesVersion else { return false }
        owesVersion = false
        lastChange = now
        version += 1
        var message = patch
        message["version"] = .integer(version)
        let text = SyncNotice.change.text(message)
        log.append(text, version: version)
        broadcast(text, of: .everything)
        return true
    }

    /// Tells participants what is new about themselves; nil means all of them.
    mutating func announce(to participants: Set<ParticipantID>?, you: (Stage.Sender) -> SyncYou) {
        let numbers = participants.map { $0.flatMap { followersOf[$0] ?? [] } } ?? Array(followers.keys)
        for number in numbers {
            guard let follower = followers[number], !follower.isBehind, follower.interest == .everything,
                let sender = follower.sender
            else { continue }
            let news = you(sender)
            if news != follower.you { tell(news, to: number) }
        }
    }

    /// A request that passes by and is not remembered.
    mutating func deliverMute(
        _ kind: StageChange.MediaKind, to id: ParticipantID, from sender: ParticipantID
    ) {
        let text = SyncNotice.mute.text([
            "kind": .string(kind.rawValue), "by": .string(sender.description),
        ])
        tell(text, to: id)
    }

    /// Counts viewers anew, unless that was done a moment ago.
    /// - Parameter leaders: who is listed before others.
    mutating func refreshAudience(of stage: inout Stage, leaders: [ParticipantID], at now: MonotonicTime) {
        guard isAudienceChanged, audienceDue.map({ $0 <= now }) ?? true else { return }
        isAudienceChanged = false
        lastAudience = now
        audience = (stage.counts, stage.listViewers(leaders: leaders))
    }

    private mutating func tell(_ you: SyncYou, to number: UInt64) {
        if send(SyncNotice.you.text(["you": you.json]), to: number) { followers[number]?.you = you }
    }

    /// Tells everybody something of the audience that is no part of the state, and has no version: who misses it hears
    /// of what counts in their next snapshot.
    mutating func tell(_ text: String) { broadcast(text, of: .audience) }

    /// Tells one participant, wherever they follow.
    /// - Parameter interest: what it is about.
    mutating func tell(_ text: String, to id: ParticipantID, of interest: Interest = .everything) {
        for number in followersOf[id] ?? [] {
            guard let follower = followers[number], !follower.isBehind,
                interest == .audience || follower.interest == .everything
            else { continue }
            send(text, to: number)
        }
    }

    /// - Parameter interest: what it is about.
    private mutating func broadcast(_ text: String, of interest: Interest) {
        var slow: [UInt64] = []
        for (number, follower) in followers
        where !follower.isBehind && (interest == .audience || follower.interest == .everything) {
            if follower.end.send(text) == .full { slow.append(number) }
        }
        for number in slow {
            followers[number]?.isBehind = true
            behind.insert(number)
        }
    }

    @discardableResult
    private mutating func send(_ text: String, to number: UInt64) -> Bool {
        switch followers[number]?.end.send(text) {
        case .queued: return true
        case .full:
            followers[number]?.isBehind = true
            behind.insert(number)
            return false
        case .closed, nil: return false
        }
    }

    private var snapshotText: String {
        var message = view.json
        message["version"] = .integer(version)
        // It may be long, and is the same for many who come.
        return #"{"interaction":\#(interaction),"# + SyncNotice.snapshot.text(message).dropFirst()
    }

    // MARK: Time

    private var audienceDue: MonotonicTime? {
        lastAudience.map { $0 + Self.audienceInterval }
    }

    /// When `advance`, or a look at the audience, has something to do; nil if never.
    var deadline: MonotonicTime? {
        var next: MonotonicTime?
        if isAudienceChanged { next = audienceDue ?? .zero }
        if let heartbeat = heartbeats.deadline { next = min(next ?? heartbeat, heartbeat) }
        if let expiryDue { next = min(next ?? expiryDue, expiryDue) }
        if isHoldingBack, let releaseTime { next = min(next ?? releaseTime, releaseTime) }
        return next
    }

    private var expiryDue: MonotonicTime? {
        nextExpiry.map { max($0, lastExpiry + Self.expiryInterval) }
    }

    /// Sends those away whose token has ended.
    /// - Returns: whom it concerned.
    mutating func expire(by now: MonotonicTime) -> [UInt64] {
        guard let expiryDue, expiryDue <= now else { return [] }
        lastExpiry = now
        let expired = followers.filter { $0.value.expiry.map { $0 <= now } ?? false }
        for (number, follower) in expired {
            follower.end.close(.expired)
            remove(number)
        }
        nextExpiry = followers.values.lazy.compactMap(\.expiry).min()
        return Array(expired.keys)
    }

    /// Whether somebody waits for a snapshot.
    var hasSlowFollowers: Bool { !behind.isEmpty }

    /// Heartbeats, and snapshots for those who have caught up.
    mutating func advance(to now: MonotonicTime, you: (Stage.Sender) -> SyncYou) {
        var snapshot: String?
        for number in behind {
            guard let follower = followers[number], follower.end.isDrained else { continue }
            behind.remove(number)
            followers[number]?.isBehind = false
            let text = snapshot ?? snapshotText
            snapshot = text
            send(text, to: number)
            if let sender = follower.sender { tell(you(sender), to: number) }
        }
        let due = heartbeats.due(at: now)
        guard !due.isEmpty else { return }
        let text = SyncNotice.heartbeat.text(["version": .integer(version)])
        for number in due where followers[number]?.isBehind == false { send(text, to: number) }
    }
}
