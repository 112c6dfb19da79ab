import Base
import Forwarding
import Peer
import Stage

/// One stream as far as sessions concern it: publishers, viewers, the slots of its stage, and the programme's source.
///
/// Pure: changes come in, and what follows from them goes out.
struct LiveStream {
    /// The session that is the source.
    private(set) var publisher: SessionID?
    /// Sessions that are the source or may become it, including those that have not sent media yet.
    private var publishers: Set<SessionID> = []
    /// Sessions of viewers, connected or not, including those that wait for a source.
    private(set) var audience: Set<SessionID> = []
    /// Sessions on the stage that are not publishers.
    private var speakers: Set<SessionID> = []
    /// The audience's sessions by the stage's endpoint, of each participant, earlier ones first.
    private var own: [ParticipantID: [SessionID]] = [:]
    /// When the last source was lost, or the stream ended without one; nil while there is a source, and before that.
    private(set) var emptySince: MonotonicTime?
    /// Nil if the stage has no sessions.
    private(set) var room: StageRoom?
    /// Whether the source is lost and another host's media was still on its way then.
    private var expectsHost = false

    /// Whether the stream can be forgotten without losing anything.
    var isUnused: Bool { publishers.isEmpty && audience.isEmpty && speakers.isEmpty && room == nil }
    var isLive: Bool { publisher != nil }
    /// Whether there is a source, or a session that will become it once its media flows.
    var hasSourceOrSuccessor: Bool { publisher != nil || !publishers.isEmpty }
    /// Whether the stream has lost its source, and goes on only because another host's media is on its way.
    var awaitsHost: Bool { expectsHost && !hasSourceOrSuccessor }
    var all: Set<SessionID> { publishers.union(audience).union(speakers) }
    /// The audience's sessions that have a control channel, in an order that is the same in each run.
    var told: [SessionID] { own.values.flatMap(\.self).sorted() }

    // MARK: Sessions

    /// Adds a new session, whatever its purpose.
    mutating func add(_ record: SessionRecord) {
        let (id, request) = (record.id, record.request)
        switch request.purpose {
        case .publish: publishers.insert(id)
        case .play: audience.insert(id)
        case .stage where request.isAudience:
            audience.insert(id)
            if let participant = request.participant { own[participant, default: []].append(id) }
        case .stage:
            if request.isHost { publishers.insert(id) } else { speakers.insert(id) }
        case .feed: break
        }
        guard request.isOnStage, let participant = request.participant else { return }
        var room = self.room.take() ?? StageRoom()
        room.join(id, of: participant, on: record.worker, with: record.plan, isHost: request.isSource)
        self.room = room
    }

    /// Makes a session the source, possibly in place of another.
    mutating func setSource(_ session: SessionID) {
        publisher = session
        emptySince = nil
        expectsHost = false
    }

    /// Notes that the stream has ended; its viewers wait no longer for a source that never came than for one that is
    /// lost.
    mutating func end(at time: MonotonicTime) {
        if publisher == nil, emptySince == nil { emptySince = time }
        expectsHost = false
    }

    /// What becomes of a published stream that has lost its source.
    enum Succession: Equatable {
        /// This session replaces the source.
        case host(SessionID, worker: Int)
        /// A host has just come to the stage, and their media is on its way: on a busy machine it comes long after they
        /// are told that they are connected.
        case awaited
    }

    /// The earliest session on the stage with a host's rights whose media flows; or whether there is one that is as new
    /// as a source whose first packet is awaited.
    /// - Returns: nil if there is no other host.
    func succession(among sessions: SessionCensus, at now: MonotonicTime) -> Succession? {
        let hosts = speakers.compactMap { sessions[$0] }.filter { record in
            let authority = record.request.sender?.authority
            return (authority == .host || authority == .admin) && record.closesAt == nil
        }
        let next = hosts.filter { room?.hasSent($0.id) == true }.min { $0.order < $1.order }
        if let next { return .host(next.id, worker: next.worker) }
        let isAwaited = hosts.contains { !$0.plan.sources.isEmpty && now < $0.created + Stage.sourceGrace }
        return isAwaited ? .awaited : nil
    }

