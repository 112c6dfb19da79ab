import Base
import Stage

/// Presence of participants, the news for followers, and timers.
extension StreamHost {
    // MARK: Sessions and media

    /// Notes that a participant's peer connection works, or that a follower has come.
    /// - Parameter sender: nil for an anonymous viewer.
    package func connect(_ sender: Stage.Sender?, by connection: Stage.Connection) {
        connections[connection] = .some(sender)
        // A refusal needs no answer: the caller learns elsewhere that the stream is closed or not made.
        try? decide { stage, now throws(Rejection) in
            stage.connect(sender, by: connection, at: now)
        }
    }

    /// Notes that a connection is gone; does nothing for an unknown one.
    package func disconnect(_ connection: Stage.Connection) {
        // The session's client no longer receives the audience's news on its control channel.
        if case .session(let id) = connection, let number = listeners.removeValue(forKey: id) {
            sync.remove(number)
        }
        guard let sender = connections.removeValue(forKey: connection) else { return }
        weakUplinks[connection] = nil
        try? decide { stage, now throws(Rejection) in
            stage.disconnect(sender?.id, by: connection, at: now)
            return StageOutcome()
        }
    }

    /// How long an uplink counts as weak after a report, which workers and clients repeat every 5 to 10 s.
    static let weakUplinkTime = Duration.seconds(15)

    /// Notes that a participant's media does not arrive as it should, and notifies all followers.
    package func noteWeakUplink(of connection: Stage.Connection) {
        guard case .some(.some) = connections[connection] else { return }
        let end = environment.now().elapsed + Self.weakUplinkTime
        // A repeated report only extends the time: clients may send any number.
        guard weakUplinks.updateValue(end, forKey: connection) == nil else { return }
        announce()
        scheduleTick()
    }

    /// Notifies the host and the publisher of the state of an encoder's input.
    /// - Parameters:
    ///   - encoder: null once nothing arrives.
    ///   - end: why nothing arrives any more.
    func tellEncoder(_ encoder: JSON, of publisher: ParticipantID, end: JSON? = nil) {
        var message: [String: JSON] = [
            "participant": .string(publisher.description), "encoder": encoder,
        ]
        message["end"] = end
        let text = SyncNotice.encoder.text(message)
        for id in Set([publisher, committed?.host].compactMap(\.self)) { sync.tell(text, to: id) }
    }

    /// Gives a name to a connection that was anonymous.
    func adopt(_ connection: Stage.Connection, as sender: Stage.Sender) {
        // The connection may have been queued without a name a moment ago.
        takeNotices()
        guard case .some(.none) = connections[connection] else { return }
        disconnect(connection)
        connect(sender, by: connection)
    }

    /// Notes what viewers would get from now on; nil for nothing.
    package func setSource(_ source: Stage.Source?) {
        try? decide { stage, now throws(Rejection) in stage.setSource(source, at: now) }
    }

    /// Whether a participant has switched the camera off, or is away.
    /// - Parameter participant: nil for the participant who provides the programme.
    func isPictureOff(of participant: ParticipantID? = nil) -> Bool {
        guard let committed, committed.phase == .live, let source = stage?.source else { return false }
        let member = committed.member(participant ?? source.owner ?? committed.host)
        return member?.isPaused == true || member?.isVideoMuted == true
    }

    /// Announces the stream's latest preview.
    package func setPreview(_ preview: StreamPreview) {
        self.preview = preview
        announce()
    }

    /// Announces whether the stream is being recorded.
    package func setRecording(_ isRecording: Bool) {
        guard self.isRecording != isRecording else { return }
        self.isRecording = isRecording
        announce()
    }

    /// Announces what a closed host of this stream was told last, unless this one has been told already.
    func inheritRecording(_ wasRecording: Bool?) {
        if isRecording == nil, let wasRecording { setRecording(wasRecording) }
    }

    /// Announces whether viewers can go back in the stream.
    package func setKept(_ isKept: Bool) {
        guard self.isKept != isKept else { return }
        self.isKept = isKept
        announce()
    }

    // MARK: Followers

    /// Adds a follower, who receives a snapshot or the missed changes, and then every change.
    /// - Parameters:
    ///   - sender: nil for an anonymous viewer.
    ///   - since: the version that the follower knows; nil for a snapshot.
    ///   - expiry: when the follower's token expires.
    /// - Returns: the follower's number, for `unfollow`.
    package func follow(
        as sender: Stage.Sender?, since: UInt64?, until expiry: WallTime? = nil, _ end: any SyncFollower
    ) throws(StageRefusal) -> UInt64 {
        guard !isClosed else { throw .overloaded }
        if let rejection = refusal(to: sender) { throw .rejected(rejection) }
        let you = sender.map(describer)
        sync.interaction = interaction.describe(at: environment.now().elapsed)
        let number = sync.add(
            end, for: sender, since: since, until: expiry.map(environment.now().elapsed(at:)), you: you)
        if let sender { tellOwn(to: sender) }
        connect(sender, by: .socket(number))
        scheduleTick()
        return number
    }

