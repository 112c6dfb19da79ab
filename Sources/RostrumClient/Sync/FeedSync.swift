import Foundation
import Synchronization

/// Follows the feed: which streams are live, in the server's order.
public final class FeedSync: Sendable {
    /// Changes of state, for one reader; the latest 16 are buffered.
    public let states: AsyncStream<ConnectionState>
    /// The first streams of the feed after each change, for one reader; only the latest list is buffered.
    public let streams: AsyncStream<[StreamInfo]>

    private let task: Task<Void, Never>

    init(_ http: HTTPClient, tokens: TokenKeeper, transport: any SocketTransport) {
        let (states, stateContinuation) = AsyncStream<ConnectionState>.makeStream(
            bufferingPolicy: .bufferingNewest(16))
        let (streams, streamContinuation) = AsyncStream<[StreamInfo]>.makeStream(
            bufferingPolicy: .bufferingNewest(1))
        self.states = states
        self.streams = streams
        let loop = SocketLoop(transport, tokens: tokens)
        let follower = FeedFollower(
            http: http, tokens: tokens, states: stateContinuation, streams: streamContinuation)
        task = Task {
            await loop.run(follower)
            stateContinuation.finish()
            streamContinuation.finish()
        }
    }

    deinit {
        task.cancel()
    }

    /// Ends it, and waits until that is done.
    public func close() async {
        task.cancel()
        await task.value
    }
}

/// Handles the socket's messages.
private final class FeedFollower: SocketOwner {
    private let http: HTTPClient
    private let tokens: TokenKeeper
    private let states: AsyncStream<ConnectionState>.Continuation
    private let streams: AsyncStream<[StreamInfo]>.Continuation
    private let list = Mutex(FeedList())

    init(
        http: HTTPClient, tokens: TokenKeeper, states: AsyncStream<ConnectionState>.Continuation,
        streams: AsyncStream<[StreamInfo]>.Continuation
    ) {
        self.http = http
        self.tokens = tokens
        self.states = states
        self.streams = streams
    }

    func address() throws(RostrumError) -> URL { try http.url("/v1/feed/sync") }
    func become(_ state: ConnectionState) { states.yield(state) }

    func receive(_ message: Data) {
        let changed: [StreamInfo]? = list.withLock { list in
            guard let json = try? JSONValue(parsing: message), list.receive(json) else { return nil }
            return list.streams
        }
        if let changed { streams.yield(changed) }
    }

    func verdict(_ loss: SocketLoss) async -> DisconnectReason? {
        if let error = loss.error { return error.isTemporary ? nil : SessionRunner.reason(of: error) }
        if let reason = SyncVerdict.finalReason(loss) { return reason }
        return loss.code == SyncVerdict.expired ? await tokens.verdict(on: loss.token) : nil
    }
}

/// The feed's order, assembled from snapshots and changes.
struct FeedList: Equatable, Sendable {
    /// Streams that are kept; the rest of a longer feed is left out.
    static let limit = 1_000

    private var order: [String] = []
    private var items: [String: JSONValue] = [:]

    /// In the feed's order.
    var streams: [StreamInfo] { order.compactMap { items[$0].flatMap { StreamInfo($0) } } }

    /// Applies one message.
    /// - Returns: whether the list may have changed.
    mutating func receive(_ message: JSONValue) -> Bool {
        switch message["type"].string {
        case "snapshot":
            order = []
            items = [:]
            for item in message["items"].elements { insert(item, after: order.last) }
            return true
        case "change":
            for id in message["ended"].elements.compactMap(\.string) { remove(id) }
            for placed in message["added"].elements { insert(placed["item"], after: placed["after"].string) }
            for item in message["edited"].elements {
                if let id = item["id"].string { items[id]?.merge(item) }
            }
            for move in message["moved"].elements {
                guard let id = move["id"].string, let item = items[id] else { continue }
                remove(id)
                insert(item, after: move["after"].string)
            }
            for (id, count) in message["viewers"].members {
                items[id]?.merge(.object(["viewers": count]))
            }
            return true
        default: return false
        }
    }

    private mutating func remove(_ id: String) {
        order.removeAll { $0 == id }
        items[id] = nil
    }

    /// - Parameter after: the stream before it; nil to insert at the beginning, an unknown one to append.
    private mutating func insert(_ item: JSONValue, after: String?) {
        guard let id = item["id"].string else { return }
        remove(id)
        let place = after.map { order.firstIndex(of: $0).map { $0 + 1 } ?? order.count } ?? 0
        order.insert(id, at: place)
        items[id] = item
        if order.count > Self.limit { items[order.removeLast()] = nil }
    }
}
