import Base
import Peer
import Wire

/// One stream's stage as control sees it: its sessions, who of them speaks, and what their slots carry.
///
/// Pure: takes what workers tell and clients wish, and gives out commands for the workers.
package struct StageRoom: Sendable {
    /// What control has to do, in order.
    package enum Effect: Sendable {
        case command(WorkerCommand, worker: Int)
        /// What the session's slots carry has changed: tell its client.
        case announce(SessionID)
        /// What viewers get instead of what the stream's source sends; nothing of a kind leaves it at that.
        case programme([PublishedTrack])
        /// Others are in the composition that viewers get.
        case announceProgramme
        /// Who is to be composed into one picture and one mix; nobody for no composition.
        case compose([ComposedSpeaker])
        /// Have the publisher make a key frame.
        case refresh(PublishedTrack)
    }

    /// Whose picture viewers see; they hear who speaks in any case.
    package enum Programme: String, Sendable {
        case host
        case activeSpeaker = "active-speaker"
        /// Everybody in one picture; whoever speaks until that is there.
        case composed
    }

    struct Member: Sendable {
        let worker: Int
        /// Whether what it sends is the stream's programme.
        var isHost: Bool
        var tracks: [String: PublishedTrack] = [:]
        /// Whether media ever came.
        var hasSent = false
        /// Whether it is another stream's.
        var isGuest = false
    }

    /// Between two choices.
    package static let interval = Duration.milliseconds(100)
    /// Sessions of one stage; a stage has 50 speakers, and some come back before they have left.
    package static let maximumSessions = 64
    /// Sessions of one participant: a browser, an encoder, and each once more while it comes back.
    package static let maximumOwn = 4

    var members: [SessionID: Member] = [:]
    var ranking = SpeakerRanking()
    /// Which slot carries whom.
    package private(set) var layout = StageLayout()
    var programme = Programme.host
    private var toldProgramme: [PublishedTrack] = []
    private var toldParticipants: [ParticipantID] = []
    /// As last told.
    var toldSpeakers: [ComposedSpeaker] = []
    var handover = Handover.none
    /// What was made of them; empty until there is something to see.
    var composedTracks: [PublishedTrack] = []
    /// As they say themselves.
    private var mutes: [ParticipantID: Mute] = [:]
    /// The host of another stream, who is seen and heard here too.
    private(set) var guest: StageGuest?

    package init() {}

    /// Whether the last session has left, guests apart.
    package var isEmpty: Bool { members.allSatisfy(\.value.isGuest) }
    /// Whether `maximumSessions` are there.
    package var isFull: Bool { members.count >= Self.maximumSessions }

    /// A session that has been made, connected or not.
    package mutating func join(
        _ session: SessionID, of participant: ParticipantID, on worker: Int, with plan: SessionPlan,
        isHost: Bool = false
    ) {
        guard members[session] == nil else { return }
        let earlier = sessions(of: participant)
        // Whoever makes sessions without end takes places from nobody but themselves.
        for oldest in earlier.prefix(max(earlier.count + 1 - Self.maximumOwn, 0)) { forget(oldest) }
        guard !isFull else { return }
        members[session] = Member(worker: worker, isHost: isHost)
        layout.add(session, of: participant, with: plan)
        ranking.add(session)
    }

    /// Whether media of a session ever came, and it is no guest's.
    package func hasSent(_ session: SessionID) -> Bool {
        members[session].map { $0.hasSent && !$0.isGuest } ?? false
    }

    /// What a session sends is the stream's programme from now on.
    package mutating func makeHost(_ session: SessionID) -> [Effect] {
        members[session]?.isHost = true
        return choose()
    }

    /// Frees the session's slots, and those that showed it.
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

    /// Takes in the host of another stream, as they are there now; nil for nobody.
    ///
    /// All who are on this stage get them into their slots, as somebody of their own, and viewers get everybody in one
    /// picture.
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

    /// One who is here, as another stage takes them in; nil for a session that is not there.
    /// - Parameter participant: what they are called there, where somebody else may have their name.
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

    /// Sessions of a participant, earlier ones first.
    package func sessions(of participant: ParticipantID) -> [SessionID] {
        layout.sessions.filter { layout.participant(of: $0) == participant }
    }

    /// Nil for a session that is not there.
    package func worker(of session: SessionID) -> Int? { members[session]?.worker }

    // MARK: What workers tell

    /// Takes news of sources, voices and channels; what is of no concern here changes nothing.
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

    /// A slot shows one participant, whoever speaks; nil for whom the stage chooses.
    package mutating func pin(_ participant: ParticipantID?, in mid: String, of session: SessionID)
        -> [Effect]
    {
        layout.pin(participant, in: mid, of: session)
        return choose()
    }

    /// - Parameter height: in pixels; nil for the best layer there is.
    package mutating func limit(_ mid: String, of session: SessionID, to height: Int?) -> [Effect] {
        layout.limit(mid, of: session, to: height)
        return choose()
    }

    /// Whether a client shows a slot at all.
    package mutating func setVisible(_ isVisible: Bool, _ mid: String, of session: SessionID) -> [Effect] {
        layout.setVisible(isVisible, mid, of: session)
        return choose()
    }

    // MARK: Mute states

    /// What a participant says of their own microphone and camera.
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

    /// Nothing is off for somebody who has said nothing.
    package func mute(of participant: ParticipantID) -> Mute { mutes[participant] ?? Mute() }

    /// Notes that somebody switched microphone or camera, and tells whoever has them in a slot.
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

    /// Looks who speaks; every `interval`.
    package mutating func advance(to now: MonotonicTime) -> [Effect] {
        ranking.advance(to: now)
        let steps = advanceHandover(to: now)
        // Most streams are one person's.
        guard members.count > 1 else { return steps }
        return steps + choose()
    }

    /// Whether viewers may see it, of whose screens the room knows nothing.
    private func isProgramme(_ source: StageLayout.Source) -> Bool {
        programme != .host || members[source.session]?.isHost == true
    }

    /// Whose picture viewers get from now on.
    package mutating func setProgramme(_ new: Programme) -> [Effect] {
        programme = new
        return choose()
    }

    /// Who speaks, for as long as nobody else does; nothing while only one person could.
    ///
    /// A screen that somebody shares whose picture viewers would see comes before faces.
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

    /// What viewers get instead of what the source sends.
    package var programmeTracks: [PublishedTrack] { toldProgramme }

    /// Whether a session's camera sends nothing.
    package func hasLostPicture(of session: SessionID) -> Bool {
        members[session] != nil && !layout.activeSources(.video).contains { $0.session == session }
    }

    /// Whose media of a kind viewers get instead of the source's; nil for nobody's.
    package func programmeSession(_ kind: MediaKind) -> SessionID? {
        guard let chosen = toldProgramme.first(where: { $0.plan.kind == kind }) else { return nil }
        return members.first { $0.value.tracks.values.contains(chosen) }?.key
    }

    /// Who is in the composition that viewers get, whoever came first in front; nobody where they get none.
    package var composedParticipants: [ParticipantID] {
        guard isComposed, toldProgramme == composedTracks else { return [] }
        var known: Set<ParticipantID> = []
        return toldSpeakers.filter { members[$0.id.session]?.isGuest != true }.sorted {
            $0.arrival < $1.arrival
        }
        .map(\.participant).filter { known.insert($0).inserted }
    }

    /// Whether the picture that viewers get is a screen that somebody shares.
    package var showsScreen: Bool {
        guard let track = programmeTrack(.video), let session = programmeSession(.video) else { return false }
        return members[session]?.tracks.contains { mid, own in
            own == track && layout.isScreen(StageLayout.Source(session: session, mid: mid))
        } ?? false
    }

    /// What viewers get of a kind instead of the source's; nil for nothing.
    package func programmeTrack(_ kind: MediaKind) -> PublishedTrack? {
        toldProgramme.first { $0.plan.kind == kind }
    }

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
