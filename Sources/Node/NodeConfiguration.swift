import Base
import Crypto
import Net
import Peer
import Recordings
import StoryFeed
import Transcoder

/// Connections that another listener accepted and hands to the node, because it shares a port with the node.
package struct ConnectionInboxes: Sendable {
    /// Replaces the listener at `NodeConfiguration.tcp`.
    package var iceTCP: ConnectionInbox?
    /// Replaces the listener that the TURN settings name for TLS.
    package var turnTLS: ConnectionInbox?
    /// Replaces the listener that the TURN settings name for plain TCP.
    package var turnTCP: ConnectionInbox?

    package init() {}
}

extension ConnectionSource {
    /// - Parameter inbox: nil for a port of its own.
    init(_ address: TransportAddress, or inbox: ConnectionInbox?) {
        self = inbox.map { .inbox($0) } ?? .port(address)
    }
}

/// How a node is set up; `Node.init` throws if something in it cannot be done.
package struct NodeConfiguration: Sendable {
    /// Where all workers receive; with port 0 the system chooses a port.
    package var udp: TransportAddress
    /// Whether worker *n* binds the port of `udp` + *n*; then workers need not hand datagrams to each other.
    package var hasPortPerWorker = false
    /// Where ICE over TCP is served, on one port for all workers; nil to serve none.
    package var tcp: TransportAddress?
    /// Sources of connections on shared ports, each nil for a port of the node's own.
    package var inboxes = ConnectionInboxes()
    /// Where publishers connect by RTMP and SRT, and who may; nil to accept none.
    package var ingest: IngestSettings?
    /// Where TURN is served, and with what passwords; nil to serve none.
    package var turn: TURNSettings?
    /// The addresses that candidates advertise, before the local ones; empty for the local ones alone.
    package var publicAddresses: [IPAddress] = []
    /// Threads that carry media; values below 1 count as 1.
    package var workers = 1
    /// Whether each worker is pinned to one of the CPUs that the process may use.
    package var pinsWorkers = false
    /// How offers are answered; suggests 1,000 kbit/s to begin with.
    ///
    /// Browsers begin at about 300 kbit/s, which gives a small picture in the first seconds. Chrome follows the hint,
    /// and drops below it if the network cannot carry that.
    package var negotiator = Negotiator(
        policy: NegotiationPolicy(videoBitrate: .init(start: 1_000)))
    /// The implementation that encrypts media.
    package var srtpEngine = SRTPEngine.openSSL
    /// How much each criterion counts in the feed's order.
    package var feedWeights = FeedWeights()
    /// The limit of all sessions; a tenth of it is reserved for clients with a token, and a tenth for those who
    /// publish.
    package var sessionLimit = 20_000
    /// Sessions without a token that one IPv4 address or one IPv6 /64 may have; a /56 or /48 may have four times as
    /// many.
    package var sessionLimitForAddress = 500
    /// How long a session waits for its client's first check.
    package var connectTimeout = Duration.seconds(10)
    /// How long a silent peer is kept (RFC 7675 §5.1).
    package var consentTimeout = Duration.seconds(30)
    /// How long viewers of an ended stream are kept, in case its publisher comes back.
    package var returnTime = Duration.seconds(60)
    /// Whether a client that may host a stream creates it by publishing.
    package var createsStreamsOnPublish = true
    /// The service that decides whether a comment may be shown; nil to show comments without review.
    package var reviewer: CommentReviewer?
    /// Whether stream events are written to the store's outbox, for webhooks.
    package var reportsEvents = false
    /// Whether candidates include 127.0.0.1, for development with the browser on the same machine.
    package var advertisesLoopback = false

    /// The child process that decodes and encodes pictures and sound; nil for a node without one.
    package var transcoder: TranscoderSettings?
    /// Programmes that are composed at the same time; viewers of others see the active speaker until there is room.
    package var compositionLimit = 4
    /// Tracks of which renditions are made at the same time.
    ///
    /// Beyond it, viewers whose path carries no layer of a track get sound alone.
    package var renditionLimit = 1
    /// Publishers whose pictures are re-encoded, because browsers do not support the codec, at the same time.
    ///
    /// Further publishers of that kind are refused.
    package var conversionLimit = 1
    /// Streams that HLS is made of at the same time.
    package var packagingLimit = 0
    /// The lengths of HLS segments and their parts.
    package var packagingTiming = PackagingTiming.usual
    /// Where segments are stored for viewers who go back in time; nil to store none.
    package var dvr: DVRSettings?
    /// Streams of which the last minutes are kept for clips, at the same time; 0 disables clips.
    package var clipLimit = 0
    /// Which targets programmes may be sent to, and how many.
    package var restreams = RestreamSettings(limit: 0)
    /// Returns the URLs of previews and recordings; nil if nothing serves them.
    package var locator: (any ResourceLocator)?
    /// Where recordings are stored; nil to make none.
    package var recordings: RecordingSettings?
    /// The directory that keeps the pause pictures hosts have chosen over a restart; nil to keep none.
    package var pausePictures: String?
    /// When ended streams, recordings, clips and comments are deleted; by default never.
    package var retention = RetentionSettings()
    /// The memory limit for previews, in bytes.
    package var previewMemory = 64 << 20

    package init(udp: TransportAddress) {
        self.udp = udp
    }
}
