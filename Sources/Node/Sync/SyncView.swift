import Base
import Stage

/// What all who follow a stream know, in the pieces in which they are told of changes.
struct SyncView: Equatable {
    struct Member: Equatable {
        let member: StageRecord.Member
        let isHost: Bool
        let isPresent: Bool
        /// Less of what they send comes than should.
        let hasWeakUplink: Bool
    }

    struct Viewer: Equatable {
        let name: String
        /// Whether they may take away what others wrote.
        let isModerator: Bool
    }

    struct Programme: Equatable {
        var hasAudio = false
        var hasVideo = false
        /// Whoever provides it says that they are not there at the moment.
        var isPaused = false
    }

    /// Its version stays 0.
    var stream: StreamSnapshot
    var speakers: [ParticipantID: Member] = [:]
    var viewers: [ParticipantID: Viewer] = [:]
    var hands: [ParticipantID: StageRecord.Entry] = [:]
    var invitations: [ParticipantID: StageRecord.Entry] = [:]
    var programme = Programme()

    /// Everything, for somebody who knows nothing.
    var json: [String: JSON] {
        [
            "stream": streamJSON,
            "speakers": Self.object(speakers, Self.json),
            "viewers": Self.object(viewers, Self.json),
            "raisedHands": Self.object(hands, Self.handJSON),
            "invitations": Self.object(invitations, Self.json),
            "counts": .object(counts),
            "programme": .object(Self.json(programme)),
        ]
    }

    /// What has to be merged into `old` to become this; empty if it is the same.
    /// - Source: RFC 7396 (merge patch).
    func patch(from old: SyncView) -> [String: JSON] {
        var patch: [String: JSON] = [:]
        if stream != old.stream { patch["stream"] = Self.difference(old.streamJSON, streamJSON) }
        patch["speakers"] = Self.difference(old.speakers, speakers, Self.json)
        patch["viewers"] = Self.difference(old.viewers, viewers, Self.json)
        patch["raisedHands"] = Self.difference(old.hands, hands, Self.handJSON)
        patch["invitations"] = Self.difference(old.invitations, invitations, Self.json)
        patch["counts"] = Self.difference(.object(old.counts), .object(counts))
        if programme != old.programme {
            patch["programme"] = Self.difference(
                .object(Self.json(old.programme)), .object(Self.json(programme)))
        }
        return patch
    }

    /// Whether nothing is another but what people are and do.
    func isSameStream(as old: SyncView) -> Bool {
        var other = old
        (other.speakers, other.viewers) = (speakers, viewers)
        (other.hands, other.invitations) = (hands, invitations)
        (other.stream.viewers, other.stream.waiting) = (stream.viewers, stream.waiting)
        (other.stream.isPaused, other.programme.isPaused) = (stream.isPaused, programme.isPaused)
        return self == other
    }

    /// The version stands outside.
    private var streamJSON: JSON {
        var json = stream.json
        json["version"] = nil
        return json
    }

    private var counts: [String: JSON] {
        [
            "viewers": .integer(stream.viewers), "waiting": .integer(stream.waiting),
            "speakers": .integer(speakers.count), "raisedHands": .integer(hands.count),
        ]
    }

    // MARK: Pieces

    private static func object<Value>(
        _ values: [ParticipantID: Value], _ json: (Value) -> JSON
    ) -> JSON {
        .object(Dictionary(uniqueKeysWithValues: values.map { ($0.description, json($1)) }))
    }

    /// Entries that came, changed or went; nil if none did.
    private static func difference<Value: Equatable>(
        _ old: [ParticipantID: Value], _ new: [ParticipantID: Value], _ json: (Value) -> JSON
    ) -> JSON? {
        guard old != new else { return nil }
        var members: [String: JSON] = [:]
        for (id, value) in new where old[id] != value { members[id.description] = json(value) }
        for id in old.keys where new[id] == nil { members[id.description] = .null }
        return .object(members)
    }

