import Base
import Stage

/// A client's request for a peer connection, before it is admitted.
package struct SessionRequest: Sendable {
    /// Which endpoint the client used, and so what its offer may contain.
    package enum Purpose: String, Sendable {
        /// Publish the stream's source (WHIP, RFC 9725).
        case publish
        /// Receive the stream (WHEP, draft-ietf-wish-whep).
        case play
        /// Publish, and receive others in slots; with a viewer's token, receive the programme.
        case stage
        /// Swipe from stream to stream.
        case feed
    }

    /// Which rules of admission apply.
    package let purpose: Purpose
    /// `StreamID.feed` for a session of the feed.
    package let stream: StreamID
    /// Where to begin in the feed, and as whom; nil unless `purpose` is `feed`.
    let feed: FeedWish?
    /// Nil for an anonymous viewer.
    package internal(set) var sender: Stage.Sender?
    /// On a stage, whether what the session sends is the stream's programme.
    ///
    /// Taken from the token, until the stage has decided.
    package internal(set) var isHost: Bool
    /// The SDP offer as it was received; empty for a publisher by RTMP or SRT.
    package let offer: String
    /// How long a viewer waits for a publisher; nil to be refused if there is none.
    package let patience: Duration?
    /// When the request was received, from which join times are measured; nil to measure from now.
    package let received: MonotonicTime?
    /// The client's address; nil if the server that accepted the request does not know it.
    package let clientAddress: IPAddress?

    /// Whether the session receives the programme and sends nothing; the token decides that, not the offer.
    package var isWatching: Bool { purpose == .play || purpose == .feed || isAudience }

    /// Whether it watches by the stage's endpoint, with a control channel.
    package var isAudience: Bool { purpose == .stage && sender?.authority == .viewer }

    /// Whether what this session sends is the stream's programme.
    package var isSource: Bool { !isWatching && isHost }

    /// Whether the others on the stage see and hear it.
    ///
    /// An encoder that publishes by WHIP has no slots, but is on the stage.
    package var isOnStage: Bool { !isWatching && participant != nil }

    /// - Parameters:
    ///   - sender: nil for an anonymous viewer.
    ///   - patience: as the property; only viewers wait.
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

    /// A publisher by RTMP or SRT, who has no offer.
    init(ingesting stream: StreamID, sender: Stage.Sender, received: MonotonicTime, clientAddress: IPAddress)
    {
        self.init(
            purpose: .publish, stream: stream, sender: sender, offer: "", received: received,
            clientAddress: clientAddress)
    }

    /// A viewer who wants to watch the feed.
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

/// What a client has to know about its new session.
package struct CreatedSession: Sendable {
    /// Part of the session's URL.
    package let id: SessionID
    /// The SDP answer.
    package let answer: String
    /// Names the ICE credentials in force, without quotes (RFC 9725 §4.3.1).
    package let entityTag: String
    /// The stream that a feed session begins with, which may differ from the requested one.
    ///
    /// Nil for other sessions, and if no stream is live.
    package internal(set) var begins: StreamID?
}

/// Why a session was not made, or not changed.
package enum SessionRefusal: Error, Equatable, Sendable {
    /// The offer or the fragment is not SDP, or lacks what every offer must have.
    case malformedOffer(String)
    /// The offer is valid, but requests what this endpoint does not support.
    case unsupportedOffer(String)
    /// The offer and the server have no codec in common.
    case notAcceptable(String)
    /// The stream has no publisher, and the viewer did not want to wait.
    case noPublisher
    /// The server has as many sessions as configured, or too many requests wait.
    case overloaded
    /// The server is about to stop, most likely to be restarted.
    case stopping
    /// The client's address has as many sessions without a token as one address may have.
    case tooManySessions
    case unknownSession
    /// The stream requires a tier, and this viewer has used up the time that every viewer gets for free.
    case gated(StageDetails.Gate)
    /// The stream's rules forbid it, or its state could not be stored.
    case stage(StageRefusal)
}
