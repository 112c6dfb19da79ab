import Base
import Peer

/// The origin of what viewers get of a stream, for those that tap it: previews and recordings.
package struct ProgrammeSource: Equatable, Sendable {
    /// The publishing session; nil for media that the server makes.
    package let session: SessionID?
    /// The track that was chosen; nil for whatever the session publishes as `mid`.
    package let track: PublishedTrack?
    /// The MID of the m-line.
    package let mid: String
    /// The number of the worker that has the track, and opens the tap.
    package let worker: Int

    /// What a session publishes on an m-line, before and after its track is known.
    package init(session: SessionID?, mid: String, worker: Int) {
        self.session = session
        self.mid = mid
        self.worker = worker
        track = nil
    }

    /// A track of a session, or one that the server makes.
    package init(_ track: PublishedTrack, of session: SessionID?) {
        self.session = session
        self.track = track
        mid = track.plan.mid
        worker = track.key.worker
    }

    /// The target of a tap; nil if there is neither a track nor a session.
    package var target: TapOpening.Target? {
        track.map { .track($0) } ?? session.map { .source($0, mid: mid) }
    }
}
