import Base
import Forwarding
import Peer
import Stage
import StoryFeed
import Transcoder
import Wire

/// All streams that have sessions: their sessions, slots and programmes, and what the transcoder makes for them.
///
/// Pure: reports from workers, stages, clients, jobs and the clock come in, and actions go out, to be performed in
/// order, so simulations drive it as the node does. The IDs of jobs, and whether a worker accepted a command, are
/// returned after the actions that ask for them: see `LiveAction`.
struct LiveStreams {
    private(set) var sessions: SessionCensus
    var feed: LiveFeed
    /// Stands between what viewers should receive and the workers.
    var gates: ViewerGates
    private(set) var productions: Productions
    private var streams = LiveStreamTable()
    /// Streams in a duel, each with the stream whose host it also shows.
    var opponents: [StreamID: StreamID] = [:]
    /// The audience's access to data tracks as workers know it; streams without an entry grant none.
    var dataAccess: [StreamID: StageDetails.AudienceData] = [:]
    /// The pause pictures of hosts that are on their way to the disk.
    var pauseChoices = PauseChoices()
    let directory: StreamDirectory
    private var settings: LiveSettings
    /// Whether nothing new may begin.
    private(set) var isStopping = false

    /// How long the connection of a feed session stays open after the session has lost its place.
    ///
    /// The client receives the reason even if SCTP has to send it two more times (RFC 9260 §6.3.1); without it, it
    /// would reconnect.
    private static let farewellTime = Duration.seconds(5)

    /// - Parameters:
    ///   - directory: snapshots of all streams, which their stages update.
    ///   - feedTag: a random number by which cursors of this process differ from those of others.
    init(directory: StreamDirectory, settings: LiveSettings, feedTag: UInt32) {
        self.directory = directory
        self.settings = settings
        sessions = SessionCensus(workers: settings.workers, limits: SessionCensus.Limits(settings.limits))
        gates = ViewerGates(directory: directory)
        feed = LiveFeed(
            directory: directory, sessionLimit: settings.limits.sessions, weights: settings.feedWeights,
            tag: feedTag)
        productions = Productions(
            compositionLimit: settings.limits.compositions, renditionLimit: settings.limits.renditions)
    }

    /// Nil for a stream without sessions.
    subscript(_ stream: StreamID) -> LiveStream? { streams[stream] }

    /// The limits for what begins.
    var limits: NodeLimits { settings.limits }

    /// Applies to what begins from now on.
    mutating func setLimits(_ limits: NodeLimits) {
        settings.limits = limits
        sessions.setLimits(SessionCensus.Limits(limits))
        feed.setSessionLimit(limits.sessions)
        productions.setLimits(compositions: limits.compositions, renditions: limits.renditions)
    }

    /// Admits no more sessions and begins no more jobs.
    mutating func stop() { isStopping = true }

    /// Forgets all sessions, which the workers have ended, and closes the connections of the feed's followers.
    mutating func clear() {
        sessions.removeAll()
        gates = ViewerGates(directory: directory)
        feed.closeFollowers(.goingAway)
    }

    // MARK: Sessions that begin

    /// Admits a session or refuses it, as things are now, whatever was true before its offer was parsed.
    /// - Returns: what the worker must receive before anything else, and what follows.
    mutating func admit(
        _ candidate: SessionCandidate, at now: MonotonicTime
    ) throws(SessionRefusal) -> (opening: SessionOpening, actions: [LiveAction]) {
        let request = candidate.request
        try checkPlace(for: request)
        try checkSource(of: request)
        try checkGate(of: request, at: now)
        try candidate.checkClearance()
        let feedActions = try candidate.enter(&feed, at: now)
        let record = candidate.record(
            order: sessions.nextOrder, isLive: streams[request.stream]?.isLive ?? false, at: now)
        let opening = candidate.opening(order: sessions.nextOrder)
        let crowded = sessions.add(record, at: now)
        if request.purpose != .feed { streams.add(record) }
        if request.isWatching { gates.enter(candidate.id, request, on: candidate.worker) }
        var actions = take(feedActions, at: now) + seatViewer(candidate.id, request, at: now)
        if request.isOnStage, let programme = directory[request.stream]?.details.programme {
            actions += setProgramme(programme, of: request.stream, at: now)
        }
        if request.purpose == .stage, !request.isAudience { actions += restoreMute(for: candidate, at: now) }
        if let crowded { actions += end(crowded, because: "no check came", at: now) }
        return (opening, actions)
    }

    // MARK: Sessions that change

