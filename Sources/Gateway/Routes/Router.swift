import Base
import HTTP

/// A method and a path pattern with the function that answers matching requests.
struct Route: Sendable {
    /// Answers a request.
    typealias Answer = @Sendable (GatewayHandler, Call) async throws -> HTTPResponse
    /// Answers a request from memory, on the service thread and without waiting; nil if `Answer` has to do it.
    typealias AnswerAtOnce = @Sendable (GatewayHandler, Call) throws -> HTTPResponse?
    /// Accepts a WebSocket, or refuses it by throwing.
    /// - Returns: the conversation on the socket.
    typealias Handshake =
        @Sendable (GatewayHandler, Call) throws(Problem) -> @Sendable (WebSocketConnection) async -> Void

    /// The kind of client that a route is for, which decides about CORS and the form of errors.
    enum Audience: Sendable {
        /// Programs, including scripts in pages of other origins: gets CORS fields.
        case programs
        /// Operators' tools; not accessible to scripts of other origins.
        case operators
        /// People in a browser, with this server's own pages: a 404 is an HTML page.
        case people
        /// Files that the server's own pages load; each file's header fields say whether others may load it too.
        case pages
    }

    /// One element of a pattern, between slashes.
    enum Segment: Sendable, Hashable {
        /// This text.
        case literal(String)
        /// Exactly one path segment, under this name.
        case parameter(String)
        /// One or more segments: an identity may contain slashes, which libwebsockets has decoded already.
        case identity(String)
        /// All remaining segments, at least one.
        case rest(String)
    }

    let method: HTTPMethod
    /// The path pattern in OpenAPI's notation: `/whip/{stream}`.
    let pattern: String
    /// The pattern, parsed.
    let segments: [Segment]
    /// The `operationId` in `openapi.json`.
    let operationID: String
    let audience: Audience
    let answer: Answer
    /// Nil if the route never answers from memory.
    let atOnce: AnswerAtOnce?
    /// Nil unless the route is a WebSocket.
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

    /// A WebSocket route; ordinary requests get 426 (RFC 9110 §15.5.22).
    static func webSocket(_ pattern: String, _ operationID: String, handshake: @escaping Handshake) -> Route {
        Route(.get, pattern, operationID, handshake: handshake) { _, _ in
            throw Problem(
                426, nil, "This path requires a WebSocket connection.",
                headers: ["Upgrade": "websocket", "Connection": "Upgrade"])
        }
    }

    /// The parameters of a path that matches the pattern; nil for any other path.
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
                // An identity extends up to the segments that the rest of the pattern needs.
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

/// Finds the route of a request.
enum Router {
    /// Result of routing.
    enum Outcome: Sendable {
        /// A route, with the path's parameters by name.
        case found(Route, [String: String])
        /// The path exists, but not with this method; with the methods that it has.
        case otherMethods([HTTPMethod])
        case nothing

        /// Errors without a route are for programs.
        var audience: Route.Audience {
            if case .found(let route, _) = self { route.audience } else { .programs }
        }
    }

    /// Routes by the first segment of their pattern, in the order of `routes`; saves most comparisons.
    private static let byBeginning = Dictionary(grouping: routes) { $0.segments.first }

    /// The parts of a path between its slashes, without empty ones.
    ///
    /// Cut as bytes, because a slash may form one `Character` with what stands beside it in an identity (UAX #29).
    static func segments(of path: String) -> [Substring] {
        path.utf8.split(separator: UInt8(ascii: "/")).map { Substring($0) }
    }

    /// - Parameter path: percent-decoded, as `HTTPRequest` has it.
    static func route(_ method: HTTPMethod, _ path: String) -> Outcome {
        let segments = segments(of: path)
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