    /// Sends the audience's news to a session's client on its control channel; a repeated call sends everything
    /// again.
    func follow(as sender: Stage.Sender?, in session: SessionID, _ end: any SyncFollower) {
        // The session may have ended while this call waited for the actor.
        guard !isClosed, refusal(to: sender) == nil, connections[.session(session)] != nil else { return }
        guard listeners[session] == nil else { return refresh(session) }
        sync.interaction = interaction.describe(at: environment.now().elapsed)
        listeners[session] = sync.addListener(end, for: sender)
        if let sender { tellOwn(to: sender) }
    }

    /// Sends the audience's complete state again to a session's client, if the client follows it.
    func refresh(_ session: SessionID) {
        guard !isClosed, let number = listeners[session] else { return }
        sync.interaction = interaction.describe(at: environment.now().elapsed)
        sync.tellAudience(to: number)
        if case .some(.some(let sender)) = connections[.session(session)] { tellOwn(to: sender) }
    }

    /// Sends a follower what only they may see: their hidden comments, and a host's invitation to a duel.
    private func tellOwn(to sender: Stage.Sender) {
        if let text = interaction.hiddenComments(of: sender.id) {
            sync.tell(text, to: sender.id, of: .audience)
        }
        tellInvitation(to: sender)
    }

    /// Removes a follower whose connection is gone.
    package func unfollow(_ number: UInt64) {
        sync.remove(number)
        disconnect(.socket(number))
    }

    /// The complete announced state, for a client that does not follow the stream.
    package var overview: JSON {
        var members = sync.view.json
        members["version"] = .integer(sync.version)
        members["present"] = .array(present)
        return .object(members)
    }

    /// The participants who are here: the host, the speakers, then as many viewers as are listed, by rank.
    private var present: [JSON] {
        // By the time when they came on stage; the identity decides ties, so that the order is stable.
        let speakers = (committed?.speakers ?? [:]).sorted {
            ($0.value.since, $0.key.description) < ($1.value.since, $1.key.description)
        }
        let members = [committed?.host].compactMap(\.self) + speakers.map(\.key)
        let onStage = members.filter { sync.view.speakers[$0] != nil && isPresent($0) }.map { id in
            (id: id, name: committed?.member(id)?.name, isModerator: false)
        }
        let viewers = sync.audience.viewers.filter { sync.view.viewers[$0.id] != nil }.map { viewer in
            (id: viewer.id, name: viewer.name, isModerator: viewer.isModerator)
        }
        return (onStage + viewers).map { person in
            let role = committed?.standing(of: person.id) ?? .viewer
            let badges = (person.isModerator ? ["moderator"] : []) + interaction.badges(of: person.id)
            return .object([
                "participant": .string(person.id.description), "name": .text(person.name),
                "role": .string(role.rawValue), "badges": .array(badges.map { .string($0) }),
            ])
        }
    }

    /// Makes a participant's own state, as of what was announced.
    ///
    /// Captures copies: the hub calls it during a mutation, when the host must not access the hub.
    private var describer: (Stage.Sender) -> SyncYou {
        let (record, areDoorsOpen) = (committed, sync.view.stream.areDoorsOpen)
        return { SyncYou($0, in: record, areDoorsOpen: areDoorsOpen) }
    }

    /// Announces what has changed since the last announcement, or holds it back for a moment.
    ///
    /// Participants whom the changes concern receive their own state immediately in either case.
    /// - Parameter changes: that became durable with this announcement.
    func announce(about changes: [StageChange] = []) {
        let now = environment.now().elapsed
        stage?.refresh(&sync, leaders: interaction.leaders, at: now)
        let (old, next) = (sync.view.stream, view)
        let isHeldBack = sync.holdBack(next, at: now)
        let isTold = !isHeldBack && sync.announce(next, at: now)
        guard isTold || isHeldBack || !changes.isEmpty else { return }
        let new = sync.view.stream
        // Each of these may change what every participant may do.
        let concernsAll =
            old.state != new.state || old.areDoorsOpen != new.areDoorsOpen || old.host != new.host
            || old.createdAt != new.createdAt
        let you = describer
        var concerned = Set(changes.compactMap(\.subject))
        // One hand that is raised or lowered changes the places of the others.
        if changes.contains(where: \.movesHands), let committed { concerned.formUnion(committed.hands.keys) }
        sync.announce(to: concernsAll ? nil : concerned, you: you)
        // The directory shows what was announced, so it waits as followers do.
        if !isHeldBack { environment.directory.update(snapshot) }
    }

