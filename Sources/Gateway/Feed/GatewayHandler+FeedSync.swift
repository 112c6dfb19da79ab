import Base
import Foundation
import HTTP
import Node
import StoryFeed

/// Following the feed's list by WebSocket.
extension GatewayHandler {
    /// `GET /v1/feed/sync`: a WebSocket that gets a snapshot of the list's beginning and then changes.
    func followFeed(_ call: Call) throws(Problem) -> @Sendable (WebSocketConnection) async -> Void {
        let reader = try call.access.requireFeedReader()
        let expiry = try call.access.token()?.expiry
        let limit = try FeedLimit.read(call.request)
        return { [service] connection in
            let following = await service.followFeed(
                reader, limit: limit, until: expiry, SyncSocket(connection: connection))
            for await message in connection.incoming {
                // Heartbeats and unknown messages only show that the client is alive.
                guard let streams = FeedNews(message)?.streams else { continue }
                await following.watch(streams)
            }
            await following.stop()
        }
    }
}

/// A follower's message with the streams that it shows: `{"type":"watch","streams":["s1","s2"]}`.
struct FeedNews {
    /// Value of the member `type`.
    static let kind = "watch"

    /// Valid names only; empty to watch none.
    let streams: [StreamID]

    private struct Form: Decodable {
        let type: String
        let streams: [String]?
    }

    /// Limit of the message in bytes, which is the HTTP server's: some 200 of the longest names fit.
    static let longest = 16 * 1_024

    /// Parses a message; nil for any other, while invalid names in it are skipped.
    init?(_ message: WebSocketMessage) {
        guard case .text(let text) = message, text.utf8.count <= Self.longest,
            let form = try? JSONDecoder().decode(Form.self, from: Data(text.utf8)), form.type == Self.kind
        else { return nil }
        streams = (form.streams ?? []).compactMap { StreamID($0) }
    }
}
