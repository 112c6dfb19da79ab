import Base
import Stage

/// Who is there, what they are told, and the passing of time.
extension StreamHost {
    // MARK: Sessions and media

    /// Notes that somebody has a peer connection that works.
    package func connect(_ sender: Stage.Sender?, by connection: Stage.Connection) {
        connections[connection] = .some(sender)
        // Refused only to those who hear of it elsewhere.
        try? decide { stage, now throws(Rejection) in
            stage.connect(sender, by: connection, at: now)
        }
    }

    /// Notes that a connection is gone; nothing where it was not there.
    package func disconnect(_ connection: Stage.Connection) {
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

    /// An uplink counts as weak for so long after a worker or a client last said so, which they do every 5 to 10 s.
    static let weakUplinkTime = Duration.seconds(15)

    /// Notes that less of what somebody sends comes than should: all followers hear of it.
    package func noteWeakUplink(of connection: Stage.Connection) {
        guard case .some(.some) = connections[connection] else { return }
        let end = environment.now().elapsed + Self.weakUplinkTime
        // Who says it again and again, as clients may, has nothing announced for that.
        guard weakUplinks.updateValue(end, forKey: connection) == nil else { return }
        announce()
        scheduleTick()
    }

    /// Tells the host and whoever publishes what comes of an encoder.
    /// - Parameters:
    ///   - encoder: null once nothing comes.
    ///   - end: why nothing comes.
    func tellEncoder(_ encoder: JSON, of publisher: ParticipantID, end: JSON? = nil) {
        var message: [String: JSON] = [
            "participant": .string(publisher.description), "encoder": encoder,
        ]
        message["end"] = end
        let text = SyncNotice.encoder.text(message)
        for id in Set([publisher, committed?.host].compactMap(\.self)) { sync.tell(text, to: id) }
    }

    /// Notes whose a connection is that came without a name.
    func adopt(_ connection: Stage.Connection, as sender: Stage.Sender) {
        guard case .some(.none) = connections[connection] else { return }
        disconnect(connection)
        connect(sender, by: connection)
    }

    /// Notes what viewers would get from now on.
    package func setSource(_ source: Stage.Source?) {
        try? decide { stage, now throws(Rejection) in stage.setSource(source, at: now) }
    }

    /// Whether somebody says that their camera is off, or that they are away.
    /// - Parameter participant: nil for whoever provides the programme.
    func isPictureOff(of participant: ParticipantID? = nil) -> Bool {
        guard let committed, committed.phase == .live, let source = stage?.source else { return false }
        let member = committed.member(participant ?? source.owner ?? committed.host)
        return member?.isPaused == true || member?.isVideoMuted == true
    }

    /// Notes the stream's latest picture.
    package func setPreview(_ preview: StreamPreview) {
        self.preview = preview
        announce()
    }

    /// Notes whether the stream is being recorded.
    package func setRecording(_ isRecording: Bool) {
        guard self.isRecording != isRecording else { return }
        self.isRecording = isRecording
        announce()
    }

    /// Notes whether viewers can go back in the stream.
    package func setKept(_ isKept: Bool) {
        guard self.isKept != isKept else { return }
        self.isKept = isKept
        announce()
    }

    // MARK: Followers

    /// Begins to tell somebody of the stream: a snapshot, or what they missed, then each change.
    /// - Parameter expiry: when the token that says who they are ends.
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

    /// Begins to tell a session's client what the audience does, on its control channel; again, it is told all anew.
    func follow(as sender: Stage.Sender?, in session: SessionID, _ end: any SyncFollower) {
        // A session that has ended is not there any more to be told of.
        guard !isClosed, refusal(to: sender) == nil, connections[.session(session)] != nil else { return }
        guard listeners[session] == nil else { return refresh(session) }
        sync.interaction = interaction.describe(at: environment.now().elapsed)
        listeners[session] = sync.addListener(end, for: sender)
        if let sender { tellOwn(to: sender) }
    }

    /// Tells a session's client anew what the audience does, if it wanted to be told.
    func refresh(_ session: SessionID) {
        guard !isClosed, let number = listeners[session] else { return }
        sync.interaction = interaction.describe(at: environment.now().elapsed)
        sync.tellAudience(to: number)
        if case .some(.some(let sender)) = connections[.session(session)] { tellOwn(to: sender) }
    }

    /// What only they are told of what the audience does.
    private func tellOwn(to sender: Stage.Sender) {
        if let text = interaction.hiddenComments(of: sender.id) {
            sync.tell(text, to: sender.id, of: .audience)
        }
        tellInvitation(to: sender)
    }

    /// Tells a follower nothing more, who is gone.
    package func unfollow(_ number: UInt64) {
        sync.remove(number)
        disconnect(.socket(number))
    }

    /// Everything that is announced, for somebody who only looks once.
    package var overview: JSON {
        var members = sync.view.json
        members["version"] = .integer(sync.version)
        members["present"] = .array(present)
        return .object(members)
    }

    /// Who is there now: the host, who is on stage, then viewers, as far as they are listed, by rank.
    private var present: [JSON] {
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

    /// Says what somebody is, as of what was announced; without a look at the hub, which it is given to.
    private var describer: (Stage.Sender) -> SyncYou {
        let (record, areDoorsOpen) = (committed, sync.view.stream.areDoorsOpen)
        return { SyncYou($0, in: record, areDoorsOpen: areDoorsOpen) }
    }

    /// Tells followers what is different from what they were told, or holds it back for a moment; those whom it
    /// concerns hear of themselves at once.
    func announce(about changes: [StageChange] = []) {
        let now = environment.now().elapsed
        stage?.refresh(&sync, leaders: interaction.leaders, at: now)
        let (old, next) = (sync.view.stream, view)
        let isHeldBack = sync.holdBack(next, at: now)
        let isTold = !isHeldBack && sync.announce(next, at: now)
        guard isTold || isHeldBack || !changes.isEmpty else { return }
        let new = sync.view.stream
        let concernsAll =
            old.state != new.state || old.areDoorsOpen != new.areDoorsOpen || old.host != new.host
            || old.createdAt != new.createdAt
        let you = describer
        var concerned = Set(changes.compactMap(\.subject))
        if changes.contains(where: \.movesHands), let committed { concerned.formUnion(committed.hands.keys) }
        sync.announce(to: concernsAll ? nil : concerned, you: you)
        if !isHeldBack { environment.directory.update(snapshot) }
    }

    /// As of what is durable, and who is there now.
    private var view: SyncView {
        guard let committed else { return SyncView(stream: StreamSnapshot(waitingFor: id)) }
        var stream = StreamSnapshot(committed)
        stream.areDoorsOpen = stage?.areDoorsOpen ?? false
        stream.viewers = sync.audience.counts.viewers
        stream.waiting = sync.audience.counts.waiting
        let source = committed.phase == .ended ? nil : stage?.source
        stream.hasAudio = source?.hasAudio ?? false
        stream.hasVideo = source?.hasVideo ?? false
        stream.preview = stream.state == .backstage ? nil : preview
        let owner = source?.owner ?? committed.host
        stream.isPaused = committed.member(owner)?.isPaused ?? false
        stream.isRecording = isRecording
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
        if let deadline = stage?.deadline, deadline <= now {
            try? decide { stage, now throws(Rejection) in stage.advance(to: now) }
        } else {
            announce()
        }
        for number in sync.expire(by: now) { disconnect(.socket(number)) }
        advanceDuels()
        advanceInteraction()
        if sync.hasSlowFollowers { sync.interaction = interaction.describe(at: now) }
        let you = describer
        sync.advance(to: now, you: you)
        scheduleTick()
    }

    /// When `tick` is due; nil if never.
    package var deadline: MonotonicTime? {
        var next = sync.deadline
        if let time = stage?.deadline { next = min(next ?? time, time) }
        if let time = interaction.deadline(at: environment.now(), isLive: isLive) {
            next = min(next ?? time, time)
        }
        if let time = duels.deadline(duelSituation, at: environment.now()) { next = min(next ?? time, time) }
        if let time = weakUplinks.values.min() { next = min(next ?? time, time) }
        if sync.hasSlowFollowers {
            let time = environment.now().elapsed + SyncHub.audienceInterval
            next = min(next ?? time, time)
        }
        return next
    }

    func scheduleTick() {
        guard environment.runsTimer, !isClosed, let deadline else { return }
        if let timerAt, timerAt <= deadline { return }
        timer?.cancel()
        timerAt = deadline
        // A schedule may be years away; looking in between costs nothing.
        let wait = min(max(deadline - environment.now().elapsed, .milliseconds(1)), .seconds(3_600))
        timer = Task { [weak self] in
            do { try await Task.sleep(for: wait) } catch { return }
            await self?.tick()
        }
    }
}

extension Stage {
    fileprivate mutating func refresh(
        _ sync: inout SyncHub, leaders: [ParticipantID], at now: MonotonicTime
    ) {
        sync.refreshAudience(of: &self, leaders: leaders, at: now)
    }
}
