import Base
import Forwarding
import Foundation
import Interaction
import Stage
import Wire

/// A request from a client on its control channel, parsed from JSON.
package enum ControlRequest: Equatable {
    /// The values of the message's `type`; `mute` is in `message_type` instead.
    enum Kind: String, CaseIterable {
        case ping, pin, slot, visible, mute, prefer, uplink, comment, react, vote, follow
    }

    case ping
    /// Shows a participant in a video slot; nil for the active speaker.
    case pin(ParticipantID?, mid: String, maximumHeight: Int?)
    /// Limits a slot's picture to a height in pixels; nil for no limit.
    case slot(mid: String, maximumHeight: Int?)
    /// Reports whether the client shows a slot's picture at the moment.
    case visible(Bool, mid: String)
    /// Asks another participant to mute.
    case mute(ParticipantID, MediaKind)
    /// Changes which pictures the client prefers over the server's choice, or turns pictures off.
    case prefer(DeliveryPatch)
    /// The client's network path carries less than the client would send.
    case weakUplink
    /// A comment, a reaction or a vote, sent as a member of the stream's audience.
    case interact(Interaction.Command)
    /// Subscribes to news of the audience.
    case follow

    /// All members that any request may have; each kind checks for those it needs.
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

    /// - Returns: nil if the message is not JSON, has an unknown type, or lacks a member that its type needs.
    package init?(parsing message: DataChannelMessage) {
        guard let form = try? JSONDecoder().decode(Form.self, from: Data(message.bytes)) else { return nil }
        // `mute` is recognized by another member than `type`, and its kind defaults to audio.
        if form.messageType == Kind.mute.rawValue {
            guard let target = form.target.flatMap({ ParticipantID($0) }),
                let kind = MediaKind(rawValue: form.kind ?? MediaKind.audio.rawValue)
            else { return nil }
            self = .mute(target, kind)
            return
        }
        switch (form.type.flatMap { Kind(rawValue: $0) }, form.mid) {
        case (.ping, _): self = .ping
        case (.uplink, _):
            // Other limits, such as the client's processor, do not make the uplink weak.
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
            let participant = form.participant.flatMap { ParticipantID($0) }
            // What names nobody must not undo the present pin.
            guard participant != nil || form.participant == nil else { return nil }
            self = .pin(participant, mid: mid, maximumHeight: form.maxHeight)
        case (.slot, let mid?): self = .slot(mid: mid, maximumHeight: form.maxHeight)
        case (.visible, let mid?): self = .visible(form.visible ?? true, mid: mid)
        case (.pin, nil), (.slot, nil), (.visible, nil), (.mute, _), (nil, _): return nil
        }
    }
}

extension StageRoom {
    /// Applies a request about the slots of a session; requests that do not concern slots have no effect here.
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
    /// - Returns: nil if the message is not a JSON object, or a member has an invalid value.
    init?(parsing message: DataChannelMessage) {
        guard case .object(let members)? = JSON(parsing: message.bytes),
            let patch = try? DeliveryPatch(members)
        else { return nil }
        self = patch
    }
}

/// A message to a client on its control channel, in JSON; absent values are left out.
struct ControlReply: Encodable {
    /// As the message's `type`; `mute` stands in `message_type`.
    enum Kind: String, CaseIterable, Encodable {
        /// Sent only on the control channel.
        case pong, slots, gate, wanted, quality, mute, error
        /// The same as on a sync socket; see `SyncNotice`.
        case commented, voted, refused, interaction
        case interactionSnapshot = "interaction-snapshot"
    }

    /// What one of the client's slots carries; the optional members are nil for an empty slot.
    struct Slot: Encodable {
        var mid: String
        var kind: MediaKind
        var stream: String?
        var participant: String?
        var name: String?
        var muted: Bool
        var screen: Bool
        /// For a composition, instead of `participant`: everyone in it, in the order in which they came.
        var participants: [String]?
    }

    var type: Kind?
    var messageType: Kind?
    var target: String?
    /// With `mute`.
    var kind: MediaKind?
    /// With `mute`: the participant who asks for it.
    var by: String?
    var slots: [Slot]?
    /// With `wanted`: the m-line, and in `rids` the simulcast layers of it that are in use.
    ///
    /// The client may stop sending its other layers until they are wanted again.
    var mid: String?
    var rids: [String]?
    /// With `error`: a name for programs to compare, and in `detail` a sentence for people.
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

    /// Why a request was not carried out; reasons that are not the stage's own rules are reported as `unavailable`.
    static func refusal(_ refusal: StageRefusal) -> ControlReply {
        guard case .rejected(let rejection) = refusal else {
            return .error("unavailable", "This can't be done now.")
        }
        return .error(rejection.name, rejection.explanation)
    }

    var bytes: [UInt8] {
        let encoder = JSONEncoder()
        // Sorted, so that the same message always has the same bytes.
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(self) else {
            assertionFailure("strings, numbers and Booleans can be encoded")
            return Array("{}".utf8)
        }
        return Array(data)
    }
}
