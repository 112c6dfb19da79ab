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
    let repetitions = RepeatedRequests()
    let eventStreams = EventStreams()
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

    private func call(_ request: HTTPRequest, _ parameters: [String: String], _ route: Route) -> Call {
        Call(
            request: request, parameters: parameters,
            access: Access(request: request, authority: authority, settings: settings, now: now),
            operation: route.operationID, members: pages.requestMembers)
    }

    /// Answers a request; what its route's handler throws becomes a problem (RFC 9457).
    package func respond(to request: HTTPRequest) async -> HTTPResponse {
        let outcome = Router.route(request.method, request.path)
        var response: HTTPResponse
        do {
            switch outcome {
            case .found(let route, let parameters):
                let call = call(request, parameters, route)
                response = try await answerOnce(call, route)
            case .otherMethods(let allowed):
                response = try Self.answer(request, allowing: allowed)
            case .nothing:
                throw Problem(404, "unknown-path", "There is nothing at this path.")
            }
        } catch {
            let problem = Problem.describing(error)
            response = Self.isLost(request, outcome, problem) ? pages.nothing(problem) : problem.response
        }
        if outcome.audience == .programs { Self.addCORS(to: &response) }
        return response
    }

    /// Answers those who ask for a file of HLS that lies in memory.
    package func answerAtOnce(_ request: HTTPRequest) -> HTTPResponse? {
        guard request.path.hasPrefix("/hls/"),
            case .found(let route, let parameters) = Router.route(request.method, request.path),
            // What is wrong with a request is told as with all others.
            var response = try? route.atOnce?(self, call(request, parameters, route))
        else { return nil }
        Self.addCORS(to: &response)
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
        case .found(let route, _): route.audience == .people
        case .otherMethods: false
        }
    }

    /// A list of streams may have looked at all that there ever were.
    ///
    /// A player of HLS asks four times a second for what lies in memory, and a school has many behind one address.
    package func surcharge(_ request: HTTPRequest) -> Double {
        guard request.method != .post else { return 0 }
        if request.path.hasPrefix("/hls/") { return -0.9 }
        return request.path == "/v1/streams" ? 4 : 0
    }

    /// A capture answers when its time is over.
    package func extraTime(_ request: HTTPRequest) -> Duration {
        let isCapture = request.path.hasPrefix("/v1/sessions/") && request.path.hasSuffix("/capture")
        return isCapture ? .seconds(Self.longestCaptureSeconds) : .zero
    }

    /// Answers a WebSocket's handshake, or takes it to hear of the token in the first message.
    package func upgrade(_ request: HTTPRequest) -> WebSocketDecision {
        guard case .found(let route, let parameters) = Router.route(.get, request.path),
            let handshake = route.handshake
        else { return .refuse(refusal(404, "There is no WebSocket at this path.")) }
        do throws(Problem) {
            guard TokenMessage.isAnnounced(by: request) else {
                return .accept(try handshake(self, call(request, parameters, route)))
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
                try await handshake(self, call(request.bearing(message), parameters, route))(connection)
            } catch {
                connection.close(WebSocketClose(error))
            }
        }
    }

    /// What the server itself refuses, before there is a route, in the same form.
    package func refusal(_ status: Int, _ detail: String) -> HTTPResponse {
        var response = Problem(status, nil, detail).response
        Self.addCORS(to: &response)
        return response
    }

    /// A page about one stream, whether there is such a stream or not.
    func streamPage(_ call: Call, _ name: String) throws(Problem) -> HTTPResponse {
        _ = try call.stream
        return pages.page(name, for: call.request)
    }

    /// Whether a load balancer may send anybody here.
    func readiness() async -> HTTPResponse {
        guard await service.isReady else { return refusal(503, "The server is going away.") }
        if let reason = settings.hindrance?() { return refusal(503, "Nothing can be written: \(reason).") }
        return .text(200, "ready")
    }

    /// `GET /metrics`.
    func showMetrics(_ call: Call) async throws -> HTTPResponse {
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
            if parts.count == 3 {
                let purpose: SessionRequest.Purpose = parts.first == "whip" ? .publish : .play
                response.headers.add("Accept-Patch", MediaType.patches(of: purpose))
            }
        }
        return response
    }

    /// Any web page may use the API: it shows its token, and cookies play no part.
    private static func addCORS(to response: inout HTTPResponse) {
        response.headers.set("Access-Control-Allow-Origin", "*")
        response.headers.set(
            "Access-Control-Expose-Headers",
            "Location, ETag, Link, Retry-After, RateLimit, RateLimit-Policy, Accept-Patch, Accept-Post, "
                + "Rostrum-Session, Rostrum-Stream, WWW-Authenticate")
    }
}

enum MediaType {
    static let sdp = "application/sdp"
    /// RFC 8840 §9.
    static let fragment = "application/trickle-ice-sdpfrag"
    static let json = "application/json"
    /// RFC 7396.
    static let mergePatch = "application/merge-patch+json"

    /// What a `PATCH` of a session may come as: who only publishes wants no pictures.
    static func patches(of purpose: SessionRequest.Purpose) -> String {
        purpose == .publish ? fragment : "\(fragment), \(mergePatch)"
    }

    /// Whether a request's body says it is of that type; parameters do not matter.
    static func isContent(of request: HTTPRequest, _ type: String) -> Bool {
        request.headers["content-type"]?.prefix { $0 != ";" }.trimmed.lowercased() == type
    }
}
