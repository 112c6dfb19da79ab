import Base

/// What is remembered of a stream for good: all that its participants were told happened.
///
/// Changes only by `apply`, so that the changes in order, from `created` on, give the same record again.
package struct StageRecord: Equatable, Sendable, Codable {
    /// From one to the next and never back, but that a published stream may begin anew.
    package enum Phase: String, Sendable, Codable, CaseIterable {
        /// Host and speakers gather; viewers wait.
        case backstage
        case live
        /// Final.
        case ended
    }

    /// How the stream came to be, which decides when it ends.
    package enum Origin: String, Sendable, Codable {
        /// By a command: lives until its host ends it or stays away.
        case made
        /// By somebody who published under a name that was free: live as long as its source is there.
        case published
    }

    /// As the API and webhooks say it.
    package enum EndReason: String, Sendable, Codable {
        case ended
        /// Did not come back within the grace time.
        case hostLeft = "host-left"
        /// A published stream's source is gone.
        case sourceLeft = "source-left"
    }

    /// Somebody on the stage.
    package struct Member: Equatable, Sendable, Codable {
        /// As the token said when somebody came on stage.
        package var name: String?
        /// On stage without a break.
        package var since: WallTime
        /// As the participant's client says; the server forwards what is sent all the same.
        package var isAudioMuted = false
        /// The same of the camera.
        package var isVideoMuted = false
        /// The app is in the background, for instance: still on stage, but not to be waited for.
        package var isPaused = false

        package init(name: String?, since: WallTime) {
            self.name = name
            self.since = since
        }
    }

    /// A raised hand or an invitation.
    package struct Entry: Equatable, Sendable, Codable {
        /// For the host, who sees it in a list.
        package var name: String?
        /// When it was raised or made.
        package var since: WallTime
        /// Of raised hands, which one is before another; nil for those from before hosts could change it.
        package internal(set) var order: Int?
        /// Nil for no.
        private var held: Bool?
        /// Of raised hands, whether the host has set it apart: it has no place until they put it back.
        package internal(set) var isHeld: Bool {
            get { held ?? false }
            set { held = newValue ? true : nil }
        }

        package init(name: String?, since: WallTime, order: Int? = nil) {
            self.name = name
            self.since = since
            self.order = order
        }
    }

    /// Until when links were made that lead nowhere any more, for those that make speakers and viewers.
    package struct LinkRevocations: Equatable, Sendable, Codable {
        /// Nil where none were revoked.
        package var speakers: WallTime?
        /// Nil where none were revoked.
        package var viewers: WallTime?
        /// Until when encoders' keys were made that their owners replaced; nil where nobody did.
        package private(set) var keys: [ParticipantID: WallTime]?

        package init() {}

        /// A key of somebody is to be void, and so is each that was made before.
        mutating func replaceKey(of owner: ParticipantID, at now: WallTime) {
            // The one before may say a later second than it is; see `later`.
            var all = keys ?? [:]
            all[owner] = Self.later(all[owner], true, now)
            keys = all
        }

        /// Whether an encoder's key still counts; who revokes what makes speakers, revokes keys too.
        package func allowsKey(of owner: ParticipantID, issued: Int) -> Bool {
            allows(Stage.Link(makesSpeakers: true, issued: issued))
                && keys?[owner].map { $0.milliseconds / 1_000 < Int64(issued) } ?? true
        }

        /// The earliest second that a key of somebody may say, in order to count.
        package func firstKey(of owner: ParticipantID) -> Int {
            [speakers, keys?[owner]].compactMap { $0.map { Int($0.milliseconds / 1_000) + 1 } }.max() ?? 0
        }

        /// - Parameter fresh: of which kinds links may have been made since the last revocation.
        mutating func revoke(_ kinds: LinkKinds, fresh: LinkKinds, at now: WallTime) {
            if kinds.contains(.speakers) { speakers = Self.later(speakers, fresh.contains(.speakers), now) }
            if kinds.contains(.viewers) { viewers = Self.later(viewers, fresh.contains(.viewers), now) }
        }

        /// When a revocation takes hold.
        ///
        /// Links say in whole seconds when they were made, and one made after a revocation says a later second: to
        /// revoke that one too takes a second more. Without one, revoking again does not run ahead of the clock.
        private static func later(_ earlier: WallTime?, _ isFresh: Bool, _ now: WallTime) -> WallTime {
            guard let earlier else { return now }
            return max(now, isFresh ? earlier.advanced(bySeconds: 1) : earlier)
        }

        /// Whether a link still counts.
        package func allows(_ link: Stage.Link) -> Bool {
            let revoked = link.makesSpeakers ? speakers : viewers
            return revoked.map { $0.milliseconds / 1_000 < Int64(link.issued) } ?? true
        }
    }

    /// Links by what they make of those who open them.
    package struct LinkKinds: OptionSet, Sendable {
        package let rawValue: Int
        package static let speakers = LinkKinds(rawValue: 1)
        package static let viewers = LinkKinds(rawValue: 2)
        package static let all: LinkKinds = [.speakers, .viewers]

        package init(rawValue: Int) {
            self.rawValue = rawValue
        }
    }

    /// Never given to another stream.
    package let id: StreamID
    /// Set by the creation.
    package let origin: Origin
    /// When the stream was made, not when it went live.
    package let createdAt: WallTime
    /// Backstage at first.
    package internal(set) var phase: Phase
    /// As last edited.
    package internal(set) var details: StageDetails
    /// Nil, as for most streams, where no operator has decided anything.
    package internal(set) var placement: StagePlacement?
    /// Nil, as for most streams, where all links count.
    package internal(set) var linkRevocations: LinkRevocations?
    /// There is always exactly one.
    package internal(set) var host: ParticipantID
    /// Of the host, who is on stage also while away.
    package internal(set) var hostMember: Member
    /// Nil before it goes live.
    package internal(set) var startedAt: WallTime?
    /// Nil before it ends.
    package internal(set) var endedAt: WallTime?
    /// Nil before it ends.
    package internal(set) var endReason: EndReason?
    /// On stage beside the host.
    package internal(set) var speakers: [ParticipantID: Member] = [:]
    /// At most `Stage.handLimit`.
    package internal(set) var hands: [ParticipantID: Entry] = [:]
    /// Not accepted yet; at most `Stage.invitationLimit`.
    package internal(set) var invitations: [ParticipantID: Entry] = [:]
    /// Since when; at most `Stage.banLimit`.
    package internal(set) var banned: [ParticipantID: WallTime] = [:]
    /// Taken off the stage by the host: a speaker's token does not bring them back, an invitation does.
    package internal(set) var demoted = LatestParticipants()
    /// The same of those who left the stage themselves; nil where nobody did.
    ///
    /// Apart, so that however many do, nobody whom the host moved is forgotten.
    package internal(set) var steppedDown: LatestParticipants?

    init(_ creation: StageChange.Creation) {
        id = creation.id
        origin = creation.origin
        createdAt = creation.at
        phase = .backstage
        details = creation.details
        host = creation.host
        hostMember = Member(name: creation.hostName, since: creation.at)
    }

    /// Host and speakers.
    package var stageCount: Int { speakers.count + 1 }

    package func isOnStage(_ id: ParticipantID) -> Bool { id == host || speakers[id] != nil }

    /// Nil for those who are not on stage.
    package func member(_ id: ParticipantID) -> Member? { id == host ? hostMember : speakers[id] }
}