    /// Members of flat objects that are different; nil if none is.
    private static func difference(_ old: JSON, _ new: JSON) -> JSON? {
        guard case .object(let members) = new else { return nil }
        let changed = members.filter { old[$0.key] != $0.value }
        return changed.isEmpty ? nil : .object(changed)
    }

    private static func json(_ viewer: Viewer) -> JSON {
        .object(["name": .string(viewer.name), "moderator": .bool(viewer.isModerator)])
    }

    private static func json(_ entry: StageRecord.Entry) -> JSON {
        .object(["name": .text(entry.name), "since": .time(entry.since)])
    }

    private static func handJSON(_ entry: StageRecord.Entry) -> JSON {
        .object([
            "name": .text(entry.name), "since": .time(entry.since), "order": .integer(entry.order ?? 0),
            "held": .bool(entry.isHeld),
        ])
    }

    private static func json(_ member: Member) -> JSON {
        .object([
            "name": .text(member.member.name), "role": .string(member.isHost ? "host" : "speaker"),
            "since": .time(member.member.since), "present": .bool(member.isPresent),
            "audioMuted": .bool(member.member.isAudioMuted), "videoMuted": .bool(member.member.isVideoMuted),
            "paused": .bool(member.member.isPaused), "weakUplink": .bool(member.hasWeakUplink),
        ])
    }

    private static func json(_ programme: Programme) -> [String: JSON] {
        [
            "ready": .bool(programme.hasAudio || programme.hasVideo), "audio": .bool(programme.hasAudio),
            "video": .bool(programme.hasVideo), "paused": .bool(programme.isPaused),
        ]
    }
}

/// What only one participant is told about themselves.
package struct SyncYou: Equatable, Sendable {
    /// The token's subject.
    package let id: ParticipantID
    /// For people; nil where there is none.
    package let name: String?
    /// What they are now, not what their token would allow.
    package let standing: Stage.Standing
    /// Whether they have a host's rights over others.
    package let isModerator: Bool
    /// Whether they may take away what others wrote, silence them and pin.
    package let mayModerate: Bool
    /// Of their token: what they have paid for, or been given.
    package let tiers: Set<String>
    /// Whether they wait for the host's invitation.
    package let isHandRaised: Bool
    /// Which one is theirs of the hands that are raised, from 1 on; nil where none is, or the host holds it.
    package let handPlace: Int?
    /// Whether the host waits for an answer.
    package let isInvited: Bool
    /// Whether they may see and hear the programme now.
    package let isAdmitted: Bool
    /// Nil for those who are not on stage.
    package let member: StageRecord.Member?

    /// - Parameter record: nil while nobody made the stream.
    init(_ sender: Stage.Sender, in record: StageRecord?, areDoorsOpen: Bool) {
        id = sender.id
        standing = record?.standing(of: sender) ?? .viewer
        isModerator = record?.isModerator(sender) ?? false
        mayModerate = isModerator || sender.mayModerate
        tiers = sender.tiers
        isHandRaised = record?.hands[sender.id] != nil
        handPlace = record?.handPlace(of: sender.id)
        isInvited = record?.invitations[sender.id] != nil
        isAdmitted =
            record.map {
                $0.banned[sender.id] == nil && $0.admits(sender, areDoorsOpen: areDoorsOpen)
            } ?? false
        member = standing == .viewer ? nil : record?.member(sender.id)
        name = sender.name ?? member?.name
    }

    /// The member `you`, as followers are told it.
    package var json: JSON {
        .object([
            "id": .string(id.description), "name": .text(name), "role": .string(standing.rawValue),
            "isModerator": .bool(isModerator), "mayModerate": .bool(mayModerate),
            "tiers": .array(tiers.sorted().map { .string($0) }),
            "handRaised": .bool(isHandRaised), "handPlace": handPlace.map { .integer($0) } ?? .null,
            "invited": .bool(isInvited), "admitted": .bool(isAdmitted),
            "audioMuted": .bool(member?.isAudioMuted ?? false),
            "videoMuted": .bool(member?.isVideoMuted ?? false), "paused": .bool(member?.isPaused ?? false),
        ])
    }
}
