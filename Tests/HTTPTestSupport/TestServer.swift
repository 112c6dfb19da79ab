import Base
import HTTP

/// Answers with what a closure says.
package struct ClosureHandler: HTTPHandler {
    var answer: @Sendable (HTTPRequest) async -> HTTPResponse
    var socket: (@Sendable (WebSocketConnection) async -> Void)?
    var cost: @Sendable (HTTPRequest) -> Double
    var extraTime: @Sendable (HTTPRequest) -> Duration
    var atOnce: @Sendable (HTTPRequest) -> HTTPResponse?

    /// - Parameters:
    ///   - socket: what is said on a WebSocket at `/socket`; without it there is none.
    ///   - cost: what a request costs beyond others, in requests.
    ///   - extraTime: how much longer than others it may take.
    ///   - atOnce: what the server's own thread answers.
    package init(
        answer: @escaping @Sendable (HTTPRequest) async -> HTTPResponse = { ClosureHandler.echo($0) },
        socket: (@Sendable (WebSocketConnection) async -> Void)? = nil,
        cost: @escaping @Sendable (HTTPRequest) -> Double = { _ in 0 },
        extraTime: @escaping @Sendable (HTTPRequest) -> Duration = { _ in .zero },
        atOnce: @escaping @Sendable (HTTPRequest) -> HTTPResponse? = { _ in nil }
    ) {
        self.answer = answer
        self.socket = socket
        self.cost = cost
        self.extraTime = extraTime
        self.atOnce = atOnce
    }

    package func respond(to request: HTTPRequest) async -> HTTPResponse { await answer(request) }

    package func answerAtOnce(_ request: HTTPRequest) -> HTTPResponse? { atOnce(request) }

    package func surcharge(_ request: HTTPRequest) -> Double { cost(request) }

    package func extraTime(_ request: HTTPRequest) -> Duration { extraTime(request) }

    package func upgrade(_ request: HTTPRequest) -> WebSocketDecision {
        guard let socket, request.path == "/socket" else { return .refuse(refusal(404, "none")) }
        return .accept(socket)
    }

    /// Method, path, query and body, one a line.
    package static func echo(_ request: HTTPRequest) -> HTTPResponse {
        var text = "\(request.method.rawValue)\n\(request.path)\n"
        text += request.query.map { "\($0.name)=\($0.value)" }.joined(separator: "&") + "\n"
        text += String(decoding: request.body, as: UTF8.self)
        return HTTPResponse(status: 200, headers: ["Content-Type": "text/plain"], body: Array(text.utf8))
    }
}

/// Waits for what never comes, until the task is cancelled.
package func waitInVain() async {
    for await _ in AsyncStream<Void>.makeStream().stream {}
}

/// Of a server on a free loopback port that lets nobody go for being slow: a busy machine is no slow client.
package func patientSettings() -> HTTPServerSettings {
    var settings = HTTPServerSettings(address: TransportAddress(ip: .loopback, port: 0))
    settings.receiveTimeout = .seconds(3_600)
    settings.handlerTimeout = .seconds(3_600)
    settings.sendTimeout = .seconds(3_600)
    settings.idleTimeout = .seconds(3_600)
    // Pings between the frames a test reads, when the machine is busy, would be in its way.
    settings.webSocketPing = .seconds(1_800)
    settings.webSocketHangup = .seconds(3_600)
    return settings
}

/// Runs a server on a free loopback port while `body` runs.
package func withServer(
    _ handler: ClosureHandler = ClosureHandler(), _ change: (inout HTTPServerSettings) -> Void = { _ in },
    _ body: (HTTPServer) async throws -> Void
) async throws {
    var settings = patientSettings()
    change(&settings)
    let server = try await HTTPServer.start(settings, handler: handler, log: .silent)
    do {
        try await body(server)
    } catch {
        await server.stop(grace: .zero)
        throw error
    }
    await server.stop(grace: .zero)
}
