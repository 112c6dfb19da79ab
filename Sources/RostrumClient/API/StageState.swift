/// What every follower of a stream may know at one moment.
public struct StageState: Equatable, Sendable {
    private let json: JSONValue

    init(_ json: JSONValue) {
        self.json = json
    }

    /// The stream itself; nil while it is not known completely.
    public var stream: StreamInfo? { StreamInfo(json["stream"]) }

    /// Participants on stage, by identity.
    public var speakers: [String: Speaker] { json["speakers"].members.mapValues(Speaker.init) }

    /// Display names of viewers, by identity; of many viewers only some are included.
    public var viewers: [String: String] { json["viewers"].members.mapValues { $0["name"].string ?? "" } }

    /// Identities with a raised hand, in order; hands that the host holds come last.
    public var raisedHands: [String] {
        let hands = json["raisedHands"].members.map { id, hand in
            (hand["held"].bool == true ? 1 : 0, hand["order"].integer ?? .max, id)
        }
        return hands.sorted { $0 < $1 }.map(\.2)
    }

    /// Identities with an invitation onto the stage that is not answered yet.
    public var invitations: Set<String> { Set(json["invitations"].members.keys) }
}

/// A participant on stage.
public struct Speaker: Equatable, Sendable {
    /// For display; nil if there is none.
    public let name: String?
    /// Whether this is the host.
    public let isHost: Bool
    /// Whether they are connected now.
    public let isPresent: Bool
    /// As the participant's client reports it.
    public let isAudioMuted: Bool
    /// As the participant's client reports it.
    public let isVideoMuted: Bool
    /// Whether the server receives less from them than it should.
    public let hasWeakUplink: Bool

    init(_ json: JSONValue) {
        name = json["name"].string
        isHost = json["role"].string == "host"
        isPresent = json["present"].bool ?? false
        isAudioMuted = json["audioMuted"].bool ?? false
        isVideoMuted = json["videoMuted"].bool ?? false
        hasWeakUplink = json["weakUplink"].bool ?? false
    }
}

/// The app's own participant in a stream.
public struct Me: Equatable, Sendable {
    /// The identity that the token names.
    public let id: String
    /// For display; nil if there is none.
    public let name: String?
    /// What they may do now.
    public let role: Role
    /// Whether they may delete comments and silence participants.
    public let mayModerate: Bool
    /// Position among the raised hands, starting with 1; nil while their hand is not raised or is held by the host.
    public let handPlace: Int?
    /// Whether they have an invitation onto the stage.
    public let isInvited: Bool
    /// Whether they may watch the programme now.
    public let isAdmitted: Bool

    init?(_ json: JSONValue) {
        guard let id = json["id"].string else { return nil }
        self.id = id
        name = json["name"].string
        role = json["role"].string.flatMap(Role.init) ?? .viewer
        mayModerate = json["mayModerate"].bool ?? false
        handPlace = json["handPlace"].integer
        isInvited = json["invited"].bool ?? false
        isAdmitted = json["admitted"].bool ?? false
    }
}

/// What a participant may do in a stream.
public enum Role: String, Sendable {
    /// Leads the stream: goes live, invites, mutes, removes.
    case host
    /// Is on stage, or may join it.
    case speaker
    /// Watches, comments, and raises a hand.
    case viewer
}
