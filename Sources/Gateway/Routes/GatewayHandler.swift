import Base
import HTTP
import Node
import Stage
import StoryFeed

/// Answers everything the server can be asked.
package struct GatewayHandler: HTTPHandler {
    let service: any SessionService
    let settings: GatewaySettings
    let pages: WebPages
    let counters: HTTPCounters
    let answerTimes = AnswerTimes()
    let guests = GuestAllowance()
    private let authority: TokenAuthority
    private let now: @Sendable () -> Int

    /// - Parameter now: seconds since 1970.
    package init(
        service: any SessionService, authority: TokenAuthority, settings: GatewaySettings, pages: WebPages,
        counters: HTTPCounters, now: @escaping @Sendable () -> Int
    ) {
        self.service = service
        self.settings = settings
        self.pages = pages
        self.counters = counters
        self.authority = authority
        self.now = now
    }

    private func call(_ request: HTTPRequest, _ parameters: [String: String]) -> Call {
        Call(
            request: request, parameters: parameters,
            access: Access(request: request, authority: authority, settings: settings, now: now))
    }

    package func respond(to request: HTTPRequest) async -> HTTPResponse {
        let outcome = Router.route(request.method, request.path)
        let isPage = if case .found(let operation, _) = outcome { operation.isPage } else { false }
        let isForOperators = if case .found(.metrics, _) = outcome { true } else { false }
        var response: HTTPResponse
        do {
            switch outcome {
            case .found(let operation, let parameters):
                response = try await perform(operation, call(request, parameters))
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
                return .accept(try conversation(operation, call(request, parameters)))
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
                let call = call(request.bearing(message), parameters)
                try await conversation(operation, call)(connection)
            } catch {
                connection.close(WebSocketClose(error))
            }
        }
    }

    /// What is said on a WebSocket, once it is known that whoever asks may hear it.
    private func conversation(
        _ operation: Operation, _ call: Call
    ) throws(Problem) -> @Sendable (WebSocketConnection) async -> Void {
        try operation == .followFeed ? followFeed(call) : follow(call)
    }

    package func refusal(_ status: Int, _ detail: String) -> HTTPResponse {
        var response = Problem(status, nil, detail).response
        Self.addCORS(to: &response)
        return response
    }

    private func perform(_ operation: Operation, _ call: Call) async throws -> HTTPResponse {
        switch operation {
        case .publish: try await createSession(call, .publish)
        case .play: try await createSession(call, .play)
        case .publishPreview: try preview(call, .publish)
        case .playPreview: try preview(call, .play)
        case .publishSession: try await showSession(call, .publish)
        case .playSession: try await showSession(call, .play)
        case .publishTrickle: try await updateSession(call, .publish)
        case .playTrickle: try await updateSession(call, .play)
        case .publishEnd: try await endSession(call, .publish)
        case .playEnd: try await endSession(call, .play)
        case .join: try await createSession(call, .stage)
        case .joinSession: try await showSession(call, .stage)
        case .joinTrickle: try await updateSession(call, .stage)
        case .joinEnd: try await endSession(call, .stage)
        case .listFeed: try await listFeed(call)
        case .enterFeed: try await createSession(call, .feed)
        case .feedSession: try await showSession(call, .feed)
        case .feedTrickle: try await updateSession(call, .feed)
        case .feedEnd: try await endSession(call, .feed)
        case .peek: try await swipe(call, .peek)
        case .focus: try await swipe(call, .focus)
        case .release: try await swipe(call, .release)
        case .makeToken: try makeToken(call)
        case .listStreams: try await listStreams(call)
        case .createStream: try await createStream(call)
        case .showStream: try await showStream(call)
        case .followStream, .followFeed:
            throw Problem(
                426, nil, "This is a WebSocket.", headers: ["Upgrade": "websocket", "Connection": "Upgrade"])
        case .previewWebP: try await showPreview(call, .webP)
        case .previewJPEG: try await showPreview(call, .jpeg)
        case .describeServer: settings.description
        case .health: .text(200, "ok")
        case .readiness: await readiness()
        case .metrics: try await showMetrics(call)
        case .openAPI: pages.openAPI
        case .feedPage: pages.page("index.html", for: call.request)
        case .livePage: try streamPage(call, "live.html")
        case .watchPage: try streamPage(call, "watch.html")
        case .asset: try pages.asset(call.parameters["file"] ?? "", for: call.request)
        default: try await performOnStage(operation, call)
        }
    }

    /// What participants do in a stream.
    private func performOnStage(_ operation: Operation, _ call: Call) async throws -> HTTPResponse {
        switch operation {
        case .editStream: try await editStream(call)
        case .showPlacement: try await showPlacement(call)
        case .placeStream: try await placeStream(call)
        case .goLive: try await change(call, .goLive)
        case .endStream: try await change(call, .end)
        case .showParticipants: try await showParticipants(call)
        case .enter: try await enter(call)
        case .removeParticipant: try await removeParticipant(call)
        case .showBans: try await showBans(call)
        case .ban: try await ban(call)
        case .renewToken: try await giveToken(call)
        case .makeLink: try await makeLink(call)
        case .revokeLinks: try await revokeLinks(call)
        case .invite: try await invite(call)
        case .endInvitation: try await endInvitation(call)
        case .acceptInvitation: try await acceptInvitation(call)
        case .leaveStage: try await leaveStage(call)
        case .describeSpeaker: try await describeSpeaker(call)
        case .requestMute: try await requestMute(call)
        case .choosePausePicture: try await choosePausePicture(call)
        case .dropPausePicture: try await dropPausePicture(call)
        case .startRecording: try await startRecording(call)
        case .stopRecording: try await stopRecording(call)
        case .listRecordings: try await listRecordings(call)
        case .showRecording: try await showRecording(call)
        case .removeRecording: try await removeRecording(call)
        case .raiseHand: try await raiseHand(call)
        case .lowerHand: try await lowerHand(call)
        case .unban: try await unban(call)
        default: throw Problem(404, "unknown-path", "There is nothing at this path.")
        }
    }

    private func streamPage(_ call: Call, _ name: String) throws(Problem) -> HTTPResponse {
        _ = try call.stream
        return pages.page(name, for: call.request)
    }

    private func readiness() async -> HTTPResponse {
        guard await service.isReady else { return refusal(503, "The server is going away.") }
        if let reason = settings.hindrance?() { return refusal(503, "Nothing can be written: \(reason).") }
        return .text(200, "ready")
    }

    private func showMetrics(_ call: Call) async throws -> HTTPResponse {
        try call.access.requireOperator()
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
