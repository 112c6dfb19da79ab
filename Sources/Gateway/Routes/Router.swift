import Base
import HTTP

/// A method and a path, and what answers those who ask for them.
struct Route: Sendable {
    /// Answers one request.
    typealias Answer = @Sendable (GatewayHandler, Call) async throws -> HTTPResponse
    /// Answers one request by what lies at hand, waiting for nobody; nil where `Answer` has to.
    typealias AnswerAtOnce = @Sendable (GatewayHandler, Call) throws -> HTTPResponse?
    /// Lets whoever asks have a WebSocket, or not.
    /// - Returns: what is said on it.
    typealias Handshake =
        @Sendable (GatewayHandler, Call) throws(Problem) -> @Sendable (WebSocketConnection) async -> Void

    /// Whom an answer is for.
    enum Audience: Sendable {
        /// Programs, those in other origins' pages among them.
        case programs
        /// What operators run; no web page.
        case operators
        /// People, with our own pages: they are told in HTML what is not there.
        case people
        /// Our own pages; others may load some of it, as its headers say.
        case pages
    }

    enum Segment: Sendable, Hashable {
        case literal(String)
        case parameter(String)
        /// One segment or more: an identity may have slashes, which arrive decoded.
        case identity(String)
        /// All that is left, at least one segment.
        case rest(String)
    }

    let method: HTTPMethod
    /// As OpenAPI writes it: `/whip/{stream}`.
    let pattern: String
    let segments: [Segment]
    /// `operationId` in `openapi.json`.
    let operationID: String
    let audience: Audience
    let answer: Answer
    /// Nil where nothing lies at hand.
    let atOnce: AnswerAtOnce?
    /// Nil where there is no WebSocket.
    let handshake: Handshake?

    init(
        _ method: HTTPMethod, _ pattern: String, _ operationID: String, for audience: Audience = .programs,
        handshake: Handshake? = nil, atOnce: AnswerAtOnce? = nil, answer: @escaping Answer
    ) {
        self.method = method
        self.pattern = pattern
        self.operationID = operationID
        self.audience = audience
        self.handshake = handshake
        self.answer = answer
        self.atOnce = atOnce
        segments = pattern.split(separator: "/").map { part in
            guard part.hasPrefix("{"), part.hasSuffix("}") else { return .literal(String(part)) }
            let name = part.dropFirst().dropLast()
            if name.hasSuffix("*") { return .rest(String(name.dropLast())) }
            return name == "participant" ? .identity(String(name)) : .parameter(String(name))
        }
    }

    /// A WebSocket; requests that ask for none are told so.
    static func webSocket(_ pattern: String, _ operationID: String, handshake: @escaping Handshake) -> Route {
        Route(.get, pattern, operationID, handshake: handshake) { _, _ in
            throw Problem(
                426, nil, "This is a WebSocket.", headers: ["Upgrade": "websocket", "Connection": "Upgrade"])
        }
    }

    /// Whether it is part of the web client, which `openapi.json` does not describe.
    var isOfWebClient: Bool { audience == .people || audience == .pages }

    /// The parameters of a path that fits; nil for others.
    func match(_ path: [Substring]) -> [String: String]? {
        var parameters: [String: String] = [:]
        var index = 0
        for (place, segment) in segments.enumerated() {
            guard index < path.count else { return nil }
            defer { index += 1 }
            switch segment {
            case .literal(let text):
                guard path[index] == text else { return nil }
            case .parameter(let name): parameters[name] = String(path[index])
            case .identity(let name):
                let end = path.count - (segments.count - place - 1)
                guard index < end else { return nil }
                parameters[name] = path[index..<end].joined(separator: "/")
                index = end - 1
            case .rest(let name):
                parameters[name] = path[index...].joined(separator: "/")
                return parameters
            }
        }
        return path.count == index ? parameters : nil
    }
}

/// Finds the route that a request is for.
enum Router {
    enum Outcome: Sendable {
        /// With what the path says, by the names in the route's pattern.
        case found(Route, [String: String])
        /// The path exists, the method does not.
        case otherMethods([HTTPMethod])
        case nothing

        var audience: Route.Audience {
            if case .found(let route, _) = self { route.audience } else { .programs }
        }
    }

    /// By what their paths begin with, in the order of `routes`.
    private static let byBeginning = Dictionary(grouping: routes) { $0.segments.first }

    static func route(_ method: HTTPMethod, _ path: String) -> Outcome {
        let segments = path.split(separator: "/")
        var allowed: [HTTPMethod] = []
        for route in byBeginning[segments.first.map { .literal(String($0)) }] ?? [] {
            guard let parameters = route.match(segments) else { continue }
            if route.method == method || route.method == .get && method == .head {
                return .found(route, parameters)
            }
            allowed.append(route.method)
            if route.method == .get { allowed.append(.head) }
        }
        guard !allowed.isEmpty else { return .nothing }
        return .otherMethods(allowed + [.options])
    }
}
