import Foundation

/// What somebody wrote; to be shown as text, whatever it looks like.
public struct Comment: Equatable, Sendable {
    /// In the order in which they came; no two of a stream have the same.
    public let number: Int
    /// By its author's client: one that is sent again under its id is the same comment.
    public let id: String
    /// The author's identity.
    public let author: String
    /// Of the author, for people; nil for those who have none.
    public let name: String?
    /// At most 300 characters.
    public let text: String
    /// When the server took it.
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
