import Base

/// One change of a stream, which must be durable before any client is notified.
package enum StageChange: Equatable, Sendable, Codable {
    /// The initial state of a stream.
    package struct Creation: Equatable, Sendable, Codable {
        /// The new stream's ID.
        package let id: StreamID
        /// Whether it was created by a command or by publishing.
        package let origin: StageRecord.Origin
        /// The first host; a stream always has one.
        package let host: ParticipantID
        /// The host's display name.
        package let hostName: String?
        /// Validated before.
        package let details: StageDetails
        /// Becomes `createdAt`, and the time when the host came on stage.
        package let at: WallTime
    }

    /// Who made a speaker a viewer again: the speaker, or the host.
    package enum Demotion: String, Sendable, Codable {
        case steppedDown = "stepped-down"
        case moved
    }

    /// Also restarts a published stream that had ended.
    case created(Creation)
    case edited(StageDetails)
    case placed(StagePlacement)
    case linksRevoked(StageRecord.LinkRevocations)
    case wentLive(WallTime)
    case ended(WallTime, StageRecord.EndReason)
    case handRaised(ParticipantID, StageRecord.Entry)
    case handLowered(ParticipantID)
    /// The hand was held (true), or put back.
    case handHeld(ParticipantID, Bool)
    /// All raised hands, the next one first.
    case handsOrdered([ParticipantID])
    case invited(ParticipantID, StageRecord.Entry)
    /// The invitation was declined or withdrawn.
    case invitationEnded(ParticipantID)
    case promoted(ParticipantID, StageRecord.Member)
    case demoted(ParticipantID, Demotion)
    /// The participant was away for the grace time, and may come back in the same role.
    case left(ParticipantID)
    case removed(ParticipantID)
    case banned(ParticipantID, WallTime)
    case unbanned(ParticipantID)
    case muted(ParticipantID, MediaKind, Bool)
    case paused(ParticipantID, Bool)
    /// Only in published streams: the owner of the latest source becomes the host.
    case hostReplaced(ParticipantID, StageRecord.Member)

    /// The participant concerned; nil for changes of the stream itself.
    package var subject: ParticipantID? {
        switch self {
        case .created, .edited, .placed, .linksRevoked, .wentLive, .ended, .handsOrdered: nil
        case .handRaised(let id, _), .handLowered(let id), .handHeld(let id, _), .invited(let id, _),
            .invitationEnded(let id),
            .promoted(let id, _), .demoted(let id, _), .left(let id), .removed(let id), .banned(let id, _),
            .unbanned(let id), .muted(let id, _, _), .paused(let id, _), .hostReplaced(let id, _):
            id
        }
    }

    /// Whether the places of raised hands may have changed.
    package var movesHands: Bool {
        switch self {
        case .handRaised, .handLowered, .handHeld, .handsOrdered, .promoted, .left, .removed, .banned: true
        default: false
        }
    }
}
