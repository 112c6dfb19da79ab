import Base

/// One stream's rules: who may do what, and what follows from it.
///
/// Decides in memory, at once, and says what has to be remembered before anybody may be told. What a restart must not
/// lose is in `record`; who is there at the moment is not. Knows neither a clock nor a disk nor a network.
package struct Stage: Equatable, Sendable {
    /// Host and speakers together.
    package static let stageLimit = 50
    /// Raised at once.
    package static let handLimit = 100
    /// Open at once.
    package static let invitationLimit = 100
    /// Banned participants, and in the same number the latest ones whom the host took off the stage, and who left it
    /// themselves, and whose speaker's token does not count any more.
    package static let banLimit = 10_000
    /// Participants that have replaced their encoder's key; the host may beyond it.
    package static let keyLimit = 1_000
    /// Viewers that are listed by name; all are counted.
    package static let listedViewerLimit = 100
    /// How long somebody without any connection is still here.
    package static let presenceGrace = Duration.seconds(15)
    /// How long a published stream waits for its source's first packet.
    package static let sourceGrace = Duration.seconds(60)

    /// Ahead of what is durable while a commit is under way.
    package internal(set) var record: StageRecord
    var presence = PresenceTable()
    /// Nil while nobody sends; a published stream ends if it stays so.
    package internal(set) var source: Source?
    /// When a stream without its host, or its source, ends.
    var hostDeadline: MonotonicTime?
    /// Whether links may have been made since those for speakers, and those for viewers, were last revoked.
    var freshLinks = StageRecord.LinkKinds.all
    /// Whether `details.admissionTime` has come.
    package internal(set) var areDoorsOpen = false
    /// When they open; as of the moment at which the schedule was last looked at.
    var doorsOpenAt: MonotonicTime?

    /// What viewers would get now.
    package struct Source: Equatable, Sendable {
        /// Nil where the publisher has no name.
        package let owner: ParticipantID?
        /// For people; as the publisher's token says.
        package let name: String?
        /// Whether an m-line for audio was agreed, not whether anything is heard.
        package let hasAudio: Bool
        /// Whether an m-line for video was agreed, not whether anything is seen.
        package let hasVideo: Bool
        /// Whether it came in the place of a source that was lost: whoever it belongs to was on the stage already.
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

    /// Makes a stream.
    /// - Returns: the stage, and what to remember of its making.
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

    /// A stage as it was remembered; everybody gets the usual time to come back.
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

    /// Goes back to what was remembered, because the changes since then could not be.
    ///
    /// Who is there stays; who only was because of those changes gets the usual time.
    package mutating func revert(to record: StageRecord, at now: Moment) {
        self.record = record
        freshLinks = .all
        awaitMembers(at: now)
        if record.phase != .live, record.origin == .made {
            hostDeadline = nil
        } else if hostDeadline == nil, record.origin == .made, !presence.isConnected(record.host) {
            startHostDeadline(at: now)
        }
        openDoors(at: now)
    }

    private mutating func awaitMembers(at now: Moment) {
        // They are listed in the order in which they are entered here, which hashing must not decide.
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

    /// Somebody with a token, as far as the stage has to know.
    package struct Sender: Equatable, Sendable {
        /// What the token makes its bearer at most.
        package enum Authority: Equatable, Sendable, CaseIterable {
            case admin, host, speaker, viewer
        }

        /// The token's `sub`.
        package let id: ParticipantID
        /// The token's `name`, shown to others.
        package let name: String?
        /// What the token allows; `standing(of:)` says what the stream makes of it.
        package let authority: Authority
        /// The capability `join-backstage`.
        package let mayJoinBackstage: Bool
        /// By which the sender came; nil for those whose token was made for them.
        package let link: Link?
        /// The capability `give-gifts`: who sells them says that they were given.
        package let mayGiveGifts: Bool
        /// The capability `moderate`: of what the audience does, not of the stage.
        package let mayModerate: Bool
        /// What the sender has paid for, or been given: they open gates, and let comment where that takes one.
        package let tiers: Set<String>
        /// Whether anybody gets such an identity who asks.
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

    /// A link that brings people in, as far as the stage has to know: whether it has been revoked.
    package struct Link: Equatable, Sendable {
        /// Whether it makes speakers of those who open it, or viewers.
        package let makesSpeakers: Bool
        /// In seconds since 1970.
        package let issued: Int

        package init(makesSpeakers: Bool, issued: Int) {
            self.makesSpeakers = makesSpeakers
            self.issued = issued
        }
    }

    /// What somebody is in this stream now, whatever their token would allow.
    package enum Standing: String, Equatable, Sendable {
        case host, speaker, viewer
    }

    /// A viewer's token makes nobody the host.
    package func standing(of sender: Sender) -> Standing { record.standing(of: sender) }
    /// Whether the sender has a host's rights over others: the host, and admins.
    package func isModerator(_ sender: Sender) -> Bool { record.isModerator(sender) }

    /// Whether somebody may see and hear the programme now.
    /// - Parameter sender: nil for somebody without a name.
    package func admit(_ sender: Sender?) throws(Rejection) {
        if let sender, let rejection = shutsOut(sender) { throw rejection }
        guard record.phase != .ended else { throw .ended }
        guard !record.admits(sender, areDoorsOpen: areDoorsOpen) else { return }
        throw .backstage(startsAt: record.details.startsAt, waiting: counts.waiting)
    }

    /// Why somebody may not even look; nil for all others.
    ///
    /// Whoever came by a link that was revoked since stays as long as they are here, and does not come back.
    package func shutsOut(_ sender: Sender) -> Rejection? {
        record.shutsOut(sender, isPresent: hasPresence(of: sender.id))
    }

    // MARK: Numbers

    /// The audience, in numbers that everybody may see.
    package struct Counts: Equatable, Sendable {
        /// Let in, those without a name included.
        package var viewers = 0
        /// Until the doors open.
        package var waiting = 0

        package init(viewers: Int = 0, waiting: Int = 0) {
            self.viewers = viewers
            self.waiting = waiting
        }
    }

    /// Nobody on stage is counted; before the doors open, those who may come in already are viewers.
    package var counts: Counts {
        let (privileged, others) = presence.viewerCounts { record.isOnStage($0) }
        guard record.phase == .backstage, !areDoorsOpen else { return Counts(viewers: privileged + others) }
        return Counts(viewers: privileged, waiting: others)
    }

    /// One of the viewers that are listed.
    package struct ListedViewer: Equatable, Sendable {
        package let id: ParticipantID
        /// For people; nil where their token has none.
        package let name: String?
        /// Whether they may take away what others wrote.
        package let isModerator: Bool
    }

    /// Viewers by name: leaders, then others in the order in which they came; the same ones as long as they stay.
    /// - Parameter leaders: who is listed before others, if they are there; a few.
    package mutating func listViewers(leaders: [ParticipantID] = []) -> [ListedViewer] {
        let record = record
        return presence.list(limit: Self.listedViewerLimit, leaders: leaders) { record.isOnStage($0) }
    }

    /// Whether somebody has a connection now; within the grace time, false.
    package func isPresent(_ id: ParticipantID) -> Bool { presence.isConnected(id) }

    /// Whether somebody is connected, or has left so lately that they may come back.
    package func hasPresence(of id: ParticipantID) -> Bool { presence.contains(id) }
}

/// What a command or the passing of time brings about.
package struct StageOutcome: Equatable, Sendable {
    /// To be durable before anything else of this is carried out or told.
    package var changes: [StageChange] = []
    /// To be done in order, once `changes` are durable.
    package var effects: [StageEffect] = []
    /// What others outside the server may want to hear.
    package var events: [StageEvent] = []

    package init() {}

    /// Whether nothing follows: such a command need not be written down.
    package var isEmpty: Bool { changes.isEmpty && effects.isEmpty && events.isEmpty }
}

/// What has to be done beyond the stage.
package enum StageEffect: Equatable, Sendable {
    /// Ask somebody's client to mute; it may unmute.
    case requestMute(of: ParticipantID, StageChange.MediaKind, by: ParticipantID)
    /// Show everybody on stage what somebody says of their microphone and camera.
    case showMute(of: ParticipantID, audio: Bool, video: Bool)
    /// Give viewers something else.
    case setProgramme(StageDetails.Programme)
    /// End what somebody publishes; they may go on watching.
    case retire(ParticipantID)
    /// End everything somebody has here.
    case expel(ParticipantID, Rejection?)
    /// The stream is over: end its sessions.
    case close
}

/// What webhooks tell.
package enum StageEvent: Equatable, Sendable {
    case created, live, ended(StageRecord.EndReason)
    case joined(ParticipantID, name: String?), left(ParticipantID)
    case promoted(ParticipantID), demoted(ParticipantID)
    case removed(ParticipantID, isBanned: Bool)
}

extension Stage {
    package typealias Outcome = StageOutcome
}
