import Base
import Forwarding
import Foundation
import Interaction
import Stage
import Wire

/// What a client asks for on its control channel, in JSON.
enum ControlRequest: Equatable {
    /// As the message's `type`; `mute` stands in `message_type`.
    enum Kind: String, CaseIterable {
        case ping, pin, slot, visible, mute, prefer, uplink, comment, react, vote, follow
    }

    case ping
    /// Shows a participant, or whoever speaks, in a video slot.
    case pin(ParticipantID?, mid: String, maximumHeight: Int?)
    /// Takes a picture of at most that height.
    case slot(mid: String, maximumHeight: Int?)
    case visible(Bool, mid: String)
    case mute(ParticipantID, kind: String)
    /// Other pictures than the server would choose, or none.
    case prefer(DeliveryPatch)
    /// The path takes less than the client would send.
    case weakUplink
    /// Says or taps something as one of the stream's audience.
    case interact(Interaction.Command)
    /// Wants to hear what is new of the audience.
    case follow

    private struct Form: Decodable {
        var type: String?
        var messageType: String?
        var target: String?
        var participant: String?
        var mid: String?
        var maxHeight: Int?
        var visible: Bool?
        var kind: String?
        var limitedBy: String?

        enum CodingKeys: String, CodingKey {
            case type, participant, mid, maxHeight, visible, kind, limitedBy
            case messageType = "message_type"
            case target = "to_participant_identity"
        }
    }

    /// - Returns: nil for what is no JSON, or means nothing.
    init?(parsing message: DataChannelMessage) {
        guard let form = try? JSONDecoder().decode(Form.self, from: Data(message.bytes)) else { return nil }
        if form.messageType == Kind.mute.rawValue {
            let kind = form.kind ?? "audio"
            guard let target = form.target.flatMap({ ParticipantID($0) }), kind == "audio" || kind == "video"
            else { return nil }
            self = .mute(target, kind: kind)
            return
        }
        switch (form.type.flatMap { Kind(rawValue: $0) }, form.mid) {
        case (.ping, _): self = .ping
        case (.uplink, _):
            guard form.limitedBy == "bandwidth" else { return nil }
            self = .weakUplink
        case (.prefer, _):
            guard let patch = DeliveryPatch(parsing: message) else { return nil }
            self = .prefer(patch)
        case (.comment, _), (.react, _), (.vote, _):
            guard let command = AudienceMessage.command(parsing: message.bytes) else { return nil }
            self = .interact(command)
        case (.follow, _): self = .follow
        case (.pin, let mid?):
            self = .pin(
                form.participant.flatMap { ParticipantID($0) }, mid: mid, maximumHeight: form.maxHeight)
        case (.slot, let mid?): self = .slot(mid: mid, maximumHeight: form.maxHeight)
        case (.visible, let mid?): self = .visible(form.visible ?? true, mid: mid)
        case (.pin, nil), (.slot, nil), (.visible, nil), (.mute, _), (nil, _): return nil
        }
    }
}

extension StageRoom {
    /// Arranges a session's slots as its client wants them.
    mutating func arrange(_ wish: ControlRequest, for session: SessionID) -> [Effect] {
        switch wish {
        case .pin(let participant, let mid, let height):
            pin(participant, in: mid, of: session) + limit(mid, of: session, to: height)
        case .slot(let mid, let height): limit(mid, of: session, to: height)
        case .visible(let isVisible, let mid): setVisible(isVisible, mid, of: session)
        case .ping, .mute, .prefer, .weakUplink, .interact, .follow: []
        }
    }
}

extension DeliveryPatch {
    /// - Returns: nil for what is no JSON object, or has a member that means nothing.
    init?(parsing message: DataChannelMessage) {
        guard let members = try? JSONDecoder().decode([String: JSON].self, from: Data(message.bytes)),
            let patch = try? DeliveryPatch(members)
        else { return nil }
        self = patch
    }
}

/// What a client is told on its control channel, in JSON; absent values are left out.
struct ControlReply: Encodable {
    /// As the message's `type`; `mute` stands in `message_type`.
    enum Kind: String, CaseIterable, Encodable {
        case pong, slots, gate, wanted, quality, mute, error
        /// As on a sync socket; see `SyncNotice`.
        case commented, voted, refused, interaction
        case interactionSnapshot = "interaction-snapshot"
    }

    struct Slot: Encodable {
        var mid: String
        var kind: String
        var stream: String?
        var participant: String?
        var name: String?
        var muted: Bool
        var screen: Bool
        /// Of a composition, instead of `participant`: who is in it, in the order in which they came.
        var participants: [String]?
    }

    var type: Kind?
    var messageType: Kind?
    var target: String?
    var kind: String?
    var by: String?
    var slots: [Slot]?
    /// With `wanted`: the simulcast layers of an m-line that somebody takes; the client may let the others rest.
    var mid: String?
    var rids: [String]?
    var rule: String?
    var detail: String?

    enum CodingKeys: String, CodingKey {
        case type, kind, by, slots, mid, rids, rule, detail
        case messageType = "message_type"
        case target = "to_participant_identity"
    }

    static func error(_ rule: String, _ detail: String) -> ControlReply {
        ControlReply(type: .error, rule: rule, detail: detail)
    }

    /// Why something was not done.
    static func refusal(_ refusal: StageRefusal) -> ControlReply {
        guard case .rejected(let rejection) = refusal else {
            return .error("unavailable", "This cannot be done now.")
        }
        return .error(rejection.name, rejection.explanation)
    }

    var bytes: [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(self) else {
            assertionFailure("strings, numbers and Booleans can be encoded")
            return Array("{}".utf8)
        }
        return Array(data)
    }
}
