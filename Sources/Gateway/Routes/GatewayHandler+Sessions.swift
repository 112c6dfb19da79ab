import Base
import HTTP
import Net
import Node

/// WHIP and WHEP.
/// - Source: RFC 9725 §4 (WHIP), draft-ietf-wish-whep (WHEP).
extension GatewayHandler {
    /// `POST /whip/{stream}` and `POST /whep/{stream}`.
    func createSession(_ call: Call, _ purpose: SessionRequest.Purpose) async throws -> HTTPResponse {
        let start = MonotonicClock.now()
        let stream = try call.stream(for: purpose)
        var token: Token?
        var wish: FeedWish?
        switch purpose {
        case .publish: token = try call.access.requirePublisher(of: stream)
        case .stage: token = try call.access.requireParticipant(of: stream)
        case .play: token = try call.access.requireViewer(of: stream)
        case .feed:
            wish = try feedWish(call)
            try await requireStandingLink(call)
        }
        guard MediaType.isContent(of: call.request, MediaType.sdp) else {
            throw Problem(
                415, nil, "The offer must come as \(MediaType.sdp).", headers: ["Accept-Post": MediaType.sdp])
        }
        let offer = try Self.text(of: call.request)
        let patience = purpose == .play ? try patience(call) : nil
        let client = call.request.clientAddress
        let created = try await service.createSession(
            wish.map {
                SessionRequest(feed: $0, offer: offer, received: start, clientAddress: client)
            }
                ?? SessionRequest(
                    purpose: purpose, stream: stream, sender: token?.sender(in: stream), offer: offer,
                    patience: patience, received: start, clientAddress: client))
        guard !Task.isCancelled else {
            // Nobody is left to hear of it.
            _ = await service.endSession(created.id)
            throw Problem(503, nil, "The answer took too long.")
        }
        var response = HTTPResponse(
            status: 201, headers: ["Content-Type": MediaType.sdp], body: Array(created.answer.utf8))
        answerTimes.note(purpose, since: start)
        let path = "\(ResourcePaths.sessions(purpose, of: stream))/\(created.id)"
        response.headers.add("Location", path)
        response.headers.add("ETag", EntityTag(value: created.entityTag).description)
        // What the log calls it, to be told to whoever runs the server; the address stays between us and the client.
        response.headers.add("Rostrum-Session", created.id.label)
        if let begins = created.begins { response.headers.add("Rostrum-Stream", begins.description) }
        response.headers.add("Accept-Patch", MediaType.patches(of: purpose))
        response.headers.add("Cache-Control", "no-store")
        if !settings.iceServers.isEmpty || settings.turn != nil {
            let bearer = try call.access.token()?.subject
            let host = Self.host(of: call.request.origin)
            for link in settings.linkHeaders(for: bearer, at: host, now: call.access.now()) {
                response.headers.add("Link", link)
            }
        }
        if purpose == .play {
            for link in Self.playerLinks(at: path) { response.headers.add("Link", link) }
        }
        return response
    }

    /// `?wait` and `?wait=SECONDS`; nil when the viewer does not want to wait.
    private func patience(_ call: Call) throws(Problem) -> Duration? {
        guard let text = call.request.query("wait") else { return nil }
        guard !text.isEmpty else { return settings.usualPatience }
        guard let seconds = UInt32(text) else { throw Problem(400, nil, "wait is a number of seconds.") }
        return min(.seconds(Int64(seconds)), settings.longestPatience)
    }

    /// `GET` and `HEAD` of an endpoint: nothing to see, but it is there.
    func preview(_ call: Call, _ purpose: SessionRequest.Purpose) throws(Problem) -> HTTPResponse {
        _ = try call.stream
        var headers: HTTPHeaders = ["Accept-Post": MediaType.sdp]
        // By this players know a WHEP endpoint when they see one.
        guard purpose == .play, call.request.method == .head else {
            return HTTPResponse(status: 204, headers: headers)
        }
        headers.add("Content-Type", MediaType.sdp)
        return HTTPResponse(status: 200, headers: headers)
    }

    /// `GET` and `HEAD` of a session: whether it still lives.
    func showSession(_ call: Call, _ purpose: SessionRequest.Purpose) async throws -> HTTPResponse {
        _ = try await session(call, purpose)
        return HTTPResponse(
            status: 204,
            headers: ["Accept-Patch": MediaType.patches(of: purpose), "Cache-Control": "no-store"])
    }

