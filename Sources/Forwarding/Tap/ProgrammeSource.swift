import Base

/// Where what viewers get of a stream comes from, for whoever taps it: previews and recordings.
package struct ProgrammeSource: Equatable, Sendable {
    /// Nil where the server makes it.
    package let session: SessionID?
    /// Nil for what the session publishes as `mid`.
    package let track: PublishedTrack?
    /// Of the m-line.
    package let mid: String
    /// Its number: who has the track, and is to be asked.
    package let worker: Int

    package init(session: SessionID?, track: PublishedTrack? = nil, mid: String, worker: Int) {
        self.session = session
        self.track = track
        self.mid = mid
        self.worker = worker
    }

    /// Nil for nothing that a worker could find.
    package var target: TapOpening.Target? {
        track.map { .track($0) } ?? session.map { .source($0, mid: mid) }
    }
}
