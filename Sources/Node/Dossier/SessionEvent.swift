import Base
import Crypto
import Forwarding
import Stage

/// Something that happened to a session and that explains how it is.
enum SessionEvent: Equatable, Sendable {
    /// The offer was answered.
    case answered
    /// The first valid check came.
    case checked
    /// Without a profile where the publisher comes by another protocol than WebRTC.
    case connected(TransportAddress?, SRTPProfile?)
    /// Its first media came.
    case mediaStarted
    /// It is what viewers of its stream get.
    case becameSource
    case sourceChanged(mid: String, isActive: Bool)
    case layersWanted(mid: String, rids: [String])
    case weakUplink
    case controlOpened
    /// A stream began in a pair of its slots.
    case began(StreamID, pair: Int)
    case quality(DeliveryQuality.Cause?, estimate: Int?, heights: [Int?])
    case rendition(isWanted: Bool)
    /// Its client wants other pictures.
    case preferred(DeliveryPreferences)
    case restartedICE
    case ended(String)

    /// What a worker tells, if that is of one session and says something; voices, messages and key-frame requests, of
    /// which the dossier has the count, are too many.
    init?(_ event: WorkerEvent) {
        switch event {
        case .checked: self = .checked
        case .connected(_, let profile, let address): self = .connected(address, profile)
        case .mediaStarted: self = .mediaStarted
        case .sourceChanged(_, let mid, let isActive): self = .sourceChanged(mid: mid, isActive: isActive)
        case .layersWanted(_, let mid, let rids): self = .layersWanted(mid: mid, rids: rids)
        case .uplinkWeak: self = .weakUplink
        case .controlOpened: self = .controlOpened
        case .begun(_, let pair, let stream, _): self = .began(stream, pair: pair)
        case .qualityChanged(_, let quality):
            self = .quality(
                quality.cause, estimate: quality.estimate, heights: quality.pictures.map { $0.served?.height }
            )
        case .renditionWanted(_, _, let isWanted): self = .rendition(isWanted: isWanted)
        case .closed, .published, .voice, .passed, .controlMessage, .injected, .keyFrameWanted,
            .sessionKeyFrameWanted, .keyFrameRequested:
            return nil
        }
    }
}

extension WorkerEvent {
    /// The session that it is about; nil for what is about none.
    var session: SessionID? {
        switch self {
        case .checked(let id), .connected(let id, _, _), .mediaStarted(let id), .closed(let id, _),
            .published(let id, _), .sourceChanged(let id, _, _), .layersWanted(let id, _, _),
            .voice(let id, _), .uplinkWeak(let id), .controlOpened(let id), .controlMessage(let id, _),
            .begun(let id, _, _, _), .qualityChanged(let id, _), .renditionWanted(let id, _, _),
            .sessionKeyFrameWanted(let id), .keyFrameRequested(let id, _):
            id
        case .passed, .injected, .keyFrameWanted: nil
        }
    }
}

/// The latest events of one session, in order.
struct SessionLog: Sendable {
    struct Entry: Equatable, Sendable {
        let time: MonotonicTime
        let event: SessionEvent
    }

    /// Of one session, while there is room for as many.
    static let limit = 200
    /// Of one session, when all together have `totalLimit`.
    static let shortLimit = 10
    /// Of all sessions together, more or less: some 20 MB.
    static let totalLimit = 200_000

    private var ring: [Entry] = []
    /// Where the oldest one is.
    private var first = 0
    /// How many were dropped.
    private(set) var dropped = 0

    var count: Int { ring.count }
    var entries: [Entry] { Array(ring[first...] + ring[..<first]) }

    /// - Parameter limit: beyond so many the oldest one goes; those that are more already stay as many.
    mutating func append(_ event: SessionEvent, at time: MonotonicTime, limit: Int = Self.limit) {
        let entry = Entry(time: time, event: event)
        guard ring.count >= limit, !ring.isEmpty else {
            if first > 0 { (ring, first) = (entries, 0) }
            return ring.append(entry)
        }
        ring[first] = entry
        first = (first + 1) % ring.count
        dropped += 1
    }
}
