import Base

/// What those who follow a stream are told, by the message's `type`; `asyncapi.json` describes each.
package enum SyncNotice: String, CaseIterable, Sendable {
    /// All that is known.
    case snapshot
    /// What became different: a merge patch of the snapshot.
    case change
    /// What only one participant is told about themselves.
    case you
    case mute
    /// What comes of an encoder by RTMP or SRT; to the host and to whoever publishes.
    case encoder
    /// How a target of the programme does; to the host.
    case restream
    case heartbeat
    /// What is new of the audience.
    case interaction
    /// All of the audience, for who knows the rest already.
    case interactionSnapshot = "interaction-snapshot"
    /// The comment that came on this socket is durable.
    case commented
    /// The vote that came on this socket is durable.
    case voted
    /// What was asked for on this socket was not done.
    case refused

    /// The message's text.
    package func text(_ members: [String: JSON]) -> String {
        JSON.object(members.merging(["type": .string(rawValue)]) { $1 }).text
    }
}

/// What those who follow the feed are told, by the message's `type`.
package enum FeedSyncNotice: String, CaseIterable, Sendable {
    case snapshot, change, heartbeat

    /// The message's text.
    package func text(_ members: [String: JSON]) -> String {
        JSON.object(members.merging(["type": .string(rawValue)]) { $1 }).text
    }
}