    /// Notes the participant of a session that was anonymous.
    mutating func adopt(_ id: SessionID, as sender: Stage.Sender) {
        sessions.update(id) { $0.request.sender = sender }
    }

    /// Notes that a session's client connects by one of the node's TURN ports; nil for a direct connection.
    mutating func noteRelay(_ client: RelayedClient?, of id: SessionID) {
        sessions.update(id) { $0.relayed = client }
    }

    /// Notes the new ICE credentials of a session.
    /// - Parameter entityTag: names the server's credentials.
    mutating func restartICE(
        of id: SessionID, entityTag: String, remote: ICECredentials, at now: MonotonicTime
    ) {
        sessions.restartICE(of: id, entityTag: entityTag, remote: remote, at: now)
    }

    /// Changes a client's preferences for pictures; nil if there is no such session.
    mutating func prefer(_ patch: DeliveryPatch, by id: SessionID, at now: MonotonicTime) -> LiveAction? {
        sessions.prefer(patch, by: id, at: now)
    }

    // MARK: Sessions that end

    /// Notes that a session's client knows of the session's end.
    mutating func acknowledgeEnd(of id: SessionID) -> Bool { sessions.acknowledgeEnd(of: id) }

    /// Ends a session, if there is one.
    mutating func end(_ id: SessionID, because reason: String, at now: MonotonicTime) -> [LiveAction] {
        guard let record = sessions[id] else { return [] }
        return [.post(.close(id), worker: record.worker, of: nil)] + forget(id, because: reason, at: now)
    }

    /// Ends the sessions of a stream that match and that its stage admitted before an effect.
    private mutating func end(
        of stream: StreamID, before effect: UInt64, because reason: String, at now: MonotonicTime,
        where isMeant: (SessionRecord) -> Bool
    ) -> [LiveAction] {
        let known = (streams[stream]?.all ?? []).filter { sessions[$0].map { $0.effect < effect } ?? false }
        let meant = known.filter { sessions[$0].map(isMeant) ?? false }
        return meant.sorted().flatMap { end($0, because: reason, at: now) }
    }

    /// Removes a session that has ended from its stream.
    private mutating func forget(
        _ id: SessionID, because reason: String, at now: MonotonicTime
    ) -> [LiveAction] {
        var actions = take(feed.leave(id), at: now)
        gates.leave(id, at: now)
        guard let record = sessions.remove(id, because: reason, at: now) else { return actions }
        let stream = record.stream
        if record.request.isOnStage {
            actions += conduct(stream, at: now) { $0.leave(id) }
            actions.append(.programmeChanged(stream))
        }
        actions.append(.report(.closed(record, reason: reason)))
        if streams[stream]?.remove(record, at: now) == true {
            actions.append(.report(.sourceGone(stream, reason: reason)))
            actions += announceProgramme(of: stream) + [.programmeChanged(stream)]
        }
        actions.append(.notify(.disconnect(id), stream))
        // A session that takes over becomes the source once its media flows; until then the stream goes on.
        let hasLostSource = record.request.isSource && streams[stream]?.hasSourceOrSuccessor != true
        guard hasLostSource || streams[stream]?.awaitsHost == true else { return actions }
        return actions + succeed(in: stream, at: now)
    }

    /// Continues a published stream that has lost its source with another host on its stage, the same person on another
    /// device or a second host, as soon as their media flows; without one, the stage is told that there is no source.
    private mutating func succeed(in stream: StreamID, at now: MonotonicTime) -> [LiveAction] {
        // A stream that was created by a command belongs to its host, who may come back.
        let goesOn = directory[stream].map { $0.isPublished && $0.state == .live } ?? false
        let succession = goesOn ? streams[stream]?.succession(among: sessions, at: now) : nil
        streams[stream]?.setAwaitsHost(succession == .awaited)
        guard case .host(let id, let worker) = succession else {
            return succession == .awaited ? [] : [.notify(.setSource(nil), stream)]
        }
        streams[stream]?.promote(id)
        sessions.update(id) {
            $0.request.isHost = true
            $0.isSuccessor = true
        }
        return [.post(.makeSource(id, order: sessions.takeOrder()), worker: worker, of: nil)]
            + setSource(id, at: now) + conduct(stream, at: now) { $0.makeHost(id) }
    }

    // MARK: What workers tell

    mutating func receive(_ event: WorkerEvent, at now: MonotonicTime) -> [LiveAction] {
        sessions.receive(event, at: now) + follow(event, at: now)
    }

