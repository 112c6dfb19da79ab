import Base
import Foundation
import HTTP
import Node

extension GatewayHandler {
    /// The body of `POST /v1/tokens`.
    private struct TokenRequest: Decodable {
        let sub: String
        let name: String?
        let role: String
        let stream: String?
        let capabilities: [String]?
        let tiers: [String]?
        /// Lifetime in seconds; nil for the default.
        let ttl: Double?
    }

    /// Default of `ttl` in seconds: an hour.
    private static let usualLifetime = 3_600
    /// Limit of `ttl` in seconds: a week, as tokens cannot be revoked one by one.
    private static let longestLifetime = 604_800

    /// `POST /v1/tokens`: issues a token; for admins, and in development for anyone on this machine.
    func makeToken(_ call: Call) throws(Problem) -> HTTPResponse {
        // An expired or forged token is refused, even in development, where none is needed.
        if let token = try call.access.token() {
            guard token.role == .admin else {
                throw Access.forbidden("Creating tokens requires an admin's token.")
            }
        } else if !call.access.isTrustedDeveloper {
            throw Access.unauthorized("Creating tokens requires an admin's token.")
        }
        guard MediaType.isContent(of: call.request, MediaType.json) else {
            throw Problem(415, nil, "The request's Content-Type must be \(MediaType.json).")
        }
        // Unknown members are reported before missing ones, since a misspelt member is often both.
        if case .object(let members)? = JSON(parsing: call.request.body) {
            try call.check(members)
        }
        guard let wanted = try? JSONDecoder().decode(TokenRequest.self, from: Data(call.request.body)) else {
            throw Problem(
                400, nil, "The body must be a JSON object with sub, role, stream and optionally name, ttl.")
        }
        // The same rules as for verification, so that no token is issued that would be refused later.
        guard let subject = ParticipantID(wanted.sub) else {
            throw Self.invalid("sub", "sub must be 1 to 128 printable characters.")
        }
        guard wanted.name.map({ ParticipantID($0) != nil }) ?? true else {
            throw Self.invalid("name", "name must be 1 to 128 printable characters.")
        }
        guard let role = Role(rawValue: wanted.role) else {
            throw Self.invalid("role", "role must be one of host, speaker, viewer, admin.")
        }
        guard let scope = Token.Scope(wanted.stream, for: role) else {
            throw Self.invalid("stream", "stream must be * or 1 to 64 of A-Z a-z 0-9 _ -.")
        }
        // Unknown capabilities are ignored in verification, but refused here, where a typing error can still be
        // corrected.
        let capabilities = (wanted.capabilities ?? []).map { Capability(rawValue: $0) }
        guard capabilities.allSatisfy({ $0 != nil }) else {
            throw Self.invalid("capabilities", "capabilities must be a list of \(Capability.list).")
        }
        let tiers = wanted.tiers ?? []
        guard tiers.count <= Token.tierLimit, tiers.allSatisfy(Tier.isName) else {
            throw Self.invalid(
                "tiers", "tiers can have up to \(Token.tierLimit) names, each 1 to 32 of A-Z a-z 0-9 _ -.")
        }
        let lifetime = wanted.ttl ?? Double(Self.usualLifetime)
        guard lifetime.isFinite, (1...Double(Self.longestLifetime)).contains(lifetime) else {
            throw Self.invalid("ttl", "ttl must be 1 to \(Self.longestLifetime) seconds.")
        }
        let now = call.access.now()
        let expires = now + Int(lifetime)
        guard
            let token = call.access.authority.mint(
                subject: subject, name: wanted.name, scope: scope, role: role,
                capabilities: Set(capabilities.compactMap { $0 }), tiers: Set(tiers), issuedAt: now,
                expires: expires)
        else { throw Problem(503, nil, "This server has no signing key.") }
        var response = HTTPResponse.json(
            201,
            .object(["token": .string(token.exposed), "expiresAt": .string(Timestamp.text(Double(expires)))]))
        response.headers.set("Cache-Control", "no-store")
        return response
    }

    /// A 422 about one field.
    private static func invalid(_ field: String, _ detail: String) -> Problem {
        var problem = Problem(422, nil, detail)
        problem.members["field"] = .string(field)
        return problem
    }
}
