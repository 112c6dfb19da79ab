/// Somebody's end of a sync connection.
package protocol SyncFollower: Sendable {
    /// Queues a message, or says why not; never waits.
    func send(_ text: String) -> SyncDelivery
    /// Whether all that was queued has been sent.
    var isDrained: Bool { get }
    func close(_ reason: SyncClose)
}

/// What became of a message.
package enum SyncDelivery: Sendable {
    case queued
    /// The follower reads too slowly.
    case full
    /// The connection is gone.
    case closed
}

/// Why a follower is sent away.
package enum SyncClose: String, Sendable {
    case banned
    case removed
    /// The link that they came by.
    case linkRevoked = "link-revoked"
    /// Their token's time is over: come back with another one.
    case expired
    case unknownStream = "unknown-stream"
    /// Come back later.
    case unavailable
    case goingAway = "going-away"
}
