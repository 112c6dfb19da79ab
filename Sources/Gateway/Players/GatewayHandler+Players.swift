import Base
import Foundation
import HTTP
import Node

/// What players by WHEP expect beside the session: events, and a choice of layers.
///
/// The addresses are their own right, without a token even where viewers need one: a browser's `EventSource` sends no
/// `Authorization`, and some players send none with the choice, either. They hold the session's id, of 128 random
/// bits, which nobody knows but its client and those who may end it anyway, and open nothing but this one session's
/// numbers and its picture's size.
/// - Source: draft-ietf-wish-whep-00, the extensions for server-sent events and for the selection of video layers;
///   HTML, section 9.2 (server-sent events).
extension GatewayHandler {
    /// The `Link` fields of a player's session.
    /// - Parameter path: of the session.
    static func playerLinks(at path: String) -> [String] {
        let extensions = "urn:ietf:params:whep:ext:core"
        return [
            "<\(path)/events>; rel=\"\(extensions):server-sent-events\"; events=\"\(PlayerEvent.all)\"",
            "<\(path)/layer>; rel=\"\(extensions):layer\"",
        ]
    }

    /// `POST` of a session's `events`: which kinds somebody wants, and where they are to be had.
    ///
    /// Nothing is kept: the address says what was chosen.
    func chooseEvents(_ call: Call) async throws -> HTTPResponse {
        let (path, _) = try await playerSession(call)
        let kinds = try Self.eventKinds(in: call.request)
        let names = PlayerEvent.allCases.filter(kinds.contains).map(\.rawValue)
        return HTTPResponse(
            status: 201,
            headers: [
                "Location": "\(path)/events?kinds=\(names.joined(separator: ","))",
                "Cache-Control": "no-store",
            ])
    }

    /// `GET` of a session's `events`: the stream of them; of all kinds unless the query names some.
    ///
    /// `Last-Event-ID` does not matter, and no event has one: the first ones tell how everything is, and so all that
    /// somebody missed.
    func streamEvents(_ call: Call) async throws -> HTTPResponse {
        let (_, id) = try await playerSession(call)
        let names = call.request.query("kinds")?.split(separator: ",").map(String.init)
        guard let kinds = names.map({ PlayerEvent.kinds(named: $0) }) ?? Set(PlayerEvent.allCases) else {
            throw Problem(400, "malformed-query", "kinds has none of \(PlayerEvent.all).")
        }
        var response = HTTPResponse(
            status: 200,
            headers: [
                "Content-Type": "text/event-stream", "Cache-Control": "no-store",
                // nginx and others would keep events until there are enough of them.
                "X-Accel-Buffering": "no",
            ])
        guard call.request.method != .head else { return response }
        response.stream = eventStreams.open(of: id) { [self] in await tell(PlayerNews(kinds), of: id, to: $0)
        }
        guard response.stream != nil else {
            throw Problem(
                503, "overloaded", "The server has no room for another stream of events.",
                headers: ["Retry-After": "10"])
        }
        return response
    }

    /// Tells a player what changes, until its session ends or nobody listens any more.
    ///
    /// By looking at intervals: so no kind comes more often than that, and who reads slowly is told how it is and not
    /// how it was.
    private func tell(_ news: PlayerNews, of id: SessionID, to stream: HTTPStream) async {
        var news = news
        // Since something was sent.
        var silence = Duration.zero
        let hasMedia = news.kinds.contains(.layers)
        while !Task.isCancelled, let view = await service.playerView(of: id, withMedia: hasMedia) {
            var text = news.text(of: view)
            if text.isEmpty, silence >= settings.playerEvents.silence { text = PlayerNews.comment }
            if !text.isEmpty {
                switch stream.send(text.utf8) {
                case .queued:
                    news.note(view)
                    silence = .zero
                case .full: break
                case .closed: return
                }
            }
            try? await Task.sleep(for: settings.playerEvents.interval)
            silence += settings.playerEvents.interval
        }
    }

    /// `POST` of a session's `layer`: the encoding that its viewer chooses; none for what the server finds best.
    func chooseLayer(_ call: Call) async throws -> HTTPResponse {
        let (_, id) = try await playerSession(call)
        let body = try call.body(isOptional: true)
        for name in ["spatialLayerId", "temporalLayerId"] {
            guard let layer = try Self.layer(name, in: body), layer != 0 else { continue }
            throw Problem(
                422, "unknown-layer", "\(name) is 0 or missing: each encoding has one layer to choose.")
        }
        // Bounds that one layer cannot exceed.
        for name in ["maxSpatialLayerId", "maxTemporalLayerId"] { _ = try Self.layer(name, in: body) }
        let choice = EncodingChoice(
            mid: try body.string("mediaId"), encoding: try body.string("encodingId"))
        try await service.choose(choice, in: id)
        return HTTPResponse(status: 200, headers: ["Cache-Control": "no-store"])
    }

    /// `DELETE` of a session's `layer`: the server chooses again.
    func unchooseLayer(_ call: Call) async throws -> HTTPResponse {
        let (_, id) = try await playerSession(call)
        try await service.choose(EncodingChoice(), in: id)
        return HTTPResponse(status: 200, headers: ["Cache-Control": "no-store"])
    }

    // MARK: What is asked for

    /// The session that a path names, and where it is.
    private func playerSession(_ call: Call) async throws -> (path: String, id: SessionID) {
        let (stream, id) = try Self.named(call)
        let found = await service.session(id)
        guard found?.stream == stream, found?.purpose == .play else { throw SessionRefusal.unknownSession }
        return ("\(ResourcePaths.sessions(.play, of: stream))/\(id)", id)
    }

    /// Swift 6.3.1's optimizer crashes where these errors are thrown in a function that waits.
    @inline(never)
    private static func named(_ call: Call) throws -> (stream: StreamID, SessionID) {
        let stream = try call.stream
        guard let id = call.parameters["session"].flatMap({ SessionID($0) }) else {
            throw SessionRefusal.unknownSession
        }
        return (stream, id)
    }

    /// A list of names, as JSON; no body means all.
    private static func eventKinds(in request: HTTPRequest) throws(Problem) -> Set<PlayerEvent> {
        guard !request.body.isEmpty else { return Set(PlayerEvent.allCases) }
        guard MediaType.isContent(of: request, MediaType.json) else {
            throw Problem(415, nil, "The request's Content-Type must be \(MediaType.json).")
        }
        guard let names = try? JSONDecoder().decode([String].self, from: Data(request.body)) else {
            throw Problem(400, nil, "The body must be a JSON array of names of events.")
        }
        guard let kinds = PlayerEvent.kinds(named: names) else {
            throw Problem(422, nil, "The body names none of \(PlayerEvent.all).")
        }
        return kinds
    }

    private static func layer(_ name: String, in body: JSONBody) throws(Problem) -> Int? {
        guard let layer = try body.integer(name) else { return nil }
        guard layer >= 0 else { throw JSONBody.invalid(name) }
        return layer
    }
}
