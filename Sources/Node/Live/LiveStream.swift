import Base
import Forwarding
import Peer
import Stage
import Wire

/// A stream as its sessions make it: who sends and who watches, who is in which slot of its stage, and what of all that
/// the programme is.
///
/// Pure: changes come in, and what follows from them goes out.
struct LiveStream {
    /// The session that is the source.
    private(set) var publisher: SessionID?
    /// Sessions that publish or have yet to begin.
    private var publishers: Set<SessionID> = []
    /// Sessions that watch or wait, connected or not.
    private(set) var audience: Set<SessionID> = []
    /// Sessions on the stage that are not the source.
    private var speakers: Set<SessionID> = []
    /// Sessions of the audience by the stage's endpoint, by whose they are, earlier ones first.
    private var own: [ParticipantID: [SessionID]] = [:]
    /// When the last source was gone.
    private(set) var emptySince: MonotonicTime?
    /// Nil while nobody is on its stage.
    private(set) var room: StageRoom?

    /// Whether nothing would be lost by forgetting the stream.
    var isUnused: Bool { publishers.isEmpty && audience.isEmpty && speakers.isEmpty && room == nil }
    var isLive: Bool { publisher != nil }
    /// Whether there is a source, or a session that has yet to become it.
    var hasSourceOrSuccessor: Bool { publisher != nil || !publishers.isEmpty }
    var all: Set<SessionID> { publishers.union(audience).union(speakers) }
    /// Of the audience, those with a control channel, in an order that is the same in each run.
    var told: [SessionID] { own.values.flatMap(\.self).sorted() }

    // MARK: Sessions

    /// Takes a new session in, whatever it is.
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

    /// Makes a session the source, maybe in the place of another.
    mutating func setSource(_ session: SessionID) {
        publisher = session
        emptySince = nil
    }

    /// Of those on the stage who are not the source, the first who may take its place: with a host's rights, and media
    /// that flows.
    func successor(among sessions: SessionCensus) -> SessionID? {
        let candidates = speakers.compactMap { sessions[$0] }.filter { record in
            let authority = record.request.sender?.authority
            return (authority == .host || authority == .admin) && room?.hasSent(record.id) == true
                && record.closesAt == nil
        }
        return candidates.min { $0.order < $1.order }?.id
    }

    /// Makes somebody on the stage one who publishes.
    mutating func promote(_ session: SessionID) {
        guard speakers.remove(session) != nil else { return }
        publishers.insert(session)
    }

    /// Takes a session out that has ended, whatever it was; it has left the stage already.
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

    /// The sessions of the same participant from before: somebody who comes back has no use for them.
    func earlierSessions(than record: SessionRecord) -> [SessionID] {
        guard let participant = record.request.participant else { return [] }
        let onStage = room?.sessions(of: participant) ?? []
        let watching = own[participant] ?? []
        return record.request.isAudience
            ? onStage + watching.prefix(while: { $0 != record.id })
            : onStage.prefix(while: { $0 != record.id }) + watching
    }

    // MARK: The stage

    /// Changes something on the stage, if there is one.
    /// - Returns: what is to be done; nil where nobody is on it.
    mutating func conduct(_ change: (inout StageRoom) -> [StageRoom.Effect]) -> [StageRoom.Effect]? {
        // Taken out, so that nothing of it is copied.
        guard var room = self.room.take() else { return nil }
        let effects = change(&room)
        self.room = room.isEmpty ? nil : room
        return effects
    }

    // MARK: The programme

    /// Where what viewers get of a kind comes from: the composition or whoever speaks, where that is the programme, or
    /// the source.
    func source(_ kind: MediaKind, among sessions: SessionCensus) -> ProgrammeSource? {
        if let track = room?.programmeTrack(kind) {
            return ProgrammeSource(
                session: room?.programmeSession(kind), track: track, mid: track.plan.mid,
                worker: track.key.worker)
        }
        guard let session = publisher.flatMap({ sessions[$0] }),
            let source = session.plan.sources.first(where: { $0.kind == kind })
        else { return nil }
        return ProgrammeSource(session: session.id, mid: source.mid, worker: session.worker)
    }

