import Foundation

/// The public properties of a stream.
public struct StreamInfo: Equatable, Sendable {
    /// The stream's name in addresses: up to 64 letters, digits, `_` and `-`.
    public let id: String
    /// `waiting`, `backstage`, `live` or `ended`; later servers may have further states.
    public let state: String
    /// For display; nil if there is none.
    public let title: String?
    /// The host's identity.
    public let host: String?
    /// The host's display name.
    public let hostName: String?
    /// The announced start.
    public let startsAt: Date?
    /// When it went live.
    public let startedAt: Date?
    /// Connected viewers who have been admitted.
    public let viewers: Int
    /// Whether the host is away for a moment; only the feed reports it.
    public let isPaused: Bool
    /// Whether it is being recorded now.
    public let isRecording: Bool

    /// Whether viewers can watch it.
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
