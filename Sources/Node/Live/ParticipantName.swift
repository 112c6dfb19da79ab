import Base

extension ParticipantID {
    /// Prefix of the identities that the server generates for people who come without one.
    package static let guestPrefix = "guest-"

    /// The name to show for somebody who has given none, as in a composed picture: a generated identity is no name.
    var shownName: String { description.hasPrefix(Self.guestPrefix) ? "Guest" : description }
}
