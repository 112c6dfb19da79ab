import Base

/// One stream's rules: who may do what, and what follows from it.
///
/// It decides in memory, without waiting, and returns the changes that must be durable before any client is notified.
/// `record` contains the state that survives a restart; presence does not survive one. The type uses no clock, disk
/// or network.
package struct Stage: Equatable, Sendable {
    /// Host and speakers together.
    package static let stageLimit = 50
    /// Maximum number of raised hands.
    package static let handLimit = 100
    /// Maximum number of open invitations.
    package static let invitationLimit = 100
    /// Maximum number of banned participants.
    ///
    /// The same limit applies to the participants whom the host took off the stage, and to those who left it
    /// themselves, whose speaker's tokens no longer count. There only the latest ones are remembered.
    package static let banLimit = 10_000
    /// Maximum number of participants who have replaced their encoder's key; the host and admins may beyond it.
    package static let keyLimit = 1_000
    /// Maximum number of viewers listed by name; all are counted.
    package static let listedViewerLimit = 100
    /// How long a participant without any connection still counts as present.
    package static let presenceGrace = Duration.seconds(15)
    /// How long a published stream waits for its source's first packet.
    package static let sourceGrace = Duration.seconds(60)
    /// When what follows from a source is decided again after the store has refused it.
    package static let sourcePause = Duration.seconds(5)

    /// The present state; ahead of the durable one while a commit is under way.
    package internal(set) var record: StageRecord
    var presence = PresenceTable()
    /// Nil while there is no source; a published stream ends if that lasts.
    package internal(set) var source: Source?
    /// When the stream ends unless its host, or its source, comes back.
    var hostDeadline: MonotonicTime?
    /// When it is decided again what follows from the source; set only if the store refused that.
    var sourceDeadline: MonotonicTime?
    /// The kinds of links that may have been created since they were last revoked.
    var freshLinks = StageRecord.LinkKinds.all
    /// Whether `details.admissionTime` has come.
    package internal(set) var areDoorsOpen = false
    /// When the doors open, computed when the schedule was last looked at; nil if they are open or have no time.
    var doorsOpenAt: MonotonicTime?

    /// The session that viewers get the programme from.
    package struct Source: Equatable, Sendable {
        /// Nil for an anonymous publisher.
        package let owner: ParticipantID?
        /// The display name in the publisher's token.
        package let name: String?
        /// Whether an m-line for audio was negotiated, not whether it carries sound.
        package let hasAudio: Bool
        /// Whether an m-line for video was negotiated, not whether it carries pictures.
        package let hasVideo: Bool
        /// Whether it replaced a source that was lost; its owner was on stage already then.
        package let isSuccessor: Bool

        package init(
            owner: ParticipantID?, name: String?, hasAudio: Bool, hasVideo: Bool, isSuccessor: Bool = false
        ) {
            self.owner = owner
            self.name = name
            self.hasAudio = hasAudio
            self.hasVideo = hasVideo
            self.isSuccessor = isSuccessor
        }
    }

    /// Creates a stream.
    /// - Returns: the stage, and the outcome of its creation.
    /// - Throws: `.invalid`, naming the first field that is out of its range.
    package static func create(
        _ id: StreamID, origin: StageRecord.Origin, host: ParticipantID, hostName: String?, edit: StageEdit,
        at now: Moment
    ) throws(Rejection) -> (stage: Stage, outcome: Outcome) {
        let details = edit.applied(to: StageDetails())
        try details.validate(at: now.wall, startsAtIsNew: true)
        let creation = StageChange.Creation(
            id: id, origin: origin, host: host, hostName: hostName, details: details, at: now.wall)
        var outcome = Outcome()
        outcome.changes = [.created(creation)]
        outcome.events = [.created]
        var stage = Stage(record: StageRecord(creation))
        stage.openDoors(at: now)
        if origin == .published { stage.hostDeadline = now.elapsed + Self.sourceGrace }
        return (stage, outcome)
    }

    private init(record: StageRecord) {
        self.record = record
    }

    /// Restores a stage from its record; all members get the usual grace time to come back.
    package init(restoring record: StageRecord, at now: Moment) {
        self.record = record
        guard record.phase != .ended else { return }
        awaitMembers(at: now)
        if record.phase == .live {
            startHostDeadline(at: now)
        } else if record.origin == .published {
            hostDeadline = now.elapsed + Self.sourceGrace
        }
        openDoors(at: now)
    }

    /// Goes back to the durable record, because later changes could not be stored.
    ///
    /// Presence stays as it is. Members who are only in the record get the usual grace time.
    package mutating func revert(to record: StageRecord, at now: Moment) {
        // Sources are told of once: nobody else would make the stream live, or the source's owner its host.
        if record.origin == .published, record.phase != .ended, let source {
            let isHostUndone = self.record.host == source.owner && record.host != source.owner
            let isStartUndone = self.record.phase == .live && record.phase == .backstage
            if isHostUndone || isStartUndone { sourceDeadline = now.elapsed + Self.sourcePause }
        }
        self.record = record
        freshLinks = .all
        awaitMembers(at: now)
        if record.phase != .live, record.origin == .made {
            hostDeadline = nil
        } else if hostDeadline == nil, record.origin == .made, !presence.isConnected(record.host) {
            startHostDeadline(at: now)
        }
        if record.phase != .ended, record.origin == .published, source == nil, hostDeadline == nil {
            hostDeadline = now.elapsed + Self.sourceGrace
        }
        openDoors(at: now)
    }

    /// Counts all speakers, raised hands and invited viewers as present for the grace time.
    private mutating func awaitMembers(at now: Moment) {
        // The order of insertion here becomes the order of the list of viewers, so it must not depend on hashing.
        let members =
            record.speakers.map { (id: $0.key, name: $0.value.name, since: $0.value.since) }
            + record.hands.map { (id: $0.key, name: $0.value.name, since: $0.value.since) }
            + record.invitations.map { (id: $0.key, name: $0.value.name, since: $0.value.since) }
        let inOrder = members.sorted { ($0.since, $0.id.description) < ($1.since, $1.id.description) }
        for (id, name, _) in inOrder {
            presence.touch(id, name: name, until: now.elapsed + Self.presenceGrace)
        }
    }

    // MARK: Who is who

    /// The bearer of a token, as far as the stage needs to know.
    package struct Sender: Equatable, Sendable {
        /// The most that the token can make its bearer.
        package enum Authority: Equatable, Sendable, CaseIterable {
            case admin, host, speaker, viewer
        }

        /// The token's `sub`.
        package let id: ParticipantID
        /// The token's `name`, shown to others.
        package let name: String?
        /// What the token allows; `standing(of:)` returns what the bearer is in this stream.
        package let authority: Authority
        /// The capability `join-backstage`.
        package let mayJoinBackstage: Bool
        /// The link by which the sender came; nil for a token that was made for them.
        package let link: Link?
        /// The capability `give-gifts`: the shop that sells gifts reports that they were given.
        package let mayGiveGifts: Bool
        /// The capability `moderate`: covers comments and other audience actions, not the stage.
        package let mayModerate: Bool
        /// Tiers that the sender has bought or been given; they open gates, and comments where those require a tier.
        package let tiers: Set<String>
        /// Whether the server gives such an identity to anyone who asks.
        package let isGuest: Bool

        package init(
            id: ParticipantID, name: String? = nil, authority: Authority, mayJoinBackstage: Bool = false,
            link: Link? = nil, mayGiveGifts: Bool = false, mayModerate: Bool = false,
            tiers: Set<String> = [], isGuest: Bool = false
        ) {
            self.tiers = tiers
            self.isGuest = isGuest
            self.mayGiveGifts = mayGiveGifts
            self.mayModerate = mayModerate
            self.id = id
            self.name = name
            self.authority = authority
            self.mayJoinBackstage = mayJoinBackstage
            self.link = link
        }
    }

    /// A link by which participants come in, as far as the stage needs to know: enough to tell whether it has been
    /// revoked.
    package struct Link: Equatable, Sendable {
        /// Whether it makes those who open it speakers rather than viewers.
        package let makesSpeakers: Bool
        /// In seconds since 1970.
        package let issued: Int

        package init(makesSpeakers: Bool, issued: Int) {
            self.makesSpeakers = makesSpeakers
            self.issued = issued
        }
    }

    /// What a participant is in this stream now, whatever their token would allow.
    package enum Standing: String, Equatable, Sendable {
        case host, speaker, viewer
    }

    /// The sender's standing in this stream; a viewer's token with the host's identity does not make a host.
    package func standing(of sender: Sender) -> Standing { record.standing(of: sender) }
    /// Whether the sender has a host's rights over others, which the host and admins do.
    package func isModerator(_ sender: Sender) -> Bool { record.isModerator(sender) }

    /// Checks that a sender may see and hear the programme now.
    /// - Parameter sender: nil for an anonymous viewer.
    /// - Throws: `.banned`, `.linkRevoked`, `.ended`, or `.backstage` before the doors open.
    package func admit(_ sender: Sender?) throws(Rejection) {
        if let sender, let rejection = shutsOut(sender) { throw rejection }
        guard record.phase != .ended else { throw .ended }
        guard !record.admits(sender, areDoorsOpen: areDoorsOpen) else { return }
        throw .backstage(startsAt: record.details.startsAt, waiting: counts.waiting)
    }

    /// Why a sender may not even see the stream's state; nil if they may.
    ///
    /// A participant whose link was revoked after they came stays while they are present, and cannot come back.
    package func shutsOut(_ sender: Sender) -> Rejection? {
        record.shutsOut(sender, isPresent: hasPresence(of: sender.id))
    }

    // MARK: Numbers

    /// The size of the audience, which every participant may see.
    package struct Counts: Equatable, Sendable {
        /// Viewers who may watch, including anonymous ones.
        package var viewers = 0
        /// Viewers who wait for the doors to open.
        package var waiting = 0

        package init(viewers: Int = 0, waiting: Int = 0) {
            self.viewers = viewers
            self.waiting = waiting
        }
    }

    /// The audience without the stage; before the doors open, only those who may come in already count as viewers.
    package var counts: Counts {
        let (privileged, others) = presence.viewerCounts { record.isOnStage($0) }
        guard record.phase == .backstage, !areDoorsOpen else { return Counts(viewers: privileged + others) }
        return Counts(viewers: privileged, waiting: others)
    }

    /// One viewer in the list of names.
    package struct ListedViewer: Equatable, Sendable {
        package let id: ParticipantID
        /// The display name; nil if the token has none.
        package let name: String?
        /// Whether they may remove what others wrote.
        package let isModerator: Bool
    }

    /// Lists viewers by name: leaders, then others in order of arrival; the same ones while they stay.
    /// - Parameter leaders: viewers to list before others if they are connected; only a few.
    package mutating func listViewers(leaders: [ParticipantID] = []) -> [ListedViewer] {
        let record = record
        return presence.list(limit: Self.listedViewerLimit, leaders: leaders) { record.isOnStage($0) }
    }

    /// Whether a participant has a connection now; false within the grace time.
    package func isPresent(_ id: ParticipantID) -> Bool { presence.isConnected(id) }

    /// Whether a participant is connected, or is within the grace time after the last connection.
    package func hasPresence(of id: ParticipantID) -> Bool { presence.contains(id) }
}

