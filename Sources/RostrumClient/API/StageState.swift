/// Everything that all followers of a stream may know at one moment.
public struct StageState: Equatable, Sendable {
    private let json: JSONValue

    init(_ json: JSONValue) {
        self.json = json
    }

    /// The stream itself; nil while only parts of it are known.
    public var stream: StreamInfo? { StreamInfo(json["stream"]) }

    /// Who is on stage, by identity.
    public var speakers: [String: Speaker] { json["speakers"].members.mapValues(Speaker.init) }

    /// Names of those who watch, by identity; of many viewers only some are named.
    public var viewers: [String: String] { json["viewers"].members.mapValues { $0["name"].string ?? "" } }

    /// Identities of those who raised a hand, who is next first; the host holds those that are missing at the end.
    public var raisedHands: [String] {
        let hands = json["raisedHands"].members.map { id, hand in
            (hand["held"].bool == true ? 1 : 0, hand["order"].integer ?? .max, id)
        }
        return hands.sorted { $0 < $1 }.map(\.2)
    }

    /// Identities of those who were invited onto the stage and have not answered.
    public var invitations: Set<String> { Set(json["invitations"].members.keys) }
}

/// Somebody on stage.
public struct Speaker: Equatable, Sendable {
    /// For people; nil for those who have none.
    public let name: String?
    /// Whether they lead the stream.
    public let isHost: Bool
    /// Whether they are connected now.
    public let isPresent: Bool
    /// As they say it themselves.
    public let isAudioMuted: Bool
    /// As they say it themselves.
    public let isVideoMuted: Bool
    /// Whether less of what they send comes to the server than should.
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

/// What the app's own user is in a stream.
public struct Me: Equatable, Sendable {
    /// The identity that the token names.
    public let id: String
    /// For people; nil for those who have none.
    public let name: String?
    /// What they may do now.
    public let role: Role
    /// Whether they may delete comments and silence people.
    public let mayModerate: Bool
    /// Their place among the raised hands, from 1 on; nil while theirs is not raised, or held by the host.
    public let handPlace: Int?
    /// Whether the host invites them onto the stage.
    public let isInvited: Bool
    /// Whether they may see and hear the programme now.
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

/// What somebody may do in a stream.
public enum Role: String, Sendable {
    /// Leads it: goes live, invites, mutes, removes.
    case host
    /// Is on stage, or may go there.
    case speaker
    /// Watches, writes, and raises a hand.
    case viewer
}