    /// Notes whether the stream goes on without a source because another host's media is on its way.
    mutating func setAwaitsHost(_ isExpected: Bool) { expectsHost = isExpected }

    /// Makes a session on the stage a publisher.
    mutating func promote(_ session: SessionID) {
        guard speakers.remove(session) != nil else { return }
        publishers.insert(session)
    }

    /// Removes a session that has ended; it must have left the stage before.
    /// - Returns: whether it was the source.
    mutating func remove(_ record: SessionRecord, at time: MonotonicTime) -> Bool {
        audience.remove(record.id)
        if let participant = record.request.participant {
            own[participant]?.removeAll { $0 == record.id }
            if own[participant]?.isEmpty == true { own[participant] = nil }
        }
        publishers.remove(record.id)
        speakers.remove(record.id)
        guard publisher == record.id else { return false }
        publisher = nil
        emptySince = time
        return true
    }

    /// Earlier sessions of the same participant, which end when a participant comes back.
    func earlierSessions(than record: SessionRecord) -> [SessionID] {
        guard let participant = record.request.participant else { return [] }
        let onStage = room?.sessions(of: participant) ?? []
        let watching = own[participant] ?? []
        return record.request.isAudience
            ? onStage + watching.prefix(while: { $0 != record.id })
            : onStage.prefix(while: { $0 != record.id }) + watching
    }

    // MARK: The stage

    /// Changes the stage.
    /// - Returns: what has to be done; nil if the stage has no sessions.
    mutating func conduct(_ change: (inout StageRoom) -> [StageRoom.Effect]) -> [StageRoom.Effect]? {
        // Taken out, because a second reference would make every change copy the room.
        guard var room = self.room.take() else { return nil }
        let effects = change(&room)
        self.room = room.isEmpty ? nil : room
        return effects
    }

    // MARK: The programme

    /// Where viewers get their audio or video from: the composition or the active speaker if the programme has one,
    /// else the source.
    func source(_ kind: MediaKind, among sessions: SessionCensus) -> ProgrammeSource? {
        if let track = room?.programmeTrack(kind) {
            return ProgrammeSource(track, of: room?.programmeSession(kind))
        }
        guard let session = publisher.flatMap({ sessions[$0] }),
            let source = session.plan.sources.first(where: { $0.kind == kind })
        else { return nil }
        return ProgrammeSource(session: session.id, mid: source.mid, worker: session.worker)
    }

    /// The tracks that viewers receive instead of the source's own.
    /// - Parameter pause: the pause picture's track, if one is shown.
    func programmeTracks(inPause pause: PublishedTrack?) -> [PublishedTrack] {
        let chosen = room?.programmeTracks ?? []
        // A composition that has just begun replaces a pause picture.
        if let room, room.programmeTrack(.video) != nil, room.programmeSession(.video) == nil {
            return chosen
        }
        guard let pause else { return chosen }
        return chosen.filter { $0.plan.kind != .video } + [pause]
    }

    /// The picture of a single participant, as opposed to a composition.
    struct OwnPicture: Equatable {
        /// Nil for the source's picture.
        let participant: ParticipantID?
        /// Whether no packets of it arrive.
        let isLost: Bool
    }

    /// The picture that viewers receive, if it is a single participant's.
    ///
    /// Nil for a shared screen, which goes on without its owner's camera, and for a composition, which shows cards of
    /// its own.
    func ownPicture(among sessions: SessionCensus) -> OwnPicture? {
        guard let publisher, let record = sessions[publisher] else { return nil }
        if let room, room.programmeTrack(.video) != nil {
            guard !room.showsScreen, let shown = room.programmeSession(.video).flatMap({ sessions[$0] })
            else { return nil }
            return OwnPicture(
                participant: shown.request.participant, isLost: room.hasLostPicture(of: shown.id))
        }
        guard record.plan.sources.contains(where: { $0.kind == .video }) else { return nil }
        return OwnPicture(
            participant: nil,
            isLost: record.request.isOnStage && room?.hasLostPicture(of: publisher) == true)
    }

