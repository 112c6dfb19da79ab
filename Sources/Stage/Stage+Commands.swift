import Base

extension Stage {
    /// A command from a participant.
    package enum Command: Equatable, Sendable {
        case edit(StageEdit)
        case place(StagePlacement.Edit)
        /// Create a link by which others come in; the link's contents are not the stage's concern.
        case makeLink
        /// Revoke all links of these kinds that were created until now.
        case revokeLinks(speakers: Bool, viewers: Bool)
        /// Revoke all keys of the sender's encoder that were created until now.
        case replaceKey
        case goLive
        case end
        /// Join the stream; a speaker's token leads onto the stage.
        case join
        case leave
        case raiseHand
        /// Lower one's own hand, or as a host any hand.
        case lowerHand(ParticipantID)
        /// As a host: move a hand to a place, counted from 1 among the hands that are not held; a held hand is put
        /// back.
        case moveHand(ParticipantID, place: Int)
        /// As a host: hold a hand, which takes it out of the numbered places, or put it back where it was.
        case holdHand(ParticipantID, Bool)
        case invite(ParticipantID)
        case withdrawInvitation(ParticipantID)
        case accept
        /// Accept without a camera: the participant is shown with the camera off from the first moment.
        case acceptSoundOnly
        case decline
        case stepDown
        case moveToViewers(ParticipantID)
        case remove(ParticipantID)
        case ban(ParticipantID)
        case unban(ParticipantID)
        case requestMute(ParticipantID, MediaKind)
        case setMuted(MediaKind, Bool)
        case setPaused(Bool)
        /// Begin to publish as a member of the stage.
        case publish
    }

    /// Decides on a command, and applies it to the stage in memory.
    ///
    /// The outcome takes effect for others only once its changes are durable. A command that asks for the present
    /// state changes nothing.
    /// - Throws: why the command is rejected; the stage is unchanged then.
    package mutating func apply(_ command: Command, from sender: Sender, at now: Moment) throws(Rejection)
        -> Outcome
    {
        if record.banned[sender.id] != nil, sender.authority != .admin { throw .banned }
        if record.phase == .ended {
            // Ending or leaving a stream that has ended is not an error.
            guard command != .end || !isModerator(sender), command != .leave else { return Outcome() }
            throw .ended
        }
        if command != .leave, let rejection = shutsOut(sender) { throw rejection }
        var outcome = Outcome()
        try decide(command, from: sender, at: now, into: &outcome)
        for change in outcome.changes { record.apply(change) }
        follow(outcome.changes, at: now)
        if command != .leave, record.banned[sender.id] == nil {
            notePresence(of: sender, at: now, in: &outcome)
        }
        return outcome
    }

    /// Counts the sender of a command as present for the grace time, even without a connection.
    ///
    /// Admins are not, unless they have raised a hand or speak.
    private mutating func notePresence(of sender: Sender, at now: Moment, in outcome: inout Outcome) {
        let isInvolved = record.hands[sender.id] != nil || record.speakers[sender.id] != nil
        guard sender.authority != .admin || isInvolved else { return }
        let end = now.elapsed + Self.presenceGrace
        // From their latest command on: a hand that was raised a moment ago must not sink because of the first one.
        guard !presence.contains(sender.id) else { return presence.prolong(sender.id, until: end) }
        presence.touch(
            sender.id, name: sender.name, mayJoinBackstage: sender.mayJoinBackstage, until: end)
        outcome.events.append(.joined(sender.id, name: sender.name))
    }

