/// What a server does with its requests.
package protocol HTTPHandler: Sendable {
    /// Answers one request.
    ///
    /// Runs as a task of its own, which is cancelled when the client goes away or the time is up.
    func respond(to request: HTTPRequest) async -> HTTPResponse

    /// Answers a request by what lies at hand; nil for one that has to be looked into.
    ///
    /// Runs on the service thread: it must neither wait nor take long.
    func answerAtOnce(_ request: HTTPRequest) -> HTTPResponse?

    /// Decides about a WebSocket.
    ///
    /// Runs on the service thread: it must neither wait nor take long.
    func upgrade(_ request: HTTPRequest) -> WebSocketDecision

    /// What a request costs beyond others, in requests; negative for one that costs less.
    func surcharge(_ request: HTTPRequest) -> Double

    /// How much longer than others a request may take; asked on the service thread.
    func extraTime(_ request: HTTPRequest) -> Duration

    /// The answer to a request that the server itself turns away, such as one that is too large.
    func refusal(_ status: Int, _ detail: String) -> HTTPResponse
}

extension HTTPHandler {
    /// As much as any other.
    package func surcharge(_ request: HTTPRequest) -> Double { 0 }

    /// As long as any other.
    package func extraTime(_ request: HTTPRequest) -> Duration { .zero }

    /// Nothing lies at hand.
    package func answerAtOnce(_ request: HTTPRequest) -> HTTPResponse? { nil }

    /// No WebSocket anywhere.
    package func upgrade(_ request: HTTPRequest) -> WebSocketDecision {
        .refuse(refusal(404, "There is no WebSocket here."))
    }

    /// A line of text; a handler with its own form of errors answers in that.
    package func refusal(_ status: Int, _ detail: String) -> HTTPResponse {
        .text(status, detail)
    }
}

/// What becomes of a handshake.
package enum WebSocketDecision: Sendable {
    case refuse(HTTPResponse)
    /// The closure owns the conversation: the connection is closed when it returns, and the task that runs it is
    /// cancelled when the client goes away.
    case accept(@Sendable (WebSocketConnection) async -> Void)
}