// MARK: Changes

extension StageRecord {
    /// The record that changes give, from the first on; nil for those that do not begin with a creation.
    package static func replaying(_ changes: some Sequence<StageChange>, onto record: StageRecord? = nil)
        -> StageRecord?
    {
        var record = record
        for change in changes {
            if case .created(let creation) = change {
                record = StageRecord(creation)
            } else {
                record?.apply(change)
            }
        }
        return record
    }

    /// Takes over what was decided; never asks whether it was right.
    package mutating func apply(_ change: StageChange) {
        switch change {
        case .created(let creation): self = StageRecord(creation)
        case .edited(let details): self.details = details
        case .placed(let placement): self.placement = placement
        case .linksRevoked(let revocations): linkRevocations = revocations
        case .wentLive(let time):
            phase = .live
            startedAt = time
        case .ended(let time, let reason): end(at: time, because: reason)
        case .handRaised(let id, let entry): hands[id] = entry
        case .handLowered(let id): hands[id] = nil
        case .handHeld(let id, let isHeld): hands[id]?.isHeld = isHeld
        case .handsOrdered(let ids): for (order, id) in ids.enumerated() { hands[id]?.order = order + 1 }
        case .invited(let id, let entry): invitations[id] = entry
        case .invitationEnded(let id): invitations[id] = nil
        case .promoted(let id, let member): promote(id, member)
        case .demoted(let id, let reason):
            speakers[id] = nil
            switch reason {
            case .moved: demoted.insert(id)
            case .steppedDown:
                var latest = steppedDown ?? LatestParticipants()
                steppedDown = nil
                latest.insert(id)
                steppedDown = latest
            }
        case .left(let id):
            clear(id)
        case .removed(let id):
            if speakers[id] != nil { demoted.insert(id) }
            clear(id)
        case .banned(let id, let time):
            clear(id)
            forgetDeparture(of: id)
            banned[id] = time
        case .unbanned(let id): banned[id] = nil
        case .muted(let id, .audio, let isOn): alter(id) { $0.isAudioMuted = isOn }
        case .muted(let id, .video, let isOn): alter(id) { $0.isVideoMuted = isOn }
        case .paused(let id, let isOn): alter(id) { $0.isPaused = isOn }
        case .hostReplaced(let id, let member): replaceHost(id, member)
        }
    }

    private mutating func alter(_ id: ParticipantID, _ body: (inout Member) -> Void) {
        if id == host {
            body(&hostMember)
        } else if var member = speakers[id] {
            body(&member)
            speakers[id] = member
        }
    }

    private mutating func promote(_ id: ParticipantID, _ member: Member) {
        hands[id] = nil
        invitations[id] = nil
        forgetDeparture(of: id)
        speakers[id] = member
    }

    private mutating func forgetDeparture(of id: ParticipantID) {
        demoted.remove(id)
        steppedDown?.remove(id)
    }

    /// Nobody's hand, invitation or place is left.
    private mutating func clear(_ id: ParticipantID) {
        speakers[id] = nil
        hands[id] = nil
        invitations[id] = nil
    }

    private mutating func replaceHost(_ id: ParticipantID, _ member: Member) {
        clear(id)
        forgetDeparture(of: id)
        host = id
        hostMember = member
    }

    private mutating func end(at time: WallTime, because reason: EndReason) {
        phase = .ended
        endedAt = time
        endReason = reason
        hands = [:]
        invitations = [:]
        speakers = [:]
    }
}
