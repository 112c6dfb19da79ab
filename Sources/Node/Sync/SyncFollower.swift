/// The connection to a follower, as the hub uses it.
package protocol SyncFollower: Sendable {
    /// Queues a message, or returns why it was not queued; never waits.
    func send(_ text: String) -> SyncDelivery
    /// Whether all queued messages have been sent.
    var isDrained: Bool { get }
    /// Closes the connection, and reports the reason to the client.
    func close(_ reason: SyncClose)
}

/// What became of a message.
package enum SyncDelivery: Sendable {
    case queued
    /// The follower reads too slowly; the message was dropped.
    case full
    /// The connection is gone.
    case closed
}

/// Why the server closes a follower's connection; the raw value is part of the API.
package enum SyncClose: String, Sendable {
    case banned
    case removed
    /// The link by which the participant came was revoked.
    case linkRevoked = "link-revoked"
    /// The participant's token has expired; a new token is needed to come back.
    case expired
    case unknownStream = "unknown-stream"
    /// The stream cannot be served now; the client may come back later.
    case unavailable
    case goingAway = "going-away"
}
