import Base

/// Why the stage rejects a command or a viewer: one case for each rule.
package enum Rejection: Error, Equatable, Sendable {
    case ended
    case alreadyLive
    /// Viewers wait until the stream is live, or until its doors open.
    case backstage(startsAt: WallTime?, waiting: Int)
    case banned
    /// The sender's link was revoked, and they have left since, or want onto the stage by it.
    case linkRevoked
    case notHost
    case notOperator
    case notOnStage
    case alreadyOnStage
    /// The host cannot step down, leave, or be moved, removed or banned; a host ends the stream instead.
    case hostStays
    /// The stage has as many participants beside the host as the host allows, or as the server does.
    case stageFull(limit: Int)
    case tooManyHands
    case tooManyInvitations
    case tooManyBans
    case tooManyKeys
    case notInvited
    case notBanned
    /// The participant has no raised hand.
    case handNotRaised
    /// The participant is not in this stream.
    case unknownParticipant
    /// The participant is not on stage.
    case targetNotOnStage
    /// A field is out of range; contains its name.
    case invalid(String)

    /// The category from which the API derives its status code.
    package var kind: RefusalKind {
        switch self {
        case .banned, .linkRevoked, .notHost, .notOperator, .notOnStage: .forbidden
        case .unknownParticipant, .notInvited, .notBanned, .handNotRaised: .missing
        case .ended, .alreadyLive, .backstage, .alreadyOnStage, .hostStays, .stageFull, .targetNotOnStage:
            .conflict
        case .invalid: .invalid
        case .tooManyHands, .tooManyInvitations, .tooManyBans, .tooManyKeys: .limit
        }
    }

    /// A stable name for programs; it must never change.
    package var name: String {
        switch self {
        case .ended: "ended"
        case .alreadyLive: "already-live"
        case .backstage: "backstage"
        case .banned: "banned"
        case .linkRevoked: "link-revoked"
        case .notHost: "not-host"
        case .notOperator: "not-operator"
        case .notOnStage: "not-on-stage"
        case .alreadyOnStage: "already-on-stage"
        case .hostStays: "host-stays"
        case .stageFull: "stage-full"
        case .tooManyHands: "too-many-hands"
        case .tooManyInvitations: "too-many-invitations"
        case .tooManyBans: "too-many-bans"
        case .tooManyKeys: "too-many-keys"
        case .notInvited: "not-invited"
        case .notBanned: "not-banned"
        case .handNotRaised: "hand-not-raised"
        case .unknownParticipant: "unknown-participant"
        case .targetNotOnStage: "target-not-on-stage"
        case .invalid: "invalid-field"
        }
    }

    /// An English sentence for people.
    package var explanation: String {
        switch self {
        case .ended: "The stream has ended."
        case .alreadyLive: "The stream is already live."
        case .backstage: "The stream hasn't started yet."
        case .banned: "You were banned from this stream."
        case .linkRevoked: "The host revoked your link. Ask for a new one."
        case .notHost: "Only the host can do this."
        case .notOperator: "Only admins can do this."
        case .notOnStage: "Only the host and speakers can do this."
        case .alreadyOnStage: "This participant is already on stage."
        case .hostStays: "The host can't leave the stage. End the stream instead."
        case .stageFull(limit: 0): "This stage has no room for guests."
        case .stageFull(limit: 1): "The stage is full. It has room for one guest besides the host."
        case .stageFull(let limit): "The stage is full. It has room for \(limit) guests besides the host."
        case .tooManyHands: "\(Stage.handLimit) hands are already raised. Try again later."
        case .tooManyInvitations: "\(Stage.invitationLimit) invitations are already waiting for an answer."
        case .tooManyBans: "\(Stage.banLimit) participants are already banned from this stream."
        case .tooManyKeys: "\(Stage.keyLimit) participants have already replaced their keys for this stream."
        case .notInvited: "There is no invitation for this participant."
        case .notBanned: "This participant isn't banned."
        case .handNotRaised: "This participant hasn't raised a hand."
        case .unknownParticipant: "There is no such participant in this stream."
        case .targetNotOnStage: "This participant isn't on stage."
        case .invalid(let field): "\(field) is missing, has the wrong type, or is out of range."
        }
    }
}
