import Base
import Stage

/// What somebody may be in a stream.
package enum Role: String, Sendable, CaseIterable {
    case host
    case speaker
    case viewer
    /// May do everything everywhere, and make tokens.
    case admin
}

/// What a token allows beyond its role.
package enum Capability: String, Sendable, CaseIterable {
    /// Come in before the doors open.
    case joinBackstage = "join-backstage"
    /// Say what was given: for the token of a shop.
    case giveGifts = "give-gifts"
    /// Take comments away, silence people and pin.
    case moderate

    /// All of them, for messages about a wrong one.
    package static let list = allCases.map(\.rawValue).joined(separator: ", ")
}

/// What a token says, once its signature was found good.
package struct Token: Equatable, Sendable {
    /// Which streams it is for.
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

    /// `iss`: the key that signed it.
    package let keyID: String
    /// `sub`: who shows it.
    package let subject: ParticipantID
    /// `name`: what others see.
    package let name: String?
    /// The claim `stream`.
    package let scope: Scope
    /// The claim `role`; what the stream makes of it is the stage's business.
    package let role: Role
    /// `capabilities`; unknown ones are passed over.
    package let capabilities: Set<Capability>
    /// `tiers`: which gates of streams it opens, and where it lets its bearer comment; what is no tier's name is passed
    /// over.
    package let tiers: Set<String>
    /// `nbf`, in seconds since 1970.
    package let notBefore: Int?
    /// `exp`, in seconds since 1970.
    package let expires: Int
    /// `renewable_until`, in seconds since 1970: no token that is given in exchange for it lasts longer.
    package let renewableUntil: Int
    /// `invited` and `invited_as`: the link that its bearer came by; nil for those whose token was made for them.
    package let link: Stage.Link?
    /// Names of more tiers are passed over.
    package static let tierLimit = 16
    /// With this an identity begins that the server makes up for somebody who has none.
    static let guestPrefix = "guest-"

    /// Whether anybody gets such an identity who asks.
    var isGuests: Bool { link != nil || subject.description.hasPrefix(Self.guestPrefix) }

    /// How long after the end of a token that somebody issued those still last that came in its place, in seconds:
    /// longer than any stream.
    package static let renewalSpan = 43_200

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

    /// From when on it is good for nothing, with the leeway that its bearer was let in with.
    var expiry: WallTime { WallTime(milliseconds: Int64(expires + TokenAuthority.leeway) * 1_000) }

    /// Whether it lets its bearer be the source of a stream.
    package func mayPublish(to stream: StreamID) -> Bool {
        role == .admin || scope.contains(stream) && (role == .host || role == .speaker)
    }

    /// Whether it lets its bearer watch a stream.
    package func mayPlay(_ stream: StreamID) -> Bool {
        role == .admin || scope.contains(stream)
    }
}

/// Why a token is not good; told to whoever showed it.
package enum TokenRefusal: Error, Equatable, Sendable, CustomStringConvertible {
    case malformed
    case wrongAlgorithm
    case unknownKey
    case badSignature
    case expired
    case notYetValid
    /// Good, but to be exchanged for a token.
    case invitation
    case badClaim(String)

    /// Told to the client, so without anything about the server's keys.
    package var description: String {
        switch self {
        case .malformed: "The token is malformed."
        case .wrongAlgorithm: "The token must be signed with HS256."
        case .unknownKey: "The token's iss names no key of this server."
        case .badSignature: "The token's signature does not match."
        case .expired: "The token has expired."
        case .notYetValid: "The token is not valid yet."
        case .invitation:
            "This is an invitation, for many people: exchange it for a token of one's own by POST …/tokens."
        case .badClaim(let name): "The token's claim \(name) is missing or malformed."
        }
    }
}
