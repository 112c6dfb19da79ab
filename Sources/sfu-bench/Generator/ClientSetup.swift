import Base
import ClientPeer
import Net
import TURN
import Wire

/// A client that signalling has prepared: what a generator thread needs to connect it.
struct ClientSetup: Identifiable, Sendable {
    enum Purpose: Sendable {
        case view(ViewerSettings)
        case publish(PublisherSettings)
        case swipe(FeedSettings)
        case watch(NetworkSettings)
        /// To leave at once, when it is its turn.
        case connect
    }

    /// Names it for ever.
    let id: Int
    let credentials: ICECredentials
    let plan: ClientPlan
    let socket: ClientSocket
    let purpose: Purpose
    /// Counts among those who play before a storm.
    var isEarlier = false
    /// Through which it goes to the first of the server's candidates; nil for straight there.
    var relay: TURNClientAgent.Relay?
}

struct ViewerSettings: Sendable {
    var decryptEvery: Int
    var asksForRepair: Bool
    var tellsOfPackets = false
}

struct PublisherSettings: Sendable {
    var media: MediaOptions
    /// Of a file, made once for all publishers.
    var recordedVideo: RecordedVideo?
    var recordedAudio: RecordedAudio?
    /// Written into synthetic media, so that viewers can tell streams apart.
    var stream = ""
    /// Among the streams of the run.
    var number = 0
}

/// What generator threads are told.
enum GeneratorCommand: Sendable {
    case add(ClientSetup)
    /// Says goodbye to the server and forgets the client.
    case remove(id: Int, CheckedContinuation<Void, Never>)
}

/// How far a client has come.
enum Milestone: Equatable, Sendable {
    case iceConnected, dtlsConnected, firstPacket, firstFrame
    /// The server reported of what a publisher sent.
    case taken
    /// The connection broke, or was never made.
    case failed
    case closedByServer
}

/// One step of one client, as its thread saw it.
struct Notice: Equatable, Sendable {
    let id: Int
    let milestone: Milestone
    let time: MonotonicTime
}
