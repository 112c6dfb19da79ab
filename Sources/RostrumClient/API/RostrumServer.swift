import Foundation

/// A server of Rostrum's, and where everything begins.
///
///     let server = RostrumServer(url)
///     let talk = server.stream("talk", tokens: .guest(name: "Ann"))
///     let sync = talk.follow()
///     for await event in sync.events { … }
public struct RostrumServer: Sendable {
    let http: HTTPClient
    let sockets: any SocketTransport

    /// - Parameters:
    ///   - url: its address; of the path nothing counts.
    ///   - sockets: where WebSockets come from; nil for Foundation's. On Debian 12 give it a `HeadlessEngine`.
    public init(_ url: URL, sockets: (any SocketTransport)? = nil) {
        http = HTTPClient(url)
        self.sockets = sockets ?? FoundationSockets()
    }

    /// A stream, whether there is one of that name or not; nothing is asked of the server.
    public func stream(_ id: String, tokens: TokenSource = .none) -> StreamClient {
        StreamClient(id: id, server: self, tokens: TokenKeeper(http, stream: id, source: tokens))
    }

    // MARK: The feed

    /// A page of the live streams, in the order in which the server shows them.
    ///
    /// - Parameters:
    ///   - cursor: the `next` of the page before; nil for the first.
    ///   - limit: 1 to 100.
    /// - Returns: the streams, and what asks for those that follow.
    /// - Throws: `RostrumError.refused` with 410 (`expired-cursor`) where the list is to be begun anew.
    public func feed(
        after cursor: String? = nil, limit: Int = 20, tokens: TokenSource = .none
    ) async throws(RostrumError) -> (streams: [StreamInfo], next: String) {
        var query = [URLQueryItem(name: "limit", value: String(limit))]
        if let cursor { query.append(URLQueryItem(name: "cursor", value: cursor)) }
        let token = try await keeper(tokens).current()
        let answer = try await http.send(.init(path: "/v1/feed", query: query, token: token))
        let page = try JSONValue(parsing: answer.body)
        return (page["items"].elements.compactMap { StreamInfo($0) }, page["next"].string ?? "")
    }

    /// Follows the feed.
    /// - Parameter tokens: of streams of all names (`*`), where watching takes one.
    public func followFeed(tokens: TokenSource = .none) -> FeedSync {
        FeedSync(http, tokens: keeper(tokens), transport: sockets)
    }

    /// Watches the feed: one connection with two streams at most, of which `MediaSession.focus` chooses.
    ///
    /// The m-lines are sound and picture of the first slot, `0` and `1`, and of the second one, `2` and `3`; what is in
    /// which comes as the messages `slots` and `begun`.
    ///
    /// - Parameter stream: where to begin; nil for the feed's first.
    /// - Throws: what the server says to the first offer.
    public func watchFeed(
        at stream: String? = nil, engine: some MediaEngine, tokens: TokenSource = .none
    ) async throws(RostrumError) -> MediaSession {
        try await MediaSession(
            SessionPlan(
                http: http, tokens: keeper(tokens), engine: engine, endpoint: "/v1/feed/sessions",
                query: stream.map { [URLQueryItem(name: "stream", value: $0)] } ?? [],
                lines: [.receiveAudio, .receiveVideo, .receiveAudio, .receiveVideo, .control]))
    }

    private func keeper(_ tokens: TokenSource) -> TokenKeeper {
        TokenKeeper(http, stream: "*", source: tokens)
    }
}
