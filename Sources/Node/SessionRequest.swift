import Base
import Stage

/// What somebody who wants a peer connection brings along.
package struct SessionRequest: Sendable {
    /// Which endpoint was asked, and so what the offer may hold.
    package enum Purpose: String, Sendable {
        /// Be the source of the stream (WHIP, RFC 9725).
        case publish
        /// Get the stream (WHEP, draft-ietf-wish-whep).
        case play
        /// Publish and get others in slots; with a viewer's token, get the programme.
        case stage
        /// Swipe from stream to stream.
        case feed
    }

    /// Decides what admission asks for.
    package let purpose: Purpose
    /// `StreamID.feed` for a session of the feed.
    package let stream: StreamID
    /// Nil but for a session of the feed.
    let feed: FeedWish?
    /// Nil for an anonymous viewer.
    package internal(set) var sender: Stage.Sender?
    /// On a stage, whether what it sends is the stream's programme; the token's word until the stage was asked.
    package internal(set) var isHost: Bool
    /// The SDP offer, as it came.
    package let offer: String
    /// How long a viewer may wait for a publisher; nil not to wait at all.
    package let patience: Duration?
    /// When the request was there, for join times; nil to count from now.
    package let received: MonotonicTime?
    /// Where the request came from, as far as the entrance knows; nil where it does not.
    package let clientAddress: IPAddress?

    /// Whether it gets the programme and sends nothing: what the token says counts, not the offer.
    package var isWatching: Bool { purpose == .play || purpose == .feed || isAudience }

    /// Whether it watches by the stage's own endpoint, with a control channel.
    package var isAudience: Bool { purpose == .stage && sender?.authority == .viewer }

    /// Whether the stream's programme is what this session sends.
    package var isSource: Bool { !isWatching && isHost }

    /// Whether others on the stage see and hear it; an encoder by WHIP has no slots, but is there.
    package var isOnStage: Bool { !isWatching && participant != nil }

    package init(
        purpose: Purpose, stream: StreamID, sender: Stage.Sender?, offer: String, patience: Duration? = nil,
        received: MonotonicTime? = nil, clientAddress: IPAddress? = nil
    ) {
        self.clientAddress = clientAddress
        self.received = received
        feed = nil
        isHost = sender?.authority == .host || sender?.authority == .admin
        self.purpose = purpose
        self.stream = stream
        self.sender = sender
        self.offer = offer
        self.patience = patience
    }

    /// Somebody who publishes by another protocol than WebRTC, and so has no offer.
    init(ingesting stream: StreamID, sender: Stage.Sender, received: MonotonicTime, clientAddress: IPAddress)
    {
        self.init(
            purpose: .publish, stream: stream, sender: sender, offer: "", received: received,
            clientAddress: clientAddress)
    }

    /// Somebody who wants to watch the feed.
    package init(
        feed: FeedWish, offer: String, received: MonotonicTime? = nil, clientAddress: IPAddress? = nil
    ) {
        self.clientAddress = clientAddress
        self.feed = feed
        purpose = .feed
        stream = .feed
        sender = feed.reader.sender
        isHost = false
        self.offer = offer
        patience = nil
        self.received = received
    }

    /// Nil for a viewer without a token.
    package var participant: ParticipantID? { sender?.id }
    /// For people.
    package var name: String? { sender?.name }
}

/// A session that was made: what the client has to know.
package struct CreatedSession: Sendable {
    /// Of which its URL is made.
    package let id: SessionID
    /// The SDP answer.
    package let answer: String
    /// Names the ICE credentials in force, without quotes (RFC 9725 §4.3.1).
    package let entityTag: String
    /// The stream that a session of the feed begins with, which may be another one than was asked for; nil for other
    /// sessions, and where nobody is live.
    package internal(set) var begins: StreamID?
}

/// Why a session was not made or changed.
package enum SessionRefusal: Error, Equatable, Sendable {
    /// The offer or the fragment is no SDP, or lacks what every offer has.
    case malformedOffer(String)
    /// The offer is sound, but asks for what this endpoint does not do.
    case unsupportedOffer(String)
    /// No codec in common.
    case notAcceptable(String)
    /// Nobody publishes, and the viewer did not want to wait.
    case noPublisher
    /// As many sessions as configured are there already, or too many requests wait.
    case overloaded
    /// The server is about to stop, most likely to be started again at once.
    case stopping
    /// An address has as many sessions as strangers may have from one.
    case tooManySessions
    case unknownSession
    /// The stream takes a tier, and who asks has used up what everybody may watch of it.
    case gated(StageDetails.Gate)
    /// The stream's rules or its store stand against it.
    case stage(StageRefusal)
}
