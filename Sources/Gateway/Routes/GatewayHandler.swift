import Base
import HTTP
import Node
import Stage
import StoryFeed

/// The server's HTTP interface: routes requests, and turns errors into problem documents.
///
/// A value without mutable state of its own; what has to be remembered is in the referenced objects, which are safe
/// to use from any task.
package struct GatewayHandler: HTTPHandler {
    let service: any SessionService
    let settings: GatewaySettings
    let pages: WebPages
    let counters: HTTPCounters
    /// For metrics.
    let answerTimes = AnswerTimes()
    /// Limits new guest identities per address.
    let guests = GuestAllowance()
    /// Responses remembered by `Idempotency-Key`.
    let repetitions = RepeatedRequests()
    /// Open event streams of players.
    let eventStreams = EventStreams()
    private let authority: TokenAuthority
    private let now: @Sendable () -> Int
    /// The clock for durations.
    let elapsed: @Sendable () -> MonotonicTime

    /// - Parameters:
    ///   - now: seconds since 1970.
    ///   - elapsed: the clock for durations, which is never set.
    package init(
        service: any SessionService, authority: TokenAuthority, settings: GatewaySettings, pages: WebPages,
        counters: HTTPCounters, now: @escaping @Sendable () -> Int,
        elapsed: @escaping @Sendable () -> MonotonicTime
    ) {
        self.service = service
        self.settings = settings
        self.pages = pages
        self.counters = counters
        self.authority = authority
        self.now = now
        self.elapsed = elapsed
    }

    /// Bundles a request with everything its route's handler needs.
    private func call(_ request: HTTPRequest, _ parameters: [String: String], _ route: Route) -> Call {
        Call(
            request: request, parameters: parameters,
            access: Access(request: request, authority: authority, settings: settings, now: now),
            operation: route.operationID, members: pages.requestMembers)
    }

    /// Answers a request; an error thrown by the route's handler becomes a problem document (RFC 9457).
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

    /// Answers requests for HLS files that are in memory, on the service thread.
    ///
    /// A player requests several a second, so the cost of a task for each is worth saving.
    package func answerAtOnce(_ request: HTTPRequest) -> HTTPResponse? {
        guard request.path.hasPrefix("/hls/"),
            case .found(let route, let parameters) = Router.route(request.method, request.path),
            // An error is left to `respond`, which reports it.
            var response = try? route.atOnce?(self, call(request, parameters, route))
        else { return nil }
        Self.addCORS(to: &response)
        return response
    }

    /// Whether a browser has requested a page that does not exist, and gets an HTML page in place of JSON.
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

    /// Extra cost of a request: listing streams may scan all streams that ever existed, files in memory are nearly
    /// free.
    ///
    /// An HLS player sends four requests a second, a page loads dozens of files, and many people may share a school's
    /// address. A page of which one file is refused does not work at all.
    package func surcharge(_ request: HTTPRequest) -> Double {
        guard request.method != .post else { return 0 }
        if request.path.hasPrefix("/hls/") || request.path.hasPrefix("/assets/") { return -0.9 }
        return request.path == "/v1/streams" ? 4 : 0
    }

    /// Extra time for captures, which are answered at the end of the recording.
    package func extraTime(_ request: HTTPRequest) -> Duration {
        let isCapture = request.path.hasPrefix("/v1/sessions/") && request.path.hasSuffix("/capture")
        return isCapture ? .seconds(Self.longestCaptureSeconds) : .zero
    }

    /// Decides about a WebSocket handshake; one that announces a token by message is accepted provisionally.
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

    /// A problem document for a request that the server refuses before it is routed.
    package func refusal(_ status: Int, _ detail: String) -> HTTPResponse {
        var response = Problem(status, nil, detail).response
        Self.addCORS(to: &response)
        return response
    }

    /// A page about one stream; whether the stream exists, the page itself finds out.
    func streamPage(_ call: Call, _ name: String) throws(Problem) -> HTTPResponse {
        _ = try call.stream
        return pages.page(name, for: call.request)
    }

    /// `GET /readyz`: whether a load balancer may send clients here; 503 while stopping or while the disk is
    /// unusable.
    func readiness() async -> HTTPResponse {
        guard await service.isReady else { return refusal(503, "The server is stopping.") }
        if let reason = settings.hindrance?() { return refusal(503, "The server can't write: \(reason).") }
        return .text(200, "ready")
    }

    /// `GET /metrics`.
    func showMetrics(_ call: Call) async throws -> HTTPResponse {
        try call.access.requireOperator()
        return await metrics()
    }

    /// All metrics in Prometheus' text format; the caller has checked permissions.
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
    /// Answers OPTIONS requests, CORS preflights included, and refuses methods that a path does not have with 405.
    /// - Source: RFC 9110 §9.3.7 (OPTIONS), §15.5.6 (405), §10.2.1 (Allow); Fetch, "CORS protocol"; RFC 5789 §3.1
    ///   (Accept-Patch).
    private static func answer(_ request: HTTPRequest, allowing allowed: [HTTPMethod]) throws(Problem)
        -> HTTPResponse
    {
        let methods = allowed.map(\.rawValue).joined(separator: ", ")
        guard request.method == .options else {
            throw Problem(
                405, nil, "This path doesn't support \(request.method.rawValue).", headers: ["Allow": methods]
            )
        }
        var response = HTTPResponse(
            status: 204,
            headers: [
                "Allow": methods, "Access-Control-Allow-Methods": methods,
                "Access-Control-Allow-Headers": "Authorization, Content-Type, Idempotency-Key, If-Match",
                "Access-Control-Max-Age": "86400",
            ])
        // WHIP and WHEP clients learn from OPTIONS what an endpoint or a session accepts.
        let parts = Router.segments(of: request.path)
        if parts.first == "whip" || parts.first == "whep" {
            if parts.count == 2 { response.headers.add("Accept-Post", MediaType.sdp) }
            if parts.count == 3 {
                let purpose: SessionRequest.Purpose = parts.first == "whip" ? .publish : .play
                response.headers.add("Accept-Patch", MediaType.patches(of: purpose))
            }
        }
        return response
    }

    /// Allows web pages of any origin to use the API.
    ///
    /// That is safe because there are no cookies: a page can do only what its own token permits.
    private static func addCORS(to response: inout HTTPResponse) {
        response.headers.set("Access-Control-Allow-Origin", "*")
        response.headers.set(
            "Access-Control-Expose-Headers",
            "Location, ETag, Link, Retry-After, RateLimit, RateLimit-Policy, Accept-Patch, Accept-Post, "
                + "Rostrum-Session, Rostrum-Stream, WWW-Authenticate")
    }
}

/// The media types of requests and responses.
enum MediaType {
    static let sdp = "application/sdp"
    /// Candidates and ICE credentials in a PATCH (RFC 8840 §9).
    static let fragment = "application/trickle-ice-sdpfrag"
    static let json = "application/json"
    /// Partial changes: a missing member keeps its value, `null` removes it (RFC 7396).
    static let mergePatch = "application/merge-patch+json"

    /// Types that a PATCH of a session accepts; a merge patch sets video preferences, which a publisher does not
    /// have.
    static func patches(of purpose: SessionRequest.Purpose) -> String {
        purpose == .publish ? fragment : "\(fragment), \(mergePatch)"
    }

    /// Whether `Content-Type` names this type; parameters such as `charset` are ignored (RFC 9110 §8.3.1).
    static func isContent(of request: HTTPRequest, _ type: String) -> Bool {
        request.headers["content-type"]?.prefix { $0 != ";" }.trimmed.lowercased() == type
    }
}
