import Base

/// Roles and rights of participants.
extension StageRecord {
    /// The standing of an identity without its token; with a token, use the other `standing(of:)`.
    package func standing(of id: ParticipantID) -> Stage.Standing {
        id == host ? .host : speakers[id] != nil ? .speaker : .viewer
    }

    /// The sender's standing in this stream.
    ///
    /// A viewer's token with the host's identity does not make its bearer the host.
    package func standing(of sender: Stage.Sender) -> Stage.Standing {
        if sender.id == host {
            return sender.authority == .host || sender.authority == .admin ? .host : .viewer
        }
        return speakers[sender.id] != nil ? .speaker : .viewer
    }

    /// Whether the sender has a host's rights over others, which the host and admins do.
    package func isModerator(_ sender: Stage.Sender) -> Bool {
        sender.authority == .admin || standing(of: sender) == .host
    }

    /// Why a sender may not even see the stream's state; nil if they may.
    /// - Parameter isPresent: whether they are in the stream already. A participant whose link was revoked later may
    ///   stay.
    package func shutsOut(_ sender: Stage.Sender, isPresent: Bool) -> Rejection? {
        guard sender.authority != .admin else { return nil }
        if banned[sender.id] != nil { return .banned }
        return !isPresent && !isOnStage(sender.id) && isLinkRevoked(of: sender) ? .linkRevoked : nil
    }

    /// Whether the sender's token alone allows them on stage, without an invitation.
    package func mayStepUp(_ sender: Stage.Sender) -> Bool {
        isStageToken(of: sender) && !isLinkRevoked(of: sender)
    }

    /// Like `mayStepUp`, but ignores whether the sender's link was revoked.
    package func isStageToken(of sender: Stage.Sender) -> Bool {
        switch sender.authority {
        case .speaker, .host: sender.id != host && !hasLeftStage(sender.id)
        case .admin, .viewer: false
        }
    }

    /// Whether a participant left the stage, at their own or the host's wish, and has not been on stage since.
    package func hasLeftStage(_ id: ParticipantID) -> Bool {
        demoted.contains(id) || steppedDown?.contains(id) == true
    }

    /// Whether the sender came by a link that the host has revoked.
    package func isLinkRevoked(of sender: Stage.Sender) -> Bool {
        guard let link = sender.link, let linkRevocations else { return false }
        return !linkRevocations.allows(link)
    }

    /// Whether a sender who is not banned may see and hear the programme.
    /// - Parameter sender: nil for an anonymous viewer.
    package func admits(_ sender: Stage.Sender?, areDoorsOpen: Bool) -> Bool {
        if phase == .live { return true }
        guard phase == .backstage else { return false }
        guard !areDoorsOpen else { return true }
        guard let sender else { return false }
        return isModerator(sender) || standing(of: sender) != .viewer || mayStepUp(sender)
            || sender.mayJoinBackstage
    }
}
