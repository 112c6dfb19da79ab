/// How a connection stands that mends itself: a sync socket, or a media session.
public enum ConnectionState: Equatable, Sendable {
    /// For the first time.
    case connecting
    case connected
    /// It broke, and is being mended; the first pause is half a second, the longest ten.
    case reconnecting
    /// For good: nothing more comes.
    case disconnected(DisconnectReason)
}

/// Why a connection is not mended any more.
public enum DisconnectReason: Equatable, Sendable {
    /// The app closed it.
    case closed
    /// The token is not good, or no longer, and the token source has no other one.
    case expired
    /// The host sent us away.
    case removed
    /// The host keeps us out.
    case banned
    /// The link that we came by was revoked.
    case revoked
    /// The server would refuse it for ever, for that reason.
    case refused(RostrumError)
}
