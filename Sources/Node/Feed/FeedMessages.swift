import Base
import Foundation
import Stage
import StoryFeed
import Wire

/// A message from a feed viewer's client on its control channel, parsed from JSON.
package enum FeedControl: Equatable {
    /// The values of the message's `type` besides those of `FeedMessage.Kind`.
    enum Kind: String, CaseIterable {
        case ping, prefer
    }

    case ping
    /// `request` is the client's number for the message; nil if it has none.
    case message(FeedMessage, request: UInt32?)
    /// Changes which pictures the client prefers over the server's choice, or turns pictures off.
    case prefer(DeliveryPatch)

    private struct Form: Decodable {
        var type: String
        var stream: String?
        var direction: String?
        var ahead: String?
        var request: UInt32?
    }

    /// - Returns: nil if the message is not JSON, has an unknown type, or lacks a member that its type needs.
    package init?(parsing message: DataChannelMessage) {
        guard let form = try? JSONDecoder().decode(Form.self, from: Data(message.bytes)) else { return nil }
        switch Kind(rawValue: form.type) {
        case .ping:
            self = .ping
            return
        case .prefer:
            guard let patch = DeliveryPatch(parsing: message) else { return nil }
            self = .prefer(patch)
            return
        case nil: break
        }
        guard let kind = FeedMessage.Kind(rawValue: form.type),
            let message = FeedMessage(
                kind, stream: form.stream, direction: form.direction, ahead: form.ahead)
        else { return nil }
        self = .message(message, request: form.request)
    }
}

extension FeedMessage {
    /// - Parameters:
    ///   - stream: required for `peek` and `focus`; without it, `release` applies to the neighbour.
    ///   - direction: with `peek` only.
    ///   - ahead: with `focus` only: the stream that the client will show next in the same direction.
    /// - Returns: nil if a required member is missing, or a member has an invalid value.
    package init?(_ kind: Kind, stream: String?, direction: String? = nil, ahead: String? = nil) {
        let name = stream.flatMap { StreamID($0) }
        guard name != nil || stream == nil else { return nil }
        switch (kind, name) {
        case (.peek, let name?):
            let way = direction.flatMap { FeedDirection(rawValue: $0) }
            guard way != nil || direction == nil else { return nil }
            self = .peek(name, direction: way)
        case (.focus, let name?):
            let next = ahead.flatMap { StreamID($0) }
            guard next != nil || ahead == nil else { return nil }
            self = .focus(name, ahead: next)
        case (.release, _): self = .release(name)
        case (.peek, nil), (.focus, nil): return nil
        }
    }
}

extension FeedNotice {
    /// The values of the message's `type`.
    enum Kind: String, CaseIterable {
        case slots, begun, moved, empty, refused, replaced
    }

    /// The message on the control channel.
    func json(_ place: FeedPlace) -> JSON {
        let (kind, members) = parts(place)
        return .object(members.merging(["type": .string(kind.rawValue)]) { $1 })
    }

    /// The body of an HTTP answer, without a `type`, because the request implies it.
    func answer(_ place: FeedPlace) -> JSON { .object(parts(place).members) }

    private func parts(_ place: FeedPlace) -> (kind: Kind, members: [String: JSON]) {
        switch self {
        case .slots(let states, let request):
            (.slots, FeedNotice.echo(request).merging(["slots": FeedNotice.json(states, place)]) { $1 })
        case .begun(let slot, let stream, let timestamp):
            (
                .begun,
                [
                    "slot": .integer(slot.rawValue), "stream": .string(stream.description),
                    "timestamp": .integer(timestamp),
                ]
            )
        case .moved(let from, let to, let reason):
            (
                .moved,
                [
                    "from": .string(from.description), "to": .string(to.description),
                    "reason": .string(reason.rawValue),
                ]
            )
        case .empty: (.empty, [:])
        case .refused(let kind, let stream, let reason, let request):
            (
                .refused,
                FeedNotice.echo(request).merging([
                    "message": .string(kind.rawValue), "stream": .text(stream?.description),
                    "reason": .string(reason.rawValue),
                ]) { $1 }
            )
        case .replaced: (.replaced, [:])
        }
    }

    /// The request's number as a member; no member if the client gave none.
    private static func echo(_ request: UInt32?) -> [String: JSON] {
        request.map { ["request": JSON.integer($0)] } ?? [:]
    }

    /// All m-lines of a session, each with what it carries.
    ///
    /// A preview has no audio, so an audio m-line names its stream only at full quality.
    static func json(_ states: [SlotState], _ place: FeedPlace) -> JSON {
        var lines: [JSON] = []
        for slot in FeedSlot.allCases where place.mids.indices.contains(slot.rawValue) {
            let state = states.first { $0.slot == slot }
            let mids = place.mids[slot.rawValue]
            for (mid, kind) in [(mids.audio, "audio"), (mids.video, "video")] {
                var line: [String: JSON] = [
                    "mid": .string(mid), "kind": .string(kind), "slot": .integer(slot.rawValue),
                ]
                if let state, kind == "video" || state.quality == .full {
                    line["stream"] = .string(state.stream.description)
                    line["quality"] = .string(state.quality.rawValue)
                }
                lines.append(.object(line))
            }
        }
        return .array(lines)
    }
}

extension FeedItem {
    /// The entry in pages, snapshots and changes of the list.
    /// - Parameter position: nil where the order is given in another way.
    package func json(position: Int?) -> JSON {
        var members: [String: JSON] = [
            "id": .string(id.description),
            "state": .string(StreamState.live.rawValue),
            "paused": .bool(isPaused),
            "title": .text(title),
            "host": .text(host?.description),
            "hostName": .text(hostName),
            "startedAt": .time(startedAt),
            "viewers": .integer(viewers),
            "gate": gate,
            "hls": .string((allowsHLS ? StageDetails.HLS.on : .off).rawValue),
            "preview": preview?.json ?? .null,
        ]
        if let position { members["position"] = .integer(position) }
        return .object(members)
    }
}

extension FeedPreview {
    /// The picture's address, size and time, and the BlurHash to show until it is loaded.
    package var json: JSON {
        .object([
            "url": .text(url), "width": .integer(width), "height": .integer(height),
            "capturedAt": .time(takenAt),
            "blurHash": .string(blurHash),
        ])
    }
}