    /// - Returns: what follows beyond the session that an event concerns.
    private mutating func follow(_ event: WorkerEvent, at now: MonotonicTime) -> [LiveAction] {
        switch event {
        case .checked(let id):
            sessions.noteCheck(of: id).map { end($0, because: "no handshake came", at: now) } ?? []
        case .connected(let id, _, _): connect(id, at: now)
        case .mediaStarted(let id): setSource(id, at: now)
        case .closed(let id, let reason): forget(id, because: "\(reason)", at: now)
        case .controlOpened(let id) where sessions[id]?.purpose == .feed: greet(id, at: now)
        case .published(let id, _), .sourceChanged(let id, _, _), .voice(let id, _), .controlOpened(let id):
            receive(event, of: id, at: now)
        case .passed(let fence): pass(fence, at: now)
        case .controlMessage(let id, let message): receive(message, from: id, at: now)
        case .begun(let id, let pair, let stream, let timestamp):
            take(feed.began(stream, timestamp: timestamp, pair: pair, of: id), at: now)
        case .injected(let id, let tracks): take(productions.made(tracks, of: id), at: now)
        case .keyFrameWanted(let id, _, let layer):
            take(productions.keyFrameWanted(of: id, layer: layer), at: now)
        // The node handles these itself; nothing here depends on them.
        case .sessionKeyFrameWanted, .keyFrameRequested: []
        case .renditionWanted(let id, let track, let isWanted):
            // Without a transcoder, and while the node stops, no rendition begins.
            settings.isProducing && !isStopping || !isWanted
                ? take(productions.want(renditionsOf: track, of: id, isWanted: isWanted), at: now) : []
        case .uplinkWeak, .layersWanted, .qualityChanged: []
        }
    }

    private mutating func connect(_ id: SessionID, at now: MonotonicTime) -> [LiveAction] {
        guard let record = sessions[id] else { return [] }
        gates.connect(id, at: now)
        var actions: [LiveAction] = []
        if record.purpose == .stage {
            for earlier in streams[record.stream]?.earlierSessions(than: record) ?? []
            where sessions[earlier]?.purpose == .stage {
                actions += end(earlier, because: "deleted", at: now)
            }
        }
        if record.purpose == .feed { return actions + take(feed.connect(id), at: now) }
        return actions + [.notify(.connect(record.request.sender, id), record.stream)]
    }

    private mutating func setSource(_ id: SessionID, at now: MonotonicTime) -> [LiveAction] {
        guard let record = sessions[id], record.request.isSource else { return [] }
        let stream = record.stream
        // A host who was awaited became the source before the event that its media has started.
        guard streams[stream]?.publisher != id else { return [] }
        streams.setSource(id, of: stream)
        sessions.noteSource(id, watchedBy: streams[stream]?.audience ?? [], at: now)
        return [.report(.source(record))] + announceProgramme(of: stream)
            + [.notify(.setSource(record.source), stream), .programmeChanged(stream)]
            + gates.begin(stream, at: now)
    }

    /// Handles an event of a session on a stage, or of a viewer who uses the stage's endpoint.
    private mutating func receive(
        _ event: WorkerEvent, of id: SessionID, at now: MonotonicTime
    ) -> [LiveAction] {
        guard let record = sessions[id] else { return [] }
        var refresh: [LiveAction] = []
        // The channel has opened, or its client receives again after a message did not fit.
        if case .controlOpened = event { refresh = [.notify(.refresh(id), record.stream)] }
        if record.request.isAudience {
            let stream = streams[record.stream] ?? LiveStream()
            return [stream.announceProgramme(to: record, among: sessions)] + gates.greet(id, at: now)
                + refresh
        }
        let actions =
            conduct(record.stream, at: now) { $0.receive(event) }
            + tellVoice(event, of: record.stream, at: now) + refresh
        // A camera may have been switched on or off, or the next host is here.
        guard case .sourceChanged = event else { return actions }
        let next = streams[record.stream]?.awaitsHost == true ? succeed(in: record.stream, at: now) : []
        return actions + [.programmeChanged(record.stream)] + next
    }

    /// Handles that a worker has performed everything before a fence, or accepts no more.
    mutating func pass(_ fence: UInt64, at now: MonotonicTime) -> [LiveAction] {
        take(feed.pass(fence), at: now)
    }

    // MARK: What clients say

