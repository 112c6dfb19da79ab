import Foundation

/// A stream, as everybody may know it.
public struct StreamInfo: Equatable, Sendable {
    /// Its name in addresses: letters, digits, `_` and `-`, 64 at most.
    public let id: String
    /// `waiting`, `backstage`, `live` or `ended`; a later server may know more.
    public let state: String
    /// For people; nil where nobody gave it one.
    public let title: String?
    /// The host's identity, and the host's name for people.
    public let host: String?
    /// Of the host, for people.
    public let hostName: String?
    /// When viewers expect it to begin.
    public let startsAt: Date?
    /// When it went live.
    public let startedAt: Date?
    /// Viewers who are connected and were let in.
    public let viewers: Int
    /// Whether its host is away for a moment; told in the feed alone.
    public let isPaused: Bool
    /// Whether it is being recorded now.
    public let isRecording: Bool

    /// Whether it can be watched.
    public var isLive: Bool { state == "live" }

    init?(_ json: JSONValue) {
        guard let id = json["id"].string else { return nil }
        self.id = id
        state = json["state"].string ?? "waiting"
        title = json["title"].string
        host = json["host"].string
        hostName = json["hostName"].string
        startsAt = json["startsAt"].date
        startedAt = json["startedAt"].date
        viewers = json["viewers"].integer ?? 0
        isPaused = json["paused"].bool ?? false
        isRecording = json["isRecording"].bool ?? false
    }
}
