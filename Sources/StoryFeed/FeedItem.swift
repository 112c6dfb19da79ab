import Base

/// One live stream as the feed lists it.
package struct FeedItem: Equatable, Sendable {
    package let id: StreamID
    package var title: String?
    package var host: ParticipantID?
    package var hostName: String?
    package var startedAt: WallTime
    /// Whether the host's picture is paused; the stream is live all the same.
    package var isPaused = false
    package var viewers = 0
    package var preview: FeedPreview?
    /// Pinned streams come first, lower places before higher ones; nil for a stream that is not pinned.
    package var pinnedPlace: Int?
    /// What an operator adds by hand, within ±`FeedWeights.boostLimit`.
    package var boost = 0

    package init(id: StreamID, startedAt: WallTime) {
        self.id = id
        self.startedAt = startedAt
    }
}

/// What is known of a stream's latest preview picture; the picture itself is elsewhere.
package struct FeedPreview: Equatable, Sendable {
    /// In pixels, of the picture as it is shown.
    package let width: Int
    package let height: Int
    package let takenAt: WallTime
    package let blurHash: String
    /// Where the picture is; nil for where it is without a signature.
    package let url: String?

    package init(width: Int, height: Int, takenAt: WallTime, blurHash: String, url: String? = nil) {
        self.url = url
        self.width = width
        self.height = height
        self.takenAt = takenAt
        self.blurHash = blurHash
    }
}

/// What happened to the list, for those who follow it.
///
/// Carried out one after the other on a copy of the list, changes give the list as it now is, except after
/// `reordered`, after which a follower reads it anew.
package enum FeedChange: Equatable, Sendable {
    package struct ViewerCount: Equatable, Sendable {
        package let stream: StreamID
        package let viewers: Int
    }

    /// A stream went live; it stands behind `after`, or first.
    case added(FeedItem, after: StreamID?)
    /// To be taken out and put behind `after`, or first.
    case moved(StreamID, after: StreamID?)
    case ended(StreamID)
    /// Anything but place, viewers and preview.
    case edited(FeedItem)
    /// Counts that changed since the last time, at most `rescoreLimit` of them.
    case viewersChanged([ViewerCount])
    case previewed(StreamID, FeedPreview)
    /// More streams moved than are worth naming.
    case reordered
}
