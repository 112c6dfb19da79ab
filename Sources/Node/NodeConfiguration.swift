import Base
import Crypto
import Net
import Peer
import Recordings
import StoryFeed
import Transcoder

/// By what connections come to a node that others have taken, because it shares a port with them.
package struct ConnectionInboxes: Sendable {
    /// Instead of a port at `tcp`.
    package var iceTCP: ConnectionInbox?
    /// Instead of ports where the TURN settings want them.
    package var turnTLS: ConnectionInbox?
    package var turnTCP: ConnectionInbox?

    package init() {}
}

extension ConnectionSource {
    /// - Parameter inbox: nil for a port of its own.
    init(_ address: TransportAddress, or inbox: ConnectionInbox?) {
        self = inbox.map { .inbox($0) } ?? .port(address)
    }
}

/// How a node is set up; checked while it is made.
package struct NodeConfiguration: Sendable {
    /// Where all workers receive; port 0 lets the system choose.
    package var udp: TransportAddress
    /// Worker *n* binds the port of `udp` + *n*, and nothing has to be handed over between workers.
    package var hasPortPerWorker = false
    /// Where ICE-TCP is served, by one port for all workers; nil for not at all.
    package var tcp: TransportAddress?
    /// By what connections come that others have taken, of ports that are shared; nil for a port of its own.
    package var inboxes = ConnectionInboxes()
    /// Where publishers are taken by RTMP and SRT, and who; nil for not at all.
    package var ingest: IngestSettings?
    /// Where clients are taken by TURN, and with what passwords; nil for not at all.
    package var turn: TURNSettings?
    /// What candidates advertise; empty for the local addresses.
    package var publicAddresses: [IPAddress] = []
    /// Threads that carry media; at least one is made.
    package var workers = 1
    /// Keeps each worker on one of the CPUs that the process may use.
    package var pinsWorkers = false
    /// Browsers begin at about 300 kbit/s, which is a small picture for the first seconds, and ramp up from there;
    /// Chrome takes the hint to begin higher, and falls below it where the network does not bear it.
    package var negotiator = Negotiator(
        policy: NegotiationPolicy(videoBitrate: .init(start: 1_000)))
    /// What encrypts media.
    package var srtpEngine = SRTPEngine.openSSL
    /// What counts how much in the feed's order.
    package var feedWeights = FeedWeights()
    /// More sessions than this are refused; a tenth is kept for holders of a token, and a tenth for those who publish.
    package var sessionLimit = 20_000
    /// Sessions without a token that one address may have, or one IPv6 /64, whose /56 and /48 have four times as many.
    package var sessionLimitForAddress = 500
    /// How long a session waits for its client's first check.
    package var connectTimeout = Duration.seconds(10)
    /// How long a silent peer is kept (RFC 7675 §5.1).
    package var consentTimeout = Duration.seconds(30)
    /// How long viewers of an ended stream are kept, in case its publisher comes back.
    package var returnTime = Duration.seconds(60)
    /// Whoever may host a stream makes it by publishing.
    package var createsStreamsOnPublish = true
    /// Who is asked about each comment before anybody is shown it; nil for nobody.
    package var reviewer: CommentReviewer?
    /// Leave what happens to streams in the store's outbox, for webhooks.
    package var reportsEvents = false
    /// Advertise 127.0.0.1 too: for development, where the browser is on the same machine.
    package var advertisesLoopback = false

    /// How pictures and sound are decoded and encoded; nil for not at all.
    package var transcoder: TranscoderSettings?
    /// More programmes are not composed at once: their viewers see who speaks instead, until there is room.
    package var compositionLimit = 4
    /// Renditions are not made of more tracks at once: viewers whose paths do not take others get sound alone.
    package var renditionLimit = 1
    /// Pictures of encoders that browsers do not show are not made anew of more publishers at once: others are refused.
    package var conversionLimit = 1
    /// HLS is not made of more streams at once.
    package var packagingLimit = 0
    /// How long parts of HLS segments are.
    package var packagingTiming = PackagingTiming.usual
    /// Where segments are kept that viewers can go back to; nil for nowhere.
    package var dvr: DVRSettings?
    /// The last minutes are not kept, for clips, of more streams at once.
    package var clipLimit = 0
    /// Where programmes may be sent on to.
    package var restreams = RestreamSettings(limit: 0)
    /// Where clients find previews and recordings; nil where nobody serves them.
    package var locator: (any ResourceLocator)?
    /// Where recordings are kept; nil for nowhere.
    package var recordings: RecordingSettings?
    /// Where pause pictures that hosts choose are kept over a restart; nil for nowhere.
    package var pausePictures: String?
    /// How long is kept what is over.
    package var retention = RetentionSettings()
    /// Bytes of previews that are kept.
    package var previewMemory = 64 << 20

    package init(udp: TransportAddress) {
        self.udp = udp
    }
}
