/// The state of a connection that is restored automatically: a sync socket, or a media session.
public enum ConnectionState: Equatable, Sendable {
    /// The first attempt is under way.
    case connecting
    case connected
    /// The connection was lost and is being restored, with pauses of half a second to ten seconds.
    case reconnecting
    /// The connection has ended for good.
    case disconnected(DisconnectReason)
}

/// Why a connection is not restored any more.
public enum DisconnectReason: Equatable, Sendable {
    /// The app closed it.
    case closed
    /// The token has expired or is invalid, and the token source has no other one.
    case expired
    /// The host has removed the participant.
    case removed
    /// The host has banned the participant.
    case banned
    /// The link through which the participant joined has been revoked.
    case revoked
    /// The server refuses the connection permanently, for this reason.
    case refused(RostrumError)
}
