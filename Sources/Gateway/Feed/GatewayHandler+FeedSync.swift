import Base
import Foundation
import HTTP
import Node
import StoryFeed

/// Who follows the feed's list.
extension GatewayHandler {
    /// `GET /v1/feed/sync`: first a snapshot, then changes, over a WebSocket.
    func followFeed(_ call: Call) throws(Problem) -> @Sendable (WebSocketConnection) async -> Void {
        let reader = try call.access.requireFeedReader()
        let expiry = try call.access.token()?.expiry
        let limit = try FeedLimit.read(call.request)
        return { [service] connection in
            let following = await service.followFeed(
                reader, limit: limit, until: expiry, SyncSocket(connection: connection))
            for await message in connection.incoming {
                // Heartbeats, and whatever else we do not know, only show that the client is there.
                guard let streams = FeedNews(message)?.streams else { continue }
                await following.watch(streams)
            }
            await following.stop()
        }
    }
}

/// What a follower says beyond that it is there: `{"type":"watch","streams":["s1","s2"]}`.
struct FeedNews {
    /// As the message's `type`.
    static let kind = "watch"

    let streams: [StreamID]

    private struct Form: Decodable {
        let type: String
        let streams: [String]?
    }

    /// In bytes: as many names as may be watched.
    private static let longest = 48 * 1_024

    /// - Returns: nil for what means nothing; names that are none are passed over.
    init?(_ message: WebSocketMessage) {
        guard case .text(let text) = message, text.utf8.count <= Self.longest,
            let form = try? JSONDecoder().decode(Form.self, from: Data(text.utf8)), form.type == Self.kind
        else { return nil }
        streams = (form.streams ?? []).compactMap { StreamID($0) }
    }
}
