import Base
import HTTP
import Node
import Stage
import StoryFeed

/// Answers everything the server can be asked.
package struct GatewayHandler: HTTPHandler {
    let service: any SessionService
    let access: Access
    let settings: GatewaySettings
    let pages: WebPages
    let counters: HTTPCounters
    let answerTimes = AnswerTimes()
    let guests: GuestAllowance

    /// - Parameter now: seconds since 1970.
    package init(
        service: any SessionService, authority: TokenAuthority, settings: GatewaySettings, pages: WebPages,
        counters: HTTPCounters, now: @escaping @Sendable () -> Int
    ) {
        self.service = service
        self.settings = settings
        self.pages = pages
        self.counters = counters
        guests = GuestAllowance()
        access = Access(authority: authority, settings: settings, now: now)
    }

    package func respond(to request: HTTPRequest) async -> HTTPResponse {
        let outcome = Router.route(request.method, request.path)
        let isPage = if case .found(let operation, _) = outcome { operation.isPage } else { false }
        let isForOperators = if case .found(.metrics, _) = outcome { true } else { false }
        var response: HTTPResponse
        do {
            switch outcome {
            case .found(let operation, let parameters):
                response = try await perform(operation, request, parameters)
            case .otherMethods(let allowed):
                response = try Self.answer(request, allowing: allowed)
            case .nothing:
                throw Problem(404, "unknown-path", "There is nothing at this path.")
            }
        } catch {
            let problem = Problem.describing(error)
            response = Self.isLost(request, outcome, problem) ? pages.nothing(problem) : problem.response
        }
        if !isPage, !isForOperators { Self.addCORS(to: &response) }
        return response
    }

    /// Whether somebody with a browser asks for a page that is not there.
    private static func isLost(_ request: HTTPRequest, _ outcome: Router.Outcome, _ problem: Problem) -> Bool
    {
        guard problem.status == 404, request.method == .get || request.method == .head,
            request.headers["accept"]?.contains("text/html") == true
        else { return false }
        return switch outcome {
        case .nothing: true
        case .found(let operation, _): operation == .livePage || operation == .watchPage
        case .otherMethods: false
        }
    }

    /// A list of streams may have looked at all that there ever were.
    package func surcharge(_ request: HTTPRequest) -> Double {
        request.method != .post && request.path == "/v1/streams" ? 4 : 0
    }

    package func upgrade(_ request: HTTPRequest) -> WebSocketDecision {
        guard case .found(let operation, let parameters) = Router.route(.get, request.path),
            operation == .followStream || operation == .followFeed
        else { return .refuse(refusal(404, "There is no WebSocket at this path.")) }
        do throws(Problem) {
            guard TokenMessage.isAnnounced(by: request) else {
                return .accept(try conversation(operation, request, parameters))
            }
        } catch {
            var response = error.response
            Self.addCORS(to: &response)
            return .refuse(response)
        }
        return .accept { connection in
            guard let message = await TokenMessage.first(on: connection) else {
                return connection.close(.noToken)
            }
            do throws(Problem) {
                try await conversation(operation, request.bearing(message), parameters)(connection)
            } catch {
                connection.close(WebSocketClose(error))
            }
        }
    }

    /// What is said on a WebSocket, once it is known that whoever asks may hear it.
    private func conversation(
        _ operation: Operation, _ request: HTTPRequest, _ parameters: [String: String]
    ) throws(Problem) -> @Sendable (WebSocketConnection) async -> Void {
        try operation == .followFeed ? followFeed(request) : follow(request, parameters)
    }

    package func refusal(_ status: Int, _ detail: String) -> HTTPResponse {
        var response = Problem(status, nil, detail).response
        Self.addCORS(to: &response)
        return response
    }

    private func perform(
        _ operation: Operation, _ request: HTTPRequest, _ parameters: [String: String]
    ) async throws -> HTTPResponse {
        switch operation {
        case .publish: try await createSession(request, .publish, parameters)
        case .play: try await createSession(request, .play, parameters)
        case .publishPreview: try preview(.publish, request, parameters)
        case .playPreview: try preview(.play, request, parameters)
        case .publishSession: try await showSession(request, .publish, parameters)
        case .playSession: try await showSession(request, .play, parameters)
        case .publishTrickle: try await updateSession(request, .publish, parameters)
        case .playTrickle: try await updateSession(request, .play, parameters)
        case .publishEnd: try await endSession(request, .publish, parameters)
        case .playEnd: try await endSession(request, .play, parameters)
        case .join: try await createSession(request, .stage, parameters)
        case .joinSession: try await showSession(request, .stage, parameters)
        case .joinTrickle: try await updateSession(request, .stage, parameters)
        case .joinEnd: try await endSession(request, .stage, parameters)
        case .listFeed: try await listFeed(request)
        case .enterFeed: try await createSession(request, .feed, parameters)
        case .feedSession: try await showSession(request, .feed, parameters)
        case .feedTrickle: try await updateSession(request, .feed, parameters)
        case .feedEnd: try await endSession(request, .feed, parameters)
        case .peek: try await swipe(.peek, request, parameters)
        case .focus: try await swipe(.focus, request, parameters)
        case .release: try await swipe(.release, request, parameters)
        case .makeToken: try makeToken(request)
        case .listStreams: try await listStreams(request)
        case .createStream: try await createStream(request)
        case .showStream: try await showStream(request, parameters)
        case .followStream, .followFeed:
            throw Problem(
                426, nil, "This is a WebSocket.", headers: ["Upgrade": "websocket", "Connection": "Upgrade"])
        case .previewWebP: try await showPreview(.webP, request, parameters)
        case .previewJPEG: try await showPreview(.jpeg, request, parameters)
        case .describeServer: settings.description
        case .health: .text(200, "ok")
        case .readiness: await readiness()
        case .metrics: try await showMetrics(request)
        case .openAPI: pages.openAPI
        case .feedPage: pages.page("index.html", for: request)
        case .livePage: try streamPage("live.html", request, parameters)
        case .watchPage: try streamPage("watch.html", request, parameters)
        case .asset: try pages.asset(parameters["file"] ?? "", for: request)
        default: try await performOnStage(operation, request, parameters)
        }
    }

    /// What participants do in a stream.
    private func performOnStage(
        _ operation: Operation, _ request: HTTPRequest, _ parameters: [String: String]
    ) async throws -> HTTPResponse {
        switch operation {
        case .editStream: try await editStream(request, parameters)
        case .showPlacement: try await showPlacement(request, parameters)
        case .placeStream: try await placeStream(request, parameters)
        case .goLive: try await stream(.goLive, request, parameters)
        case .endStream: try await stream(.end, request, parameters)
        case .showParticipants: try await showParticipants(request, parameters)
        case .enter: try await enter(request, parameters)
        case .removeParticipant: try await removeParticipant(request, parameters)
        case .showBans: try await showBans(request, parameters)
        case .ban: try await ban(request, parameters)
        case .renewToken: try await giveToken(request, parameters)
        case .makeLink: try await makeLink(request, parameters)
        case .revokeLinks: try await revokeLinks(request, parameters)
        case .invite: try await invite(request, parameters)
        case .endInvitation: try await endInvitation(request, parameters)
        case .acceptInvitation: try await acceptInvitation(request, parameters)
        case .leaveStage: try await leaveStage(request, parameters)
        case .describeSpeaker: try await describeSpeaker(request, parameters)
        case .requestMute: try await requestMute(request, parameters)
        case .choosePausePicture: try await choosePausePicture(request, parameters)
        case .dropPausePicture: try await dropPausePicture(request, parameters)
        case .startRecording: try await startRecording(request, parameters)
        case .stopRecording: try await stopRecording(request, parameters)
        case .listRecordings: try await listRecordings(request, parameters)
        case .showRecording: try await showRecording(request, parameters)
        case .removeRecording: try await removeRecording(request, parameters)
        case .raiseHand, .lowerHand, .unban: try await simple(operation, request, parameters)
        default: throw Problem(404, "unknown-path", "There is nothing at this path.")
        }
    }

    /// A name in a path that cannot be a stream's names nothing.
    static func stream(_ parameters: [String: String]) throws(Problem) -> StreamID {
        guard let stream = parameters["stream"].flatMap({ StreamID($0) }) else {
            throw Problem(404, nil, "A stream's name is 1 to 64 of A-Z a-z 0-9 _ -.")
        }
        return stream
    }

    private func streamPage(
        _ name: String, _ request: HTTPRequest, _ parameters: [String: String]
    ) throws(Problem) -> HTTPResponse {
        _ = try Self.stream(parameters)
        return pages.page(name, for: request)
    }

    private func readiness() async -> HTTPResponse {
        guard await service.isReady else { return refusal(503, "The server is going away.") }
        if let reason = settings.hindrance?() { return refusal(503, "Nothing can be written: \(reason).") }
        return .text(200, "ready")
    }

    private func showMetrics(_ request: HTTPRequest) async throws -> HTTPResponse {
        try access.requireOperator(request)
        return await metrics()
    }

    /// What Prometheus reads, for whoever may.
    func metrics() async -> HTTPResponse {
        let answered = answerTimes.copy
        let metrics =
            await service.metrics(published: answered.published, played: answered.played)
            + counters.copy.metrics + ProcessMetrics.collect() + (settings.furtherMetrics?() ?? [])
        return HTTPResponse(
            status: 200, headers: ["Content-Type": "text/plain; version=0.0.4; charset=utf-8"],
            body: Array(metrics.text.utf8))
    }
}

