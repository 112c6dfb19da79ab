import Base
import Forwarding
import Recordings
import Stage

extension Node {
    // MARK: What workers tell

    func take(_ event: WorkerEvent) async {
        switch event {
        case .checked(let id):
            guard let crowded = sessions.noteCheck(of: id) else { return }
            _ = await endSession(crowded, because: "no handshake came")
        case .connected(let id, let profile, let address):
            sessions.noteConnection(of: id)
            guard let record = sessions[id] else { return }
            log.info(
                "session.connected",
                [
                    "session": id.label, "stream": record.stream, "srtp": "\(profile)",
                    "address": address?.description ?? "",
                ])
            if record.purpose == .stage { await replaceEarlierSessions(than: record) }
            if record.purpose == .feed { return carryOut(feed.connect(id)) }
            await registry[record.stream]?.connect(record.request.sender, by: .session(id))
        case .mediaStarted(let id):
            guard let record = sessions[id], record.request.isSource else { return }
            streams[record.stream, default: LiveStream()].setSource(id)
            log.info("stream.source", ["stream": record.stream, "session": id.label])
            for viewer in streams[record.stream]?.audience ?? [] {
                sessions.update(viewer) { $0.waitsUntil = nil }
            }
            announceProgramme(of: record.stream)
            await registry[record.stream]?.setSource(record.source)
            programmeChanged(in: record.stream)
        case .closed(let id, let reason):
            await forget(id, because: "\(reason)")
        case .controlOpened(let id) where sessions[id]?.purpose == .feed: carryOut(feed.greet(id))
        case .published(let id, _), .sourceChanged(let id, _, _), .voice(let id, _), .controlOpened(let id):
            tellRoom(event, of: id)
        case .passed(let fence): carryOut(feed.pass(fence))
        case .controlMessage(let id, let message): await takeControl(message, from: id)
        case .begun(let id, let pair, let stream, let timestamp):
            carryOut(feed.began(stream, timestamp: timestamp, pair: pair, of: id))
        case .injected(let id, let tracks): tellInjection(id, .opened(tracks))
        case .keyFrameWanted(let id, let source, let layer):
            tellInjection(id, .keyFrameWanted(source: source, layer: layer))
        }
    }

    /// Removes a session that has ended from its stream.
    func forget(_ id: SessionID, because reason: String) async {
        carryOut(feed.leave(id))
        guard let record = sessions.remove(id) else { return }
        if record.request.isOnStage { leaveRoom(record) }
        let now = now().elapsed
        if omissions.admitSessionLine(at: now) {
            log.info(
                "session.closed", ["session": id.label, "stream": record.stream, "reason": reason])
        }
        if streams[record.stream]?.remove(record, at: now) == true {
            log.info("stream.source-gone", ["stream": record.stream, "reason": reason])
            announceProgramme(of: record.stream)
            programmeChanged(in: record.stream)
        }
        let host = registry[record.stream]
        // Whoever takes over is the source as soon as their media flows; until then nothing has ended.
        if record.request.isSource, streams[record.stream]?.hasSourceOrSuccessor != true {
            await host?.setSource(nil)
        }
        await host?.disconnect(.session(id))
    }

    // MARK: What stages want

    /// Does what a stage decided, once that is durable.
    func perform(_ effect: StageEffect, in stream: StreamID) async {
        switch effect {
        case .requestMute(let participant, let kind, let sender):
            deliverMute(kind.rawValue, to: participant, by: sender, in: stream)
        case .showMute(let participant, let audio, let video):
            setMute(StageRoom.Mute(audio: audio, video: video), of: participant, in: stream)
            programmeChanged(in: stream)
        case .setProgramme(let programme):
            setProgramme(programme, of: stream)
            updateComposition(of: stream)
        case .retire(let participant):
            await endSessions(of: stream, because: "off stage") { record in
                !record.request.isWatching && record.request.participant == participant
            }
        case .expel(let participant, let reason):
            await endSessions(of: stream, because: reason?.name ?? "removed") { record in
                record.request.participant == participant
            }
        case .close:
            // A published stream's viewers are kept for a while, in case it begins anew.
            let isPublished = directory[stream]?.isPublished == true
            await endSessions(of: stream, because: "ended") { record in
                !isPublished || !record.request.isWatching
            }
        }
    }

    private func endSessions(
        of stream: StreamID, because reason: String, where isMeant: (SessionRecord) -> Bool
    ) async {
        guard let record = streams[stream] else { return }
        let meant = record.all.filter { sessions[$0].map(isMeant) ?? false }
        for id in meant { _ = await endSession(id, because: reason) }
    }

    // MARK: Time

    /// Ends viewers that waited long enough, and forgets streams that nobody needs; once a second.
    func keepHouse() async {
        let moment = now()
        let now = moment.elapsed
        for record in sessions.all {
            if let end = record.closesAt, now >= end { _ = await endSession(record.id, because: "replaced") }
            guard let deadline = record.waitsUntil, now >= deadline else { continue }
            _ = await endSession(record.id, because: "waited in vain")
        }
        for (id, stream) in streams {
            if stream.isUnused {
                streams[id] = nil
            } else if let since = stream.emptySince, !stream.isLive, directory[id]?.state == .ended,
                now >= since + configuration.returnTime
            {
                for viewer in stream.audience { _ = await endSession(viewer, because: "ended") }
            }
        }
        for host in registry.all where streams[host.id] == nil {
            if let idle = await host.closeIfIdle() { registry.remove(host, because: idle) }
        }
        registry.forgetEnded(at: moment)
        omissions.tell(inboxCounters, to: log)
        await previews?.advance()
        await recordings?.advance { [directory] in directory[$0]?.state == .ended }
    }
}
