import Base

/// Who is who.
extension StageRecord {
    /// For somebody whose token is not at hand; see `standing(of:)` for a sender.
    package func standing(of id: ParticipantID) -> Stage.Standing {
        id == host ? .host : speakers[id] != nil ? .speaker : .viewer
    }

    /// What somebody is in this stream: a viewer's token does not make a host of whoever bears the host's name.
    package func standing(of sender: Stage.Sender) -> Stage.Standing {
        if sender.id == host {
            return sender.authority == .host || sender.authority == .admin ? .host : .viewer
        }
        return speakers[sender.id] != nil ? .speaker : .viewer
    }

    /// Whether somebody has a host's rights over others.
    package func isModerator(_ sender: Stage.Sender) -> Bool {
        sender.authority == .admin || standing(of: sender) == .host
    }

    /// Why somebody may not even look; nil for all others.
    /// - Parameter isPresent: whether they are there already: whoever came by a link that was revoked since stays.
    package func shutsOut(_ sender: Stage.Sender, isPresent: Bool) -> Rejection? {
        guard sender.authority != .admin else { return nil }
        if banned[sender.id] != nil { return .banned }
        return !isPresent && !isOnStage(sender.id) && isLinkRevoked(of: sender) ? .linkRevoked : nil
    }

    /// Whether a token alone opens the stage.
    package func mayStepUp(_ sender: Stage.Sender) -> Bool {
        isStageToken(of: sender) && !isLinkRevoked(of: sender)
    }

    /// The same whether or not the link still counts that its bearer came by.
    package func isStageToken(of sender: Stage.Sender) -> Bool {
        switch sender.authority {
        case .speaker, .host: sender.id != host && !hasLeftStage(sender.id)
        case .admin, .viewer: false
        }
    }

    /// Whether somebody left the stage, at their own or the host's wish, and was not invited again.
    package func hasLeftStage(_ id: ParticipantID) -> Bool {
        demoted.contains(id) || steppedDown?.contains(id) == true
    }

    /// Whether somebody came by a link that the host has revoked.
    package func isLinkRevoked(of sender: Stage.Sender) -> Bool {
        guard let link = sender.link, let linkRevocations else { return false }
        return !linkRevocations.allows(link)
    }

    /// Whether somebody who is not banned may see and hear the programme.
    package func admits(_ sender: Stage.Sender?, areDoorsOpen: Bool) -> Bool {
        if phase == .live { return true }
        guard phase == .backstage else { return false }
        guard !areDoorsOpen else { return true }
        guard let sender else { return false }
        return isModerator(sender) || standing(of: sender) != .viewer || mayStepUp(sender)
            || sender.mayJoinBackstage
    }
}
