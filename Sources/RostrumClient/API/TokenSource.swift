import Foundation

/// Provides tokens, which say who a client is and what it may do.
///
/// A token is used until a minute before it expires; the server then exchanges it for a fresh one. If it does not, or
/// if it refuses a token, the source is asked again.
public struct TokenSource: Sendable {
    enum Kind: Sendable {
        case none
        case custom(@Sendable (_ refused: String?) async throws -> String?)
        case guest(name: String?)
        case invitation(String, name: String?)
        case development(Role, identity: String, name: String)
    }

    let kind: Kind

    /// No token, which suffices where anyone may watch.
    public static let none = TokenSource(kind: .none)

    /// Gets tokens from the app, which has a service of its own for them.
    ///
    /// - Parameter fetch: receives the token that the server has refused, or nil. It returns another token, or nil if
    ///   there is none. An error that it throws fails the request that needed the token.
    public init(_ fetch: @escaping @Sendable (_ refused: String?) async throws -> String?) {
        kind = .custom(fetch)
    }

    /// A token that the app already has.
    public static func fixed(_ token: String) -> TokenSource {
        TokenSource { refused in refused == nil ? token : nil }
    }

    /// A viewer's token with a display name, from a server where viewers need none.
    public static func guest(name: String?) -> TokenSource { TokenSource(kind: .guest(name: name)) }

    /// A token in exchange for the invitation that a link contains (`#token=…`).
    public static func invitation(_ invitation: String, name: String?) -> TokenSource {
        TokenSource(kind: .invitation(invitation, name: name))
    }

    /// A token from a server on the same machine that was started with `--dev`.
    public static func development(_ role: Role, identity: String, name: String) -> TokenSource {
        TokenSource(kind: .development(role, identity: identity, name: name))
    }

    private init(kind: Kind) {
        self.kind = kind
    }
}

/// The content of a token, unverified: only the server can check the signature.
struct TokenClaims: Equatable, Sendable {
    var identity: String?
    /// Nil if the token does not expire, or is no JWT.
    var expiresAt: Date?

    /// - Source: RFC 7519 §4.1 (`sub`, `exp`).
    init(_ token: String) {
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3 else { return }
        var text = String(parts[1].replacing("-", with: "+").replacing("_", with: "/"))
        text += String(repeating: "=", count: (4 - text.count % 4) % 4)
        guard let data = Data(base64Encoded: text), let json = try? JSONValue(parsing: data) else { return }
        identity = json["sub"].string
        expiresAt = json["exp"].integer.map { Date(timeIntervalSince1970: Double($0)) }
    }
}

/// Gets, caches and renews the token for one stream.
actor TokenKeeper {
    /// In seconds: a token is renewed this long before it expires.
    private static let margin = 60.0

    private let http: HTTPClient
    private let stream: String
    private let source: TokenSource
    private var token: String?
    /// Whether the source has been asked, even if it has no token.
    private var isKnown = false
    /// The request under way, which others join: two concurrent requests to the source could yield two identities.
    private var request: Task<Result<String?, RostrumError>, Never>?

    init(_ http: HTTPClient, stream: String, source: TokenSource) {
        self.http = http
        self.stream = stream
        self.source = source
    }

    /// The identity in the token that was used last.
    var identity: String? { token.flatMap { TokenClaims($0).identity } }

    /// The token to use now; nil for none.
    func current(at now: Date = Date()) async throws(RostrumError) -> String? {
        if let token {
            let end = TokenClaims(token).expiresAt ?? .distantFuture
            if end.timeIntervalSince(now) > Self.margin { return token }
            if end > now { return await renewal(of: token) ?? token }
            guard let fresh = try await once({ keeper in await keeper.fetched(instead: token) }) else {
                // Continuing without a token would silently turn this participant into an anonymous viewer.
                throw .refused(
                    status: 401, rule: nil, detail: "The token has ended, and there is no other one.",
                    retryAfter: nil)
            }
            return fresh
        }
        guard !isKnown else { return nil }
        return try await once { keeper in await keeper.fetched(instead: nil) }
    }

    /// A token other than the one that the server refused; nil if there is none.
    func replacement(for refused: String) async throws(RostrumError) -> String? {
        // Another request has replaced it already.
        if let token, token != refused { return token }
        let fresh = try await once { keeper in await keeper.fetched(instead: refused) }
        return fresh == refused ? nil : fresh
    }

    /// Stores a token that the server gave in exchange, such as a speaker's.
    func keep(_ fresh: String) {
        token = fresh
        isKnown = true
    }

    /// Runs a request for a token, or joins the one under way.
    private func once(
        _ body: @escaping @Sendable (TokenKeeper) async -> Result<String?, RostrumError>
    ) async throws(RostrumError) -> String? {
        if let request { return try await request.value.get() }
        let before = token
        let task = Task { await body(self) }
        request = task
        let result = await task.value
        request = nil
        // Another token was kept meanwhile, such as a speaker's, which the one requested before must not replace.
        if token != before { return token }
        if case .success(let fresh) = result {
            token = fresh ?? token
            isKnown = true
        }
        return try result.get()
    }

    /// A fresh token while the old one is still valid; nil on failure.
    private func renewal(of old: String) async -> String? {
        do throws(RostrumError) {
            return try await once { keeper in await keeper.renewed(old) }
        } catch {
            return nil
        }
    }

    /// Exchanges a token at the server.
    private func renewed(_ old: String) async -> Result<String?, RostrumError> {
        do throws(RostrumError) {
            return .success(try await ask("/v1/streams/\(stream.pathPart)/tokens", [:], token: old))
        } catch {
            // Asking other sources again would yield another guest, or another participant for an invitation.
            guard case .custom = source.kind else { return .failure(error) }
            return await fetched(instead: old)
        }
    }

    /// Asks the source.
    private func fetched(instead refused: String?) async -> Result<String?, RostrumError> {
        do throws(RostrumError) {
            return .success(try await fetch(instead: refused))
        } catch {
            return .failure(error)
        }
    }

    private func fetch(instead refused: String?) async throws(RostrumError) -> String? {
        let path = "/v1/streams/\(stream.pathPart)/tokens"
        switch source.kind {
        case .none: return nil
        case .custom(let fetch):
            do {
                return try await fetch(refused)
            } catch let error as RostrumError {
                throw error
            } catch {
                throw .unreachable("the app's token source: \(error)")
            }
        case .guest(let name): return try await ask(path, ["name": name], token: nil)
        case .invitation(let invitation, let name):
            return try await ask(path, ["name": name], token: invitation)
        case .development(let role, let identity, let name):
            let wanted = ["sub": identity, "name": name, "role": role.rawValue, "stream": stream]
            return try await ask("/v1/tokens", wanted, token: nil)
        }
    }

    /// Requests a token from the server.
    private func ask(
        _ path: String, _ members: [String: String?], token: String?
    ) async throws(RostrumError) -> String? {
        let body = try? JSONEncoder().encode(members.compactMapValues(\.self))
        let answer = try await http.send(.init(method: "POST", path: path, token: token, body: body))
        guard let fresh = try JSONValue(parsing: answer.body)["token"].string else {
            throw .unusable("no token in the answer of \(path)")
        }
        return fresh
    }
}
