import Foundation

/// One stream of a server, with everything that the bearer of a token may do with it.
///
/// All methods throw `RostrumError`; a refusal names the rule that forbids the request.
public struct StreamClient: Sendable {
    /// The stream's name.
    public let id: String
    let server: RostrumServer
    let tokens: TokenKeeper

    private var path: String { "/v1/streams/\(id.pathPart)" }

    /// The identity that the token names; nil before the first token, and for anonymous viewers.
    public var identity: String? {
        get async { await tokens.identity }
    }

    // MARK: The stream

    /// The stream's public properties.
    /// - Throws: `RostrumError.refused` with 404 if there is no stream of that name.
    public func info() async throws(RostrumError) -> StreamInfo {
        let answer = try await call("GET", "")
        guard let info = StreamInfo(try JSONValue(parsing: answer)) else {
            throw .unusable("a stream without a name")
        }
        return info
    }

    /// Creates the stream with a backstage, for its host; viewers come in once it is live.
    ///
    /// - Parameters:
    ///   - title: for display; nil for none.
    ///   - hostGraceSeconds: how long the stream waits for a host whose connection is lost before it ends, at most
    ///     3,600; nil for the server's default.
    public func create(title: String? = nil, hostGraceSeconds: Int? = nil) async throws(RostrumError) {
        try await call("POST", in: "/v1/streams", "", NewStream(id, title, hostGraceSeconds))
    }

    private struct NewStream: Encodable, Sendable {
        let id: String
        let title: String?
        let hostGraceSeconds: Int?

        init(_ id: String, _ title: String?, _ hostGraceSeconds: Int?) {
            (self.id, self.title, self.hostGraceSeconds) = (id, title, hostGraceSeconds)
        }
    }

    /// Lets viewers watch, as its host.
    public func goLive() async throws(RostrumError) { try await call("POST", "/live") }

    /// Ends the stream, as its host.
    public func end() async throws(RostrumError) { try await call("POST", "/end") }

    /// The state that followers receive, once.
    public func overview() async throws(RostrumError) -> StageState {
        StageState(try JSONValue(parsing: try await call("GET", "/participants")))
    }

    /// Follows the stream from now on.
    public func follow() -> StreamSync {
        StreamSync(server.http, stream: id, tokens: tokens, transport: server.sockets)
    }

    // MARK: The stage

    /// Asks the host for an invitation onto the stage.
    public func raiseHand() async throws(RostrumError) { try await call("POST", "/hands") }

    /// Lowers a raised hand: one's own, or as host another participant's.
    public func lowerHand(of participant: String) async throws(RostrumError) {
        try await call("DELETE", "/hands/\(participant.pathPart)")
    }

    /// Invites a viewer onto the stage, as the host.
    public func invite(_ participant: String) async throws(RostrumError) {
        try await call("POST", "/invitations", ["participant": participant])
    }

    /// Withdraws an invitation, or declines one's own.
    public func endInvitation(of participant: String) async throws(RostrumError) {
        try await call("DELETE", "/invitations/\(participant.pathPart)")
    }

    /// Accepts one's own invitation: the token is a speaker's from then on, so `joinStage` may send.
    /// - Parameter withVideo: false to join with audio alone; video can be added later.
    public func acceptInvitation(withVideo: Bool = true) async throws(RostrumError) {
        _ = try await tokens.current()
        guard let me = await tokens.identity else {
            throw .refused(
                status: 401, rule: nil, detail: "Without a token nobody is invited.", retryAfter: nil)
        }
        let answer = try await call(
            "POST", "/invitations/\(me.pathPart)/accept", ["videoMuted": !withVideo])
        if let token = try JSONValue(parsing: answer)["token"].string { await tokens.keep(token) }
    }

    /// Moves a speaker to the viewers, as the host, or steps down oneself.
    public func leaveStage(_ participant: String) async throws(RostrumError) {
        try await call("DELETE", "/speakers/\(participant.pathPart)")
    }

    /// Reports the state of one's own microphone and camera to all followers.
    public func describe(_ me: String, audioMuted: Bool, videoMuted: Bool) async throws(RostrumError) {
        try await call(
            "PATCH", "/speakers/\(me.pathPart)", ["audioMuted": audioMuted, "videoMuted": videoMuted])
    }

    /// Asks a participant on stage to mute, as the host.
    /// - Parameter kind: `audio` or `video`.
    public func requestMute(of participant: String, kind: String) async throws(RostrumError) {
        try await call("POST", "/speakers/\(participant.pathPart)/mute", ["kind": kind])
    }

    /// Changes one's own display name; the token is replaced by one with the new name.
    public func rename(_ name: String) async throws(RostrumError) {
        let answer = try await call("POST", "/tokens", ["name": name])
        if let token = try JSONValue(parsing: answer)["token"].string { await tokens.keep(token) }
    }

    // MARK: The audience