    private mutating func decide(
        _ command: Command, from sender: Sender, at now: Moment, into outcome: inout Outcome
    ) throws(Rejection) {
        switch command {
        case .edit(let edit): try decideEdit(edit, sender, now, &outcome)
        case .place(let edit):
            guard sender.authority == .admin else { throw .notOperator }
            let placement = try edit.applied(to: record.placement ?? StagePlacement())
            guard placement != record.placement ?? StagePlacement() else { return }
            outcome.changes.append(.placed(placement))
        case .makeLink:
            try requireModerator(sender)
            freshLinks = .all
        case .revokeLinks(let speakers, let viewers):
            try requireModerator(sender)
            var revocations = record.linkRevocations ?? StageRecord.LinkRevocations()
            let kinds: StageRecord.LinkKinds = [speakers ? .speakers : [], viewers ? .viewers : []]
            revocations.revoke(kinds, fresh: freshLinks, at: now.wall)
            freshLinks.subtract(kinds)
            guard revocations != record.linkRevocations else { return }
            outcome.changes.append(.linksRevoked(revocations))
        case .replaceKey: try decideKey(sender, now, &outcome)
        case .goLive: try decideGoLive(sender, now, &outcome)
        case .end:
            try requireModerator(sender)
            outcome.end(at: now, because: .ended)
        case .join: try decideJoin(sender, now, &outcome)
        case .leave: try decideLeave(sender, &outcome)
        case .raiseHand: try decideRaiseHand(sender, now, &outcome)
        case .lowerHand(let id):
            if id != sender.id { try requireModerator(sender) }
            if record.hands[id] != nil { outcome.changes.append(.handLowered(id)) }
        case .moveHand(let id, let place): try decideHandMove(id, to: place, sender, &outcome)
        case .holdHand(let id, let isHeld): try decideHandHold(id, isHeld, sender, &outcome)
        case .invite(let id): try decideInvite(id, sender, now, &outcome)
        case .withdrawInvitation(let id):
            try requireModerator(sender)
            if record.invitations[id] != nil { outcome.changes.append(.invitationEnded(id)) }
        case .accept: try decideAccept(sender, isSoundOnly: false, now, &outcome)
        case .acceptSoundOnly: try decideAccept(sender, isSoundOnly: true, now, &outcome)
        case .decline:
            guard record.invitations[sender.id] != nil else { throw .notInvited }
            outcome.changes.append(.invitationEnded(sender.id))
            if record.hands[sender.id] != nil { outcome.changes.append(.handLowered(sender.id)) }
        case .stepDown: try decideStepDown(sender, &outcome)
        case .moveToViewers, .remove, .ban, .unban, .requestMute:
            try decideModeration(command, sender, now, &outcome)
        case .setMuted(let kind, let isOn):
            let member = try requireMember(sender)
            guard (kind == .audio ? member.isAudioMuted : member.isVideoMuted) != isOn else { return }
            outcome.changes.append(.muted(sender.id, kind, isOn))
            outcome.effects.append(
                .showMute(
                    of: sender.id, audio: kind == .audio ? isOn : member.isAudioMuted,
                    video: kind == .video ? isOn : member.isVideoMuted))
        case .setPaused(let isOn):
            guard try requireMember(sender).isPaused != isOn else { return }
            outcome.changes.append(.paused(sender.id, isOn))
        case .publish: try decidePublish(sender, now, &outcome)
        }
    }

    func requireModerator(_ sender: Sender) throws(Rejection) {
        guard isModerator(sender) else { throw .notHost }
    }

    /// - Returns: the sender as a member of the stage.
    /// - Throws: `.notOnStage` for a viewer.
    private func requireMember(_ sender: Sender) throws(Rejection) -> StageRecord.Member {
        guard standing(of: sender) != .viewer, let member = record.member(sender.id) else {
            throw .notOnStage
        }
        return member
    }

    /// Checks that the stage has room for one more speaker.
    private func requireRoom() throws(Rejection) {
        let limit = record.details.maxSpeakers
        guard record.speakers.count < limit else { throw .stageFull(limit: limit) }
    }

    // MARK: The stream

