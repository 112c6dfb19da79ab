import Base
import Stage

/// What a link holds that many people open: it says what they may become, and not who they are.
///
/// A JWT without `sub` and with `"use":"invitation"`. It is good for one thing, to be exchanged for a token of one's
/// own; so nobody acts under a name that others have too.
package struct Invitation: Equatable, Sendable {
    /// What a link can make of whoever opens it; never a host or an admin.
    package enum Role: String, Sendable, CaseIterable {
        case speaker
        case viewer
    }

    /// The claim `use`.
    static let use = "invitation"

    /// The only one it is good for.
    package let stream: StreamID
    /// What the token given in exchange has.
    package let role: Role
    /// `iat`, in seconds since 1970: a host revokes what was issued until a moment.
    package let issued: Int
    /// `exp`, in seconds since 1970.
    package let expires: Int

    package init(stream: StreamID, role: Role, issued: Int, expires: Int) {
        self.stream = stream
        self.role = role
        self.issued = issued
        self.expires = expires
    }

    /// What a stage has to know of it.
    var link: Stage.Link { Stage.Link(makesSpeakers: role == .speaker, issued: issued) }

    /// Where its link leads on this server; the token is in the fragment, which browsers send to nobody.
    package func path(_ token: Secret<String>) -> String {
        PageLink.path(to: .one(stream), isOnStage: role == .speaker, token: token)
    }
}

/// Whatever somebody shows to be let in.
package enum Credential: Equatable, Sendable {
    case token(Token)
    case invitation(Invitation)
}

/// Where people go with a token.
package enum PageLink {
    /// `/live/talk#token=…` for who is on stage, `/watch/talk#token=…` for viewers, `/#token=…` for viewers of all
    /// streams.
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
