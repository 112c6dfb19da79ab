/// The application behind a server: answers its requests and WebSockets.
package protocol HTTPHandler: Sendable {
    /// Answers one request.
    ///
    /// Runs in its own task, which is cancelled when the client disconnects or `handlerTimeout` has passed.
    func respond(to request: HTTPRequest) async -> HTTPResponse

    /// Answers a request from memory; nil for one that `respond` has to answer.
    ///
    /// Runs on the service thread, before `respond`, and saves a task and two thread switches: it must neither block
    /// nor take long.
    func answerAtOnce(_ request: HTTPRequest) -> HTTPResponse?

    /// Accepts or refuses a WebSocket handshake.
    ///
    /// Runs on the service thread, because libwebsockets needs the answer in its callback: it must neither block nor
    /// take long.
    func upgrade(_ request: HTTPRequest) -> WebSocketDecision

    /// The request's extra cost against the client's rate, in requests; negative for a cheap request.
    ///
    /// Runs on the service thread.
    func surcharge(_ request: HTTPRequest) -> Double

    /// Time beyond `handlerTimeout` that a request may take; runs on the service thread.
    func extraTime(_ request: HTTPRequest) -> Duration

    /// The response to a request that the server itself refuses, such as one that is too large.
    ///
    /// Runs on the service thread. The server adds header fields such as `Retry-After`.
    func refusal(_ status: Int, _ detail: String) -> HTTPResponse
}

extension HTTPHandler {
    /// No extra cost.
    package func surcharge(_ request: HTTPRequest) -> Double { 0 }

    /// No extra time.
    package func extraTime(_ request: HTTPRequest) -> Duration { .zero }

    /// Leaves every request to `respond`.
    package func answerAtOnce(_ request: HTTPRequest) -> HTTPResponse? { nil }

    /// Refuses every WebSocket with 404.
    package func upgrade(_ request: HTTPRequest) -> WebSocketDecision {
        .refuse(refusal(404, "There is no WebSocket at this path."))
    }

    /// A line of plain text; handlers with an error format of their own override this.
    package func refusal(_ status: Int, _ detail: String) -> HTTPResponse {
        .text(status, detail)
    }
}

/// Outcome of a WebSocket handshake.
package enum WebSocketDecision: Sendable {
    /// Sent in place of the 101; the connection is closed afterwards.
    case refuse(HTTPResponse)
    /// The closure runs the conversation in its own task: the connection is closed when it returns, and the task is
    /// cancelled when the client disconnects.
    case accept(@Sendable (WebSocketConnection) async -> Void)
}
