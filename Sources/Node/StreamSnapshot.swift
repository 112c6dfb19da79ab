import Base
import Stage

/// Where a stream is in its life.
package enum StreamState: String, Sendable, CaseIterable {
    /// Nobody made it yet: it begins when somebody publishes under its name.
    case waiting
    case backstage
    case live
    case ended
}

/// What everybody may know of a stream at one moment.
package struct StreamSnapshot: Equatable, Sendable {
    /// Names it for ever.
    package let id: StreamID
    /// Waiting is a stream that nobody made.
    package var state: StreamState
    /// Grows with every change that is announced.
    package var version: UInt64
    /// Nil for a stream that nobody made.
    package var host: ParticipantID?
    /// For people; nil where the host has none.
    package var hostName: String?
    /// Nil for a stream that nobody made.
    package var createdAt: WallTime?
    /// When the stream went live the last time.
    package var startedAt: WallTime?
    /// Nil while it has not ended.
    package var endedAt: WallTime?
    /// Nil while it has not ended.
    package var endReason: StageRecord.EndReason?
    /// As the host set them.
    package var details = StageDetails()
    /// For operators only.
    package var placement = StagePlacement()
    /// Whether everybody may come in before it is live.
    package var areDoorsOpen = false
    /// Connected viewers that were let in, anonymous ones included.
    package var viewers: Int
    /// Those who are not let in yet.
    package var waiting = 0
    /// Whether its source publishes sound.
    package var hasAudio: Bool
    /// Whether its source publishes a picture.
    package var hasVideo: Bool
    /// The latest picture of it.
    package var preview: StreamPreview?
    /// Shown to everybody who watches.
    package var isRecording = false
    /// Whether viewers by HLS can go back in it.
    package var isKept = false
    /// Made by publishing under its name.
    var isPublished = false
    /// Once it has ended, publishing under its name makes it live again.
    var mayBeginAnew = false
    /// Whoever provides the programme is not there at the moment.
    var isPaused = false
    /// Who may not see it.
    var banned: [ParticipantID: WallTime] = [:]
    /// Who speaks there, beside the host.
    var speakers: Set<ParticipantID> = []
    /// Which of its links lead nowhere any more.
    var linkRevocations = StageRecord.LinkRevocations()

    /// A stream nobody made yet.
    init(waitingFor id: StreamID) {
        self.id = id
        state = .waiting
        version = 0
        (viewers, hasAudio, hasVideo) = (0, false, false)
    }

    init(_ record: StageRecord) {
        id = record.id
        state =
            switch record.phase {
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

    /// What stands between somebody and the programme; nil where nothing does.
    /// - Parameter sender: nil for somebody without a name.
    package func gate(before sender: Stage.Sender?) -> StageDetails.Gate? {
        details.gate.flatMap { $0.admits(sender, isOnStage: sender.map(isOnStage) ?? false) ? nil : $0 }
    }

    /// Whether somebody is the host, whose name alone makes nobody that, or speaks.
    private func isOnStage(_ sender: Stage.Sender) -> Bool {
        guard sender.id == host else { return speakers.contains(sender.id) }
        return sender.authority == .host || sender.authority == .admin
    }

    /// By which lists are ordered and filtered.
    package var effectiveStart: WallTime {
        startedAt ?? details.startsAt ?? createdAt ?? WallTime(milliseconds: 0)
    }

    /// As clients see it.
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
