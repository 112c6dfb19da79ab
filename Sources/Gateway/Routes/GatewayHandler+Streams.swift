import Base
import Foundation
import HTTP
import Node
import Stage
import Store

/// Streams: creation, lists, settings, and their state from backstage to ended.
extension GatewayHandler {
    /// `GET /v1/streams`: a page of the streams that the client may watch.
    func listStreams(_ call: Call) async throws -> HTTPResponse {
        let token = try call.access.token()
        guard token != nil || settings.viewers == .everyone else {
            throw Access.unauthorized("Listing streams requires a token.")
        }
        // Where viewers are public, everything in a snapshot may be seen by everyone who is not banned.
        let query = try StreamListQuery(call.request)
        let isPublic = settings.viewers == .everyone
        let page = await service.streamPage(
            after: query.cursor, limit: query.limit, isOnlyLive: query.isOnlyLive
        ) { stream in
            // In this order, because a token for one stream makes nearly all searches unnecessary.
            (isPublic || token?.mayPlay(stream.id) == true) && query.matches(stream)
        }
        // The cursor is the last stream's place in the order, not an offset, so new streams do not shift later pages.
        let next = page.isMore ? page.streams.last.map { StreamListQuery.cursor(after: $0) } : nil
        return Self.fresh(
            .object([
                "streams": .array(page.streams.map { $0.json(for: token?.sender(in: $0.id)) }),
                "next": .text(next),
            ]))
    }

    /// `GET /v1/streams/{stream}`; without the preview for someone who is banned, who gets no picture of it.
    func showStream(_ call: Call) async throws -> HTTPResponse {
        let stream = try call.stream
        let sender = try call.access.requireViewer(of: stream)?.sender(in: stream)
        guard let snapshot = await service.streamSnapshot(stream) else {
            throw StageRefusal.unknownStream
        }
        return Self.fresh(snapshot.json(for: sender))
    }

    /// `POST /v1/streams`: creates a stream backstage; with `Idempotency-Key` a repetition creates no second one.
    func createStream(_ call: Call) async throws -> HTTPResponse {
        guard let token = try call.access.token() else {
            throw Access.unauthorized("Creating a stream requires a token.")
        }
        guard token.role == .host || token.role == .admin else {
            throw Access.forbidden("Creating a stream requires a host's or an admin's token.")
        }
        let body = try call.body(isOptional: true)
        let id = try Self.name(of: body, for: token)
        // An admin's program may create a stream for another host.
        var (host, name) = (token.subject, token.name)
        if let other = try body.participant("host"), other != host {
            guard token.role == .admin else { throw Access.forbidden("Only admins can set another host.") }
            (host, name) = (other, nil)
        }
        if let text = try body.string("hostName") {
            guard ParticipantID(text) != nil else { throw JSONBody.invalid("hostName") }
            name = text
        }
        // The key is scoped to the sender, because two clients may choose the same one.
        var idempotency: (key: IdempotencyKey, request: [UInt8])?
        if let key = call.request.headers["idempotency-key"] {
            guard (1...255).contains(key.utf8.count) else { throw JSONBody.invalid("Idempotency-Key") }
            idempotency = (IdempotencyKey(scope: "streams/\(token.subject)", key: key), call.request.body)
        }
        let creation = Node.StreamCreation(
            id: id, host: host, hostName: name, edit: try body.edit(), idempotency: idempotency)
        let snapshot = try await service.createStream(creation)
        var response = Self.fresh(snapshot.json, status: 201)
        response.headers.set("Location", ResourcePaths.stream(snapshot.id))
        return response
    }

    /// The new stream's name: the body's, else the token's; nil to generate one.
    private static func name(of body: JSONBody, for token: Token) throws(Problem) -> StreamID? {
        guard let text = try body.string("id") else {
            if case .one(let stream) = token.scope { return stream }
            return nil
        }
        guard let stream = StreamID(text) else { throw JSONBody.invalid("id") }
        guard token.mayPlay(stream) else { throw Access.otherStream }
        return stream
    }

    /// `PATCH /v1/streams/{stream}`: a merge patch of the host's settings.
    func editStream(_ call: Call) async throws -> HTTPResponse {
        let edit = try call.participantBody().edit()
        return try await change(call, .edit(edit))
    }

    /// `GET /v1/streams/{stream}/placement`: the stream's place in lists and the feed, for admins.
    func showPlacement(_ call: Call) async throws -> HTTPResponse {
        let (stream, _, sender) = try call.sender()
        guard sender.authority == .admin else { throw StageRefusal.rejected(.notOperator) }
        guard let snapshot = await service.streamSnapshot(stream) else {
            throw StageRefusal.unknownStream
        }
        return Self.fresh(snapshot.placement.json)
    }

    /// `PATCH /v1/streams/{stream}/placement`: a merge patch of the operator's wishes for its place in lists.
    func placeStream(_ call: Call) async throws -> HTTPResponse {
        let edit = try call.participantBody().placementEdit()
        let (answer, _) = try await perform(call) { _ in .place(edit) }
        return Self.fresh(answer.stream.placement.json)
    }

    /// Performs a command in the stream of the path and returns the stream.
    func change(_ call: Call, _ command: Stage.Command) async throws -> HTTPResponse {
        let (answer, _) = try await perform(call) { _ in command }
        return Self.fresh(answer.stream.json)
    }

    /// A JSON response that caches must not store, for state that changes (RFC 9111 §5.2.2.5).
    static func fresh(_ json: JSON, status: Int = 200) -> HTTPResponse {
        var response = HTTPResponse.json(status, json)
        response.headers.set("Cache-Control", "no-store")
        return response
    }
}

