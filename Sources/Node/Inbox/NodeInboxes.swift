import Base
import Forwarding
import Stage
import Transcoder

/// What waits for the node, by whom it comes from.
struct NodeInboxes: Sendable {
    /// Several seconds of a busy server.
    let workers = Inbox<WorkerEvent>(limit: 16_384)
    let stages = Inbox<StageOrder>(limit: 8_192)
    /// Between streams: each is in one duel, and what was said before is forgotten with what is said now.
    let duels = Inbox<DuelOrder>(limit: 8_192)
    let presence = Inbox<PresenceChange>(limit: 8_192)
    let compositions = Inbox<CompositionNews>(limit: 1_024)
    let pauses = Inbox<PauseNews>(limit: 1_024)
    let renditions = Inbox<RenditionNews>(limit: 1_024)
    let ingest = Inbox<IngestNews>(limit: 1_024)
    /// For pause pictures and previews.
    let programmes = Inbox<ProgrammeChange>(limit: 8_192)
    /// For recordings, which wait for a disk.
    let recorded = Inbox<ProgrammeChange>(limit: 8_192)

    /// By the names that monitoring knows.
    var counters: [String: InboxCounters] {
        [
            "workers": workers.counters, "stages": stages.counters, "duels": duels.counters,
            "presence": presence.counters,
            "compositions": compositions.counters, "pauses": pauses.counters,
            "renditions": renditions.counters, "ingest": ingest.counters,
            "programmes": programmes.counters, "recorded": recorded.counters,
        ]
    }
}

/// What tells that a session begins or ends always waits: it is told once for each session, and sessions are bounded,
/// as are their m-lines; fences and injections are the node's own. What is told anew soon, or what clients say of their
/// own accord, is dropped first.
extension WorkerEvent: InboxElement {
    /// What a later event says anew, so that the one before need not be heard.
    package enum Topic: Hashable, Sendable {
        case voice(SessionID)
        case source(SessionID, mid: String)
        case control(SessionID)
        case begun(SessionID, pair: Int)
        case quality(SessionID)
        case keyFrame(InjectionID, source: Int, layer: Int)
        case sessionKeyFrame(SessionID)
        case rendition(TrackKey)
        case layers(SessionID, mid: String)
        case uplink(SessionID)
    }

    package var topic: Topic? {
        switch self {
        case .voice(let id, _): .voice(id)
        case .sourceChanged(let id, let mid, _): .source(id, mid: mid)
        case .controlOpened(let id): .control(id)
        case .begun(let id, let pair, _, _): .begun(id, pair: pair)
        case .qualityChanged(let id, _): .quality(id)
        case .keyFrameWanted(let id, let source, let layer): .keyFrame(id, source: source, layer: layer)
        case .sessionKeyFrameWanted(let id): .sessionKeyFrame(id)
        case .renditionWanted(_, let track, _): .rendition(track.key)
        case .layersWanted(let id, let mid, _): .layers(id, mid: mid)
        case .uplinkWeak(let id): .uplink(id)
        case .checked, .connected, .mediaStarted, .closed, .published, .passed, .controlMessage, .injected,
            .keyFrameRequested:
            nil
        }
    }

    package var isNeeded: Bool {
        switch self {
        case .voice, .controlMessage, .begun, .keyFrameWanted, .sessionKeyFrameWanted, .keyFrameRequested,
            .qualityChanged, .uplinkWeak:
            false
        case .checked, .connected, .mediaStarted, .closed, .published, .sourceChanged, .passed,
            .controlOpened, .injected, .renditionWanted, .layersWanted:
            true
        }
    }
}

/// What a stage wants done beyond it.
///
/// What ends something is durable by now and must be done. It is bounded because stages refuse commands while the inbox
/// is full, and what follows from the time alone ends each stream once. All of it says what is to be so, whatever was
/// before, so that what is wanted twice need not be done twice.
struct StageOrder: InboxElement {
    let effect: StageEffect
    let stream: StreamID

    enum Topic: Hashable, Sendable {
        case muteRequest(StreamID, ParticipantID, isAudio: Bool)
        case mute(StreamID, ParticipantID)
        case programme(StreamID)
        case retirement(StreamID, ParticipantID)
        case expulsion(StreamID, ParticipantID)
        case end(StreamID)
    }

    var topic: Topic? {
        switch effect {
        case .requestMute(let id, let kind, _): .muteRequest(stream, id, isAudio: kind == .audio)
        case .showMute(let id, _, _): .mute(stream, id)
        case .setProgramme: .programme(stream)
        case .retire(let id): .retirement(stream, id)
        case .expel(let id, _): .expulsion(stream, id)
        case .close: .end(stream)
        }
    }

    var isNeeded: Bool {
        // Whoever asks for it may ask again.
        if case .requestMute = effect { false } else { true }
    }
}

/// Where a feed viewer is now: the latest word for each session, so there are no more than sessions.
struct PresenceChange: InboxElement {
    struct Place: Sendable {
        let stream: StreamID
        /// Nil for an anonymous viewer.
        let sender: Stage.Sender?
    }

    let session: SessionID
    /// Nil for nowhere.
    let place: Place?

    var topic: SessionID? { session }
    var isNeeded: Bool { true }
}

/// What the job of a stream's composition tells.
///
/// That it begins and ends is told once for each job, and jobs are the node's own. Its status comes every second, and
/// key frames are asked for again.
struct CompositionNews: InboxElement {
    let stream: StreamID
    let event: CompositionEvent

    enum Topic: Hashable, Sendable {
        case playable(JobID)
        case status(JobID)
        case keyFrame(JobID, InputID)
        case lost(JobID)
    }

    var topic: Topic? {
        switch event {
        case .playable(let job): .playable(job)
        case .status(let job, _): .status(job)
        case .keyFrameWanted(let job, let input): .keyFrame(job, input)
        case .lost(let job): .lost(job)
        }
    }

    var isNeeded: Bool {
        switch event {
        case .playable, .lost: true
        case .status, .keyFrameWanted: false
        }
    }
}

/// What viewers get of a stream may be something else now: once for each stream, so there are no more than streams.
struct ProgrammeChange: InboxElement {
    let stream: StreamID

    var topic: StreamID? { stream }
    var isNeeded: Bool { true }
}

/// How a job of a pause picture stands: its latest word, and jobs are the node's own.
struct PauseNews: InboxElement {
    let stream: StreamID
    let event: PauseEvent

    var topic: PauseDesk.Run? { event.run }
    var isNeeded: Bool { true }
}

/// What a job tells that makes renditions of a track.
///
/// That it ends is told once for each job, and jobs are the node's own. Its status comes every second, and key frames
/// are asked for again.
struct RenditionNews: InboxElement {
    let track: TrackKey
    let run: RenditionDesk.Run
    let event: RenditionDesk.Event

    enum Topic: Hashable, Sendable {
        case status(RenditionDesk.Run)
        case keyFrame(RenditionDesk.Run)
        case lost(RenditionDesk.Run)
    }

    var topic: Topic? {
        switch event {
        case .status: .status(run)
        case .keyFrameWanted: .keyFrame(run)
        case .lost: .lost(run)
        }
    }

    var isNeeded: Bool { event == .lost }
}
