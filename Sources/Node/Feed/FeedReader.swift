import Base
import Stage
import StoryFeed

/// Somebody who looks at the feed: what they may see, and as whom.
package struct FeedReader: Sendable {
    /// Which streams the reader's token is for.
    package enum Scope: Equatable, Sendable {
        case all
        case one(StreamID)

        func contains(_ stream: StreamID) -> Bool {
            switch self {
            case .all: true
            case .one(let id): id == stream
            }
        }
    }

    /// The streams that may be seen.
    let scope: Scope
    /// Nil for somebody without a token.
    let sender: Stage.Sender?
    /// The streams in which the sender is known by name.
    package let standing: Scope

    package init(scope: Scope, sender: Stage.Sender?, standing: Scope) {
        self.scope = scope
        self.sender = sender
        self.standing = standing
    }

    /// As whom they are in a stream; nil for an anonymous viewer there.
    func sender(in stream: StreamID) -> Stage.Sender? { standing.contains(stream) ? sender : nil }

    /// Whether a stream is for them.
    func maySee(_ stream: StreamID, by directory: StreamDirectory) -> Bool {
        guard scope.contains(stream) else { return false }
        guard let sender = sender(in: stream), sender.authority != .admin else { return true }
        return !directory.shutsOut(sender, from: stream)
    }

    /// Whether they may go on seeing a stream: whoever came by a link that was revoked since stays.
    func mayStay(in stream: StreamID, by directory: StreamDirectory) -> Bool {
        guard scope.contains(stream) else { return false }
        guard let sender = sender(in: stream), sender.authority != .admin else { return true }
        return !directory.isBanned(sender.id, from: stream)
    }
}

/// How somebody wants to begin in the feed.
package struct FeedWish: Sendable {
    let reader: FeedReader
    /// Nil for the first stream.
    let stream: StreamID?
    let preload: FeedPreload

    package init(reader: FeedReader, stream: StreamID?, preload: FeedPreload) {
        self.reader = reader
        self.stream = stream
        self.preload = preload
    }
}

/// A feed session, as far as the node has to know.
struct FeedPlace {
    let viewer: FeedViewer
    let reader: FeedReader
    /// Each pair of m-lines, audio and video, in the order of the offer.
    let mids: [(audio: String, video: String)]
    var isConnected = false
    /// The stream on whose stage the viewer is counted.
    var present: StreamID?
}
