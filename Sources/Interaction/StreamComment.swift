import Base

/// One line that somebody wrote to all others in a stream.
package struct StreamComment: Equatable, Sendable, Codable {
    /// What its author was at that moment.
    package enum Role: String, Equatable, Sendable, Codable {
        case host, speaker, viewer
    }

    /// Which one it is in its stream: from 1 on, in the order in which they came.
    package let number: Int
    /// By which the author's client knows it, and sends it again; two authors may use the same.
    package let key: String
    /// Who wrote it.
    package let author: ParticipantID
    /// For people; nil where the author's token has none.
    package let name: String?
    /// What its author was when it was written.
    package let role: Role
    /// Cleaned; empty for a comment that was deleted, of which only the key is remembered.
    package internal(set) var text: String
    /// By the server's clock.
    package let at: WallTime
    /// Nil for no, as it was when there were no shadows.
    private let hidden: Bool?
    /// Nil for no, as it was when nobody was told.
    private let moderates: Bool?

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

    /// Whether its author could take away what others wrote, beside the host.
    package var isByModerator: Bool { moderates ?? false }

    /// Whether only its key is left.
    package var isDeleted: Bool { text.isEmpty }
}
