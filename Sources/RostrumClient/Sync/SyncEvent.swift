import Foundation

/// An event for followers of a stream.
public enum SyncEvent: Equatable, Sendable {
    /// The public state has changed; this is all of it.
    case changed(StageState)
    /// The app's own participant has changed.
    case me(Me)
    /// A request to mute the app's participant.
    /// - `kind`: `audio` or `video`.
    /// - `by`: the identity of the participant who asks.
    case muteRequested(kind: String, by: String?)
    /// New comments; of very many, a fair sample that always contains the host's.
    case comments([Comment])
    /// Any other message, and each `interaction` as a whole: polls, gifts, reactions, refusals.
    case message(ServerMessage)
}

/// The state of a stream and its version, from which an interrupted socket continues.
struct SyncProgress: Equatable, Sendable {
    /// Nil before the first snapshot.
    private(set) var version: Int?
    private(set) var known = JSONValue.null
    private(set) var me: Me?

    /// Nil before the first snapshot.
    var state: StageState? { version == nil ? nil : StageState(known) }

    /// Applies one message.
    /// - Returns: events for the app; empty for heartbeats.
    /// - Throws: if the data is no JSON.
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

    /// A merge patch that removes what is not part of the state.
    private static let withoutEnvelope = JSONValue.object(
        ["type": .null, "version": .null, "interaction": .null])

    private static func comments(_ interaction: JSONValue) -> [SyncEvent] {
        let comments = interaction["comments"].elements.compactMap { Comment($0) }
        return comments.isEmpty ? [] : [.comments(comments)]
    }
}