    /// `DELETE` of a session; entity tags do not matter, nor whether its connection was closed a moment before.
    func endSession(_ call: Call, _ purpose: SessionRequest.Purpose) async throws -> HTTPResponse {
        let (stream, id) = try Self.changeable(call, purpose)
        let found = await service.sessionToEnd(id)
        guard found?.stream == stream, found?.purpose == purpose else { throw SessionRefusal.unknownSession }
        guard await service.endSession(id) else { throw SessionRefusal.unknownSession }
        return HTTPResponse(status: 200)
    }

    /// `GET` of a session's `quality`: what it is sent, why, and what its client wants.
    func showQuality(_ call: Call, _ purpose: SessionRequest.Purpose) async throws -> HTTPResponse {
        let id = try await session(call, purpose)
        guard let quality = await service.quality(of: id) else { throw SessionRefusal.unknownSession }
        return Self.fresh(quality)
    }

    /// A merge patch of what the client wants of the pictures.
    private func prefer(_ call: Call, in id: SessionID) async throws -> HTTPResponse {
        Self.fresh(try await service.prefer(try call.body().deliveryPatch(), in: id))
    }

    /// `PATCH` of a session: candidates that trickle in, an ICE restart, or what the client wants of the pictures.
    func updateSession(_ call: Call, _ purpose: SessionRequest.Purpose) async throws -> HTTPResponse {
        let id = try await session(call, purpose)
        if purpose != .publish, MediaType.isContent(of: call.request, MediaType.mergePatch) {
            return try await prefer(call, in: id)
        }
        guard MediaType.isContent(of: call.request, MediaType.fragment) else {
            let patches = MediaType.patches(of: purpose)
            throw Problem(415, nil, "Changes must come as \(patches).", headers: ["Accept-Patch": patches])
        }
        guard let field = call.request.headers["if-match"] else {
            throw Problem(428, nil, "Changes need If-Match: the session's ETag, or * to restart ICE.")
        }
        guard let condition = EntityTags(field) else { throw Problem(400, nil, "If-Match is malformed.") }
        guard let tag = await service.entityTag(of: id) else { throw SessionRefusal.unknownSession }
        guard condition.haveExactly(EntityTag(value: tag)) else {
            throw Problem(412, nil, "ICE was restarted meanwhile.")
        }
        let fragment = try Self.text(of: call.request)
        do throws(SessionRefusal) {
            try await service.trickle(id, fragment: fragment)
            return HTTPResponse(status: 204)
        } catch {
            // Other credentials than the present ones: a restart.
            guard case .unsupportedOffer = error, condition == .any else { throw error }
        }
        let restarted = try await service.restartICE(id, fragment: fragment)
        return HTTPResponse(
            status: 200,
            headers: [
                "Content-Type": MediaType.fragment,
                "ETag": EntityTag(value: restarted.entityTag).description,
            ], body: Array(restarted.fragment.utf8))
    }

    /// The session a path names, for somebody who may change it.
    ///
    /// An expired token will do: the session was granted with it, and the path cannot be guessed.
    func session(_ call: Call, _ purpose: SessionRequest.Purpose) async throws -> SessionID {
        let (stream, id) = try Self.changeable(call, purpose)
        let found = await service.session(id)
        guard found?.stream == stream, found?.purpose == purpose else { throw SessionRefusal.unknownSession }
        return id
    }

    /// Swift 6.3.1's optimizer crashes where these errors are thrown in a function that waits.
    @inline(never)
    private static func changeable(
        _ call: Call, _ purpose: SessionRequest.Purpose
    ) throws -> (stream: StreamID, SessionID) {
        let stream = try call.stream(for: purpose)
        switch purpose {
        case .publish: _ = try call.access.requirePublisher(of: stream, acceptsExpired: true)
        case .stage: _ = try call.access.requireParticipant(of: stream, acceptsExpired: true)
        case .play: _ = try call.access.requireViewer(of: stream, acceptsExpired: true)
        case .feed: _ = try call.access.requireFeedReader(acceptsExpired: true)
        }
        guard let id = call.parameters["session"].flatMap({ SessionID($0) }) else {
            throw SessionRefusal.unknownSession
        }
        return (stream, id)
    }

    private static func text(of request: HTTPRequest) throws(Problem) -> String {
        guard !request.body.isEmpty else { throw Problem(400, nil, "The body is empty.") }
        guard let text = String(validating: request.body, as: UTF8.self) else {
            throw Problem(400, nil, "The body is not valid UTF-8.")
        }
        return text
    }
}

extension Call {
    /// The stream that a session of this purpose belongs to.
    fileprivate func stream(for purpose: SessionRequest.Purpose) throws(Problem) -> StreamID {
        purpose == .feed ? .feed : try stream
    }
}
