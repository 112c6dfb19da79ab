import Base

/// One live stream as the feed lists it.
package struct FeedItem: Equatable, Sendable {
    /// Occurs at most once in the feed.
    package let id: StreamID
    /// Nil for a stream without a title.
    package var title: String?
    /// Nil for a published stream whose source has no name.
    package var host: ParticipantID?
    /// The display name of the host.
    package var hostName: String?
    /// The start of the stream's age, which counts in the feed's order.
    package var startedAt: WallTime
    /// Whether the host's picture is paused; the stream is still live.
    package var isPaused = false
    /// Includes anonymous viewers; excludes participants on stage.
    package var viewers = 0
    /// The gate before the programme, as the API shows it; `null` for a stream without a gate.
    package var gate = JSON.null
    /// Whether the host allows HLS; whether the server makes it is another matter.
    package var allowsHLS = true
    /// Nil until the first preview picture exists.
    package var preview: FeedPreview?
    /// Pinned streams come first, sorted by this number; nil for a stream that is not pinned.
    package var pinnedPlace: Int?
    /// An operator's manual boost, in steps; counts within ±`FeedWeights.boostLimit`.
    package var boost = 0

    package init(id: StreamID, startedAt: WallTime) {
        self.id = id
        self.startedAt = startedAt
    }
}

/// Describes a stream's latest preview picture, which is stored elsewhere.
package struct FeedPreview: Equatable, Sendable {
    /// Width of the picture as shown, in pixels.
    package let width: Int
    /// Height of the picture as shown, in pixels.
    package let height: Int
    /// Part of the URL too, so that each picture can be cached forever.
    package let takenAt: WallTime
    /// A short text from which clients draw a blurred placeholder until the picture is loaded (blurha.sh).
    package let blurHash: String
    /// Nil if the picture is not served.
    package let url: String?

    package init(width: Int, height: Int, takenAt: WallTime, blurHash: String, url: String? = nil) {
        self.url = url
        self.width = width
        self.height = height
        self.takenAt = takenAt
        self.blurHash = blurHash
    }
}

/// One change of the list, for followers.
///
/// A follower that applies all changes in order to a copy of the list has the present list. Only after `reordered`
/// does it have to read the list again.
package enum FeedChange: Equatable, Sendable {
    /// The viewer count of one stream.
    package struct ViewerCount: Equatable, Sendable {
        /// The stream whose count changed.
        package let stream: StreamID
        /// The new total, not the difference.
        package let viewers: Int
    }

    /// A stream went live; its place is directly after the stream `after`, or first if that is nil.
    case added(FeedItem, after: StreamID?)
    /// The stream moved; its new place is directly after the stream `after`, or first if that is nil.
    case moved(StreamID, after: StreamID?)
    case ended(StreamID)
    /// Something other than place, viewer count or preview changed.
    case edited(FeedItem)
    /// Viewer counts that changed since the last scoring, at most `rescoreLimit` of them.
    case viewersChanged([ViewerCount])
    case previewed(StreamID, FeedPreview)
    /// More streams moved than `namedMoveLimit`, so the moves are not listed.
    case reordered
}