    /// Handles a message from a session's control channel.
    mutating func receive(
        _ message: DataChannelMessage, from id: SessionID, at now: MonotonicTime
    ) -> [LiveAction] {
        guard let record = sessions[id], record.closesAt == nil else { return [] }
        if record.purpose == .feed { return inFeed(at: now) { $0.receive(message, from: id, at: now) } }
        guard let wish = ControlRequest(parsing: message) else {
            return [record.tell(.error("malformed", "The server doesn't know this message."))]
        }
        return sessions.receive(wish, from: id, at: now)
            ?? conduct(record.stream, at: now) { $0.arrange(wish, for: id) }
    }

    // MARK: The stage

    /// Changes a stream's stage, if it has one, and what other streams show of it.
    mutating func conduct(
        _ stream: StreamID, at now: MonotonicTime, _ change: (inout StageRoom) -> [StageRoom.Effect]
    ) -> [LiveAction] {
        alter(stream, at: now, change) + refreshGuests(outOf: stream, at: now)
    }

    /// Changes a stream's stage without what follows for other streams.
    mutating func alter(
        _ stream: StreamID, at now: MonotonicTime, _ change: (inout StageRoom) -> [StageRoom.Effect]
    ) -> [LiveAction] {
        (streams[stream]?.conduct(change) ?? []).flatMap { perform($0, in: stream, at: now) }
    }

    private mutating func perform(
        _ effect: StageRoom.Effect, in stream: StreamID, at now: MonotonicTime
    ) -> [LiveAction] {
        switch effect {
        case .command(let command, let worker): return [.post(command, worker: worker, of: stream)]
        case .announce(let session):
            guard let record = sessions[session] else { return [] }
            return self[stream]?.announceSlots(to: record, among: sessions) ?? []
        case .programme: return giveProgramme(of: stream) + announceProgramme(of: stream)
        case .announceProgramme: return announceProgramme(of: stream)
        case .compose(let speakers):
            guard settings.isProducing, !isStopping else { return [] }
            return take(
                productions.compose(speakers, in: stream, situation(of: stream), at: now), at: now)
        case .refresh(let track): return take(productions.refresh(track, in: stream), at: now)
        }
    }

    /// Performs an effect of a stage; the change that caused it is durable by now.
    /// - Parameter number: from `EffectNumbers`; sessions that the stage admitted after that go on.
    mutating func perform(
        _ effect: StageEffect, in stream: StreamID, number: UInt64 = .max, at now: MonotonicTime
    ) -> [LiveAction] {
        switch effect {
        case .requestMute(let participant, let kind, let sender):
            return streams[stream]?.deliverMute(kind, to: participant, by: sender, among: sessions) ?? []
        case .showMute(let participant, let audio, let video):
            let mute = StageRoom.Mute(audio: audio, video: video)
            return conduct(stream, at: now) { $0.setMute(mute, of: participant) }
                + [.programmeChanged(stream)]
        case .setProgramme(let programme):
            return setProgramme(programme, of: stream, at: now) + updateComposition(of: stream, at: now)
        case .retire(let participant):
            return end(of: stream, before: number, because: "off stage", at: now) { record in
                !record.request.isWatching && record.request.participant == participant
            }
        case .expel(let participant, let reason):
            return end(of: stream, before: number, because: reason?.name ?? "removed", at: now) { record in
                record.request.participant == participant
            }
        case .close:
            opponents[stream] = nil
            streams[stream]?.end(at: now)
            // The viewers of a published stream are kept for a while, in case it begins again.
            let isPublished = directory[stream]?.isPublished == true
            return end(of: stream, before: number, because: "ended", at: now) { record in
                !isPublished || !record.request.isWatching
            }
        }
    }

    /// Chooses what the viewers of a stream receive, for as long as its stage has sessions.
    private mutating func setProgramme(
        _ programme: StageDetails.Programme, of stream: StreamID, at now: MonotonicTime
    ) -> [LiveAction] {
        // Without a transcoder, the active speaker stands in for a composition.
        let programme: StageRoom.Programme =
            switch programme {
            case .host: .host
            case .activeSpeaker: .activeSpeaker
            case .composed: settings.isProducing ? .composed : .activeSpeaker
            }
        return conduct(stream, at: now) { $0.setProgramme(programme) }
    }

    // MARK: The feed

