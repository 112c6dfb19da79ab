import Base

/// A comment, which a participant wrote for everyone in a stream.
package struct StreamComment: Equatable, Sendable, Codable {
    /// The author's role at the time of writing.
    package enum Role: String, Equatable, Sendable, Codable {
        case host, speaker, viewer
    }

    /// Its number in the stream: counts from 1, in the order of writing.
    package let number: Int
    /// Chosen by the author's client, which repeats it when it sends the comment again; unique per author.
    package let key: String
    /// The author's identity.
    package let author: ParticipantID
    /// Display name; nil if the author's token has none.
    package let name: String?
    /// The author's role when the comment was written.
    package let role: Role
    /// Cleaned; empty if the comment was deleted, which leaves only its key.
    package internal(set) var text: String
    /// When it was accepted, by the server's clock.
    package let at: WallTime
    /// Nil for false, also in records from before there were shadows.
    private let hidden: Bool?
    /// Nil for false, also in records from before this was shown.
    private let moderates: Bool?

    /// A comment; `text` must be cleaned already.
    package init(
        number: Int, key: String, author: ParticipantID, name: String?, role: Role, text: String,
        at: WallTime, isHidden: Bool = false, isByModerator: Bool = false
    ) {
        hidden = isHidden ? true : nil
        moderates = isByModerator ? true : nil
        self.number = number
        self.key = key
        self.author = author
        self.name = name
        self.role = role
        self.text = text
        self.at = at
    }

    /// Whether only its author may see it.
    package var isHidden: Bool { hidden ?? false }

    /// Whether its author may moderate without being the host.
    package var isByModerator: Bool { moderates ?? false }

    /// Whether it was deleted, so that only its key is left.
    package var isDeleted: Bool { text.isEmpty }
}
