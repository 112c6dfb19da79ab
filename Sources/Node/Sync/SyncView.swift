import Base
import Stage

/// The state of a stream that all followers see, in the parts in which changes are announced.
struct SyncView: Equatable {
    /// A host or speaker.
    struct Member: Equatable {
        let member: StageRecord.Member
        let isHost: Bool
        let isPresent: Bool
        /// Whether the participant's media does not arrive as it should.
        let hasWeakUplink: Bool
    }

    struct Viewer: Equatable {
        let name: String
        /// Whether the viewer may remove comments of others.
        let isModerator: Bool
    }

    struct Programme: Equatable {
        var hasAudio = false
        var hasVideo = false
        /// Whether the participant who provides the programme is away for the moment.
        var isPaused = false
    }

    /// The stream without its version, which is 0 here: the hub counts versions.
    var stream: StreamSnapshot
    var speakers: [ParticipantID: Member] = [:]
    /// The listed viewers, which are not all of a large audience.
    var viewers: [ParticipantID: Viewer] = [:]
    var hands: [ParticipantID: StageRecord.Entry] = [:]
    var invitations: [ParticipantID: StageRecord.Entry] = [:]
    var programme = Programme()

    /// The complete state, for a snapshot.
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

    /// The merge patch from `old` to this state; empty if followers see no difference.
    /// - Source: RFC 7396.
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

    /// Whether the two differ at most in participants and what they do.
    func isSameStream(as old: SyncView) -> Bool {
        var other = old
        (other.speakers, other.viewers) = (speakers, viewers)
        (other.hands, other.invitations) = (hands, invitations)
        (other.stream.viewers, other.stream.waiting) = (stream.viewers, stream.waiting)
        (other.stream.isPaused, other.programme.isPaused) = (stream.isPaused, programme.isPaused)
        return self == other
    }

    /// The stream without its version, which messages contain at the top level.
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

    /// The entries that were added, changed or removed (null); nil if there are none.
    private static func difference<Value: Equatable>(
        _ old: [ParticipantID: Value], _ new: [ParticipantID: Value], _ json: (Value) -> JSON
    ) -> JSON? {
        guard old != new else { return nil }
        var members: [String: JSON] = [:]
        for (id, value) in new where old[id] != value { members[id.description] = json(value) }
        for id in old.keys where new[id] == nil { members[id.description] = .null }
        return .object(members)
    }

    /// The changed members of a flat object; nil if there are none.
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

/// A participant's own state, which is sent to that participant alone.
package struct SyncYou: Equatable, Sendable {
    /// The subject of the participant's token.
    package let id: ParticipantID
    /// The name to display; nil for a participant without one.
    package let name: String?
    /// The participant's present role, not what the token would permit.
    package let standing: Stage.Standing
    /// Whether the participant has a host's rights over others.
    package let isModerator: Bool
    /// Whether the participant may remove comments, silence others and pin.
    package let mayModerate: Bool
    /// The tiers in the participant's token, which open gates.
    package let tiers: Set<String>
    /// Whether the participant's hand is raised.
    package let isHandRaised: Bool
    /// The place among the raised hands, from 1 on; nil without a raised hand, or while the host holds it.
    package let handPlace: Int?
    /// Whether the host has invited the participant to speak and waits for an answer.
    package let isInvited: Bool
    /// Whether the participant may see and hear the programme now.
    package let isAdmitted: Bool
    /// Nil for a viewer.
    package let member: StageRecord.Member?

    /// - Parameter record: nil while the stream is not made.
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

    /// The member `you` of messages.
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
