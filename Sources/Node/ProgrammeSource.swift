import Base
import Forwarding

/// Where what viewers get of a stream comes from, for whoever taps it: previews and recordings.
struct ProgrammeSource: Equatable, Sendable {
    /// Nil where the server makes it.
    let session: SessionID?
    /// Nil for what the session publishes as `mid`.
    let track: PublishedTrack?
    let mid: String
    let worker: Int

    init(session: SessionID?, track: PublishedTrack? = nil, mid: String, worker: Int) {
        self.session = session
        self.track = track
        self.mid = mid
        self.worker = worker
    }

    /// Nil for nothing that a worker could find.
    var target: TapOpening.Target? {
        track.map { .track($0) } ?? session.map { .source($0, mid: mid) }
    }
}