    private func decideEdit(
        _ edit: StageEdit, _ sender: Sender, _ now: Moment, _ outcome: inout Outcome
    ) throws(Rejection) {
        try requireModerator(sender)
        let details = edit.applied(to: record.details)
        let isRescheduled =
            details.startsAt != record.details.startsAt
            || details.joinAheadSeconds != record.details.joinAheadSeconds
        if isRescheduled, record.phase != .backstage { throw .alreadyLive }
        try details.validate(at: now.wall, startsAtIsNew: details.startsAt != record.details.startsAt)
        if details != record.details { outcome.changes.append(.edited(details)) }
        if details.programme != record.details.programme
            || details.composition != record.details.composition
        {
            outcome.effects.append(.setProgramme(details.programme))
        }
    }

    /// Anyone who may publish here may replace their encoder's key: the host, admins, speakers, and those who may
    /// become speakers.
    private func decideKey(
        _ sender: Sender, _ now: Moment, _ outcome: inout Outcome
    ) throws(Rejection) {
        let isModerator = record.isModerator(sender)
        guard isModerator || record.standing(of: sender) == .speaker || record.mayStepUp(sender) else {
            throw .notOnStage
        }
        var revocations = record.linkRevocations ?? StageRecord.LinkRevocations()
        let count = revocations.keys?.count ?? 0
        guard isModerator || count < Self.keyLimit || revocations.keys?[sender.id] != nil else {
            throw .tooManyKeys
        }
        revocations.replaceKey(of: sender.id, at: now.wall)
        outcome.changes.append(.linksRevoked(revocations))
    }

    private func decideGoLive(_ sender: Sender, _ now: Moment, _ outcome: inout Outcome) throws(Rejection) {
        try requireModerator(sender)
        guard record.phase == .backstage else { return }
        outcome.changes.append(.wentLive(now.wall))
        outcome.events.append(.live)
    }

    // MARK: Coming and going

    private func decideJoin(_ sender: Sender, _ now: Moment, _ outcome: inout Outcome) throws(Rejection) {
        guard !record.isOnStage(sender.id) else { return }
        guard record.mayStepUp(sender) else {
            let comesToSpeak = sender.authority == .speaker && !record.hasLeftStage(sender.id)
            if comesToSpeak, record.isLinkRevoked(of: sender) { throw .linkRevoked }
            return
        }
        try promote(sender, now, &outcome)
    }

    private func decidePublish(_ sender: Sender, _ now: Moment, _ outcome: inout Outcome) throws(Rejection) {
        guard standing(of: sender) == .viewer else { return }
        // In a published stream the latest source counts, so its publisher becomes the host.
        if record.origin == .published, sender.authority == .host || sender.authority == .admin {
            outcome.changes.append(
                .hostReplaced(sender.id, StageRecord.Member(name: sender.name, since: now.wall)))
            return
        }
        guard record.mayStepUp(sender) else {
            throw record.isLinkRevoked(of: sender) ? .linkRevoked : .notOnStage
        }
        try promote(sender, now, &outcome)
    }

    private func promote(_ sender: Sender, _ now: Moment, _ outcome: inout Outcome) throws(Rejection) {
        try requireRoom()
        outcome.changes.append(
            .promoted(sender.id, StageRecord.Member(name: sender.name, since: now.wall)))
        outcome.events.append(.promoted(sender.id))
    }

    private mutating func decideLeave(_ sender: Sender, _ outcome: inout Outcome) throws(Rejection) {
        guard sender.id != record.host else {
            guard standing(of: sender) == .host else { throw .notHost }
            throw .hostStays
        }
        depart(sender.id, into: &outcome)
        outcome.effects.append(.expel(sender.id, nil))
    }

    // MARK: Hands and invitations

    private func decideRaiseHand(
        _ sender: Sender, _ now: Moment, _ outcome: inout Outcome
    ) throws(Rejection) {
        guard !record.isOnStage(sender.id) else { throw .alreadyOnStage }
        // An admin's token is exempt from bans elsewhere, but a banned identity may not raise a hand.
        guard record.banned[sender.id] == nil else { throw .banned }
        guard record.hands[sender.id] == nil else { return }
        guard record.hands.count < Self.handLimit else { throw .tooManyHands }
        outcome.changes.append(
            .handRaised(
                sender.id,
                StageRecord.Entry(name: sender.name, since: now.wall, order: record.nextHandOrder)))
    }

