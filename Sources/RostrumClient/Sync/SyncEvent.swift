import Foundation

/// What a follower of a stream is told.
public enum SyncEvent: Equatable, Sendable {
    /// Something that everybody may know is different; this is all of it.
    case changed(StageState)
    /// What the app's own user is has changed.
    case me(Me)
    /// Somebody asks the app to mute its user.
    /// - `kind`: `audio` or `video`.
    /// - `by`: an identity.
    case muteRequested(kind: String, by: String?)
    /// New comments; where very many are written, a fair sample, never without the host's.
    case comments([Comment])
    /// Anything else, and each `interaction` as a whole: polls, gifts, reactions, what was refused.
    case message(ServerMessage)
}

/// What is known of a stream, and up to which version: where a broken socket goes on.
struct SyncProgress: Equatable, Sendable {
    /// Nil before the first snapshot.
    private(set) var version: Int?
    private(set) var known = JSONValue.null
    private(set) var me: Me?

    /// Nil before the first snapshot.
    var state: StageState? { version == nil ? nil : StageState(known) }

    /// Learns from one message.
    /// - Returns: what an app is to be told; empty for heartbeats.
    /// - Throws: for what is no message.
    mutating func receive(_ data: Data) throws(RostrumError) -> [SyncEvent] {
        var json = try JSONValue(parsing: data)
        let interaction = json["interaction"]
        switch json["type"].string {
        case "snapshot":
            version = json["version"].integer
            json.merge(Self.withoutEnvelope)
            known = json
            return [.changed(StageState(known))] + Self.comments(interaction)
        case "change":
            version = json["version"].integer ?? version
            json.merge(Self.withoutEnvelope)
            known.merge(json)
            return [.changed(StageState(known))]
        case "you":
            me = Me(json["you"])
            return me.map { [.me($0)] } ?? []
        case "mute":
            return [.muteRequested(kind: json["kind"].string ?? "audio", by: json["by"].string)]
        case "interaction": return Self.comments(json) + [.message(ServerMessage(json, data))]
        case "interaction-snapshot": return Self.comments(interaction) + [.message(ServerMessage(json, data))]
        case "heartbeat": return []
        default: return [.message(ServerMessage(json, data))]
        }
    }

    private static let withoutEnvelope = JSONValue.object(
        ["type": .null, "version": .null, "interaction": .null])

    private static func comments(_ interaction: JSONValue) -> [SyncEvent] {
        let comments = interaction["comments"].elements.compactMap { Comment($0) }
        return comments.isEmpty ? [] : [.comments(comments)]
    }
}
