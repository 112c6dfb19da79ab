import Base

/// The durable state of a stream: everything that its participants were notified of.
///
/// It changes only by `apply`, so that replaying all changes in order, from `created` on, gives the same record.
package struct StageRecord: Equatable, Sendable, Codable {
    /// Phases follow one another in this order; only a published stream may start again after its end.
    package enum Phase: String, Sendable, Codable, CaseIterable {
        /// Host and speakers gather; viewers wait.
        case backstage
        case live
        /// Final.
        case ended
    }

    /// How the stream was created, which determines when it ends.
    package enum Origin: String, Sendable, Codable {
        /// By a command: it lasts until its host ends it, or is away for too long.
        case made
        /// By publishing under a name that was free: it is live while it has a source.
        case published
    }

    /// Why a stream ended; the raw values are used in the API and in webhooks.
    package enum EndReason: String, Sendable, Codable {
        case ended
        /// The host did not come back within the grace time.
        case hostLeft = "host-left"
        /// The source of a published stream was lost.
        case sourceLeft = "source-left"
    }

    /// A participant on stage.
    package struct Member: Equatable, Sendable, Codable {
        /// The name in the token when the participant came on stage.
        package var name: String?
        /// Since when the participant has been on stage without a break.
        package var since: WallTime
        /// As reported by the participant's client; the server forwards received audio regardless.
        package var isAudioMuted = false
        /// The same for the camera.
        package var isVideoMuted = false
        /// For instance while the app is in the background: still on stage, but others should not wait for them.
        package var isPaused = false

        package init(name: String?, since: WallTime) {
            self.name = name
            self.since = since
        }
    }

    /// A raised hand or an invitation.
    package struct Entry: Equatable, Sendable, Codable {
        /// The display name in the host's list.
        package var name: String?
        /// When the hand was raised, or the invitation made.
        package var since: WallTime
        /// The place among raised hands, lowest first; nil in records from before hosts could reorder hands.
        package internal(set) var order: Int?
        /// Nil means false, so that older records can be read.
        private var held: Bool?
        /// Whether the host holds this hand: it has no numbered place until the host puts it back.
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

    /// Revocations of links and keys: those created until the given times no longer work.
    package struct LinkRevocations: Equatable, Sendable, Codable {
        /// Nil where none were revoked.
        package var speakers: WallTime?
        /// Nil where none were revoked.
        package var viewers: WallTime?
        /// When each participant last replaced their encoder's key: keys created until then are void; nil if no one
        /// did.
        package private(set) var keys: [ParticipantID: WallTime]?

        package init() {}

        /// Makes a participant's encoder key void, together with all earlier ones.
        mutating func replaceKey(of owner: ParticipantID, at now: WallTime) {
            // The previous revocation may lie a second ahead of the clock; see `later`.
            var all = keys ?? [:]
            all[owner] = Self.later(all[owner], true, now)
            keys = all
        }

        /// Whether an encoder's key is still valid; revoking the links for speakers revokes all keys too.
        ///
        /// - Parameter issued: when the key was created, in seconds since 1970.
        package func allowsKey(of owner: ParticipantID, issued: Int) -> Bool {
            allows(Stage.Link(makesSpeakers: true, issued: issued))
                && keys?[owner].map { $0.milliseconds / 1_000 < Int64(issued) } ?? true
        }

        /// The earliest creation time, in seconds since 1970, at which a participant's key is valid.
        package func firstKey(of owner: ParticipantID) -> Int {
            [speakers, keys?[owner]].compactMap { $0.map { Int($0.milliseconds / 1_000) + 1 } }.max() ?? 0
        }

        /// - Parameter fresh: kinds of links that may have been created since the last revocation.
        mutating func revoke(_ kinds: LinkKinds, fresh: LinkKinds, at now: WallTime) {
            if kinds.contains(.speakers) { speakers = Self.later(speakers, fresh.contains(.speakers), now) }
            if kinds.contains(.viewers) { viewers = Self.later(viewers, fresh.contains(.viewers), now) }
        }

        /// The time of a revocation: links created in this second or before are void.
        ///
        /// Links contain their creation time in whole seconds, and a link created after a revocation contains a later
        /// second. Revoking that one as well takes one more second. If there can be no such link, revoking again does
        /// not move the time ahead of the clock.
        private static func later(_ earlier: WallTime?, _ isFresh: Bool, _ now: WallTime) -> WallTime {
            guard let earlier else { return now }
            return max(now, isFresh ? earlier.advanced(bySeconds: 1) : earlier)
        }

        /// Whether a link is still valid.
        package func allows(_ link: Stage.Link) -> Bool {
            let revoked = link.makesSpeakers ? speakers : viewers
            return revoked.map { $0.milliseconds / 1_000 < Int64(link.issued) } ?? true
        }
    }

    /// Kinds of links, by the role that they give.
    package struct LinkKinds: OptionSet, Sendable {
        package let rawValue: Int
        /// Links that make speakers.
        package static let speakers = LinkKinds(rawValue: 1)
        /// Links that make viewers.
        package static let viewers = LinkKinds(rawValue: 2)
        package static let all: LinkKinds = [.speakers, .viewers]

        package init(rawValue: Int) {
            self.rawValue = rawValue
        }
    }

    /// Never reused for another stream.
    package let id: StreamID
    /// How the stream was created.
    package let origin: Origin
    /// When the stream was created, not when it went live.
    package let createdAt: WallTime
    /// The present phase; `backstage` at first.
    package internal(set) var phase: Phase
    /// The host's settings, as last edited.
    package internal(set) var details: StageDetails
    /// Nil if no operator has decided anything, as for most streams.
    package internal(set) var placement: StagePlacement?
    /// Nil if no link was revoked, as for most streams.
    package internal(set) var linkRevocations: LinkRevocations?
    /// The host; a stream always has exactly one.
    package internal(set) var host: ParticipantID
    /// The host's entry; the host counts as on stage even while away.
    package internal(set) var hostMember: Member
    /// Nil before it goes live.
    package internal(set) var startedAt: WallTime?
    /// Nil before it ends.
    package internal(set) var endedAt: WallTime?
    /// Nil before it ends.
    package internal(set) var endReason: EndReason?
    /// The participants on stage beside the host.
    package internal(set) var speakers: [ParticipantID: Member] = [:]
    /// Raised hands, at most `Stage.handLimit`.
    package internal(set) var hands: [ParticipantID: Entry] = [:]
    /// Invitations that have not been accepted, at most `Stage.invitationLimit`.
    package internal(set) var invitations: [ParticipantID: Entry] = [:]
    /// When each participant was banned; at most `Stage.banLimit`.
    package internal(set) var banned: [ParticipantID: WallTime] = [:]
    /// Participants whom the host took off the stage: only an invitation brings them back, not a speaker's token.
    package internal(set) var demoted = LatestParticipants()
    /// The same for participants who left the stage themselves; nil if no one did.
    ///
    /// Kept apart, so that however many leave, no participant whom the host took off the stage is forgotten.
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

    /// Whether a participant is the host or a speaker.
    package func isOnStage(_ id: ParticipantID) -> Bool { id == host || speakers[id] != nil }

    /// The entry of a participant on stage; nil for all others.
    package func member(_ id: ParticipantID) -> Member? { id == host ? hostMember : speakers[id] }
}

// MARK: Changes

extension StageRecord {
    /// Applies changes in order, from `created` on; nil if they do not begin with a creation.
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

    /// Applies a change that the stage has decided, without checking it again.
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
                // The set is moved out of the record first, so that inserting does not copy it.
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

    /// Removes a participant's place on stage, hand and invitation.
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
