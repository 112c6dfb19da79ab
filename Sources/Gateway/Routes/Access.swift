import Base
import HTTP
import Stage

/// Who sent a request, and what they may do.
struct Access: Sendable {
    let request: HTTPRequest
    let authority: TokenAuthority
    let settings: GatewaySettings
    /// Seconds since 1970.
    let now: @Sendable () -> Int

    /// The token the request carries, checked; nil when it carries none.
    func token(acceptsExpired: Bool = false) throws(Problem) -> Token? {
        guard let text = try bearer() else { return nil }
        do throws(TokenRefusal) {
            return try authority.verify(text, now: now(), acceptsExpired: acceptsExpired)
        } catch {
            throw error.problem
        }
    }

    /// The token or invitation the request carries, checked; nil when it carries neither.
    func credential() throws(Problem) -> Credential? {
        guard let text = try bearer() else { return nil }
        do throws(TokenRefusal) {
            return try authority.verifyCredential(text, now: now())
        } catch {
            throw error.problem
        }
    }

    private func bearer() throws(Problem) -> String? {
        guard let field = request.headers["authorization"] else { return request.query("access_token") }
        let parts = field.trimmed.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else {
            throw Self.unauthorized(
                "Only the scheme Bearer is known here.", error: "invalid_request",
                rule: "token-invalid")
        }
        return parts[1].trimmed
    }

    /// - Returns: the token of somebody who may be the stream's source.
    func requirePublisher(of stream: StreamID, acceptsExpired: Bool = false) throws(Problem) -> Token {
        guard let token = try token(acceptsExpired: acceptsExpired) else {
            throw Self.unauthorized("Publishing requires a token.")
        }
        guard token.mayPublish(to: stream) else {
            throw Self.forbidden("This token does not allow publishing to this stream.")
        }
        return token
    }

    /// - Returns: the token of somebody who may watch; nil where that takes none and none was shown.
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

    /// - Returns: somebody by name, who may act in the stream as far as its rules go.
    func requireParticipant(of stream: StreamID, acceptsExpired: Bool = false) throws(Problem) -> Token {
        guard let token = try token(acceptsExpired: acceptsExpired) else {
            throw Self.unauthorized("This requires a token.")
        }
        guard token.mayPlay(stream) else { throw Self.otherStream }
        return token
    }

    /// Development, on this machine.
    var isTrustedDeveloper: Bool { settings.isDevelopment && isFromThisMachine }

    /// Lets operators see numbers: administrators, and whoever is on this machine.
    func requireOperator() throws(Problem) {
        if let token = try token() {
            guard token.role == .admin else { throw Self.forbidden("This requires an admin's token.") }
        } else if !isFromThisMachine {
            throw Self.unauthorized(
                "This requires an admin's token, except from the server's own machine.")
        }
    }

    /// Not by a proxy, nor from some web page that happens to be open in its browser.
    private var isFromThisMachine: Bool {
        guard request.remoteAddress.ip.isLoopback, !request.isForwarded else { return false }
        guard let host = request.headers["host"].map(Self.hostName), Self.isLoopback(host) else {
            return false
        }
        guard let origin = request.headers["origin"] else { return true }
        // `null` and other things without a host are some stranger's.
        let parts = origin.split(separator: "/", omittingEmptySubsequences: false)
        return parts.count == 3 && parts[1].isEmpty && Self.isLoopback(Self.hostName(String(parts[2])))
    }

    /// Without the port and brackets.
    private static func hostName(_ authority: String) -> String {
        if authority.hasPrefix("[") { return String(authority.dropFirst().prefix { $0 != "]" }) }
        return String(authority.prefix { $0 != ":" })
    }

    private static func isLoopback(_ host: String) -> Bool {
        host == "localhost" || host.hasSuffix(".localhost") || IPAddress(host)?.isLoopback == true
    }

    /// - Parameter error: of RFC 6750 §3.1; nil when no credentials were shown.
    static func unauthorized(_ detail: String, error: String? = nil, rule: String? = nil) -> Problem {
        let challenge =
            error.map { "Bearer realm=\"rostrum\", error=\"\($0)\"" } ?? "Bearer realm=\"rostrum\""
        return Problem(401, rule, detail, headers: ["WWW-Authenticate": challenge])
    }

    static var otherStream: Problem { forbidden("This token is not for this stream.", rule: "other-stream") }

    /// - Parameter rule: for programs to compare.
    static func forbidden(_ detail: String, rule: String? = nil) -> Problem {
        Problem(
            403, rule, detail,
            headers: ["WWW-Authenticate": "Bearer realm=\"rostrum\", error=\"insufficient_scope\""])
    }
}

extension Token {
    /// Its bearer, to the rules of a stream; nil where the token is for another one, and so says nothing here.
    func sender(in stream: StreamID) -> Stage.Sender? { mayPlay(stream) ? sender : nil }

    /// Its bearer, where the token counts.
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
