import Crypto
import Foundation

/// The source of the tokens of publishers and viewers.
///
/// A token given by the user, tokens signed here with a secret, tokens from a server that runs with `--dev`, or none.
enum TokenSource: Sendable {
    /// The same token for every client.
    case fixed(String)
    /// Signed here, one for each identity.
    case signed(keyID: String, secret: String)
    /// Requested at this URL, one for each identity.
    case development(URL)
    case none

    enum Role: String, Sendable {
        case host, viewer, admin
    }

    /// The claims of a token that is signed here.
    struct Claims: Encodable {
        /// The key's id.
        var iss: String
        /// The identity.
        var sub: String
        var name: String
        var stream: String
        var role: String
        /// Seconds since 1970.
        var nbf: Int
        var exp: Int
    }

    /// Of tokens that are signed here or requested, in seconds.
    private static let lifetime = 86_400

    /// Selects the source by the options, or tries whether the server has tokens for development.
    ///
    /// A server on loopback that answers at `/v1/tokens` runs with `--dev`. Any other is used without tokens.
    init(_ options: Options, client: SignallingClient) async {
        if let token = options.target.token {
            self = .fixed(token)
        } else if let secret = options.target.secret {
            self = .signed(keyID: options.target.keyID ?? "dev", secret: secret)
        } else if options.server.isLoopback,
            let url = URL(string: "/v1/tokens", relativeTo: options.server.url)
        {
            let development = TokenSource.development(url.absoluteURL)
            let stream = options.target.streamNames.first ?? options.target.stream
            let works = (try? await development.token(for: "sfu-bench", .viewer, stream, client)) != nil
            self = works ? development : .none
        } else {
            self = .none
        }
    }

    /// Which streams a token is valid for.
    enum Scope: Sendable {
        case stream
        /// Every stream of the feed.
        case feed
    }

    /// Returns a token for an identity; its name is the identity unless another one is given.
    ///
    /// Nil for a viewer of the feed, unless tokens are signed here. With `--dev` a viewer may watch everything, and a
    /// fixed token is the same for all viewers: sessions with one token are one viewer, who gets two streams at most.
    func token(
        for identity: String, _ role: Role, _ stream: String, _ client: SignallingClient,
        scope: Scope = .stream, name: String? = nil
    ) async throws(SignallingError) -> String? {
        if scope == .feed {
            guard case .signed = self else { return nil }
        }
        let stream = scope == .feed ? "*" : stream
        switch self {
        case .none: return nil
        case .fixed(let token): return token
        case .signed(let keyID, let secret):
            let now = Int(Date().timeIntervalSince1970)
            let claims = Claims(
                // Valid since a minute ago, in case the server's clock is behind.
                iss: keyID, sub: identity, name: name ?? identity, stream: stream, role: role.rawValue,
                nbf: now - 60,
                exp: now + Self.lifetime)
            guard let token = JSONWebToken.sign(claims, with: Array(secret.utf8).span) else {
                throw .unusable("no token: its claims are not JSON")
            }
            return token
        case .development(let url):
            struct Request: Encodable {
                var sub: String
                var name: String
                var role: String
                var stream: String
                var ttl: Int
            }
            struct Reply: Decodable {
                var token: String
            }
            let request = Request(
                sub: identity, name: name ?? identity, role: role.rawValue, stream: stream, ttl: Self.lifetime
            )
            guard let json = try? JSONEncoder().encode(request) else {
                throw .unusable("cannot make a token request")
            }
            let reply = try await client.post(json: json, to: url)
            guard let decoded = try? JSONDecoder().decode(Reply.self, from: reply) else {
                throw .unusable("\(url.path) answered without a token")
            }
            return decoded.token
        }
    }
}