    /// What viewers get instead of what the source sends.
    /// - Parameter pause: the pause picture's, where one is shown.
    func programmeTracks(inPause pause: PublishedTrack?) -> [PublishedTrack] {
        let chosen = room?.programmeTracks ?? []
        // A composition that has just begun.
        if let room, room.programmeTrack(.video) != nil, room.programmeSession(.video) == nil {
            return chosen
        }
        guard let pause else { return chosen }
        return chosen.filter { $0.plan.kind != .video } + [pause]
    }

    /// One person's own picture.
    struct OwnPicture: Equatable {
        /// Whose; nil for the source's.
        let participant: ParticipantID?
        /// Whether nothing of it comes.
        let isLost: Bool
    }

    /// The picture that viewers get, where that is somebody's own: a shared screen goes on without its owner's camera,
    /// and a composition has cards of its own.
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

    /// Tells a session on the stage what its slots carry.
    func announceSlots(to record: SessionRecord, among sessions: SessionCensus) -> [LiveAction] {
        let slots = stageSlots(of: record, among: sessions)
        return slots.map { [record.tell(ControlReply(type: .slots, slots: $0))] } ?? []
    }

    /// Tells the audience whose picture and sound it gets.
    func announceProgramme(among sessions: SessionCensus) -> [LiveAction] {
        told.compactMap { sessions[$0] }.map { announceProgramme(to: $0, among: sessions) }
    }

    /// Tells one of the audience.
    func announceProgramme(to record: SessionRecord, among sessions: SessionCensus) -> LiveAction {
        record.tell(ControlReply(type: .slots, slots: programmeSlots(of: record, among: sessions)))
    }

    /// Sends a request to mute on a participant's control channels.
    func deliverMute(
        _ kind: String, to participant: ParticipantID, by sender: ParticipantID,
        among sessions: SessionCensus
    ) -> [LiveAction] {
        let reply = ControlReply(
            messageType: .mute, target: participant.description, kind: kind, by: sender.description)
        return (room?.sessions(of: participant) ?? []).compactMap { sessions[$0]?.tell(reply) }
    }

    /// What the slots of a session on the stage carry; nil for one that is not there.
    func stageSlots(of record: SessionRecord, among sessions: SessionCensus) -> [ControlReply.Slot]? {
        guard let room else { return nil }
        return room.layout.slots(of: record.id).map { slot in
            let source = slot.source.flatMap { sessions[$0.session] }
            // Another stream's host has another name on this stage.
            let shown = slot.source.flatMap { room.layout.participant(of: $0.session) }
            let mute = shown.map { room.mute(of: $0) } ?? StageRoom.Mute()
            return ControlReply.Slot(
                mid: slot.mid, kind: slot.kind.rawValue, stream: source?.stream.description,
                participant: shown?.description, name: source?.request.name,
                muted: slot.kind == .audio ? mute.audio : mute.video,
                screen: slot.source.map { room.layout.isScreen($0) } ?? false)
        }
    }

    /// What the slots of a session of the audience carry: the first one of each kind has the programme, the others stay
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
                mid: plan.mid, kind: plan.kind.rawValue,
                stream: source.map { _ in record.stream.description },
                participant: participant?.description, name: source?.request.name,
                muted: (plan.kind == .audio ? mute?.audio : mute?.video) ?? false, screen: false)
        }
    }

    /// Whose media of a kind viewers get now.
    private func shown(_ kind: MediaKind, among sessions: SessionCensus) -> SessionRecord? {
        if let chosen = room?.programmeSession(kind) { return sessions[chosen] }
        guard let record = publisher.flatMap({ sessions[$0] }) else { return nil }
        return record.plan.sources.contains { $0.kind == kind } ? record : nil
    }
}

extension ControlReply.Slot {
    /// One picture, or one mix, of several people: no single one's.
    fileprivate init(_ composed: [ParticipantID], in plan: SlotPlan, of stream: StreamID) {
        self.init(
            mid: plan.mid, kind: plan.kind.rawValue, stream: stream.description, muted: false, screen: false,
            participants: composed.map(\.description))
    }
}
