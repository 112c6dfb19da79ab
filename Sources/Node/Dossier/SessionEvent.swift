import Base
import Crypto
import Forwarding
import Stage

/// An event of a session that helps to explain its state.
enum SessionEvent: Equatable, Sendable {
    /// The offer was answered.
    case answered
    /// The first valid ICE check was received.
    case checked
    /// The handshake is done. Without a profile for a publisher by RTMP or SRT.
    case connected(TransportAddress?, SRTPProfile?)
    /// Its first media was received.
    case mediaStarted
    /// It became the source of its stream's programme.
    case becameSource
    /// Media on an m-line began to arrive, or stopped.
    case sourceChanged(mid: String, isActive: Bool)
    /// Its client was told which simulcast layers are in use.
    case layersWanted(mid: String, rids: [String])
    /// Much of what it sends is lost, or its client sends less than it would.
    case weakUplink
    case controlOpened
    /// The pictures of a stream began in a pair of its slots.
    case began(StreamID, pair: Int)
    /// What it is sent has changed: the cause, the path's capacity in bits per second, and the height of each
    /// picture.
    case quality(DeliveryQuality.Cause?, estimate: Int?, heights: [Int?])
    /// Its path began or ceased to need a rendition of a track.
    case rendition(isWanted: Bool)
    /// Its client has changed its preferences for pictures.
    case preferred(DeliveryPreferences)
    case restartedICE
    /// It has ended, for this reason.
    case ended(String)

    /// The event that a worker reports, if it concerns one session and explains something.
    ///
    /// Voices, messages and key-frame requests are too frequent to be logged; the dossier has their counts.
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
    /// The session that the event concerns; nil for an event that concerns none.
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

/// The latest events of one session, in order, in a ring that drops the oldest.
struct SessionLog: Sendable {
    struct Entry: Equatable, Sendable {
        let time: MonotonicTime
        let event: SessionEvent
    }

    /// Events per session, while there is room for that many.
    static let limit = 200
    /// Events per session, once all sessions together have `totalLimit`.
    static let shortLimit = 10
    /// Events of all sessions together, approximately; some 20 MB.
    static let totalLimit = 200_000

    /// Grows up to the limit; then each new entry replaces the oldest.
    private var ring: [Entry] = []
    /// The index of the oldest entry.
    private var first = 0
    /// How many entries were replaced.
    private(set) var dropped = 0

    var count: Int { ring.count }
    var entries: [Entry] { Array(ring[first...] + ring[..<first]) }

    /// - Parameter limit: a full log drops its oldest entry; a log that is longer than this stays as long as it is.
    mutating func append(_ event: SessionEvent, at time: MonotonicTime, limit: Int = Self.limit) {
        let entry = Entry(time: time, event: event)
        guard ring.count >= limit, !ring.isEmpty else {
            // The limit was raised since, so the ring is put in order before it grows.
            if first > 0 { (ring, first) = (entries, 0) }
            return ring.append(entry)
        }
        ring[first] = entry
        first = (first + 1) % ring.count
        dropped += 1
    }
}
