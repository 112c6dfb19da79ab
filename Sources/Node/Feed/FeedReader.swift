import Base
import Stage
import StoryFeed

/// A person who looks at the feed: which streams they may see, and under which identity.
package struct FeedReader: Sendable {
    /// A set of streams: those that a token is for.
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

    /// The streams that they may see.
    let scope: Scope
    /// Nil for a person without a token.
    let sender: Stage.Sender?
    /// The streams in which they are known by name; elsewhere they are anonymous.
    package let standing: Scope

    package init(scope: Scope, sender: Stage.Sender?, standing: Scope) {
        self.scope = scope
        self.sender = sender
        self.standing = standing
    }

    /// Their identity in a stream; nil if they are an anonymous viewer there.
    func sender(in stream: StreamID) -> Stage.Sender? { standing.contains(stream) ? sender : nil }

    /// Whether they may begin to see a stream: neither a ban nor a revoked link stands against it.
    func maySee(_ stream: StreamID, by directory: StreamDirectory) -> Bool {
        guard scope.contains(stream) else { return false }
        guard let sender = sender(in: stream), sender.authority != .admin else { return true }
        return !directory.shutsOut(sender, from: stream)
    }

    /// Whether they may go on seeing a stream; a link that was revoked since does not end what it opened.
    func mayStay(in stream: StreamID, by directory: StreamDirectory) -> Bool {
        guard scope.contains(stream) else { return false }
        guard let sender = sender(in: stream), sender.authority != .admin else { return true }
        return !directory.isBanned(sender.id, from: stream)
    }
}

/// How a person wants to begin in the feed.
package struct FeedWish: Sendable {
    let reader: FeedReader
    /// The stream to begin with; nil for the first one.
    let stream: StreamID?
    let preload: FeedPreload

    package init(reader: FeedReader, stream: StreamID?, preload: FeedPreload) {
        self.reader = reader
        self.stream = stream
        self.preload = preload
    }
}

/// A feed session, as far as the node needs to know it.
struct FeedPlace {
    let viewer: FeedViewer
    let reader: FeedReader
    /// The pairs of m-lines, one per seat, in the order of the offer.
    let mids: [(audio: String, video: String)]
    /// Whether the handshake is done; only then is the viewer counted.
    var isConnected = false
    /// The stream on whose stage the viewer is counted.
    var present: StreamID?
}
