import Foundation

/// A comment that a participant has written; always shown as plain text, whatever it contains.
public struct Comment: Equatable, Sendable {
    /// Position in the stream's order of comments; unique within the stream.
    public let number: Int
    /// Chosen by the author's client: the same comment sent again has the same ID.
    public let id: String
    /// The author's identity.
    public let author: String
    /// The author's display name; nil if there is none.
    public let name: String?
    /// At most 300 characters.
    public let text: String
    /// When the server accepted it.
    public let at: Date?

    init?(_ json: JSONValue) {
        guard let number = json["number"].integer, let author = json["author"].string else { return nil }
        self.number = number
        id = json["id"].string ?? ""
        self.author = author
        name = json["name"].string
        text = json["text"].string ?? ""
        at = json["at"].date
    }
}
