import Base

/// One live stream as the feed lists it.
package struct FeedItem: Equatable, Sendable {
    /// Each is in the feed once.
    package let id: StreamID
    /// Nil for a stream without one.
    package var title: String?
    /// Nil for a published stream whose source has no name.
    package var host: ParticipantID?
    /// For people.
    package var hostName: String?
    /// From when age counts, in the feed's order.
    package var startedAt: WallTime
    /// Whether the host's picture is paused; the stream is live all the same.
    package var isPaused = false
    /// Those without a name too, and nobody on stage.
    package var viewers = 0
    /// What its programme takes beside being let in, as it is told; null where nothing.
    package var gate = JSON.null
    /// Whether it may be watched by HLS, as far as its host decides on that.
    package var allowsHLS = true
    /// Nil until there is a first picture.
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
    /// In pixels, of the picture as it is shown.
    package let height: Int
    /// In the URL too, so that each picture can be cached for good.
    package let takenAt: WallTime
    /// A few characters to be shown before the picture has come (blurha.sh).
    package let blurHash: String
    /// Nil where nobody serves it.
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
    /// A new number of viewers.
    package struct ViewerCount: Equatable, Sendable {
        package let stream: StreamID
        /// Not the difference.
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