    mutating func take(_ actions: [LiveFeed.Action], at now: MonotonicTime) -> [LiveAction] {
        actions.flatMap { action -> [LiveAction] in
            switch action {
            case .post(.seat(let id, let pair, let stream, let isPreview, let requested), _, _):
                return gates.seat(
                    id, pair: pair, on: stream, isPreview: isPreview, requested: requested, isLive: true,
                    at: now)
            case .post(let command, let worker, _): return [.post(command, worker: worker, of: .feed)]
            case .fence(let number, let worker): return [.fence(number, worker: worker)]
            case .flush(let stream): return [.postToAll(.flush(stream))]
            case .close(let session, let worker): return [.post(.close(session), worker: worker, of: nil)]
            case .dismiss(let session):
                sessions.update(session) { $0.closesAt = now + Self.farewellTime }
                return []
            case .count(let change): return [.count(change)]
            case .prefer(let patch, let session):
                return [sessions.prefer(patch, by: session, at: now)].compactMap(\.self)
            }
        }
    }

    // MARK: What is made for viewers

    /// Sets the picture that a host has chosen for pauses; nil for none.
    mutating func setPauseFile(_ file: [UInt8]?, of stream: StreamID) {
        productions.setPauseFile(file, of: stream)
    }

    /// Changes what the transcoder makes, and returns what follows.
    mutating func produce(
        at now: MonotonicTime, _ body: (inout Productions) -> [Productions.Effect]
    ) -> [LiveAction] {
        take(body(&productions), at: now)
    }

    private mutating func take(_ effects: [Productions.Effect], at now: MonotonicTime) -> [LiveAction] {
        effects.flatMap { effect -> [LiveAction] in
            switch effect {
            case .act(let action): [action]
            case .open(let owner): [productions.inject(for: owner, on: sessions.leastLoadedWorker)]
            case .giveProgramme(let stream): giveProgramme(of: stream)
            case .report(let report, let id): [.report(.renditions(report, id, sessions[id]?.stream))]
            }
        }
    }

    /// Handles that a worker was asked to make the tracks of an injection.
    /// - Parameter isTaken: false if the worker accepts no more.
    mutating func opened(_ id: InjectionID, isTaken: Bool, at now: MonotonicTime) -> [LiveAction] {
        var situation = CompositionDesk.Situation()
        if case .composition(let stream) = productions.owner(of: id) {
            situation = self.situation(of: stream)
        }
        return take(productions.opened(id, isTaken: isTaken, situation, at: now), at: now)
    }

    mutating func receive(
        _ event: CompositionEvent, of stream: StreamID, at now: MonotonicTime
    ) -> [LiveAction] {
        take(productions.receive(event, of: stream, situation(of: stream)), at: now)
    }

    /// Continues with a step that had to wait for other actions.
    mutating func resume(_ step: LiveAction.Step, at now: MonotonicTime) -> [LiveAction] {
        switch step {
        case .show(let stream):
            let scene = productions.scene(of: stream) { speaker in
                sessions[speaker.id.session]?.request.name ?? speaker.participant.shownName
            }
            guard let scene else { return [] }
            return [.produce(.command(scene.job, CompositionCommand(scene: scene.scene).bytes))]
        case .give(let stream, let tracks):
            return conduct(stream, at: now) { $0.setComposed(tracks) }
        }
    }

    private mutating func updateComposition(of stream: StreamID, at now: MonotonicTime) -> [LiveAction] {
        guard let settings = directory[stream]?.details.composition?.settings else { return [] }
        return take(productions.update(settings, of: stream), at: now)
    }

    // MARK: Time

    /// Updates active speakers and what is made for viewers; called every `StageRoom.interval`.
    mutating func advanceStages(to now: MonotonicTime) -> [LiveAction] {
        let composed = productions.composedStreams
        let situations = Dictionary(composed.map { ($0, situation(of: $0)) }) { $1 }
        var actions = take(productions.advance(to: now, situations), at: now)
        actions += productions.pausesDue(at: now).map { .programmeChanged($0) } + gates.advance(to: now)
        for stream in streams.staged() {
            actions += conduct(stream, at: now) { $0.advance(to: now) }
        }
        return actions
    }

    /// Ends viewers whose waiting time is over, and forgets unused streams; called once a second.
    mutating func advanceSessions(to now: MonotonicTime) -> [LiveAction] {
        var actions: [LiveAction] = []
        for (id, reason) in sessions.due(at: now) { actions += end(id, because: reason, at: now) }
        sessions.advance(to: now)
        for id in streams.idle {
            guard let stream = streams[id] else { continue }
            // The next host's media may never come.
            if stream.awaitsHost { actions += succeed(in: id, at: now) }
            if stream.isUnused {
                streams[id] = nil
            } else if let since = stream.emptySince, !stream.isLive, directory[id]?.state == .ended,
                now >= since + settings.returnTime
            {
                for viewer in stream.audience.sorted() { actions += end(viewer, because: "ended", at: now) }
            }
        }
        return actions
    }
}