    /// Writes a comment, and waits until the server accepts it.
    ///
    /// - Parameters:
    ///   - text: 1 to 300 characters.
    ///   - id: a comment that is sent again with the same ID is not duplicated.
    /// - Throws: `RostrumError.refused` with 429 and `retryAfter` if comments are sent too often.
    @discardableResult
    public func comment(_ text: String, id: String = UUID().uuidString) async throws(RostrumError) -> Comment
    {
        let answer = try await call("POST", "/comments", ["id": id, "text": text])
        guard let comment = Comment(try JSONValue(parsing: answer)) else {
            throw .unusable("a comment without a number")
        }
        return comment
    }

    /// Comments that have been written already, the oldest first.
    /// - Parameter number: only comments after this number; nil for the latest ones.
    public func comments(after number: Int? = nil) async throws(RostrumError) -> [Comment] {
        let query = number.map { [URLQueryItem(name: "after", value: String($0))] } ?? []
        let answer = try await call("GET", in: path, "/comments", query: query, nil as String?)
        return try JSONValue(parsing: answer)["comments"].elements.compactMap { Comment($0) }
    }

    /// Adds taps by their kind, such as `heart`; followers receive only the sums.
    public func react(_ taps: [String: Int]) async throws(RostrumError) {
        try await call("POST", "/reactions", ["reactions": taps])
    }

    /// Calls any other route of the stream, as described by `/v1/openapi.json` on the server.
    ///
    /// - Parameters:
    ///   - method: of HTTP.
    ///   - route: relative to the stream's address, such as `/recording`; its parts must be percent-encoded.
    ///   - body: encoded as JSON.
    /// - Returns: the body of the answer, which is JSON or empty.
    @discardableResult
    public func call(
        _ method: String, _ route: String, _ body: (some Encodable & Sendable)? = nil as String?
    ) async throws(RostrumError) -> Data {
        try await call(method, in: path, route, body)
    }

    /// Sends a request with the token, and once more with another token if the server refuses the first one.
    @discardableResult
    private func call(
        _ method: String, in path: String, _ route: String, query: [URLQueryItem] = [],
        _ body: (some Encodable & Sendable)?
    ) async throws(RostrumError) -> Data {
        var request = HTTPClient.Request(method: method, path: path + route, query: query)
        if let body { request.body = try? JSONEncoder().encode(body) }
        request.token = try await tokens.current()
        do throws(RostrumError) {
            return try await server.http.send(request).body
        } catch {
            guard case .refused(401, _, _, _) = error, let token = request.token,
                let other = try await tokens.replacement(for: token)
            else { throw error }
            request.token = other
            return try await server.http.send(request).body
        }
    }

    // MARK: Media

    /// Watches the stream by WHEP: m-line `0` is its audio, m-line `1` its video.
    ///
    /// - Parameter wait: for how many seconds the server keeps a place if the stream is not live yet.
    /// - Throws: the server's refusal of the first offer: 409 if there is no publisher and `wait` is 0.
    public func watch(wait: Int = 0, engine: some MediaEngine) async throws(RostrumError) -> MediaSession {
        try await MediaSession(
            SessionPlan(
                http: server.http, tokens: tokens, engine: engine, endpoint: "/whep/\(id.pathPart)",
                query: wait > 0 ? [URLQueryItem(name: "wait", value: String(wait))] : [],
                lines: [.receiveAudio, .receiveVideo]))
    }

    /// Publishes to the stream by WHIP, as its host or a speaker.
    ///
    /// - Parameter lines: what to send, such as `[.sendAudio]`.
    /// - Throws: the server's refusal of the first offer.
    public func publish(_ lines: [MediaLine], engine: some MediaEngine) async throws(RostrumError)
        -> MediaSession
    {
        try await MediaSession(
            SessionPlan(
                http: server.http, tokens: tokens, engine: engine, endpoint: "/whip/\(id.pathPart)",
                lines: lines))
    }

    /// Joins the stage as its host or a speaker: sends, and receives the others in slots.
    ///
    /// The message `slots` reports by mid who is in which slot. The m-lines are those of `sending`, then `voices` of
    /// audio and `pictures` of video, then the control channel.
    ///
    /// - Parameters:
    ///   - sending: what to send, such as `[.sendAudio]`.
    ///   - voices: participants that are heard at the same time.
    ///   - pictures: participants that are seen at the same time.
    /// - Throws: the server's refusal of the first offer.
    public func joinStage(
        sending: [MediaLine], voices: Int = 3, pictures: Int = 8, engine: some MediaEngine
    ) async throws(RostrumError) -> MediaSession {
        let slots =
            [MediaLine](repeating: .receiveAudio, count: max(voices, 0))
            + [MediaLine](repeating: .receiveVideo, count: max(pictures, 0))
        return try await MediaSession(
            SessionPlan(
                http: server.http, tokens: tokens, engine: engine, endpoint: "\(path)/sessions",
                lines: sending + slots + [.control]))
    }
}
