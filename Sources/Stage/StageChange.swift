import Base

/// One thing that happened to a stream, to be remembered before anybody is told.
package enum StageChange: Equatable, Sendable, Codable {
    /// What a stream begins with.
    package struct Creation: Equatable, Sendable, Codable {
        package let id: StreamID
        /// Whether it was made, or began by being published.
        package let origin: StageRecord.Origin
        /// There is one from the first moment on.
        package let host: ParticipantID
        /// For people.
        package let hostName: String?
        /// Checked already.
        package let details: StageDetails
        /// Becomes `createdAt`, and the time since which the host is on stage.
        package let at: WallTime
    }

    /// Who wanted a speaker to be a viewer again: the speaker, or the host.
    package enum Demotion: String, Sendable, Codable {
        case steppedDown = "stepped-down"
        case moved
    }

    /// What a participant can mute.
    package enum MediaKind: String, Sendable, Codable, CaseIterable {
        case audio, video
    }

    /// Also begins a published stream anew that had ended.
    case created(Creation)
    case edited(StageDetails)
    case placed(StagePlacement)
    case linksRevoked(StageRecord.LinkRevocations)
    case wentLive(WallTime)
    case ended(WallTime, StageRecord.EndReason)
    case handRaised(ParticipantID, StageRecord.Entry)
    case handLowered(ParticipantID)
    /// Set apart, or put back.
    case handHeld(ParticipantID, Bool)
    /// All that are raised, the next one first.
    case handsOrdered([ParticipantID])
    case invited(ParticipantID, StageRecord.Entry)
    /// Declined or withdrawn.
    case invitationEnded(ParticipantID)
    case promoted(ParticipantID, StageRecord.Member)
    case demoted(ParticipantID, Demotion)
    /// Was away for the grace time; may come back as what it was.
    case left(ParticipantID)
    case removed(ParticipantID)
    case banned(ParticipantID, WallTime)
    case unbanned(ParticipantID)
    case muted(ParticipantID, MediaKind, Bool)
    case paused(ParticipantID, Bool)
    /// Only of published streams: the latest source's owner counts.
    case hostReplaced(ParticipantID, StageRecord.Member)

    /// Whom it concerns; nil for changes of the stream itself.
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

    /// Whether those who wait to be invited may have another place.
    package var movesHands: Bool {
        switch self {
        case .handRaised, .handLowered, .handHeld, .handsOrdered, .promoted, .left, .removed, .banned: true
        default: false
        }
    }
}
