import Base
import Stage

/// The followers of one stream, and what they were sent.
///
/// Each change is encoded once and shared by all followers. The hub waits for no follower: one that reads too slowly
/// misses changes, and gets a snapshot once it has read what was queued.
struct SyncHub {
    /// What a follower subscribes to.
    enum Interest {
        case everything
        /// The audience's news, without the stage.
        case audience
    }

    private struct Follower {
        let end: any SyncFollower
        let interest: Interest
        let sender: Stage.Sender?
        /// When the follower's token expires; nil without a token.
        let expiry: MonotonicTime?
        /// The participant's own state as it was sent last.
        var you: SyncYou?
        /// Whether a message was dropped: the follower gets nothing before its next snapshot.
        var isBehind = false
    }

    /// The shortest time between two counts of the viewers.
    static let audienceInterval = Duration.milliseconds(500)
    /// Up to this number of followers each change is announced immediately.
    static let promptFollowers = 200
    /// With more followers, the time between two announcements of participants' actions, for each follower.
    ///
    /// To notify one follower takes about 10 µs, so this costs at most a fifth of one processor.
    static let holdTimePerFollower = Duration.microseconds(50)
    /// The shortest such time.
    static let shortestHoldTime = Duration.milliseconds(100)
    /// The shortest time between two searches for expired tokens.
    static let expiryInterval = Duration.seconds(5)

    /// The state that was announced last.
    var view: SyncView
    /// The version of the latest announcement, which followers name when they come back.
    private(set) var version: UInt64
    private var log: SyncLog
    /// The audience's state for new followers, as JSON; set before a follower is added.
    var interaction = "{}"
    private var followers: [UInt64: Follower] = [:]
    private var followersOf: [ParticipantID: Set<UInt64>] = [:]
    /// Followers that are behind.
    private var behind: Set<UInt64> = []
    private var nextNumber: UInt64 = 1
    /// When a change was announced last.
    private var lastChange: MonotonicTime?
    /// Whether a change is held back, to be announced with the next version.
    private(set) var isHoldingBack = false
    /// Whether a command was answered with a version that was not announced yet.
    ///
    /// That version must come, even if the change is undone.
    private var owesVersion = false
    /// Whether viewers have come or gone since the last count.
    var isAudienceChanged = false
    /// The result of the last count.
    private(set) var audience = (counts: Stage.Counts(), viewers: [Stage.ListedViewer]())
    private var lastAudience: MonotonicTime?
    private var heartbeats: HeartbeatRound
    /// The earliest expiry of a token.
    private var nextExpiry: MonotonicTime?
    /// When expired tokens were last searched.
    private var lastExpiry = MonotonicTime.zero

    /// Versions start at the time of day in milliseconds, so that a version from before a restart is never reused.
    init(id: StreamID, at now: Moment) {
        view = SyncView(stream: StreamSnapshot(waitingFor: id))
        version = UInt64(max(now.wall.milliseconds, 1))
        log = SyncLog(base: version)
        heartbeats = HeartbeatRound(at: now.elapsed)
    }

    var isEmpty: Bool { followers.isEmpty }

    var count: Int { followers.count }

    // MARK: Followers

    /// Adds a follower, and sends it a snapshot or the changes that it missed.
    /// - Parameters:
    ///   - since: the version that the follower knows.
    ///   - expiry: when its token expires.
    ///   - you: the participant's own state; nil for an anonymous viewer.
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

    /// Adds a follower of the audience's news alone, and sends it the audience's state.
    /// - Returns: the follower's number.
    mutating func addListener(_ end: any SyncFollower, for sender: Stage.Sender?) -> UInt64 {
        let number = nextNumber
        nextNumber += 1
        followers[number] = Follower(end: end, interest: .audience, sender: sender, expiry: nil)
        if let sender { followersOf[sender.id, default: []].insert(number) }
        tellAudience(to: number)
        return number
    }

    /// Sends the audience's complete state to a follower that has the rest, or does not need it.
    mutating func tellAudience(to number: UInt64) { send(audienceText, to: number) }

    /// Sends it to all followers: another programme has begun under the stream's name, whose comments, gifts and polls
    /// are numbered from 1 again.
    mutating func tellAudience() { broadcast(audienceText, of: .audience) }

    private var audienceText: String {
        let kind = SyncNotice.interactionSnapshot.rawValue
        return #"{"interaction":\#(interaction),"type":"\#(kind)"}"#
    }

    mutating func remove(_ number: UInt64) {
        guard let follower = followers.removeValue(forKey: number) else { return }
        behind.remove(number)
        heartbeats.remove(number)
        guard let id = follower.sender?.id else { return }
        followersOf[id]?.remove(number)
        if followersOf[id]?.isEmpty == true { followersOf[id] = nil }
    }

    /// Closes all connections of a participant.
    /// - Returns: the numbers of the followers.
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

