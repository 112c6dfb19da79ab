import Foundation

/// Where tokens come from: who somebody is, and what they may do.
///
/// A token is kept until a minute before it ends, then the server gives a fresh one for it; where it does not, and
/// where the server refuses one, the source is asked again.
public struct TokenSource: Sendable {
    enum Kind: Sendable {
        case none
        case custom(@Sendable (_ refused: String?) async throws -> String?)
        case guest(name: String?)
        case invitation(String, name: String?)
        case development(Role, identity: String, name: String)
    }

    let kind: Kind

    /// Nobody: enough to watch where the server lets anybody watch.
    public static let none = TokenSource(kind: .none)

    /// Asks the app, which has tokens from a service of its own.
    ///
    /// - Parameter fetch: is told which token the server refused, nil for none. It returns another one, or nil where
    ///   there is none. What it throws ends what was asked for.
    public init(_ fetch: @escaping @Sendable (_ refused: String?) async throws -> String?) {
        kind = .custom(fetch)
    }

    /// One that the app has already.
    public static func fixed(_ token: String) -> TokenSource {
        TokenSource { refused in refused == nil ? token : nil }
    }

    /// A viewer's under a name, from a server where viewers need none.
    public static func guest(name: String?) -> TokenSource { TokenSource(kind: .guest(name: name)) }

    /// One in exchange for the invitation that a link holds (`#token=…`).
    public static func invitation(_ invitation: String, name: String?) -> TokenSource {
        TokenSource(kind: .invitation(invitation, name: name))
    }

    /// One of a server that was started with `--dev`, on the same machine.
    public static func development(_ role: Role, identity: String, name: String) -> TokenSource {
        TokenSource(kind: .development(role, identity: identity, name: name))
    }

    private init(kind: Kind) {
        self.kind = kind
    }
}

/// What a token says of its bearer; only the server can tell whether it is true.
struct TokenClaims: Equatable, Sendable {
    var identity: String?
    /// Nil for what does not end, and for what is no JWT.
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

/// The token for one stream: gets it, keeps it, renews it.
actor TokenKeeper {
    /// Renewed so long before it ends, in seconds.
    private static let margin = 60.0

    private let http: HTTPClient
    private let stream: String
    private let source: TokenSource
    private var token: String?
    private var isKnown = false
    /// Under way: two requests at a time must not make two people of one.
    private var request: Task<Result<String?, RostrumError>, Never>?

    init(_ http: HTTPClient, stream: String, source: TokenSource) {
        self.http = http
        self.stream = stream
        self.source = source
    }

    /// Of the token that was used last.
    var identity: String? { token.flatMap { TokenClaims($0).identity } }

    /// The token to use now; nil for nobody's.
    func current(at now: Date = Date()) async throws(RostrumError) -> String? {
        if let token {
            let end = TokenClaims(token).expiresAt ?? .distantFuture
            if end.timeIntervalSince(now) > Self.margin { return token }
            if end > now { return await renewal(of: token) ?? token }
            guard let fresh = try await once({ keeper in await keeper.fetched(instead: token) }) else {
                // Without a token we would be somebody else: nobody.
                throw .refused(
                    status: 401, rule: nil, detail: "The token has ended, and there is no other one.",
                    retryAfter: nil)
            }
            return fresh
        }
        guard !isKnown else { return nil }
        return try await once { keeper in await keeper.fetched(instead: nil) }
    }

    /// Another one than the server refused; nil if there is none.
    func replacement(for refused: String) async throws(RostrumError) -> String? {
        // Somebody else noticed it before.
        if let token, token != refused { return token }
        let fresh = try await once { keeper in await keeper.fetched(instead: refused) }
        return fresh == refused ? nil : fresh
    }

    /// Keeps one that the server gave in exchange, such as a speaker's.
    func keep(_ fresh: String) {
        token = fresh
        isKnown = true
    }

    private func once(
        _ body: @escaping @Sendable (TokenKeeper) async -> Result<String?, RostrumError>
    ) async throws(RostrumError) -> String? {
        if let request { return try await request.value.get() }
        let task = Task { await body(self) }
        request = task
        let result = await task.value
        request = nil
        if case .success(let fresh) = result {
            token = fresh ?? token
            isKnown = true
        }
        return try result.get()
    }

    /// A fresh one while the old one is still good; nil where there is none yet.
    private func renewal(of old: String) async -> String? {
        do throws(RostrumError) {
            return try await once { keeper in await keeper.renewed(old) }
        } catch {
            return nil
        }
    }

    private func renewed(_ old: String) async -> Result<String?, RostrumError> {
        do throws(RostrumError) {
            return .success(try await ask("/v1/streams/\(stream.pathPart)/tokens", [:], token: old))
        } catch {
            // Another guest's token, or another one for an invitation, would be somebody else's.
            guard case .custom = source.kind else { return .failure(error) }
            return await fetched(instead: old)
        }
    }

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
