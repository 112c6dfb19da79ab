import Base
import Node
import Stage

/// The role that a token grants in a stream.
package enum Role: String, Sendable, CaseIterable {
    case host
    case speaker
    case viewer
    /// May do everything in all streams, and issue tokens.
    case admin
}

/// A permission beyond the role.
package enum Capability: String, Sendable, CaseIterable {
    /// Enter backstage before the stream opens to its audience.
    case joinBackstage = "join-backstage"
    /// Report gifts that were bought; for the token of a shop.
    case giveGifts = "give-gifts"
    /// Delete comments, silence participants and pin.
    case moderate

    /// All of them, for error messages.
    package static let list = allCases.map(\.rawValue).joined(separator: ", ")
}

/// The claims of a token whose signature and times have been verified.
/// - Source: RFC 7519 §4.1 (registered claims).
package struct Token: Equatable, Sendable {
    /// The streams that a token is valid for.
    package enum Scope: Equatable, Sendable {
        /// The claim `"*"`.
        case all
        case one(StreamID)

        /// Whether the token is for this stream.
        package func contains(_ stream: StreamID) -> Bool {
            switch self {
            case .all: true
            case .one(let id): id == stream
            }
        }
    }

    /// `iss`: the name of the key that signed it; empty for a token not signed yet.
    package let keyID: String
    /// `sub`: the bearer's identity.
    package let subject: ParticipantID
    /// `name`: the bearer's display name; nil for none.
    package let name: String?
    /// The claim `stream`.
    package let scope: Scope
    /// The claim `role`; the stage decides what its bearer may actually do.
    package let role: Role
    /// The claim `capabilities`; unknown ones are ignored.
    package let capabilities: Set<Capability>
    /// The claim `tiers`: the gates it opens and the comment restrictions it satisfies; malformed names are ignored.
    package let tiers: Set<String>
    /// `nbf`, in seconds since 1970; nil for none.
    package let notBefore: Int?
    /// `exp`, in seconds since 1970.
    package let expires: Int
    /// `renewable_until`, in seconds since 1970: limit of `exp` for tokens given in exchange for it.
    package let renewableUntil: Int
    /// `invited` and `invited_as`: the link that its bearer came by; nil for a token issued to one person.
    package let link: Stage.Link?
    /// Limit of tiers in a token; further names are ignored.
    package static let tierLimit = 16

    /// Whether its bearer is a guest: anyone can obtain further identities of this kind.
    var isGuests: Bool { link != nil || subject.description.hasPrefix(ParticipantID.guestPrefix) }

    /// Seconds beyond the end of an externally issued token for which it can be renewed: longer than any stream.
    package static let renewalSpan = 43_200

    /// - Parameter renewableUntil: nil for `renewalSpan` after `expires`.
    package init(
        keyID: String, subject: ParticipantID, name: String?, scope: Scope, role: Role,
        capabilities: Set<Capability> = [], tiers: Set<String> = [], notBefore: Int? = nil, expires: Int,
        renewableUntil: Int? = nil, link: Stage.Link? = nil
    ) {
        self.tiers = tiers
        self.keyID = keyID
        self.subject = subject
        self.name = name
        self.scope = scope
        self.role = role
        self.capabilities = capabilities
        self.notBefore = notBefore
        self.expires = expires
        self.renewableUntil = renewableUntil ?? expires + Self.renewalSpan
        self.link = link
    }

    /// When it ends, including the leeway with which it was accepted; connections opened with it close then.
    var expiry: WallTime { WallTime(milliseconds: Int64(expires + TokenAuthority.leeway) * 1_000) }

    /// Whether its bearer may publish to a stream.
    package func mayPublish(to stream: StreamID) -> Bool {
        role == .admin || scope.contains(stream) && (role == .host || role == .speaker)
    }

    /// Whether its bearer may watch a stream, apart from bans and gates.
    package func mayPlay(_ stream: StreamID) -> Bool {
        role == .admin || scope.contains(stream)
    }
}

/// Why a token is refused; sent to the client.
package enum TokenRefusal: Error, Equatable, Sendable, CustomStringConvertible {
    /// Not a JWT in compact serialization (RFC 7519 §3.1).
    case malformed
    /// Any `alg` but HS256, `none` included (RFC 8725 §3.1).
    case wrongAlgorithm
    case unknownKey
    /// No key of that name has made the signature.
    case badSignature
    case expired
    case notYetValid
    /// A valid invitation, which has to be exchanged for a token first.
    case invitation
    /// The named claim is missing or malformed.
    case badClaim(String)

    /// For the client, so it reveals nothing about the server's keys.
    package var description: String {
        switch self {
        case .malformed: "The token is malformed."
        case .wrongAlgorithm: "The token must be signed with HS256."
        case .unknownKey: "The token's iss isn't a key of this server."
        case .badSignature: "The token's signature doesn't match."
        case .expired: "The token has expired."
        case .notYetValid: "The token isn't valid yet."
        case .invitation:
            "This is an invitation for many people. Exchange it for your own token by POST …/tokens."
        case .badClaim(let name): "The token's claim \(name) is missing or malformed."
        }
    }
}
