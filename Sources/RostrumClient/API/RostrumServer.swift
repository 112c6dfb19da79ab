import Foundation

/// A Rostrum server, and the entry point of this library.
///
///     let server = RostrumServer(url) let talk = server.stream("talk", tokens: .guest(name: "Ann")) let sync =
///     talk.follow() for await event in sync.events { … }
public struct RostrumServer: Sendable {
    let http: HTTPClient
    let sockets: any SocketTransport

    /// - Parameters:
    ///   - url: the server's address; its path is ignored.
    ///   - sockets: provides WebSockets; nil for Foundation's. Debian 12's Foundation has none: pass a
    ///     `HeadlessEngine`.
    public init(_ url: URL, sockets: (any SocketTransport)? = nil) {
        http = HTTPClient(url)
        self.sockets = sockets ?? FoundationSockets()
    }

    /// A handle for a stream, which need not exist; nothing is requested from the server.
    public func stream(_ id: String, tokens: TokenSource = .none) -> StreamClient {
        StreamClient(id: id, server: self, tokens: TokenKeeper(http, stream: id, source: tokens))
    }

    // MARK: The feed

    /// A page of the live streams, in the server's order.
    ///
    /// - Parameters:
    ///   - cursor: the `next` of the previous page; nil for the first page.
    ///   - limit: 1 to 100.
    /// - Returns: the streams, and the cursor of the next page.
    /// - Throws: `RostrumError.refused` with 410 (`expired-cursor`) if the list must be read from the beginning again.
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
    /// - Parameter tokens: for all streams (`*`), if watching requires a token.
    public func followFeed(tokens: TokenSource = .none) -> FeedSync {
        FeedSync(http, tokens: keeper(tokens), transport: sockets)
    }

    /// Watches the feed: one connection with at most two streams, chosen by `MediaSession.focus`.
    ///
    /// The m-lines are audio and video of the first seat, `0` and `1`, and of the second, `2` and `3`. The messages
    /// `slots` and `begun` report which stream is in which seat.
    ///
    /// - Parameter stream: where to begin; nil for the feed's first stream.
    /// - Throws: the server's refusal of the first offer.
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
