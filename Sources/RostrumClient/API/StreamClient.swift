import Foundation

/// One stream of a server's, and what somebody with a token may do with it.
///
/// All of it throws `RostrumError`: where the server refuses, with the rule that forbids it.
public struct StreamClient: Sendable {
    /// The stream's name.
    public let id: String
    let server: RostrumServer
    let tokens: TokenKeeper

    private var path: String { "/v1/streams/\(id.pathPart)" }

    /// The identity that the token names; nil before there was one, and for those who have none.
    public var identity: String? {
        get async { await tokens.identity }
    }

    // MARK: The stream

    /// What everybody may know of it.
    /// - Throws: `RostrumError.refused` with 404 where there is none of that name.
    public func info() async throws(RostrumError) -> StreamInfo {
        let answer = try await call("GET", "")
        guard let info = StreamInfo(try JSONValue(parsing: answer)) else {
            throw .unusable("a stream without a name")
        }
        return info
    }

    /// Makes it, by its host: with a backstage, until it goes live.
    ///
    /// - Parameters:
    ///   - title: for people; nil for none.
    ///   - hostGraceSeconds: how long it waits for a host whose connection is lost before it ends, 3,600 at most;
    ///     nil for as long as the server usually does.
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

    /// Lets viewers see and hear it, by its host.
    public func goLive() async throws(RostrumError) { try await call("POST", "/live") }

    /// Ends it, by its host.
    public func end() async throws(RostrumError) { try await call("POST", "/end") }

    /// What followers see, once.
    public func overview() async throws(RostrumError) -> StageState {
        StageState(try JSONValue(parsing: try await call("GET", "/participants")))
    }

    /// Follows it from now on.
    public func follow() -> StreamSync {
        StreamSync(server.http, stream: id, tokens: tokens, transport: server.sockets)
    }

    // MARK: The stage

    /// Asks the host to be invited onto the stage.
    public func raiseHand() async throws(RostrumError) { try await call("POST", "/hands") }

    /// Takes a raised hand down: one's own, or as host another's.
    public func lowerHand(of participant: String) async throws(RostrumError) {
        try await call("DELETE", "/hands/\(participant.pathPart)")
    }

    /// Invites a viewer onto the stage, by its host.
    public func invite(_ participant: String) async throws(RostrumError) {
        try await call("POST", "/invitations", ["participant": participant])
    }

    /// Withdraws an invitation, or declines one's own.
    public func endInvitation(of participant: String) async throws(RostrumError) {
        try await call("DELETE", "/invitations/\(participant.pathPart)")
    }

    /// Accepts one's own invitation: from then on the token is a speaker's, and `joinStage` sends, too.
    /// - Parameter withVideo: false to come with sound alone; a picture can come later.
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

    /// Moves somebody to the viewers, or steps down oneself.
    public func leaveStage(_ participant: String) async throws(RostrumError) {
        try await call("DELETE", "/speakers/\(participant.pathPart)")
    }

    /// Tells all what one's own microphone and camera do.
    public func describe(_ me: String, audioMuted: Bool, videoMuted: Bool) async throws(RostrumError) {
        try await call(
            "PATCH", "/speakers/\(me.pathPart)", ["audioMuted": audioMuted, "videoMuted": videoMuted])
    }

    /// Asks somebody on stage to mute, by its host.
    /// - Parameter kind: `audio` or `video`.
    public func requestMute(of participant: String, kind: String) async throws(RostrumError) {
        try await call("POST", "/speakers/\(participant.pathPart)/mute", ["kind": kind])
    }

    /// Gives oneself another name; the token is a fresh one from then on.
    public func rename(_ name: String) async throws(RostrumError) {
        let answer = try await call("POST", "/tokens", ["name": name])
        if let token = try JSONValue(parsing: answer)["token"].string { await tokens.keep(token) }
    }

    // MARK: The audience

    /// Writes a comment, and waits until it is taken.
    ///
    /// - Parameters:
    ///   - text: 1 to 300 characters.
    ///   - id: one that is sent again under its id is the same comment.
    /// - Throws: `RostrumError.refused` with 429 and `retryAfter` for who writes too often.
    @discardableResult
    public func comment(_ text: String, id: String = UUID().uuidString) async throws(RostrumError) -> Comment
    {
        let answer = try await call("POST", "/comments", ["id": id, "text": text])
        guard let comment = Comment(try JSONValue(parsing: answer)) else {
            throw .unusable("a comment without a number")
        }
        return comment
    }

    /// Comments that were written before now, the oldest first.
    /// - Parameter number: of one, for those after it; nil for the latest.
    public func comments(after number: Int? = nil) async throws(RostrumError) -> [Comment] {
        let query = number.map { [URLQueryItem(name: "after", value: String($0))] } ?? []
        let answer = try await call("GET", in: path, "/comments", query: query, nil as String?)
        return try JSONValue(parsing: answer)["comments"].elements.compactMap { Comment($0) }
    }

    /// Counts taps, by kind (`heart`), which all are told as a sum.
    public func react(_ taps: [String: Int]) async throws(RostrumError) {
        try await call("POST", "/reactions", ["reactions": taps])
    }

    /// Calls any other route below the stream's, as `/v1/openapi.json` on the server has them.
    ///
    /// - Parameters:
    ///   - method: of HTTP.
    ///   - route: below the stream's address, such as `/recording`; its parts percent-encoded.
    ///   - body: becomes JSON.
    /// - Returns: the answer's body, JSON or nothing.
    @discardableResult
    public func call(
        _ method: String, _ route: String, _ body: (some Encodable & Sendable)? = nil as String?
    ) async throws(RostrumError) -> Data {
        try await call(method, in: path, route, body)
    }

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

    /// Watches it by WHEP: its sound is m-line `0`, its picture `1`.
    ///
    /// - Parameter wait: how many seconds the server keeps a place for a stream that is not live yet.
    /// - Throws: what the server says to the first offer: 409 where nobody publishes and there is no `wait`.
    public func watch(wait: Int = 0, engine: some MediaEngine) async throws(RostrumError) -> MediaSession {
        try await MediaSession(
            SessionPlan(
                http: server.http, tokens: tokens, engine: engine, endpoint: "/whep/\(id.pathPart)",
                query: wait > 0 ? [URLQueryItem(name: "wait", value: String(wait))] : [],
                lines: [.receiveAudio, .receiveVideo]))
    }

    /// Publishes it by WHIP, by its host or a speaker.
    ///
    /// - Parameter lines: what is sent, such as `[.sendAudio]`.
    /// - Throws: what the server says to the first offer.
    public func publish(_ lines: [MediaLine], engine: some MediaEngine) async throws(RostrumError)
        -> MediaSession
    {
        try await MediaSession(
            SessionPlan(
                http: server.http, tokens: tokens, engine: engine, endpoint: "/whip/\(id.pathPart)",
                lines: lines))
    }

    /// Comes onto the stage, by who may: sends, and receives the others in slots.
    ///
    /// What is in which slot comes as the message `slots`, by mid: the m-lines are those of `sending`, then `voices` of
    /// sound and `pictures` of video, then the control channel.
    ///
    /// - Parameters:
    ///   - sending: sound and picture, such as `[.sendAudio]`.
    ///   - voices: how many are heard at once.
    ///   - pictures: how many are seen at once.
    /// - Throws: what the server says to the first offer.
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