    /// The view to announce: the durable state, with who is present now.
    private var view: SyncView {
        guard let committed else { return SyncView(stream: StreamSnapshot(waitingFor: id)) }
        var stream = StreamSnapshot(committed)
        stream.areDoorsOpen = stage?.areDoorsOpen ?? false
        stream.viewers = sync.audience.counts.viewers
        stream.waiting = sync.audience.counts.waiting
        let source = committed.phase == .ended ? nil : stage?.source
        stream.hasAudio = source?.hasAudio ?? false
        stream.hasVideo = source?.hasVideo ?? false
        // The audience must not see the backstage.
        stream.preview = stream.state == .backstage ? nil : preview
        let owner = source?.owner ?? committed.host
        stream.isPaused = committed.member(owner)?.isPaused ?? false
        stream.isRecording = isRecording ?? false
        stream.isKept = isKept
        var view = SyncView(stream: stream)
        view.hands = committed.hands
        view.invitations = committed.invitations
        for viewer in sync.audience.viewers where !committed.isOnStage(viewer.id) {
            view.viewers[viewer.id] = SyncView.Viewer(
                name: viewer.name ?? viewer.id.description, isModerator: viewer.isModerator)
        }
        view.programme = SyncView.Programme(
            hasAudio: stream.hasAudio, hasVideo: stream.hasVideo, isPaused: stream.isPaused)
        guard committed.phase != .ended else { return view }
        for (id, member) in committed.speakers {
            view.speakers[id] = entry(of: id, member, isHost: false)
        }
        view.speakers[committed.host] = entry(of: committed.host, committed.hostMember, isHost: true)
        return view
    }

    /// A member of the stage as followers see it.
    private func entry(of id: ParticipantID, _ member: StageRecord.Member, isHost: Bool) -> SyncView.Member {
        let hasWeakUplink = weakUplinks.keys.contains { connections[$0]??.id == id }
        return SyncView.Member(
            member: member, isHost: isHost, isPresent: isPresent(id), hasWeakUplink: hasWeakUplink)
    }

    private func isPresent(_ id: ParticipantID) -> Bool { stage?.isPresent(id) ?? false }

    // MARK: Time

    /// Does what is due; called by the timer, or by a test that moves the clock.
    package func tick() {
        guard !isClosed else { return }
        timerAt = nil
        let now = environment.now().elapsed
        weakUplinks = weakUplinks.filter { $0.value > now }
        // `decide` announces what it changes. Without a stage to advance, weak uplinks may have expired.
        if let deadline = stage?.deadline, deadline <= now {
            try? decide { stage, now throws(Rejection) in stage.advance(to: now) }
        } else {
            announce()
        }
        // The hub has closed the follower; the participant is also no longer present by this connection.
        for number in sync.expire(by: now) { disconnect(.socket(number)) }
        repeatReports()
        advanceDuels()
        advanceInteraction()
        // Slow followers that have caught up receive a snapshot, which contains the audience's state.
        if sync.hasSlowFollowers { sync.interaction = interaction.describe(at: now) }
        let you = describer
        sync.advance(to: now, you: you)
        scheduleTick()
    }

    /// When `tick` is due; nil for never.
    package var deadline: MonotonicTime? {
        var next = sync.deadline
        if let time = stage?.deadline { next = min(next ?? time, time) }
        if let time = interaction.deadline(at: environment.now(), isLive: isLive) {
            next = min(next ?? time, time)
        }
        if let time = duels.deadline(duelSituation, at: environment.now()) { next = min(next ?? time, time) }
        if let time = weakUplinks.values.min() { next = min(next ?? time, time) }
        if let time = refusedReports.deadline { next = min(next ?? time, time) }
        // No event reports that a slow follower has caught up, so the hub is asked twice a second.
        if sync.hasSlowFollowers {
            let time = environment.now().elapsed + SyncHub.audienceInterval
            next = min(next ?? time, time)
        }
        return next
    }

    /// Sets the timer for the next deadline, unless it is due earlier already.
    func scheduleTick() {
        guard environment.runsTimer, !isClosed, let deadline else { return }
        if let timerAt, timerAt <= deadline { return }
        timer?.cancel()
        timerAt = deadline
        // A start may be scheduled years ahead; an early wake once an hour costs nothing.
        let wait = min(max(deadline - environment.now().elapsed, .milliseconds(1)), .seconds(3_600))
        timer = Task { [weak self] in
            do { try await Task.sleep(for: wait) } catch { return }
            await self?.tick()
        }
    }
}

extension Stage {
    /// Lets the hub count viewers while both it and the stage are accessed exclusively.
    fileprivate mutating func refresh(
        _ sync: inout SyncHub, leaders: [ParticipantID], at now: MonotonicTime
    ) {
        sync.refreshAudience(of: &self, leaders: leaders, at: now)
    }
}
