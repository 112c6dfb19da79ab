import Base
import HTTP
import Node
import Stage
import StoryFeed

/// The story feed over HTTP.
extension GatewayHandler {
    /// `GET /v1/feed`: the live streams in order, a page at a time.
    func listFeed(_ call: Call) async throws -> HTTPResponse {
        let reader = try call.access.requireFeedReader()
        let limit = try FeedLimit.read(call.request)
        var cursor: FeedCursor?
        if let text = call.request.query("cursor") {
            guard let read = FeedCursor(text) else { throw CursorRefusal.unknown }
            cursor = read
        }
        let page = try await service.feedPage(limit: limit, after: cursor, for: reader)
        let tag = EntityTag(value: "\(String(page.fingerprint, radix: 36))-\(page.next)")
        return HTTPResponse(
            to: call.request, tag: tag, headers: ["Cache-Control": "private, no-cache"], type: MediaType.json,
            body: JSON.object([
                "items": .array(page.entries.map { $0.item.json(position: $0.position) }),
                "next": .string(page.next.description),
                "last": .bool(page.isLast),
            ]).bytes)
    }

    /// What an offer at `POST /v1/feed/sessions` is for.
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

    /// `POST {session}/peek`, `/focus` and `/release`: what clients say on the control channel.
    func swipe(_ call: Call, _ kind: FeedMessage.Kind) async throws -> HTTPResponse {
        let id = try await session(call, .feed)
        let body = try call.body(isOptional: kind == .release)
        let (stream, direction) = (try body.string("stream"), try body.string("direction"))
        guard
            let message = FeedMessage(
                kind, stream: stream, direction: direction, ahead: try body.string("ahead"))
        else { throw JSONBody.invalid(Self.faulty(stream, direction)) }
        let number = try body.integer("request")
        let request = number.flatMap { UInt32(exactly: $0) }
        guard request != nil || number == nil else { throw JSONBody.invalid("request") }
        return Self.fresh(try await service.perform(message, request: request, in: id))
    }

    /// The member that made a message mean nothing.
    private static func faulty(_ stream: String?, _ direction: String?) -> String {
        if stream.flatMap({ StreamID($0) }) == nil { return "stream" }
        if let direction, FeedDirection(rawValue: direction) == nil { return "direction" }
        return "ahead"
    }
}

/// How many items of the feed somebody wants at once.
enum FeedLimit {
    static let usual = 20

    static func read(_ request: HTTPRequest) throws(Problem) -> Int {
        guard let text = request.query("limit") else { return usual }
        guard let number = Int(text), (1...StoryFeed.pageLimit).contains(number) else {
            throw JSONBody.invalid("limit")
        }
        return number
    }
}

extension Access {
    /// - Returns: what somebody may see of the feed, and as whom.
    func requireFeedReader(acceptsExpired: Bool = false) throws(Problem) -> FeedReader {
        let isPublic = settings.viewers == .everyone
        guard let token = try token(acceptsExpired: acceptsExpired) else {
            guard isPublic else { throw Self.unauthorized("Watching requires a token.") }
            return FeedReader(scope: .all, sender: nil, standing: .all)
        }
        let standing: FeedReader.Scope =
            switch token.scope {
            case .one(let stream) where token.role != .admin: .one(stream)
            case .all, .one: .all
            }
        return FeedReader(scope: isPublic ? .all : standing, sender: token.sender, standing: standing)
    }
}
