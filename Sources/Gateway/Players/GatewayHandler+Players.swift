import Base
import Foundation
import HTTP
import Node

/// WHEP extensions for players: server-sent events, and the selection of video layers.
///
/// These routes require no token, even where viewers need one: a browser's `EventSource` sends no `Authorization`,
/// and some players send none with the selection either. The path contains the session's id of 128 random bits,
/// known only to its client and to those who may end the session anyway, and gives access to this session's numbers
/// and picture size alone.
/// - Source: draft-ietf-wish-whep-00, the extensions for server-sent events and for the selection of video layers;
///   HTML, section 9.2 (server-sent events).
extension GatewayHandler {
    /// The `Link` fields by which a new session announces the extensions.
    /// - Parameter path: the session's path.
    static func playerLinks(at path: String) -> [String] {
        let extensions = "urn:ietf:params:whep:ext:core"
        return [
            "<\(path)/events>; rel=\"\(extensions):server-sent-events\"; events=\"\(PlayerEvent.all)\"",
            "<\(path)/layer>; rel=\"\(extensions):layer\"",
        ]
    }

    /// `POST` to a session's `events`: chooses kinds of events, and answers with the address of their stream.
    ///
    /// Nothing is stored: the address contains the choice.
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

    /// `GET` of a session's `events`: the event stream, of all kinds unless the query names some.
    ///
    /// Events have no id, and `Last-Event-ID` is ignored: the first events describe the complete state, and with it
    /// everything that a reconnecting player has missed.
    func streamEvents(_ call: Call) async throws -> HTTPResponse {
        let (_, id) = try await playerSession(call)
        let names = call.request.query("kinds")?.split(separator: ",").map(String.init)
        guard let kinds = names.map({ PlayerEvent.kinds(named: $0) }) ?? Set(PlayerEvent.allCases) else {
            throw Problem(400, "malformed-query", "kinds must contain at least one of \(PlayerEvent.all).")
        }
        var response = HTTPResponse(
            status: 200,
            headers: [
                "Content-Type": "text/event-stream", "Cache-Control": "no-store",
                // nginx and other proxies would buffer events otherwise.
                "X-Accel-Buffering": "no",
            ])
        guard call.request.method != .head else { return response }
        response.stream = eventStreams.open(of: id, for: call.request.clientAddress) { [self] in
            await tell(PlayerNews(kinds), of: id, to: $0)
        }
        guard response.stream != nil else {
            throw Problem(
                503, "overloaded", "The server can't open more event streams now.",
                headers: ["Retry-After": "10"])
        }
        return response
    }

    /// Sends changes to a player until its session ends or the client disconnects.
    ///
    /// Polls at intervals, which limits the rate of events; a slow reader gets the present state and no backlog.
    private func tell(_ news: PlayerNews, of id: SessionID, to stream: HTTPStream) async {
        var news = news
        // Time since anything was sent.
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
                // Not noted as sent, so the next look compares with what the player knows.
                case .full: break
                case .closed: return
                }
            }
            try? await Task.sleep(for: settings.playerEvents.interval)
            silence += settings.playerEvents.interval
        }
    }

    /// `POST` to a session's `layer`: selects an encoding; an empty body returns the choice to the server.
    func chooseLayer(_ call: Call) async throws -> HTTPResponse {
        let (_, id) = try await playerSession(call)
        let body = try call.body(isOptional: true)
        for name in ["spatialLayerId", "temporalLayerId"] {
            guard let layer = try Self.layer(name, in: body), layer != 0 else { continue }
            throw Problem(
                422, "unknown-layer", "\(name) must be 0 or absent: each encoding has one layer.")
        }
        // Limits have no effect on encodings with one layer, but have to be well-formed.
        for name in ["maxSpatialLayerId", "maxTemporalLayerId"] { _ = try Self.layer(name, in: body) }
        let choice = EncodingChoice(
            mid: try body.string("mediaId"), encoding: try body.string("encodingId"))
        try await service.choose(choice, in: id)
        return HTTPResponse(status: 200, headers: ["Cache-Control": "no-store"])
    }

    /// `DELETE` of a session's `layer`: returns the choice to the server.
    func unchooseLayer(_ call: Call) async throws -> HTTPResponse {
        let (_, id) = try await playerSession(call)
        try await service.choose(EncodingChoice(), in: id)
        return HTTPResponse(status: 200, headers: ["Cache-Control": "no-store"])
    }

    // MARK: What is asked for

    /// The session in the path, and its own path; 404 for a session that is no player's or of another stream.
    private func playerSession(_ call: Call) async throws -> (path: String, id: SessionID) {
        let (stream, id) = try Self.named(call)
        let found = await service.session(id)
        guard found?.stream == stream, found?.purpose == .play else { throw SessionRefusal.unknownSession }
        return ("\(ResourcePaths.sessions(.play, of: stream))/\(id)", id)
    }

    /// Parses the path; a function of its own because Swift 6.3.1's optimizer crashes if an async one throws these
    /// errors.
    @inline(never)
    private static func named(_ call: Call) throws -> (stream: StreamID, SessionID) {
        let stream = try call.stream
        guard let id = call.parameters["session"].flatMap({ SessionID($0) }) else {
            throw SessionRefusal.unknownSession
        }
        return (stream, id)
    }

    /// The kinds in a JSON array of names; all kinds if there is no body.
    private static func eventKinds(in request: HTTPRequest) throws(Problem) -> Set<PlayerEvent> {
        guard !request.body.isEmpty else { return Set(PlayerEvent.allCases) }
        guard MediaType.isContent(of: request, MediaType.json) else {
            throw Problem(415, nil, "The request's Content-Type must be \(MediaType.json).")
        }
        guard let names = try? JSONDecoder().decode([String].self, from: Data(request.body)) else {
            throw Problem(400, nil, "The body must be a JSON array of event names.")
        }
        guard let kinds = PlayerEvent.kinds(named: names) else {
            throw Problem(422, nil, "The body must contain at least one of \(PlayerEvent.all).")
        }
        return kinds
    }

    /// A layer's number, from 0; nil if the member is missing.
    private static func layer(_ name: String, in body: JSONBody) throws(Problem) -> Int? {
        guard let layer = try body.integer(name) else { return nil }
        guard layer >= 0 else { throw JSONBody.invalid(name) }
        return layer
    }
}
