import Base
import HTTP
import Stage

/// Authentication and authorization of one request.
///
/// Checks only the token. Bans, revoked links and gates are state of a stream, which the service checks.
/// - Source: RFC 6750 §2.1 (header field), §2.3 (query), §3 (challenges).
struct Access: Sendable {
    let request: HTTPRequest
    let authority: TokenAuthority
    let settings: GatewaySettings
    /// Seconds since 1970.
    let now: @Sendable () -> Int

    /// The request's token, verified; nil if it carries none.
    /// - Parameter acceptsExpired: for changes of a session that exists already.
    func token(acceptsExpired: Bool = false) throws(Problem) -> Token? {
        guard let text = try bearer() else { return nil }
        do throws(TokenRefusal) {
            return try authority.verify(text, now: now(), acceptsExpired: acceptsExpired)
        } catch {
            throw error.problem
        }
    }

    /// The request's token or invitation, verified; nil if it carries neither.
    func credential() throws(Problem) -> Credential? {
        guard let text = try bearer() else { return nil }
        do throws(TokenRefusal) {
            return try authority.verifyCredential(text, now: now())
        } catch {
            throw error.problem
        }
    }

    /// The text of the token: from `Authorization`, else from the query, which browsers need for media and sockets.
    private func bearer() throws(Problem) -> String? {
        guard let field = request.headers["authorization"] else { return request.query("access_token") }
        let parts = field.trimmed.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else {
            throw Self.unauthorized(
                "Authorization must use the scheme Bearer.", error: "invalid_request",
                rule: "token-invalid")
        }
        return parts[1].trimmed
    }

    /// - Returns: the token of a sender who may publish to the stream.
    func requirePublisher(of stream: StreamID, acceptsExpired: Bool = false) throws(Problem) -> Token {
        guard let token = try token(acceptsExpired: acceptsExpired) else {
            throw Self.unauthorized("Publishing requires a token.")
        }
        guard token.mayPublish(to: stream) else {
            throw Self.forbidden("This token doesn't allow publishing to this stream.")
        }
        return token
    }

    /// - Returns: the token of a sender who may watch; nil if watching requires none and none was shown.
    func requireViewer(of stream: StreamID, acceptsExpired: Bool = false) throws(Problem) -> Token? {
        guard let token = try token(acceptsExpired: acceptsExpired) else {
            guard settings.viewers == .everyone else { throw Self.unauthorized("Watching requires a token.") }
            return nil
        }
        guard settings.viewers == .everyone || token.mayPlay(stream) else {
            throw Self.otherStream
        }
        return token
    }

    /// - Returns: the token of a sender with an identity, who may act in the stream within its rules.
    func requireParticipant(of stream: StreamID, acceptsExpired: Bool = false) throws(Problem) -> Token {
        guard let token = try token(acceptsExpired: acceptsExpired) else {
            throw Self.unauthorized("This requires a token.")
        }
        guard token.mayPlay(stream) else { throw Self.otherStream }
        return token
    }

    /// Whether the request may do everything: in development, from this machine.
    var isTrustedDeveloper: Bool { settings.isDevelopment && isFromThisMachine }

    /// Requires an admin's token, or a request from this machine; for reading metrics.
    func requireOperator() throws(Problem) {
        if let token = try token() {
            guard token.role == .admin else { throw Self.forbidden("This requires an admin's token.") }
        } else if !isFromThisMachine {
            throw Self.unauthorized(
                "This requires an admin's token, except from the server's own machine.")
        }
    }

    /// Whether the request comes directly from this machine, and not from a proxy or a foreign web page.
    ///
    /// `Host` is checked against DNS rebinding, `Origin` against pages of other sites in a local browser.
    private var isFromThisMachine: Bool {
        guard request.remoteAddress.ip.isLoopback, !request.isForwarded else { return false }
        guard let host = request.headers["host"].map(Self.hostName), Self.isLoopback(host) else {
            return false
        }
        guard let origin = request.headers["origin"] else { return true }
        // `null` and other origins without a host belong to foreign pages.
        let parts = origin.split(separator: "/", omittingEmptySubsequences: false)
        return parts.count == 3 && parts[1].isEmpty && Self.isLoopback(Self.hostName(String(parts[2])))
    }

    /// The host of an authority, without port and brackets (RFC 3986 §3.2.2).
    private static func hostName(_ authority: String) -> String {
        if authority.hasPrefix("[") { return String(authority.dropFirst().prefix { $0 != "]" }) }
        return String(authority.prefix { $0 != ":" })
    }

    /// Whether a name always means this machine (RFC 6761 §6.3), or an address does.
    private static func isLoopback(_ host: String) -> Bool {
        host == "localhost" || host.hasSuffix(".localhost") || IPAddress(host)?.isLoopback == true
    }

    /// A 401 with a challenge.
    /// - Parameters:
    ///   - error: a code of RFC 6750 §3.1; nil if the request had no credentials, as §3 demands.
    ///   - rule: the kind of problem; nil for `token-missing`.
    static func unauthorized(_ detail: String, error: String? = nil, rule: String? = nil) -> Problem {
        let challenge =
            error.map { "Bearer realm=\"rostrum\", error=\"\($0)\"" } ?? "Bearer realm=\"rostrum\""
        return Problem(401, rule, detail, headers: ["WWW-Authenticate": challenge])
    }

    /// The token is valid, but for another stream.
    static var otherStream: Problem { forbidden("This token is for another stream.", rule: "other-stream") }

    /// A 403 with a challenge.
    /// - Parameter rule: the kind of problem, for programs to compare; nil for `not-allowed`.
    static func forbidden(_ detail: String, rule: String? = nil) -> Problem {
        Problem(
            403, rule, detail,
            headers: ["WWW-Authenticate": "Bearer realm=\"rostrum\", error=\"insufficient_scope\""])
    }
}

extension Token {
    /// The bearer as a stage's sender; nil if the token is for another stream and so proves nothing in this one.
    func sender(in stream: StreamID) -> Stage.Sender? { mayPlay(stream) ? sender : nil }

    /// The bearer as a stage's sender, in streams that the token is for.
    var sender: Stage.Sender {
        let authority: Stage.Sender.Authority =
            switch role {
            case .admin: .admin
            case .host: .host
            case .speaker: .speaker
            case .viewer: .viewer
            }
        return Stage.Sender(
            id: subject, name: name, authority: authority,
            mayJoinBackstage: capabilities.contains(.joinBackstage), link: link,
            mayGiveGifts: capabilities.contains(.giveGifts), mayModerate: capabilities.contains(.moderate),
            tiers: tiers, isGuest: isGuests)
    }
}