/// The result of a command or of the passing of time.
package struct StageOutcome: Equatable, Sendable {
    /// Changes that must be durable before effects are performed or clients notified.
    package var changes: [StageChange] = []
    /// Effects to perform in order, once `changes` are durable.
    package var effects: [StageEffect] = []
    /// Events for webhooks.
    package var events: [StageEvent] = []

    package init() {}

    /// Whether nothing follows, so that nothing needs to be stored.
    package var isEmpty: Bool { changes.isEmpty && effects.isEmpty && events.isEmpty }
}

/// An action outside the stage.
package enum StageEffect: Equatable, Sendable {
    /// Ask a participant's client to mute; the participant may unmute.
    case requestMute(of: ParticipantID, MediaKind, by: ParticipantID)
    /// Show all members of the stage whether a participant's microphone and camera are muted.
    case showMute(of: ParticipantID, audio: Bool, video: Bool)
    /// Switch viewers to another programme.
    case setProgramme(StageDetails.Programme)
    /// End what a participant publishes; they may go on watching.
    case retire(ParticipantID)
    /// End all connections of a participant; the rejection, if any, is the reason shown.
    case expel(ParticipantID, Rejection?)
    /// End all sessions of the stream, because it has ended.
    case close
}

/// An event that webhooks report.
package enum StageEvent: Equatable, Sendable {
    case created, live, ended(StageRecord.EndReason)
    case joined(ParticipantID, name: String?), left(ParticipantID)
    case promoted(ParticipantID), demoted(ParticipantID)
    case removed(ParticipantID, isBanned: Bool)
}

extension Stage {
    package typealias Outcome = StageOutcome
}