    private func decideInvite(
        _ id: ParticipantID, _ sender: Sender, _ now: Moment, _ outcome: inout Outcome
    ) throws(Rejection) {
        try requireModerator(sender)
        guard !record.isOnStage(id) else { throw .alreadyOnStage }
        guard presence.contains(id) else { throw .unknownParticipant }
        guard record.invitations[id] == nil else { return }
        try requireRoom()
        guard record.invitations.count < Self.invitationLimit else { throw .tooManyInvitations }
        let name = presence.name(of: id) ?? record.hands[id]?.name
        outcome.changes.append(.invited(id, StageRecord.Entry(name: name, since: now.wall)))
    }

    private func decideAccept(
        _ sender: Sender, isSoundOnly: Bool, _ now: Moment, _ outcome: inout Outcome
    ) throws(Rejection) {
        if standing(of: sender) == .speaker { return }
        guard let invitation = record.invitations[sender.id] else { throw .notInvited }
        try requireRoom()
        var member = StageRecord.Member(name: sender.name ?? invitation.name, since: now.wall)
        member.isVideoMuted = isSoundOnly
        outcome.changes.append(.promoted(sender.id, member))
        outcome.events.append(.promoted(sender.id))
    }

    // MARK: Off the stage

    private func decideStepDown(_ sender: Sender, _ outcome: inout Outcome) throws(Rejection) {
        switch standing(of: sender) {
        case .host: throw .hostStays
        case .viewer: throw .notOnStage
        case .speaker: demote(sender.id, .steppedDown, &outcome)
        }
    }

    /// Makes a speaker a viewer, and ends what they publish.
    private func demote(
        _ id: ParticipantID, _ reason: StageChange.Demotion, _ outcome: inout Outcome
    ) {
        outcome.changes.append(.demoted(id, reason))
        outcome.effects.append(.retire(id))
        outcome.events.append(.demoted(id))
    }

    private mutating func decideModeration(
        _ command: Command, _ sender: Sender, _ now: Moment, _ outcome: inout Outcome
    ) throws(Rejection) {
        try requireModerator(sender)
        switch command {
        case .moveToViewers(let id):
            guard id != record.host else { throw .hostStays }
            guard record.speakers[id] != nil else { throw .targetNotOnStage }
            demote(id, .moved, &outcome)
        case .remove(let id):
            guard id != record.host else { throw .hostStays }
            guard presence.contains(id) || record.speakers[id] != nil else { throw .unknownParticipant }
            expel(id, by: .removed(id), isBanned: false, &outcome)
        case .ban(let id):
            guard id != record.host else { throw .hostStays }
            guard record.banned[id] == nil else { return }
            guard record.banned.count < Self.banLimit else { throw .tooManyBans }
            expel(id, by: .banned(id, now.wall), isBanned: true, &outcome)
        case .unban(let id):
            guard record.banned[id] != nil else { throw .notBanned }
            outcome.changes.append(.unbanned(id))
        case .requestMute(let id, let kind):
            guard record.isOnStage(id) else { throw .targetNotOnStage }
            outcome.effects.append(.requestMute(of: id, kind, by: sender.id))
        default: assertionFailure("only moderation is decided here")
        }
    }

    /// Removes a participant from the stream, and closes their connections.
    private mutating func expel(
        _ id: ParticipantID, by change: StageChange, isBanned: Bool, _ outcome: inout Outcome
    ) {
        presence.remove(id)
        outcome.changes.append(change)
        outcome.effects.append(.expel(id, isBanned ? .banned : nil))
        outcome.events.append(.removed(id, isBanned: isBanned))
    }
}
