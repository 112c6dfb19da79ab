import Base
import HTTP
import Node
import Stage
import StoryFeed

/// The feed over HTTP: list, sessions and swipes.
extension GatewayHandler {
    /// `GET /v1/feed`: a page of the live streams, in the feed's order.
    func listFeed(_ call: Call) async throws -> HTTPResponse {
        let reader = try call.access.requireFeedReader()
        let limit = try FeedLimit.read(call.request)
        var cursor: FeedCursor?
        if let text = call.request.query("cursor") {
            guard let read = FeedCursor(text) else { throw CursorRefusal.unknown }
            cursor = read
        }
        let page = try await service.feedPage(limit: limit, after: cursor, for: reader)
        // The tag covers content and cursor, so that a client that polls gets a 304 while nothing changes.
        let tag = EntityTag(value: "\(String(page.fingerprint, radix: 36))-\(page.next)")
        return HTTPResponse(
            to: call.request, tag: tag, headers: ["Cache-Control": "private, no-cache"], type: MediaType.json,
            body: JSON.object([
                "items": .array(page.entries.map { $0.item.json(position: $0.position) }),
                "next": .string(page.next.description),
                "last": .bool(page.isLast),
            ]).bytes)
    }

    /// The query of `POST /v1/feed/sessions`: the first stream in focus, and what to preload.
    func feedWish(_ call: Call) throws(Problem) -> FeedWish {
        let reader = try call.access.requireFeedReader()
        var preload = FeedPreload.eager
        if let text = call.request.query("preload") {
            guard let value = FeedPreload(rawValue: text) else { throw JSONBody.invalid("preload") }
            preload = value
        }
        var stream: StreamID?
        if let text = call.request.query("stream") {
            guard let name = StreamID(text) else { throw JSONBody.invalid("stream") }
            stream = name
        }
        return FeedWish(reader: reader, stream: stream, preload: preload)
    }

    /// `POST {session}/peek`, `/focus` and `/release`: the messages of the control channel, for clients without one.
    func swipe(_ call: Call, _ kind: FeedMessage.Kind) async throws -> HTTPResponse {
        // An expired token will do, as for every change of an existing session.
        let id = try await session(call, .feed)
        let body = try call.body(isOptional: kind == .release)
        let (stream, direction) = (try body.string("stream"), try body.string("direction"))
        guard
            let message = FeedMessage(
                kind, stream: stream, direction: direction, ahead: try body.string("ahead"))
        else { throw JSONBody.invalid(Self.faulty(stream, direction)) }
        let number = try body.integer("request")
        // The number is sent back in `slots` and has 32 bits there.
        let request = number.flatMap { UInt32(exactly: $0) }
        guard request != nil || number == nil else { throw JSONBody.invalid("request") }
        return Self.fresh(try await service.perform(message, request: request, in: id))
    }

    /// The member because of which a message is invalid.
    private static func faulty(_ stream: String?, _ direction: String?) -> String {
        if stream.flatMap({ StreamID($0) }) == nil { return "stream" }
        if let direction, FeedDirection(rawValue: direction) == nil { return "direction" }
        return "ahead"
    }
}

/// The query parameter `limit` of the feed.
enum FeedLimit {
    /// Items per page by default.
    static let usual = 20

    /// The limit in a request, or the default.
    static func read(_ request: HTTPRequest) throws(Problem) -> Int {
        guard let text = request.query("limit") else { return usual }
        guard let number = Int(text), (1...StoryFeed.pageLimit).contains(number) else {
            throw JSONBody.invalid("limit")
        }
        return number
    }
}

extension Access {
    /// What the sender may see of the feed, and as whom.
    ///
    /// Where viewers are public the whole feed is visible, but a token still counts only in its own streams
    /// (`standing`).
    func requireFeedReader(acceptsExpired: Bool = false) throws(Problem) -> FeedReader {
        let isPublic = settings.viewers == .everyone
        guard let token = try token(acceptsExpired: acceptsExpired) else {
            guard isPublic else { throw Self.unauthorized("Watching requires a token.") }
            return FeedReader(scope: .all, sender: nil, standing: .all)
        }
        let standing: FeedReader.Scope =
            switch token.scope {
            // An admin's token is valid everywhere, even if it names a stream.
            case .one(let stream) where token.role != .admin: .one(stream)
            case .all, .one: .all
            }
        return FeedReader(scope: isPublic ? .all : standing, sender: token.sender, standing: standing)
    }
}
