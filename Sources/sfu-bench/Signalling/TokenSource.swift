import Crypto
import Foundation

/// Where the credentials of publishers and viewers come from.
///
/// One token given by the user, tokens made with a secret, tokens of a server that runs with `--dev`, or none.
enum TokenSource: Sendable {
    case fixed(String)
    case signed(keyID: String, secret: String)
    case development(URL)
    case none

    enum Role: String, Sendable {
        case host, viewer, admin
    }

    /// What a token that is made here says.
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

    /// Of what is made or asked for, in seconds.
    private static let lifetime = 86_400

    /// Finds out what will do.
    ///
    /// A server on loopback that answers at `/v1/tokens` runs with `--dev`; any other is asked without credentials.
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

    /// What a token is good for.
    enum Scope: Sendable {
        case stream
        /// Every stream of the feed.
        case feed
    }

    /// A token for one identity, whose name is the same unless it is told.
    ///
    /// Nil for a viewer of the feed of a server with `--dev`, where anybody sees everything, and where the only token
    /// is another's: sessions with one token are one viewer, who has no more than two streams.
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
                iss: keyID, sub: identity, name: name ?? identity, stream: stream, role: role.rawValue,
                nbf: now - 60,
                exp: now + Self.lifetime)
            guard let token = JSONWebToken.sign(claims, with: Array(secret.utf8).span) else {
                throw .unusable("no token: its claims are no JSON")
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
            guard let json = try? JSONEncoder().encode(request) else { throw .unusable("no token request") }
            let reply = try await client.post(json: json, to: url)
            guard let decoded = try? JSONDecoder().decode(Reply.self, from: reply) else {
                throw .unusable("\(url.path) answered without a token")
            }
            return decoded.token
        }
    }
}
