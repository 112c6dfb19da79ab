import Base
import Forwarding
import Stage
import Synchronization
import Transcoder

/// The queues of what waits for the node's actor, one for each kind of source.
///
/// Each is bounded, so a busy node neither blocks the threads that report to it nor runs out of memory.
struct NodeInboxes: Sendable {
    /// Enough for several seconds of a busy server.
    let workers = Inbox<WorkerEvent>(limit: 16_384)
    let stages = Inbox<StageOrder>(limit: 8_192)
    let effects = EffectNumbers()
    /// Messages between streams in a duel.
    ///
    /// Each stream has one duel at a time, and a later message replaces an earlier one.
    let duels = Inbox<DuelOrder>(limit: 8_192)
    let presence = Inbox<PresenceChange>(limit: 8_192)
    let compositions = Inbox<CompositionNews>(limit: 1_024)
    let pauses = Inbox<PauseNews>(limit: 1_024)
    let renditions = Inbox<RenditionNews>(limit: 1_024)
    let ingest = Inbox<IngestNews>(limit: 1_024)
    /// For pause pictures and previews.
    let programmes = Inbox<ProgrammeChange>(limit: 8_192)
    /// For HLS, restreams, clips and recordings, in a queue of its own because the latter may wait for a disk.
    let recorded = Inbox<ProgrammeChange>(limit: 8_192)

    /// The counters of each queue, by the name in metrics.
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

/// Which events of workers may be dropped or replaced.
///
/// Events about the beginning and the end of a session are never dropped: each comes once per session, and sessions
/// and their m-lines are bounded. Fences and injections are bounded because the node makes them. What a worker
/// repeats soon, and what clients send on their own initiative, is dropped first.
extension WorkerEvent: InboxElement {
    /// Identifies events of which only the latest counts.
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

    /// Nil for an event that no later one replaces.
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

    /// False for events that are repeated soon, or that clients may send in any number.
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

/// An effect of a stage that the node has to perform.
///
/// An effect that ends something must not be lost: the decision is durable by now. The number of effects is bounded,
/// because stages refuse commands while this inbox is full, and effects of time alone end each stream once. Every
/// effect states the result, whatever was before, so performing it once is enough.
struct StageOrder: InboxElement {
    let effect: StageEffect
    let stream: StreamID
    /// From `EffectNumbers`; the largest concerns all that there is.
    var number = UInt64.max

    /// Identifies effects of which only the latest counts.
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
        // The participant who asked for it can ask again.
        if case .requestMute = effect { false } else { true }
    }
}

/// Numbers the effects of all stages in the order in which they became durable.
///
/// An effect is performed a moment later than that. Whoever was admitted in between, by a stage that had its change
/// already, must not be ended by it: the same participant may be back on stage, or the stream may have begun again
/// under its name.
final class EffectNumbers: Sendable {
    private let last = Mutex<UInt64>(0)

    /// The number of the next effect, whose change is durable.
    func next() -> UInt64 {
        last.withLock { last in
            last += 1
            return last
        }
    }

    /// The number of the latest effect: what is read of a stage after this contains its change.
    var latest: UInt64 { last.withLock { $0 } }
}

/// The stream that a feed viewer is on now.
///
/// Only the latest change of each session counts, so there are no more of them than sessions.
struct PresenceChange: InboxElement {
    struct Place: Sendable {
        let stream: StreamID
        /// Nil for an anonymous viewer.
        let sender: Stage.Sender?
    }

    let session: SessionID
    /// Nil if the viewer is on no stream.
    let place: Place?

    var topic: SessionID? { session }
    var isNeeded: Bool { true }
}

/// An event of the job of a stream's composition.
///
/// The beginning and the end come once per job, and the node limits its jobs. The status comes every second, and
/// requests for key frames are repeated, so both may be dropped.
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

/// A stream whose programme may have changed; at most one element per stream.
struct ProgrammeChange: InboxElement {
    let stream: StreamID

    var topic: StreamID? { stream }
    var isNeeded: Bool { true }
}

/// The latest state of a pause picture's job; at most one element per job, and the node limits its jobs.
struct PauseNews: InboxElement {
    let stream: StreamID
    let event: PauseEvent

    var topic: PauseDesk.Run? { event.run }
    var isNeeded: Bool { true }
}

/// An event of the job that makes the renditions of a track.
///
/// The end comes once per job, and the node limits its jobs. The status comes every second, and requests for key
/// frames are repeated, so both may be dropped.
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
