import Base
import Peer

/// One stream's stage as control sees it: its sessions, which of them speak, and what their slots carry.
///
/// Pure: its input is workers' events and clients' requests, its output is commands for the workers.
package struct StageRoom: Sendable {
    /// An action for control; effects must be performed in order.
    package enum Effect: Sendable {
        case command(WorkerCommand, worker: Int)
        /// Notify the session's client that its slots carry something else.
        case announce(SessionID)
        /// Send viewers these tracks instead of the source's; a kind without a track here comes from the source.
        case programme([PublishedTrack])
        /// Notify viewers that other participants are in the composition.
        case announceProgramme
        /// Compose these participants into one picture and one mix; empty for no composition.
        case compose([ComposedSpeaker])
        /// Request a key frame from the track's publisher.
        case refresh(PublishedTrack)
    }

    /// Whose picture viewers see; they hear the participant who speaks in any case.
    package enum Programme: String, Sendable {
        case host
        case activeSpeaker = "active-speaker"
        /// All participants in one picture; the active speaker until the composition has begun.
        case composed
    }

    /// One session on the stage.
    struct Member: Sendable {
        let worker: Int
        /// Whether the session is the stream's source.
        var isHost: Bool
        var tracks: [String: PublishedTrack] = [:]
        /// Whether media has ever arrived from it.
        var hasSent = false
        /// Whether it belongs to another stream.
        var isGuest = false
    }

    /// Time between two choices.
    package static let interval = Duration.milliseconds(100)
    /// Maximum number of sessions on a stage: a stage has up to 50 participants, and some reconnect before their old
    /// session ends.
    package static let maximumSessions = 64
    /// Maximum number of sessions of one participant: a browser and an encoder, each twice while it reconnects.
    package static let maximumOwn = 4

    var members: [SessionID: Member] = [:]
    var ranking = SpeakerRanking()
    /// The assignment of sources to slots.
    package private(set) var layout = StageLayout()
    var programme = Programme.host
    /// The tracks in the last `programme` effect; empty for none.
    private var toldProgramme: [PublishedTrack] = []
    private var toldParticipants: [ParticipantID] = []
    /// The participants in the last `compose` effect.
    var toldSpeakers: [ComposedSpeaker] = []
    var handover = Handover.none
    /// The tracks of the composition; empty until it has begun.
    var composedTracks: [PublishedTrack] = []
    /// As reported by the participants' clients.
    private var mutes: [ParticipantID: Mute] = [:]
    /// The host of another stream who is a guest here; nil for none.
    private(set) var guest: StageGuest?

    package init() {}

    /// Whether the last session has left, guests apart.
    package var isEmpty: Bool { members.allSatisfy(\.value.isGuest) }
    /// Whether the stage has `maximumSessions`.
    package var isFull: Bool { members.count >= Self.maximumSessions }

    /// Adds a session that has been created, whether it is connected or not.
    ///
    /// A participant's oldest sessions beyond `maximumOwn` are removed from the stage; a session beyond
    /// `maximumSessions` is ignored.
    package mutating func join(
        _ session: SessionID, of participant: ParticipantID, on worker: Int, with plan: SessionPlan,
        isHost: Bool = false
    ) {
        guard members[session] == nil else { return }
        let earlier = sessions(of: participant)
        // A participant who creates many sessions only displaces their own.
        for oldest in earlier.prefix(max(earlier.count + 1 - Self.maximumOwn, 0)) { forget(oldest) }
        guard !isFull else { return }
        members[session] = Member(worker: worker, isHost: isHost)
        layout.add(session, of: participant, with: plan)
        ranking.add(session)
    }

    /// Whether media has ever arrived from a session that is not a guest's.
    package func hasSent(_ session: SessionID) -> Bool {
        members[session].map { $0.hasSent && !$0.isGuest } ?? false
    }

    /// Makes a session the stream's source.
    package mutating func makeHost(_ session: SessionID) -> [Effect] {
        members[session]?.isHost = true
        return choose()
    }

    /// Removes a session, and frees the slots that showed it.
    package mutating func leave(_ session: SessionID) -> [Effect] {
        guard members[session] != nil else { return [] }
        forget(session)
        return choose()
    }

    private mutating func forget(_ session: SessionID) {
        guard members.removeValue(forKey: session) != nil else { return }
        if let participant = layout.participant(of: session), sessions(of: participant).count == 1 {
            mutes[participant] = nil
        }
        layout.remove(session)
        ranking.remove(session)
    }

    // MARK: Another stream's host

    /// Adds or updates the host of another stream as a guest; nil removes the guest.
    ///
    /// Sessions on this stage get the guest in their slots like any other participant, and viewers get a composition.
    package mutating func setGuest(_ new: StageGuest?) -> [Effect] {
        guard guest != new else { return [] }
        let old = guest
        guest = new
        if let old, old.session != new?.session { forget(old.session) }
        guard let new else { return choose() }
        if members[new.session] == nil {
            guard !isFull else {
                guest = nil
                return choose()
            }
            members[new.session] = Member(worker: new.worker, isHost: false, isGuest: true)
            layout.add(new.session, of: new.participant, publishing: new.sources)
            ranking.add(new.session)
        }
        members[new.session]?.tracks = new.tracks
        members[new.session]?.hasSent = new.hasSent
        for source in new.sources {
            layout.setActive(
                new.active.contains(source.mid), .init(session: new.session, mid: source.mid))
        }
        return setMute(new.mute, of: new.participant) + choose()
    }

    /// Describes a session of this stage as a guest of another one; nil for a session that is not here, and for
    /// guests.
    /// - Parameter participant: the guest's identity on the other stage, where their own may be in use.
    package func guest(_ session: SessionID, as participant: ParticipantID, sources: [SourcePlan])
        -> StageGuest?
    {
        guard let member = members[session], !member.isGuest, let own = layout.participant(of: session) else {
            return nil
        }
        let active = layout.activeSources(.audio) + layout.activeSources(.video)
        return StageGuest(
            session: session, participant: participant, worker: member.worker, sources: sources,
            tracks: member.tracks, active: Set(active.filter { $0.session == session }.map(\.mid)),
            hasSent: member.hasSent, mute: mute(of: own))
    }

    /// The sessions of a participant, earlier ones first.
    package func sessions(of participant: ParticipantID) -> [SessionID] {
        layout.sessions.filter { layout.participant(of: $0) == participant }
    }

    /// The worker of a session; nil for a session that is not on the stage.
    package func worker(of session: SessionID) -> Int? { members[session]?.worker }

    // MARK: What workers tell

    /// Handles workers' events about sources, voices and channels; ignores all others.
    package mutating func receive(_ event: WorkerEvent) -> [Effect] {
        switch event {
        case .published(let session, let tracks):
            for track in tracks { members[session]?.tracks[track.plan.mid] = track }
        case .sourceChanged(let session, let mid, let isActive):
            if isActive { members[session]?.hasSent = true }
            layout.setActive(isActive, .init(session: session, mid: mid))
            return choose()
        case .voice(let session, let level): ranking.note(level, of: session)
        case .controlOpened(let session):
            if members[session] != nil { return [.announce(session)] }
        case .checked, .connected, .mediaStarted, .closed, .controlMessage, .passed, .begun, .injected,
            .keyFrameWanted, .sessionKeyFrameWanted, .keyFrameRequested, .qualityChanged, .renditionWanted,
            .layersWanted, .uplinkWeak:
            break
        }
        return []
    }

    // MARK: What clients wish

    /// Pins a participant to a slot, whoever speaks; nil leaves the slot to the stage's choice.
    package mutating func pin(_ participant: ParticipantID?, in mid: String, of session: SessionID)
        -> [Effect]
    {
        layout.pin(participant, in: mid, of: session)
        return choose()
    }

    /// Limits the height of a slot's video.
    /// - Parameter height: in pixels; nil for the default of `StageLayout`.
    package mutating func limit(_ mid: String, of session: SessionID, to height: Int?) -> [Effect] {
        layout.limit(mid, of: session, to: height)
        return choose()
    }

    /// Notes whether a client shows a slot.
    package mutating func setVisible(_ isVisible: Bool, _ mid: String, of session: SessionID) -> [Effect] {
        layout.setVisible(isVisible, mid, of: session)
        return choose()
    }

    // MARK: Mute states

    /// The mute states that a participant's client reports.
    package struct Mute: Equatable, Sendable {
        /// Whether the microphone is off.
        package var audio = false
        /// Whether the camera is off.
        package var video = false

        package init(audio: Bool = false, video: Bool = false) {
            self.audio = audio
            self.video = video
        }
    }

    /// The mute states of a participant; nothing is muted until the client reports it.
    package func mute(of participant: ParticipantID) -> Mute { mutes[participant] ?? Mute() }

    /// Notes a participant's mute states, and notifies the sessions that show the participant.
    package mutating func setMute(_ mute: Mute, of participant: ParticipantID) -> [Effect] {
        guard self.mute(of: participant) != mute, !sessions(of: participant).isEmpty else { return [] }
        mutes[participant] = mute
        let changes = composition()
        let sources = Set(sessions(of: participant))
        return changes
            + layout.sessions.filter { session in
                layout.slots(of: session).contains { $0.source.map { sources.contains($0.session) } ?? false }
            }.map { .announce($0) }
    }

    // MARK: Time

    /// Updates the ranking and the choices; called every `interval`.
    package mutating func advance(to now: MonotonicTime) -> [Effect] {
        ranking.advance(to: now)
        let steps = advanceHandover(to: now)
        // Most streams have a single session, for which there is nothing to choose.
        guard members.count > 1 else { return steps }
        return steps + choose()
    }

    /// Whether viewers may see this source as part of the programme.
    private func isProgramme(_ source: StageLayout.Source) -> Bool {
        programme != .host || members[source.session]?.isHost == true
    }

    /// Sets whose picture viewers get.
    package mutating func setProgramme(_ new: Programme) -> [Effect] {
        programme = new
        return choose()
    }

    /// The tracks that viewers should get instead of the source's: the speaker's, a shared screen, or the
    /// composition.
    ///
    /// Empty while only one participant could speak. A shared screen comes before faces if viewers would see its
    /// owner's picture.
    private func chosenTracks() -> [PublishedTrack] {
        if isComposed { return composedTracks }
        let screen = layout.activeSources(.video).first { layout.isScreen($0) && isProgramme($0) }
        return chosenTracks(besides: screen)
            + [screen.flatMap { members[$0.session]?.tracks[$0.mid] }].compactMap(\.self)
    }

    private func chosenTracks(besides screen: StageLayout.Source?) -> [PublishedTrack] {
        let voices = layout.activeSources(.audio)
        guard Set(voices.map(\.session)).count > 1 || programme != .host else { return [] }
        var chosen: [PublishedTrack] = []
        let speaker = ranking.loudest.first { id in voices.contains { $0.session == id } }
        if let voice = voices.first(where: { $0.session == speaker }) {
            chosen += [members[voice.session]?.tracks[voice.mid]].compactMap(\.self)
        }
        guard programme != .host, screen == nil else { return chosen }
        let pictures = layout.activeSources(.video).filter { !layout.isScreen($0) }
        let seen = ranking.latest.first { id in pictures.contains { $0.session == id } }
        if let picture = pictures.first(where: { $0.session == seen }) {
            chosen += [members[picture.session]?.tracks[picture.mid]].compactMap(\.self)
        }
        return chosen
    }

    /// The tracks that viewers get instead of the source's.
    package var programmeTracks: [PublishedTrack] { toldProgramme }

    /// Whether no video arrives from a session that is on the stage.
    package func hasLostPicture(of session: SessionID) -> Bool {
        members[session] != nil && !layout.activeSources(.video).contains { $0.session == session }
    }

    /// The session whose media of a kind viewers get instead of the source's; nil for none.
    package func programmeSession(_ kind: MediaKind) -> SessionID? {
        guard let chosen = toldProgramme.first(where: { $0.plan.kind == kind }) else { return nil }
        return members.first { $0.value.tracks.values.contains(chosen) }?.key
    }

    /// The participants in the composition that viewers get, in order of arrival and without guests; empty without
    /// one.
    package var composedParticipants: [ParticipantID] {
        guard isComposed, toldProgramme == composedTracks else { return [] }
        var known: Set<ParticipantID> = []
        return toldSpeakers.filter { members[$0.id.session]?.isGuest != true }.sorted {
            $0.arrival < $1.arrival
        }
        .map(\.participant).filter { known.insert($0).inserted }
    }

    /// Whether the picture that viewers get is a shared screen.
    package var showsScreen: Bool {
        guard let track = programmeTrack(.video), let session = programmeSession(.video) else { return false }
        return members[session]?.tracks.contains { mid, own in
            own == track && layout.isScreen(StageLayout.Source(session: session, mid: mid))
        } ?? false
    }

    /// The track of a kind that viewers get instead of the source's; nil for none.
    package func programmeTrack(_ kind: MediaKind) -> PublishedTrack? {
        toldProgramme.first { $0.plan.kind == kind }
    }

    /// Chooses programme and slots again, and returns the effects of everything that has changed.
    mutating func choose() -> [Effect] {
        var effects = composition()
        let tracks = chosenTracks()
        if tracks != toldProgramme {
            toldProgramme = tracks
            effects.append(.programme(tracks))
        } else if composedParticipants != toldParticipants {
            effects.append(.announceProgramme)
        }
        toldParticipants = composedParticipants
        var announced: [SessionID] = []
        for change in layout.takeChanges(ranking) {
            guard let member = members[change.session] else { continue }
            let wanted = change.assignment.isVisible ? change.assignment.source : nil
            let track = wanted.flatMap { members[$0.session]?.tracks[$0.mid] }
            effects.append(
                .command(
                    .attach(
                        change.session, mid: change.mid, track,
                        maximumHeight: change.assignment.maximumHeight), worker: member.worker))
            if announced.last != change.session { announced.append(change.session) }
        }
        for favour in layout.takeFavours() {
            guard let member = members[favour.session] else { continue }
            effects.append(.command(.favour(favour.session, mids: favour.mids), worker: member.worker))
        }
        return effects + announced.map { .announce($0) }
    }
}