extension StagePlacement {
    fileprivate var json: JSON {
        .object(["pinned": pinned.map { .integer($0) } ?? .null, "boost": .integer(boost)])
    }
}

/// Filters and paging of `GET /v1/streams`, parsed from the query.
struct StreamListQuery {
    /// States to list; empty for all.
    private let states: Set<StreamState>
    /// Identity of the host; nil for any.
    private let host: String?
    /// Text to find in names and titles; nil for none.
    private let search: SearchText?
    /// Earliest start, inclusive.
    private let after: WallTime?
    /// Latest start, exclusive.
    private let before: WallTime?
    /// Place of the last stream of the previous page; nil for the first page.
    let cursor: StreamSnapshot.ListOrder?
    /// Streams per page.
    let limit: Int

    /// Limit of `limit`.
    static let longestPage = 1_000
    private static let usualPage = 100

    /// Whether only live streams are wanted: they come first, so the directory stops at the first other one.
    var isOnlyLive: Bool { states == [.live] }

    /// - Throws: a 422 about the first parameter that is malformed.
    init(_ request: HTTPRequest) throws(Problem) {
        let names = request.query("state")?.split(separator: ",") ?? []
        var states = Set<StreamState>()
        for name in names {
            guard let state = StreamState(rawValue: String(name)) else { throw JSONBody.invalid("state") }
            states.insert(state)
        }
        self.states = states
        host = request.query("host")
        search = request.query("search").flatMap { SearchText($0) }
        after = try Self.time(request, "after")
        before = try Self.time(request, "before")
        if let text = request.query("limit") {
            guard let number = Int(text), (1...Self.longestPage).contains(number) else {
                throw JSONBody.invalid("limit")
            }
            limit = number
        } else {
            limit = Self.usualPage
        }
        if let text = request.query("cursor") {
            guard let order = Self.order(text) else { throw JSONBody.invalid("cursor") }
            cursor = order
        } else {
            cursor = nil
        }
    }

    /// The time in a parameter; nil if it is missing.
    private static func time(_ request: HTTPRequest, _ name: String) throws(Problem) -> WallTime? {
        guard let text = request.query(name) else { return nil }
        guard let time = WallTime(text) else { throw JSONBody.invalid(name) }
        return time
    }

    /// Whether a stream passes all filters.
    func matches(_ stream: StreamSnapshot) -> Bool {
        if let host, stream.host?.description != host { return false }
        if let after, stream.effectiveStart < after { return false }
        if let before, stream.effectiveStart >= before { return false }
        guard states.isEmpty || states.contains(stream.state) else { return false }
        guard let search else { return true }
        let texts = [stream.id.description, stream.details.title, stream.host?.description, stream.hostName]
        return texts.contains { text in text.map { search.isFound(in: $0) } == true }
    }

    /// The text form of a stream's place in the list, which remains valid after the stream is gone.
    static func cursor(after stream: StreamSnapshot) -> String {
        let order = stream.listOrder
        return "\(order.rank).\(order.start).\(order.id)"
    }

    /// Parses a cursor; nil if this server did not issue it.
    private static func order(_ text: String) -> StreamSnapshot.ListOrder? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let rank = Int(parts[0]), let start = Int64(parts[1]),
            let id = StreamID(parts[2])
        else { return nil }
        return StreamSnapshot.ListOrder(rank: rank, start: start, id: id)
    }
}

/// Text to find in other texts, whatever the case.
struct SearchText {
    /// In lower case.
    private let text: String
    private let isASCII: Bool

    /// - Returns: nil for an empty text, which would be found everywhere.
    init?(_ text: String) {
        guard !text.isEmpty else { return nil }
        self.text = text.lowercased()
        isASCII = Self.isASCII(self.text)
    }

    /// Whether another text contains this one.
    ///
    /// Texts in ASCII, as most are, are compared byte by byte: anyone may search in thousands of streams, and to
    /// change the case of each text and to compare its characters would cost much more than the list itself.
    func isFound(in other: String) -> Bool {
        guard Self.isASCII(other) else { return other.lowercased().contains(text) }
        guard isASCII else { return false }
        let bytes = other.utf8
        return bytes.indices.contains { start in
            bytes[start...].starts(with: text.utf8) { Self.lowercase($0) == $1 }
        }
    }

    private static func isASCII(_ text: String) -> Bool { text.utf8.allSatisfy { $0 < 0x80 } }

    private static func lowercase(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }
}

extension WallTime {
    /// Parses ISO 8601 with a time zone, with or without fractions of seconds; nil for any other text.
    init?(_ text: String) {
        guard text.utf8.count <= 40 else { return nil }
        let plain = Date.ISO8601FormatStyle()
        let fractional = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
        guard let date = (try? fractional.parse(text)) ?? (try? plain.parse(text)) else { return nil }
        let milliseconds = (date.timeIntervalSince1970 * 1_000).rounded()
        // Some 30,000 years: keeps sums of times within an integer.
        guard abs(milliseconds) < 1e15 else { return nil }
        self.init(milliseconds: Int64(milliseconds))
    }
}

/// Formats times for JSON.
enum Timestamp {
    /// `2026-11-21T03:40:07.375Z`.
    /// - Parameter seconds: since 1970.
    static func text(_ seconds: Double) -> String {
        WallTime(milliseconds: Int64((seconds * 1_000).rounded())).text
    }
}
