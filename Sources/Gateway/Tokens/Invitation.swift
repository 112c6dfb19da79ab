import Base
import Stage

/// The credential in a link that many people open: it grants a role, but no identity.
///
/// A JWT without `sub` and with `"use":"invitation"`. It can only be exchanged for a token with an identity of its
/// own, so that two people never act under one identity.
package struct Invitation: Equatable, Sendable {
    /// The roles a link can grant; never host or admin.
    package enum Role: String, Sendable, CaseIterable {
        case speaker
        case viewer
    }

    /// Value of the claim `use`.
    static let use = "invitation"

    /// The only stream it is valid for.
    package let stream: StreamID
    /// Role of the token given in exchange.
    package let role: Role
    /// The claim `iat`, in seconds since 1970; a host revokes all links issued up to a moment.
    package let issued: Int
    /// The claim `exp`, in seconds since 1970.
    package let expires: Int

    package init(stream: StreamID, role: Role, issued: Int, expires: Int) {
        self.stream = stream
        self.role = role
        self.issued = issued
        self.expires = expires
    }

    /// The invitation as the stage knows it, for revocation.
    var link: Stage.Link { Stage.Link(makesSpeakers: role == .speaker, issued: issued) }

    /// Path of the link on this server; the token is in the fragment, which browsers do not send in requests.
    package func path(_ token: Secret<String>) -> String {
        PageLink.path(to: .one(stream), isOnStage: role == .speaker, token: token)
    }
}

/// A token or an invitation, verified.
package enum Credential: Equatable, Sendable {
    case token(Token)
    case invitation(Invitation)
}

/// Paths of pages that receive a token in their fragment (RFC 3986 §3.5), so that it appears in no server's log.
package enum PageLink {
    /// `/live/talk#token=…` for the stage, `/watch/talk#token=…` for viewers, `/#token=…` for viewers of all streams.
    package static func path(to scope: Token.Scope, isOnStage: Bool, token: Secret<String>) -> String {
        switch scope {
        case .one(let stream): "/\(isOnStage ? "live" : "watch")/\(stream)#token=\(token.exposed)"
        case .all: "/#token=\(token.exposed)"
        }
    }

    /// The operators' page.
    package static func admin(token: Secret<String>) -> String { "/admin#token=\(token.exposed)" }
}

extension Role {
    package init(_ role: Invitation.Role) {
        self =
            switch role {
            case .speaker: .speaker
            case .viewer: .viewer
            }
    }
}
