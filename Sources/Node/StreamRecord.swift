import Base
import Peer
import Stage
import Wire

/// The sessions of a stream.
struct StreamRecord {
    /// The session that is the source.
    private(set) var publisher: SessionID?
    /// Sessions that publish or have yet to begin.
    private(set) var publishers: Set<SessionID> = []
    /// Sessions that watch or wait, connected or not.
    private(set) var audience: Set<SessionID> = []
    /// Sessions on the stage that are not the source.
    private(set) var speakers: Set<SessionID> = []
    /// Sessions of the audience by the stage's endpoint, by whose they are, earlier ones first.
    private(set) var own: [ParticipantID: [SessionID]] = [:]
    /// When the last source was gone.
    private(set) var emptySince: MonotonicTime?

    /// Whether nothing would be lost by forgetting the stream.
    var isUnused: Bool { publishers.isEmpty && audience.isEmpty && speakers.isEmpty }
    var isLive: Bool { publisher != nil }
    /// Whether there is a source, or a session that has yet to become it.
    var hasSourceOrSuccessor: Bool { publisher != nil || !publishers.isEmpty }
    var all: Set<SessionID> { publishers.union(audience).union(speakers) }

    /// Notes a session that will be the source once its media flows.
    mutating func add(publisher: SessionID) {
        publishers.insert(publisher)
    }

    mutating func add(speaker: SessionID, isSource: Bool) {
        if isSource { publishers.insert(speaker) } else { speakers.insert(speaker) }
    }

    mutating func add(viewer: SessionID, of participant: ParticipantID? = nil) {
        audience.insert(viewer)
        if let participant { own[participant, default: []].append(viewer) }
    }

    /// Makes `session` the source, maybe in the place of another.
    mutating func setSource(_ session: SessionID) {
        publisher = session
        emptySince = nil
    }

    /// Takes a session out that has ended, whatever it was.
    /// - Returns: whether it was the source.
    mutating func remove(_ session: SessionID, of participant: ParticipantID?, at time: MonotonicTime) -> Bool
    {
        audience.remove(session)
        if let participant {
            own[participant]?.removeAll { $0 == session }
            if own[participant]?.isEmpty == true { own[participant] = nil }
        }
        publishers.remove(session)
        speakers.remove(session)
        guard publisher == session else { return false }
        publisher = nil
        emptySince = time
        return true
    }
}

/// What the node remembers of a session.
struct SessionRecord {
    let id: SessionID
    var request: SessionRequest
    /// Whether it was made without a token, and counts for its address as long as it lasts.
    let isStrangers: Bool
    /// What was agreed; its remote credentials change with an ICE restart.
    var plan: SessionPlan
    let worker: Int
    /// Names the ICE credentials in force.
    var entityTag: String
    /// When a viewer without a publisher gives up; nil once there is one.
    var waitsUntil: MonotonicTime?
    /// When it ends, having lost its place.
    var closesAt: MonotonicTime?

    var purpose: SessionRequest.Purpose { request.purpose }
    var stream: StreamID { request.stream }

    /// What viewers get of it.
    var source: Stage.Source {
        Stage.Source(
            owner: request.participant, name: request.name,
            hasAudio: plan.sources.contains { $0.kind == .audio },
            hasVideo: plan.sources.contains { $0.kind == .video })
    }
}
