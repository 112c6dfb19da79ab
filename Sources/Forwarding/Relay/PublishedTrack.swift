import Base
import Peer

/// A published track on some worker, with everything that another worker needs to attach slots to it.
package struct PublishedTrack: Equatable, Sendable {
    /// Identical on all workers that the track is relayed to.
    package let key: TrackKey
    /// The publisher's codecs, payload types and extension ids.
    package let plan: SourcePlan
    let extensions: ExtensionIDs
}

/// Identifies a track among those of all workers.
package struct TrackKey: Hashable, Sendable {
    /// The worker that receives it from its publisher.
    package let worker: Int
    /// The track's number on that worker.
    package let track: TrackID
}
