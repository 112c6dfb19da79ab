import Base
import Peer
import Wire

/// What the node remembers of a stream.
struct StreamRecord {
    private(set) var snapshot: StreamSnapshot
    /// The session that is, or is about to be, the source.
    private(set) var publisher: SessionID?
    /// Sessions that publish or have yet to begin.
    private var candidates: Set<SessionID> = []
    /// Sessions that watch or wait, connected or not.
    private(set) var audience: Set<SessionID> = []
    private var connected: Set<SessionID> = []
    /// Sessions on the stage that are not the source.
    private var speakers: Set<SessionID> = []

    init(id: StreamID) {
        snapshot = StreamSnapshot(
            id: id, state: .waiting, version: 1, host: nil, hostName: nil, startedAt: nil, endedAt: nil,
            viewers: 0,
            hasAudio: false, hasVideo: false)
    }

    /// Whether nothing would be lost by forgetting the stream.
    var isUnused: Bool {
        candidates.isEmpty && audience.isEmpty && speakers.isEmpty && snapshot.state != .live
    }

    /// Makes `session` the source; one that takes over from another does not start the stream anew.
    mutating func goLive(_ session: SessionRecord, at time: Double) {
        publisher = session.id
        if snapshot.state != .live { snapshot.startedAt = time }
        snapshot.state = .live
        snapshot.endedAt = nil
        snapshot.host = session.request.participant
        snapshot.hostName = session.request.name
        snapshot.hasAudio = session.plan.sources.contains { $0.kind == .audio }
        snapshot.hasVideo = session.plan.sources.contains { $0.kind == .video }
        snapshot.version += 1
    }

    /// Notes a session that will be the source once its media flows.
    mutating func add(publisher: SessionID) {
        candidates.insert(publisher)
    }

    mutating func add(speaker: SessionID, isSource: Bool) {
        if isSource { candidates.insert(speaker) } else { speakers.insert(speaker) }
    }

    mutating func add(viewer: SessionID) {
        audience.insert(viewer)
    }

    mutating func noteConnected(viewer: SessionID) {
        guard audience.contains(viewer), connected.insert(viewer).inserted else { return }
        snapshot.viewers = connected.count
        snapshot.version += 1
    }

    /// Takes a session out that has ended, whatever it was.
    /// - Returns: whether somebody who follows the stream notices.
    mutating func remove(_ session: SessionID, at time: Double) -> Bool {
        if audience.remove(session) != nil {
            guard connected.remove(session) != nil else { return false }
            snapshot.viewers = connected.count
            snapshot.version += 1
            return true
        }
        candidates.remove(session)
        speakers.remove(session)
        guard publisher == session else { return false }
        publisher = nil
        snapshot.state = .ended
        snapshot.endedAt = time
        snapshot.version += 1
        return true
    }
}

/// What the node remembers of a session.
struct SessionRecord {
    let id: SessionID
    let request: SessionRequest
    /// What was agreed; its remote credentials change with an ICE restart.
    var plan: SessionPlan
    let worker: Int
    /// Names the ICE credentials in force.
    var entityTag: String
    /// Seconds since 1970 at which a viewer without a publisher gives up; nil once there is one.
    var waitsUntil: Double?

    var purpose: SessionRequest.Purpose { request.purpose }
    var stream: StreamID { request.stream }
}
