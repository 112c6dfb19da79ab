import Base
import Forwarding
import Peer
import Stage
import Wire

/// Stages: who is in which slot, and what clients say on their control channels.
extension Node {
    func checkRoom(for request: SessionRequest) throws(SessionRefusal) {
        guard request.participant != nil, rooms[request.stream]?.isFull != true else { throw .overloaded }
    }

    func enterRoom(_ id: SessionID, _ request: SessionRequest, worker: Int, plan: SessionPlan) {
        guard let participant = request.participant else { return }
        rooms[request.stream, default: StageRoom()].join(
            id, of: participant, on: worker, with: plan, isHost: request.isSource)
    }

    /// Somebody who comes back has no use for the session from before.
    func replaceEarlierSessions(than record: SessionRecord) async {
        guard let participant = record.request.participant else { return }
        let onStage = rooms[record.stream]?.sessions(of: participant) ?? []
        let watching = streams[record.stream]?.own[participant] ?? []
        let earlier =
            record.request.isAudience
            ? onStage + watching.prefix(while: { $0 != record.id })
            : onStage.prefix(while: { $0 != record.id }) + watching
        for id in earlier where sessions[id]?.purpose == .stage { _ = await endSession(id) }
    }

    func leaveRoom(_ record: SessionRecord) {
        guard let effects = rooms[record.stream]?.leave(record.id) else { return }
        perform(effects, in: record.stream)
        if rooms[record.stream]?.isEmpty == true { rooms[record.stream] = nil }
        programmeChanged(in: record.stream)
    }

    func tellRoom(_ event: WorkerEvent, of id: SessionID) {
        guard let record = sessions[id] else { return }
        if record.request.isAudience { return announceProgramme(to: record) }
        guard let effects = rooms[record.stream]?.receive(event) else { return }
        perform(effects, in: record.stream)
        // A camera may have come or gone.
        if case .sourceChanged = event { programmeChanged(in: record.stream) }
    }

    /// Looks who speaks, on every stage.
    func conductRooms() {
        let now = now().elapsed
        advanceCompositions(to: now)
        advancePauses(to: now)
        for stream in Array(rooms.keys) {
            guard let effects = rooms[stream]?.advance(to: now) else { continue }
            perform(effects, in: stream)
        }
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
        guard let record = sessions[id], let room = rooms[record.stream] else { return }
        let slots = room.layout.slots(of: id).map { slot in
            let source = slot.source.flatMap { sessions[$0.session] }
            let mute = source?.request.participant.map { room.mute(of: $0) } ?? StageRoom.Mute()
            return ControlReply.Slot(
                mid: slot.mid, kind: slot.kind.rawValue,
                stream: source.map { _ in record.stream.description },
                participant: source?.request.participant?.description, name: source?.request.name,
                muted: slot.kind == .audio ? mute.audio : mute.video,
                screen: slot.source.map { room.layout.isScreen($0) } ?? false)
        }
        tell(ControlReply(type: "slots", slots: slots), to: record)
    }

    // MARK: Control channels

    func takeControl(_ message: DataChannelMessage, from id: SessionID) async {
        guard let record = sessions[id] else { return }
        if record.purpose == .feed { return takeFeedControl(message, from: record) }
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
        guard var room = rooms[record.stream] else { return }
        let effects = change(&room)
        rooms[record.stream] = room
        perform(effects, in: record.stream)
    }

    /// Somebody asks another to mute: the stage decides, and delivers it by an effect.
    private func mute(
        _ participant: ParticipantID, _ kind: StageChange.MediaKind, by record: SessionRecord
    ) async {
        guard let sender = record.request.sender, let host = hosts[record.stream] else { return }
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
        let targets = rooms[stream]?.sessions(of: participant).compactMap { sessions[$0] } ?? []
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
        guard let effects = rooms[stream]?.setMute(mute, of: participant) else { return }
        perform(effects, in: stream)
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
        guard let effects = rooms[stream]?.setProgramme(programme) else { return }
        perform(effects, in: stream)
    }

    func refuse(_ rejection: Rejection, to record: SessionRecord) {
        tell(.error(rejection.name, rejection.explanation), to: record)
    }

    func tell(_ reply: ControlReply, to record: SessionRecord) {
        _ = workers[record.worker].post(.sendControl(record.id, .string(reply.bytes)))
    }
}
