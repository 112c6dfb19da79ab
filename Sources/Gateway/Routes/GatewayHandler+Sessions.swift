import Base
import HTTP
import Net
import Node

/// Sessions over HTTP: WHIP, WHEP, and the same protocol for the stage and the feed.
/// - Source: RFC 9725 §4 (WHIP), draft-ietf-wish-whep (WHEP).
extension GatewayHandler {
    /// `POST` to an endpoint: creates a session from an SDP offer, and answers 201 with the SDP answer.
    /// - Source: RFC 9725 §4.2 (Location), §4.3.1 (ETag), §4.6 (Link).
    func createSession(_ call: Call, _ purpose: SessionRequest.Purpose) async throws -> HTTPResponse {
        // Before the permission is checked, so that the whole time to the answer is measured.
        let start = MonotonicClock.now()
        let stream = try call.stream(for: purpose)
        var token: Token?
        var wish: FeedWish?
        // Permission comes before the body, so that a stranger's offer is never parsed.
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
                415, nil, "The offer must be sent as \(MediaType.sdp).",
                headers: ["Accept-Post": MediaType.sdp])
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
            // The client has disconnected or the time is up: without this, the session would hold a place until it
            // times out.
            _ = await service.endSession(created.id)
            throw Problem(503, nil, "Creating the session took too long. Try again.")
        }
        var response = HTTPResponse(
            status: 201, headers: ["Content-Type": MediaType.sdp], body: Array(created.answer.utf8))
        answerTimes.note(purpose, since: start)
        let path = "\(ResourcePaths.sessions(purpose, of: stream))/\(created.id)"
        response.headers.add("Location", path)
        response.headers.add("ETag", EntityTag(value: created.entityTag).description)
        // The label by which the log calls the session, for support. The path itself is a secret of the client.
        response.headers.add("Rostrum-Session", created.id.label)
        if let begins = created.begins { response.headers.add("Rostrum-Stream", begins.description) }
        response.headers.add("Accept-Patch", MediaType.patches(of: purpose))
        response.headers.add("Cache-Control", "no-store")
        // The token is read again for its subject; an expired one has been refused above.
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

    /// How long a viewer waits for a publisher: `?wait` or `?wait=SECONDS`; nil if the viewer does not wait.
    private func patience(_ call: Call) throws(Problem) -> Duration? {
        guard let text = call.request.query("wait") else { return nil }
        guard !text.isEmpty else { return settings.usualPatience }
        guard let seconds = UInt32(text) else { throw Problem(400, nil, "wait must be a number of seconds.") }
        return min(.seconds(Int64(seconds)), settings.longestPatience)
    }

    /// `GET` and `HEAD` of an endpoint: shows that it exists and what it accepts.
    func preview(_ call: Call, _ purpose: SessionRequest.Purpose) throws(Problem) -> HTTPResponse {
        _ = try call.stream
        var headers: HTTPHeaders = ["Accept-Post": MediaType.sdp]
        // Players recognize a WHEP endpoint by the content type of a HEAD response.
        guard purpose == .play, call.request.method == .head else {
            return HTTPResponse(status: 204, headers: headers)
        }
        headers.add("Content-Type", MediaType.sdp)
        return HTTPResponse(status: 200, headers: headers)
    }

    /// `GET` and `HEAD` of a session: whether it still exists.
    func showSession(_ call: Call, _ purpose: SessionRequest.Purpose) async throws -> HTTPResponse {
        _ = try await session(call, purpose)
        return HTTPResponse(
            status: 204,
            headers: ["Accept-Patch": MediaType.patches(of: purpose), "Cache-Control": "no-store"])
    }

    /// `DELETE` of a session; needs no entity tag, and succeeds for a session whose connection has just closed.
    ///
    /// A client may close its peer connection just before this request, so that the session is gone already.
    func endSession(_ call: Call, _ purpose: SessionRequest.Purpose) async throws -> HTTPResponse {
        let (stream, id) = try Self.changeable(call, purpose)
        let found = await service.sessionToEnd(id)
        guard found?.stream == stream, found?.purpose == purpose else { throw SessionRefusal.unknownSession }
        guard await service.endSession(id) else { throw SessionRefusal.unknownSession }
        return HTTPResponse(status: 200)
    }

    /// `GET` of a session's `quality`: what is sent to it and why, and its client's preferences.
    func showQuality(_ call: Call, _ purpose: SessionRequest.Purpose) async throws -> HTTPResponse {
        let id = try await session(call, purpose)
        guard let quality = await service.quality(of: id) else { throw SessionRefusal.unknownSession }
        return Self.fresh(quality)
    }

    /// Applies a merge patch to the client's video preferences.
    private func prefer(_ call: Call, in id: SessionID) async throws -> HTTPResponse {
        Self.fresh(try await service.prefer(try call.body().deliveryPatch(), in: id))
    }

    /// `PATCH` of a session: trickled candidates, an ICE restart, or video preferences.
    /// - Source: RFC 9725 §4.3.1 (428, 412), §4.3.2 (trickle), §4.3.3 (restart); RFC 6585 §3 (428).
    func updateSession(_ call: Call, _ purpose: SessionRequest.Purpose) async throws -> HTTPResponse {
        let id = try await session(call, purpose)
        if purpose != .publish, MediaType.isContent(of: call.request, MediaType.mergePatch) {
            return try await prefer(call, in: id)
        }
        guard MediaType.isContent(of: call.request, MediaType.fragment) else {
            let patches = MediaType.patches(of: purpose)
            throw Problem(415, nil, "Changes must be sent as \(patches).", headers: ["Accept-Patch": patches])
        }
        guard let field = call.request.headers["if-match"] else {
            throw Problem(428, nil, "Changes require If-Match: the session's ETag, or * to restart ICE.")
        }
        guard let condition = EntityTags(field) else { throw Problem(400, nil, "If-Match is malformed.") }
        guard let tag = await service.entityTag(of: id) else { throw SessionRefusal.unknownSession }
        // The tag names the ICE credentials: candidates for credentials of before a restart are stale.
        guard condition.haveExactly(EntityTag(value: tag)) else {
            throw Problem(412, nil, "ICE was restarted in the meantime.")
        }
        let fragment = try Self.text(of: call.request)
        do throws(SessionRefusal) {
            try await service.trickle(id, fragment: fragment)
            return HTTPResponse(status: 204)
        } catch {
            // Credentials other than the present ones mean a restart, which is only valid with `If-Match: *`.
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

    /// The session in the path, for a client that may change it.
    ///
    /// An expired token is accepted: it was valid when the session was created, and the path cannot be guessed.
    /// - Throws: 404 also for a session of another stream or purpose.
    func session(_ call: Call, _ purpose: SessionRequest.Purpose) async throws -> SessionID {
        let (stream, id) = try Self.changeable(call, purpose)
        let found = await service.session(id)
        guard found?.stream == stream, found?.purpose == purpose else { throw SessionRefusal.unknownSession }
        return id
    }

    /// Checks the permission and parses the path.
    ///
    /// A function of its own because Swift 6.3.1's optimizer crashes if these errors are thrown in an async function.
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

    /// The body as text; an empty one is refused.
    private static func text(of request: HTTPRequest) throws(Problem) -> String {
        guard !request.body.isEmpty else { throw Problem(400, nil, "The body is empty.") }
        guard let text = String(validating: request.body, as: UTF8.self) else {
            throw Problem(400, nil, "The body isn't valid UTF-8.")
        }
        return text
    }
}

extension Call {
    /// The stream that a session of this purpose belongs to; feed sessions have a reserved one.
    fileprivate func stream(for purpose: SessionRequest.Purpose) throws(Problem) -> StreamID {
        purpose == .feed ? .feed : try stream
    }
}
