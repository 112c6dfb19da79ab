import Foundation
import Synchronization

/// Follows the feed: which streams are live, in the server's order.
public final class FeedSync: Sendable {
    /// Changes of state, for one reader; the latest 16 are buffered.
    public let states: AsyncStream<ConnectionState>
    /// The first streams of the feed after each change, for one reader; only the latest list is buffered.
    public let streams: AsyncStream<[StreamInfo]>

    private let task: Task<Void, Never>

    /// - Parameter spread: within which the order is read anew, at random, once more moved than the server names.
    init(
        _ http: HTTPClient, tokens: TokenKeeper, transport: any SocketTransport,
        spread: Duration = .seconds(3)
    ) {
        let (states, stateContinuation) = AsyncStream<ConnectionState>.makeStream(
            bufferingPolicy: .bufferingNewest(16))
        let (streams, streamContinuation) = AsyncStream<[StreamInfo]>.makeStream(
            bufferingPolicy: .bufferingNewest(1))
        self.states = states
        self.streams = streams
        let loop = SocketLoop(transport, tokens: tokens)
        let follower = FeedFollower(
            http: http, tokens: tokens, spread: spread, states: stateContinuation,
            streams: streamContinuation)
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
    private let spread: Duration
    /// The reading of the order that is to come, or nil.
    ///
    /// Changes until it begins need no other.
    private let reading = Mutex<Task<Void, Never>?>(nil)

    /// Streams in a page of the feed; the server gives no more.
    private static let pageSize = 100

    init(
        http: HTTPClient, tokens: TokenKeeper, spread: Duration,
        states: AsyncStream<ConnectionState>.Continuation,
        streams: AsyncStream<[StreamInfo]>.Continuation
    ) {
        self.http = http
        self.tokens = tokens
        self.spread = spread
        self.states = states
        self.streams = streams
    }

    deinit {
        let task = reading.withLock { $0 }
        task?.cancel()
    }

    func address() throws(RostrumError) -> URL { try http.url("/v1/feed/sync") }
    func become(_ state: ConnectionState) { states.yield(state) }

    func receive(_ message: Data) {
        guard let json = try? JSONValue(parsing: message) else { return }
        let changed: [StreamInfo]? = list.withLock { $0.receive(json) ? $0.streams : nil }
        if let changed { streams.yield(changed) }
        if json["reordered"].bool == true { expectOrder() }
    }

    /// More moved at once than the server names: reads the order, once for all that is told until then.
    private func expectOrder() {
        reading.withLock { reading in
            guard reading == nil else { return }
            // At random, because all followers are told at the same moment.
            let pause = spread * Double.random(in: 0...1)
            reading = Task { [weak self] in
                guard (try? await Task.sleep(for: pause)) != nil else { return }
                await self?.arrange()
            }
        }
    }

    /// Reads the order, and applies it; a failure leaves the list as it is, until the next change.
    private func arrange() async {
        reading.withLock { $0 = nil }
        guard let ids = try? await order(of: list.withLock { $0.count }) else { return }
        let arranged = list.withLock { list in
            list.arrange(ids)
            return list.streams
        }
        streams.yield(arranged)
    }

    /// The names of the feed's first streams, in its present order.
    private func order(of count: Int) async throws(RostrumError) -> [String] {
        var ids: [String] = []
        var cursor: String?
        repeat {
            var query = [URLQueryItem(name: "limit", value: String(Self.pageSize))]
            if let cursor { query.append(URLQueryItem(name: "cursor", value: cursor)) }
            let token = try await tokens.current()
            let answer = try await http.send(.init(path: "/v1/feed", query: query, token: token))
            let page = try JSONValue(parsing: answer.body)
            let found = page["items"].elements.compactMap { $0["id"].string }
            ids += found
            cursor = found.isEmpty ? nil : page["next"].string
        } while cursor != nil && ids.count < count
        return ids
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

    var count: Int { order.count }

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

    /// Puts the streams into the order of `ids`; those that it does not name follow, as they stood.
    mutating func arrange(_ ids: [String]) {
        let places = Dictionary(ids.enumerated().map { ($0.element, $0.offset) }) { first, _ in first }
        let named = order.filter { places[$0] != nil }
        let others = order.filter { places[$0] == nil }
        order = named.sorted { places[$0, default: 0] < places[$1, default: 0] } + others
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
