import Base
import Forwarding
import Peer
import Stage
import Wire

/// Stages: who is in which slot, and what clients say on their control channels.
extension Node {
    func checkRoom(for request: SessionRequest) throws(SessionRefusal) {
        guard request.participant != nil, streams[request.stream]?.room?.isFull != true else {
            throw .overloaded
        }
    }

    /// Ends the sessions that somebody had before this one.
    func replaceEarlierSessions(than record: SessionRecord) async {
        for id in streams[record.stream]?.earlierSessions(than: record) ?? []
        where sessions[id]?.purpose == .stage { _ = await endSession(id) }
    }

    func leaveRoom(_ record: SessionRecord) {
        conduct(record.stream) { $0.leave(record.id) }
        programmeChanged(in: record.stream)
    }

    func tellRoom(_ event: WorkerEvent, of id: SessionID) {
        guard let record = sessions[id] else { return }
        if record.request.isAudience { return announceProgramme(to: record) }
        conduct(record.stream) { $0.receive(event) }
        // A camera may have come or gone.
        if case .sourceChanged = event { programmeChanged(in: record.stream) }
    }

    /// Looks who speaks, on every stage.
    func conductRooms() {
        let now = now().elapsed
        advanceCompositions(to: now)
        advancePauses(to: now)
        let stages = streams.compactMap { $0.value.room == nil ? nil : $0.key }
        for stream in stages { conduct(stream) { $0.advance(to: now) } }
    }

    /// Changes something on a stream's stage, if it has one, and does what follows.
    func conduct(_ stream: StreamID, _ change: (inout StageRoom) -> [StageRoom.Effect]) {
        guard let effects = streams[stream]?.conduct(change) else { return }
        perform(effects, in: stream)
    }

    func perform(_ effects: [StageRoom.Effect], in stream: StreamID) {
        for effect in effects {
            switch effect {
            case .command(let command, let worker):
                guard !workers[worker].post(command) else { continue }
                log.error("worker.full", ["worker": worker, "stream": stream])
            case .announce(let session): announceSlots(to: session)
            case .want(let source, let height):
                guard let record = sessions[source.session] else { continue }
                tell(ControlReply(type: "wanted", mid: source.mid, maxHeight: height), to: record)
            case .programme:
                giveProgramme(of: stream)
                announceProgramme(of: stream)
            case .announceProgramme: announceProgramme(of: stream)
            case .compose(let speakers): compose(speakers, in: stream)
            case .refresh(let track): refresh(track, in: stream)
            }
        }
    }

    private func announceSlots(to id: SessionID) {
        guard let record = sessions[id],
            let slots = streams[record.stream]?.stageSlots(of: record, among: sessions)
        else { return }
        tell(ControlReply(type: "slots", slots: slots), to: record)
    }

    // MARK: Control channels

    func takeControl(_ message: DataChannelMessage, from id: SessionID) async {
        guard let record = sessions[id] else { return }
        if record.purpose == .feed {
            return carryOut(feed.receive(message, from: id, at: now().elapsed))
        }
        guard let request = ControlRequest(parsing: message) else {
            return tell(.error("malformed", "This is no message that this server knows."), to: record)
        }
        if record.request.isAudience, takeFromAudience(request, record) { return }
        switch request {
        case .ping: tell(ControlReply(type: "pong"), to: record)
        case .pin(let participant, let mid, let height):
            wish(record) { $0.pin(participant, in: mid, of: id) + $0.limit(mid, of: id, to: height) }
        case .slot(let mid, let height): wish(record) { $0.limit(mid, of: id, to: height) }
        case .visible(let isVisible, let mid): wish(record) { $0.setVisible(isVisible, mid, of: id) }
        case .mute(let participant, let kind):
            await mute(participant, kind == "video" ? .video : .audio, by: record)
        }
    }

    private func wish(_ record: SessionRecord, _ change: (inout StageRoom) -> [StageRoom.Effect]) {
        conduct(record.stream, change)
    }

    /// Somebody asks another to mute: the stage decides, and delivers it by an effect.
    private func mute(
        _ participant: ParticipantID, _ kind: StageChange.MediaKind, by record: SessionRecord
    ) async {
        guard let sender = record.request.sender, let host = registry[record.stream] else { return }
        do throws(StageRefusal) {
            // Not until it is durable: other events of the workers must not wait for a disk.
            try await host.submit(.requestMute(participant, kind), from: sender)
        } catch {
            refuse(error, to: record)
        }
    }

    private func refuse(_ refusal: StageRefusal, to record: SessionRecord) {
        guard case .rejected(let rejection) = refusal else {
            return tell(.error("unavailable", "This cannot be done now."), to: record)
        }
        tell(.error(rejection.name, rejection.explanation), to: record)
    }

    /// Sends a request to mute on a participant's control channels.
    /// - Returns: whether there is anybody to hear it.
    @discardableResult
    func deliverMute(
        _ kind: String, to participant: ParticipantID, by sender: ParticipantID, in stream: StreamID
    ) -> Bool {
        let targets = streams[stream]?.room?.sessions(of: participant).compactMap { sessions[$0] } ?? []
        for target in targets {
            tell(
                ControlReply(
                    messageType: "mute", target: participant.description, kind: kind,
                    by: sender.description), to: target)
        }
        return !targets.isEmpty
    }

    /// Notes that somebody switched microphone or camera.
    func setMute(_ mute: StageRoom.Mute, of participant: ParticipantID, in stream: StreamID) {
        conduct(stream) { $0.setMute(mute, of: participant) }
    }

    /// Chooses whose picture the viewers of a stream get, for as long as somebody is on its stage.
    func setProgramme(_ programme: StageDetails.Programme, of stream: StreamID) {
        // Where there is no composer, whoever speaks stands for all.
        let programme: StageRoom.Programme =
            switch programme {
            case .host: .host
            case .activeSpeaker: .activeSpeaker
            case .composed: transcoder == nil ? .activeSpeaker : .composed
            }
        conduct(stream) { $0.setProgramme(programme) }
    }

    func refuse(_ rejection: Rejection, to record: SessionRecord) {
        tell(.error(rejection.name, rejection.explanation), to: record)
    }

    func tell(_ reply: ControlReply, to record: SessionRecord) {
        _ = workers[record.worker].post(.sendControl(record.id, .string(reply.bytes)))
    }
}