extension Operation {
    /// Pages are for our own origin only.
    var isPage: Bool {
        switch self {
        case .feedPage, .livePage, .watchPage, .asset: true
        default: false
        }
    }
}

// MARK: OPTIONS and CORS

extension GatewayHandler {
    /// Preflights and other OPTIONS requests, and methods a path does not have.
    private static func answer(_ request: HTTPRequest, allowing allowed: [HTTPMethod]) throws(Problem)
        -> HTTPResponse
    {
        let methods = allowed.map(\.rawValue).joined(separator: ", ")
        guard request.method == .options else {
            throw Problem(
                405, nil, "This path does not know \(request.method.rawValue).", headers: ["Allow": methods])
        }
        var response = HTTPResponse(
            status: 204,
            headers: [
                "Allow": methods, "Access-Control-Allow-Methods": methods,
                "Access-Control-Allow-Headers": "Authorization, Content-Type, Idempotency-Key, If-Match",
                "Access-Control-Max-Age": "86400",
            ])
        let parts = request.path.split(separator: "/")
        if parts.first == "whip" || parts.first == "whep" {
            if parts.count == 2 { response.headers.add("Accept-Post", MediaType.sdp) }
            if parts.count == 3 { response.headers.add("Accept-Patch", MediaType.fragment) }
        }
        return response
    }

    /// Any web page may use the API: it shows its token, and cookies play no part.
    private static func addCORS(to response: inout HTTPResponse) {
        response.headers.set("Access-Control-Allow-Origin", "*")
        response.headers.set(
            "Access-Control-Expose-Headers",
            "Location, ETag, Link, Retry-After, Accept-Patch, Accept-Post, WWW-Authenticate")
    }
}

enum MediaType {
    static let sdp = "application/sdp"
    /// RFC 8840 §9.
    static let fragment = "application/trickle-ice-sdpfrag"
    static let json = "application/json"
    /// RFC 7396.
    static let mergePatch = "application/merge-patch+json"

    /// Whether a request's body says it is of that type; parameters do not matter.
    static func isContent(of request: HTTPRequest, _ type: String) -> Bool {
        request.headers["content-type"]?.prefix { $0 != ";" }.trimmed.lowercased() == type
    }
}
