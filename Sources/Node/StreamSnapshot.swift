import Base
import Stage

/// Where a stream is in its life cycle.
package enum StreamState: String, Sendable, CaseIterable {
    /// The stream does not exist yet; it begins when a host publishes under its name.
    case waiting
    case backstage
    case live
    case ended
}

/// What is publicly known of a stream at one moment.
package struct StreamSnapshot: Equatable, Sendable {
    /// The stream's permanent name.
    package let id: StreamID
    /// `waiting` for a stream that does not exist yet.
    package var state: StreamState
    /// Increases with every change that is announced to followers.
    package var version: UInt64
    /// Nil for a stream that does not exist yet.
    package var host: ParticipantID?
    /// The host's name as people see it; nil if the host has none.
    package var hostName: String?
    /// Nil for a stream that does not exist yet.
    package var createdAt: WallTime?
    /// When the stream last went live; nil if it never did.
    package var startedAt: WallTime?
    /// Nil while it has not ended.
    package var endedAt: WallTime?
    /// Nil while it has not ended.
    package var endReason: StageRecord.EndReason?
    /// As the host set them.
    package var details = StageDetails()
    /// Where operators have placed the stream in the feed; not part of `json`.
    package var placement = StagePlacement()
    /// Whether viewers may enter before the stream is live.
    package var areDoorsOpen = false
    /// Connected viewers who were admitted, including anonymous ones.
    package var viewers: Int
    /// Viewers who are not admitted yet.
    package var waiting = 0
    /// Whether the source publishes audio.
    package var hasAudio: Bool
    /// Whether the source publishes video.
    package var hasVideo: Bool
    /// The latest preview; nil if there is none.
    package var preview: StreamPreview?
    /// Whether a recording is being made, which every viewer is shown.
    package var isRecording = false
    /// Whether viewers by HLS can go back in time.
    package var isKept = false
    /// Whether the stream was created by publishing under its name.
    var isPublished = false
    /// Whether publishing under the name of the ended stream makes it live again.
    var mayBeginAnew = false
    /// Whether the participant who provides the programme is away at the moment.
    var isPaused = false
    /// The participants who may not see it, each with the time at which the ban ends.
    var banned: [ParticipantID: WallTime] = [:]
    /// The participants who may speak, without the host.
    var speakers: Set<ParticipantID> = []
    /// Which of the stream's invitation links are revoked.
    var linkRevocations = StageRecord.LinkRevocations()

    /// A stream that does not exist yet.
    init(waitingFor id: StreamID) {
        self.id = id
        state = .waiting
        version = 0
        (viewers, hasAudio, hasVideo) = (0, false, false)
    }

    /// What the durable record contains; presence, media and previews are added by the stage.
    init(_ record: StageRecord) {
        id = record.id
        state =
            switch record.phase {
            // A published stream has no backstage: without media it waits for its publisher.
            case .backstage: record.origin == .published ? .waiting : .backstage
            case .live: .live
            case .ended: .ended
            }
        version = 0
        host = record.host
        hostName = record.hostMember.name
        createdAt = record.createdAt
        startedAt = record.startedAt
        endedAt = record.endedAt
        endReason = record.endReason
        details = record.details
        placement = record.placement ?? StagePlacement()
        isPublished = record.origin == .published
        mayBeginAnew = isPublished
        banned = record.banned
        speakers = Set(record.speakers.keys)
        linkRevocations = record.linkRevocations ?? StageRecord.LinkRevocations()
        (viewers, hasAudio, hasVideo) = (0, false, false)
    }

    /// The gate that keeps a viewer from the programme; nil if there is none or it is open to them.
    /// - Parameter sender: nil for an anonymous viewer.
    package func gate(before sender: Stage.Sender?) -> StageDetails.Gate? {
        details.gate.flatMap { $0.admits(sender, isOnStage: sender.map(isOnStage) ?? false) ? nil : $0 }
    }

    /// Whether a participant who is not in the stream yet is kept out: banned, or invited by a link that was revoked
    /// since; admins never are.
    package func shutsOut(_ sender: Stage.Sender) -> Bool {
        guard sender.authority != .admin else { return false }
        let isRevoked = sender.link.map { !linkRevocations.allows($0) } ?? false
        return isRevoked || banned[sender.id] != nil
    }

    /// Whether a participant is a speaker or the host; for the host, the token must also have a host's rights.
    private func isOnStage(_ sender: Stage.Sender) -> Bool {
        guard sender.id == host else { return speakers.contains(sender.id) }
        return sender.authority == .host || sender.authority == .admin
    }

    /// The time by which lists are ordered and filtered: the start, else the announced start, else the creation.
    package var effectiveStart: WallTime {
        startedAt ?? details.startsAt ?? createdAt ?? WallTime(milliseconds: 0)
    }

    /// The representation for one client: without the preview, if they are kept out of the stream.
    /// - Parameter sender: nil for an anonymous client.
    package func json(for sender: Stage.Sender?) -> JSON {
        var snapshot = self
        if let sender, shutsOut(sender) { snapshot.preview = nil }
        return snapshot.json
    }

    /// The representation for clients.
    package var json: JSON {
        let tracks = (hasAudio ? ["audio"] : []) + (hasVideo ? ["video"] : [])
        return .object([
            "id": .string(id.description),
            "state": .string(state.rawValue),
            "version": .integer(version),
            "title": .text(details.title),
            "host": .text(host?.description),
            "hostName": .text(hostName ?? host?.description),
            "createdAt": .time(createdAt),
            "startsAt": .time(details.startsAt),
            "joinAheadSeconds": .integer(details.joinAheadSeconds),
            "hostGraceSeconds": .integer(details.hostGraceSeconds),
            "startedAt": .time(startedAt),
            "endedAt": .time(endedAt),
            "endReason": .text(endReason?.rawValue),
            "final": .bool(state == .ended && !mayBeginAnew),
            "programme": .string(details.programme.rawValue),
            "maxSpeakers": .integer(details.maxSpeakers),
            "composition": details.composition?.json ?? .null,
            "gate": details.gate?.json ?? .null,
            "audienceData": .string((details.audienceData ?? .nothing).rawValue),
            "layers": .array(details.layers.map { .string($0.rawValue) }),
            "doorsOpen": .bool(areDoorsOpen),
            "viewers": .integer(viewers),
            "waiting": .integer(waiting),
            "preview": preview?.json ?? .null,
            "recording": .string((details.recording ?? .manual).rawValue),
            "clips": .string((details.clips ?? .moderators).rawValue),
            "hls": .string((details.hls ?? .on).rawValue),
            "dvrSeconds": .integer(details.dvrSeconds),
            "isRecording": .bool(isRecording),
            "isKept": .bool(isKept),
            "tracks": .array(tracks.map { .object(["kind": .string($0)]) }),
        ])
    }
}
