import Base
import ClientPeer
import Net
import TURN
import Wire

/// A client that signalling has prepared, with all that a generator thread needs to connect it.
struct ClientSetup: Identifiable, Sendable {
    /// What the client does once it is on its thread.
    enum Purpose: Sendable {
        /// Watches one stream.
        case view(ViewerSettings)
        case publish(PublisherSettings)
        /// Swipes through the feed.
        case swipe(FeedSettings)
        /// Watches one stream over an emulated network.
        case watch(NetworkSettings)
        /// Connects when its turn comes, then leaves immediately.
        case connect
    }

    /// Unique in the run; it also selects the thread, and names the socket there.
    let id: Int
    let credentials: ICECredentials
    let plan: ClientPlan
    let socket: ClientSocket
    let purpose: Purpose
    /// Whether it counts among the viewers that play before a storm of joins.
    var isEarlier = false
    /// The relay through which it reaches the server's first candidate; nil for a direct path.
    var relay: TURNClientAgent.Relay?
}

/// How a plain viewer treats what it receives.
struct ViewerSettings: Sendable {
    /// Decrypts one media packet in this many, at least 1; more clients fit on a thread with larger values.
    var decryptEvery: Int
    /// Sends NACKs and PLIs for lost packets.
    var asksForRepair: Bool
    /// Sends transport-wide feedback, if the server numbers its packets.
    var tellsOfPackets = false
}

/// What a publisher sends.
struct PublisherSettings: Sendable {
    var media: MediaOptions
    /// The video of a file, parsed once for all publishers; nil for synthetic video.
    var recordedVideo: RecordedVideo?
    /// The audio likewise; nil for synthetic audio.
    var recordedAudio: RecordedAudio?
    /// The stream's name, of which a tag is written into synthetic media so that viewers can tell streams apart.
    var stream = ""
    /// Index of its stream among those of the run.
    var number = 0
}

/// Commands to a generator thread.
enum GeneratorCommand: Sendable {
    case add(ClientSetup)
    /// Disconnects the client from the server and removes it; the continuation resumes afterwards.
    case remove(id: Int, CheckedContinuation<Void, Never>)
}

/// A step in the life of a client.
enum Milestone: Equatable, Sendable {
    case iceConnected, dtlsConnected, firstPacket, firstFrame
    /// The server's RTCP confirmed that it received the publisher's media.
    case taken
    /// The connection was lost, or could not be established.
    case failed
    /// The server closed the DTLS connection.
    case closedByServer
}

/// A milestone of one client, with the time at which its thread saw it.
struct Notice: Equatable, Sendable {
    let id: Int
    let milestone: Milestone
    let time: MonotonicTime
}
