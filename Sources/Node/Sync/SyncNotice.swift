import Base

/// The messages to followers of a stream, by their `type`; `asyncapi.json` describes each.
package enum SyncNotice: String, CaseIterable, Sendable {
    /// The complete state.
    case snapshot
    /// The difference to the previous version, as a merge patch of the snapshot (RFC 7396).
    case change
    /// The participant's own state, for that participant alone.
    case you
    /// A request to mute the microphone or camera.
    case mute
    /// The state of an encoder's input by RTMP or SRT; for the host and the publisher.
    case encoder
    /// The state of a target of the programme; for the host.
    case restream
    /// The current version, sent every few seconds.
    case heartbeat
    /// News of the audience.
    case interaction
    /// The audience's complete state, for a follower that has the rest already.
    case interactionSnapshot = "interaction-snapshot"
    /// A comment that came on this connection is durable.
    case commented
    /// A vote that came on this connection is durable.
    case voted
    /// A request that came on this connection was refused.
    case refused

    /// Encodes a message of this type.
    package func text(_ members: [String: JSON]) -> String {
        JSON.object(members.merging(["type": .string(rawValue)]) { $1 }).text
    }
}

/// The messages to followers of the feed, by their `type`.
package enum FeedSyncNotice: String, CaseIterable, Sendable {
    case snapshot, change, heartbeat

    /// Encodes a message of this type.
    package func text(_ members: [String: JSON]) -> String {
        JSON.object(members.merging(["type": .string(rawValue)]) { $1 }).text
    }
}
