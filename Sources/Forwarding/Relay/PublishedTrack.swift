import Base
import Peer

/// A track that a session of some worker publishes: all that another worker needs to attach slots to it.
package struct PublishedTrack: Equatable, Sendable {
    package let key: TrackKey
    package let plan: SourcePlan
    let extensions: ExtensionIDs
}

/// Names a track among those of all workers.
package struct TrackKey: Hashable, Sendable {
    /// The worker that receives it from its publisher.
    package let worker: Int
    package let track: TrackID
}