    // MARK: What clients are told

    /// Sends a session on the stage what its slots carry.
    func announceSlots(to record: SessionRecord, among sessions: SessionCensus) -> [LiveAction] {
        let slots = stageSlots(of: record, among: sessions)
        return slots.map { [record.tell(ControlReply(type: .slots, slots: $0))] } ?? []
    }

    /// Sends all of the audience with a control channel whose picture and sound they receive.
    func announceProgramme(among sessions: SessionCensus) -> [LiveAction] {
        told.compactMap { sessions[$0] }.map { announceProgramme(to: $0, among: sessions) }
    }

    /// Sends that to one session of the audience.
    func announceProgramme(to record: SessionRecord, among sessions: SessionCensus) -> LiveAction {
        record.tell(ControlReply(type: .slots, slots: programmeSlots(of: record, among: sessions)))
    }

    /// Sends a request to mute to all sessions that a participant has on the stage.
    func deliverMute(
        _ kind: MediaKind, to participant: ParticipantID, by sender: ParticipantID,
        among sessions: SessionCensus
    ) -> [LiveAction] {
        let reply = ControlReply(
            messageType: .mute, target: participant.description, kind: kind, by: sender.description)
        return (room?.sessions(of: participant) ?? []).compactMap { sessions[$0]?.tell(reply) }
    }

    /// What the slots of a session on the stage carry; nil if the stage has no sessions.
    func stageSlots(of record: SessionRecord, among sessions: SessionCensus) -> [ControlReply.Slot]? {
        guard let room else { return nil }
        return room.layout.slots(of: record.id).map { slot in
            let source = slot.source.flatMap { sessions[$0.session] }
            // In a duel, the other stream's host has another identity on this stage.
            let shown = slot.source.flatMap { room.layout.participant(of: $0.session) }
            let mute = shown.map { room.mute(of: $0) } ?? StageRoom.Mute()
            return ControlReply.Slot(
                mid: slot.mid, kind: slot.kind, stream: source?.stream.description,
                participant: shown?.description, name: source?.request.name,
                muted: slot.kind == .audio ? mute.audio : mute.video,
                screen: slot.source.map { room.layout.isScreen($0) } ?? false)
        }
    }

    /// What the slots of a session of the audience carry: the first of each kind has the programme, the others are
    /// empty.
    func programmeSlots(of record: SessionRecord, among sessions: SessionCensus) -> [ControlReply.Slot] {
        var filled: Set<MediaKind> = []
        let composed = room?.composedParticipants ?? []
        return record.plan.slots.map { plan in
            let isFilled = filled.insert(plan.kind).inserted
            if isFilled, !composed.isEmpty {
                return ControlReply.Slot(composed, in: plan, of: record.stream)
            }
            let source = isFilled ? shown(plan.kind, among: sessions) : nil
            let participant = source?.request.participant
            let mute = participant.map { room?.mute(of: $0) ?? StageRoom.Mute() }
            return ControlReply.Slot(
                mid: plan.mid, kind: plan.kind,
                stream: source.map { _ in record.stream.description },
                participant: participant?.description, name: source?.request.name,
                muted: (plan.kind == .audio ? mute?.audio : mute?.video) ?? false, screen: false)
        }
    }

    /// The session whose audio or video viewers receive now.
    private func shown(_ kind: MediaKind, among sessions: SessionCensus) -> SessionRecord? {
        if let chosen = room?.programmeSession(kind) { return sessions[chosen] }
        guard let record = publisher.flatMap({ sessions[$0] }) else { return nil }
        return record.plan.sources.contains { $0.kind == kind } ? record : nil
    }
}

extension ControlReply.Slot {
    /// A slot with a composition's picture or mix, which belongs to no single participant.
    fileprivate init(_ composed: [ParticipantID], in plan: SlotPlan, of stream: StreamID) {
        self.init(
            mid: plan.mid, kind: plan.kind, stream: stream.description, muted: false, screen: false,
            participants: composed.map(\.description))
    }
}