    /// Decides whether a change is announced later, together with the next ones.
    ///
    /// With many followers, changes by participants (hands, invitations, mutes) wait while the last announcement is
    /// recent. Changes of the stream itself never wait.
    mutating func holdBack(_ new: SyncView, at now: MonotonicTime) -> Bool {
        owesVersion = isHoldingBack
        isHoldingBack = false
        guard let releaseTime, now < releaseTime, new.isSameStream(as: view) else { return false }
        isHoldingBack = owesVersion || new != view
        return isHoldingBack
    }

    /// Until when changes are held back; nil if none are.
    private var releaseTime: MonotonicTime? {
        guard followers.count > Self.promptFollowers else { return nil }
        return lastChange.map { $0 + max(Self.holdTimePerFollower * followers.count, Self.shortestHoldTime) }
    }

    /// Announces the difference between `new` and the last view.
    /// - Returns: whether there is any.
    mutating func announce(_ new: SyncView, at now: MonotonicTime) -> Bool {
        let patch = new.patch(from: view)
        // Parts of the view that followers do not see may differ although the patch is empty.
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

    /// Sends participants their own state if it has changed; nil for all participants.
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

    /// Delivers a request to mute, which is not part of the state.
    mutating func deliverMute(
        _ kind: MediaKind, to id: ParticipantID, from sender: ParticipantID
    ) {
        let text = SyncNotice.mute.text([
            "kind": .string(kind.rawValue), "by": .string(sender.description),
        ])
        tell(text, to: id)
    }

    /// Counts and lists viewers, unless that was done a moment ago.
    /// - Parameter leaders: participants to list before others.
    mutating func refreshAudience(of stage: inout Stage, leaders: [ParticipantID], at now: MonotonicTime) {
        guard isAudienceChanged, audienceDue.map({ $0 <= now }) ?? true else { return }
        isAudienceChanged = false
        lastAudience = now
        audience = (stage.counts, stage.listViewers(leaders: leaders))
    }

    /// Sends a participant's own state, and remembers it once it is queued.
    private mutating func tell(_ you: SyncYou, to number: UInt64) {
        if send(SyncNotice.you.text(["you": you.json]), to: number) { followers[number]?.you = you }
    }

    /// Sends news of the audience to all followers.
    ///
    /// They are not part of the view and have no version. A follower that misses them gets what matters in its next
    /// snapshot.
    mutating func tell(_ text: String) { broadcast(text, of: .audience) }

    /// Sends a message to all connections of one participant.
    /// - Parameter interest: the subscription to which the message belongs.
    mutating func tell(_ text: String, to id: ParticipantID, of interest: Interest = .everything) {
        for number in followersOf[id] ?? [] {
            guard let follower = followers[number], !follower.isBehind,
                interest == .audience || follower.interest == .everything
            else { continue }
            send(text, to: number)
        }
    }

    /// Sends a message to all followers that subscribe to it.
    /// - Parameter interest: the subscription to which the message belongs.
    private mutating func broadcast(_ text: String, of interest: Interest) {
        // Collected first: the dictionary must not change while it is iterated.
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

    /// Sends a message to one follower, and marks it as behind if there is no room.
    /// - Returns: whether the message is queued.
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

    /// The snapshot for a new follower, or for one that was behind.
    private var snapshotText: String {
        var message = view.json
        message["version"] = .integer(version)
        // The audience's part may be long and is the same for many followers, so it is not encoded again.
        return #"{"interaction":\#(interaction),"# + SyncNotice.snapshot.text(message).dropFirst()
    }

    // MARK: Time

    /// When viewers may be counted again.
    private var audienceDue: MonotonicTime? {
        lastAudience.map { $0 + Self.audienceInterval }
    }

    /// When `advance` or `refreshAudience` has something to do; nil for never.
    var deadline: MonotonicTime? {
        var next: MonotonicTime?
        if isAudienceChanged { next = audienceDue ?? .zero }
        if let heartbeat = heartbeats.deadline { next = min(next ?? heartbeat, heartbeat) }
        if let expiryDue { next = min(next ?? expiryDue, expiryDue) }
        if isHoldingBack, let releaseTime { next = min(next ?? releaseTime, releaseTime) }
        return next
    }

    /// When expired tokens are next searched.
    private var expiryDue: MonotonicTime? {
        nextExpiry.map { max($0, lastExpiry + Self.expiryInterval) }
    }

    /// Closes the followers whose token has expired.
    /// - Returns: their numbers.
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

    /// Whether a follower waits for a snapshot.
    var hasSlowFollowers: Bool { !behind.isEmpty }

    /// Sends the heartbeats that are due, and snapshots to followers that have caught up.
    mutating func advance(to now: MonotonicTime, you: (Stage.Sender) -> SyncYou) {
        var snapshot: String?
        for number in behind {
            guard let follower = followers[number], follower.end.isDrained else { continue }
            behind.remove(number)
            followers[number]?.isBehind = false
            // Encoded once for all that have caught up.
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
