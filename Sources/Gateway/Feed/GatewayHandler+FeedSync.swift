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
        return { [service, elapsed] connection in
            let following = await service.followFeed(
                reader, limit: limit, until: expiry, SyncSocket(connection: connection))
            var allowance = WatchAllowance(at: elapsed())
            for await message in connection.incoming {
                // Heartbeats and unknown messages only show that the client is alive.
                guard let news = FeedNews(message) else { continue }
                let streams = allowance.take(news.streams, at: elapsed())
                if !streams.isEmpty { await following.watch(streams) }
            }
            await following.stop()
        }
    }
}

/// A follower's message with the streams that it shows: `{"type":"watch","streams":["s1","s2"]}`.
package struct FeedNews {
    /// Value of the member `type`.
    static let kind = "watch"

    /// Valid names only; empty to watch none.
    package let streams: [StreamID]

    private struct Form: Decodable {
        let type: String
        let streams: [String]?
    }

    /// Limit of the message in bytes, which is the HTTP server's: some 200 of the longest names fit.
    static let longest = 16 * 1_024

    /// Parses a message; nil for any other, while invalid names in it are skipped.
    package init?(_ message: WebSocketMessage) {
        guard case .text(let text) = message, text.utf8.count <= Self.longest,
            let form = try? JSONDecoder().decode(Form.self, from: Data(text.utf8)), form.type == Self.kind
        else { return nil }
        streams = (form.streams ?? []).compactMap { StreamID($0) }
    }
}

/// Limits how many streams one connection may name.
///
/// Each costs the node's actor, which everything else waits for, a look at the list, and a message has room for
/// thousands of short names.
package struct WatchAllowance {
    /// Streams that may be named at once: twice as many as a follower is sent changes of.
    package static let burst = 1_000
    /// Streams that may be named a second on average, faster than anyone scrolls.
    static let perSecond = 100
    /// How long a name that was taken costs nothing, so that a client may name all that it shows again and again.
    static let memory = Duration.seconds(10)
    /// Names in each half of the memory.
    ///
    /// Both halves together have no more than a follower is sent changes of, so that the follower still watches what
    /// is remembered.
    private static let half = 250

    private var left = Double(burst)
    private var at: MonotonicTime
    /// The names that were taken last, and those before them.
    private var recent: (new: Set<StreamID>, old: Set<StreamID>) = ([], [])
    /// When `recent.new` was begun.
    private var begun: MonotonicTime

    /// A full allowance.
    package init(at now: MonotonicTime) {
        at = now
        begun = now
    }

    /// Takes the streams of a message that may be passed on: each once, those taken lately not again, and the first of
    /// too many.
    package mutating func take(_ streams: [StreamID], at now: MonotonicTime) -> [StreamID] {
        let seconds = Double(max(now.nanoseconds(since: at), 0)) / 1e9
        left = min(Double(Self.burst), left + seconds * Double(Self.perSecond))
        at = max(at, now)
        forget()
        var taken: [StreamID] = []
        var seen: Set<StreamID> = []
        for stream in streams where seen.insert(stream).inserted && !isRecent(stream) {
            guard left >= 1 else { break }
            left -= 1
            taken.append(stream)
            remember(stream)
        }
        return taken
    }

    private func isRecent(_ stream: StreamID) -> Bool {
        recent.new.contains(stream) || recent.old.contains(stream)
    }

    private mutating func remember(_ stream: StreamID) {
        if recent.new.count >= Self.half { renew() }
        recent.new.insert(stream)
    }

    /// Forgets the names that were taken too long ago.
    private mutating func forget() {
        guard at - begun >= Self.memory else { return }
        if at - begun >= Self.memory * 2 { recent.new = [] }
        renew()
    }

    private mutating func renew() {
        recent = ([], recent.new)
        begun = at
    }
}
