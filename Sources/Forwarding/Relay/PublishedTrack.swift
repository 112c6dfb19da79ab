import Base
import Peer

/// A track that a session of some worker publishes: all that another worker needs to attach slots to it.
package struct PublishedTrack: Equatable, Sendable {
    /// The same wherever the track is relayed to.
    package let key: TrackKey
    /// The publisher's codecs, payload types and extension ids.
    package let plan: SourcePlan
    let extensions: ExtensionIDs
}

/// Names a track among those of all workers.
package struct TrackKey: Hashable, Sendable {
    /// The worker that receives it from its publisher.
    package let worker: Int
    /// As that worker counts.
    package let track: TrackID
}
