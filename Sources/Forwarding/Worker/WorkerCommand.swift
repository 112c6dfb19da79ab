import Base
import Crypto
import Peer
import Wire

/// What control asks of a worker.
package enum WorkerCommand: Sendable {
    case open(SessionOpening)
    /// New credentials of both sides; both pairs are good until the first check with the new ones (RFC 8445 §2.4).
    case restartICE(SessionID, ICECredentials, remote: ICECredentials)
    /// Ends a session with a DTLS close.
    case close(SessionID)
    /// Makes somebody on a stage the source of its stream, which has lost the one that it had.
    ///
    /// - Parameter order: higher than any session's, so that it counts where the loss is not known yet.
    case makeSource(SessionID, order: UInt64)
    /// Lets a slot, named by its m-line, carry a track of any worker; nil for nothing.
    case attach(SessionID, mid: String, PublishedTrack?, maximumHeight: Int?)
    /// Has the pictures of these m-lines come before a session's others, where its path does not take the best of all.
    case favour(SessionID, mids: [String])
    /// Takes no larger layer than this for a slot, whatever it carries; nil for the best.
    case limit(SessionID, mid: String, maximumHeight: Int?)
    /// What a viewer wants of all pictures, beside what control wants of each slot.
    case prefer(SessionID, DeliveryPreferences)
    /// Gives the viewers of a stream these tracks, at most one of a kind, instead of what its source sends.
    case setProgramme(StreamID, [PublishedTrack])
    /// Puts a pair of a feed session's slots on a stream, as a preview or in full; nil for nothing.
    ///
    /// - Parameter requested: when its viewer asked for it, to be counted.
    case seat(SessionID, pair: Int, StreamID?, isPreview: Bool, requested: MonotonicTime?)
    /// Says when everything before this has been done.
    case fence(UInt64)
    /// Forgets what was shown of a stream until now: others may see it from now on.
    case flush(StreamID)
    /// Sends a message on the control channel; dropped while there is none.
    case sendControl(SessionID, DataChannelMessage)
    /// What the audience of a stream has of its data tracks from now on.
    case setDataAccess(StreamID, DataAccess)
    /// Ends all that watch a stream, because it will not come back.
    case dismissFollowers(StreamID)
    /// Hands the packets of a track to somebody inside the server.
    case openTap(TapOpening)
    case closeTap(TapID)
    /// Takes no larger layer than this for a tap from its next key frame on; nil for the best.
    case limitTap(TapID, maximumHeight: Int?)
    /// Whoever holds the tap cannot go on without a key frame.
    case demandKeyFrame(TapID)
    /// What the publisher of a session without a peer connection sent, by the places of its sources.
    case ingest(SessionID, InjectedPackets)
    /// Makes tracks for media that the server makes itself.
    case openInjection(InjectionOpening)
    case inject(InjectionID, InjectedPackets)
    case closeInjection(InjectionID)
    /// Says how a session is.
    case measure(SessionID, Inquiry<SessionMeasurements>)
    /// Says how what a publisher of this worker sends comes in.
    case measureTrack(TrackID, Inquiry<TrackMeasurements>)
    /// Records the headers of a session's packets for a while.
    case capture(CaptureOpening, Inquiry<CaptureOutcome>)
}

/// A session to be made: who it is, and what was agreed.
package struct SessionOpening: Sendable {
    /// Chosen by control.
    package let id: SessionID
    /// What was answered.
    package let plan: SessionPlan
    /// By whose ufrag the first check finds the session.
    package let localCredentials: ICECredentials
    /// The stream whose programme this session provides.
    package let publishes: StreamID?
    /// The stream whose programme this session gets.
    package let follows: StreamID?
    /// Whether it has two seats, which control puts on streams.
    package let isFeed: Bool
    /// The stage that this session takes part in: control fills its slots, and hears of its sources.
    package let stage: StreamID?
    /// Nil for somebody without a name.
    package let participant: ParticipantID?
    /// Later sessions of the node have higher numbers; of two publishers of a stream the later one counts.
    package let order: UInt64
    /// When the client's request came; nil to count from the moment the worker hears of it.
    package let requested: MonotonicTime?
    /// Where the worker leaves what it serves.
    package let gauge: QualityGauge

    package init(
        id: SessionID, plan: SessionPlan, localCredentials: ICECredentials, publishes: StreamID? = nil,
        follows: StreamID? = nil, isFeed: Bool = false, stage: StreamID? = nil,
        participant: ParticipantID? = nil, order: UInt64,
        requested: MonotonicTime? = nil, gauge: QualityGauge = QualityGauge()
    ) {
        self.requested = requested
        self.gauge = gauge
        self.stage = stage
        self.participant = participant
        self.id = id
        self.plan = plan
        self.localCredentials = localCredentials
        self.publishes = publishes
        self.follows = follows
        self.isFeed = isFeed
        self.order = order
    }
}

/// What a worker tells control.
package enum WorkerEvent: Equatable, Sendable {
    /// The first valid check came: there is somebody who uses the session.
    case checked(SessionID)
    /// ICE and DTLS are done; media goes to this address now, and may move. No profile where there is no peer.
    case connected(SessionID, SRTPProfile?, TransportAddress?)
    /// The first media packet of a publisher came.
    case mediaStarted(SessionID)
    case closed(SessionID, PeerConnection.CloseReason)
    /// A session of a stage is connected, and will send these.
    case published(SessionID, [PublishedTrack])
    /// Media of a stage's session began or ceased to come on an m-line.
    case sourceChanged(SessionID, mid: String, isActive: Bool)
    /// Which simulcast layers of a stage's session somebody takes: its client may let the others rest.
    case layersWanted(SessionID, mid: String, rids: [String])
    /// How loud a stage's session is, 0 to 127, until the next of these.
    case voice(SessionID, level: UInt8)
    /// Much of what a stage's session sends gets lost; repeated at least every 10 s as long as that goes on.
    case uplinkWeak(SessionID)
    /// Everything before this fence has been done.
    case passed(UInt64)
    /// The control channel can be used.
    case controlOpened(SessionID)
    case controlMessage(SessionID, DataChannelMessage)
    /// The picture of a stream begins in a pair of slots of a feed session, with this time stamp.
    case begun(SessionID, pair: Int, StreamID, timestamp: UInt32)
    /// What a client is sent is not what it was.
    case qualityChanged(SessionID, DeliveryQuality)
    /// An injection is there, with these tracks.
    case injected(InjectionID, [PublishedTrack])
    /// Viewers of an injection cannot go on, or begin, without a key frame.
    case keyFrameWanted(InjectionID, source: Int, layer: Int)
    /// The same of a session whose publisher comes by another protocol than WebRTC.
    case sessionKeyFrameWanted(SessionID)
    /// A publisher was asked for a key frame.
    case keyFrameRequested(SessionID, SentKeyFrameRequest)
    /// Viewers of some worker need a rendition of what a session sends, or have not needed it for a while.
    case renditionWanted(SessionID, PublishedTrack, isWanted: Bool)
}

/// A key-frame request that went to the publisher of one layer, and why.
package struct SentKeyFrameRequest: Equatable, Sendable {
    package let mid: String
    /// Nil where there is only one layer.
    package let rid: String?
    package let occasion: KeyFrameRequester.Occasion
}

/// What a worker counted since it was made.
package struct WorkerCounters: Equatable, Sendable {
    /// Datagrams from nowhere: unknown address or ufrag, or no protocol of ours.
    package var strangers: UInt64 = 0
    /// Datagrams from where a session ended a moment ago: they were on their way.
    package var afterTheEnd: UInt64 = 0
    /// By `.open` commands.
    package var sessionsOpened: UInt64 = 0
    /// Of those, the ones whose DTLS was completed.
    package var sessionsConnected: UInt64 = 0
    /// Datagrams of sessions, by protocol.
    package var checks: UInt64 = 0
    /// Of DTLS: handshakes and data channels.
    package var handshakes: UInt64 = 0
    /// DTLS records of joining clients for which there was no room.
    package var handshakesDropped: UInt64 = 0
    /// SRTP.
    package var mediaDatagrams: UInt64 = 0
    /// SRTCP.
    package var controlDatagrams: UInt64 = 0
    /// Packets that came from other workers.
    package var packetsRelayed: UInt64 = 0
    /// Of those packets.
    package var bytesRelayed: UInt64 = 0
    /// Packets that came from other workers for a track that is gone.
    package var relayedInVain: UInt64 = 0
    /// Packets handed to other workers, once for each.
    package var packetsToWorkers: UInt64 = 0
    /// Of those packets.
    package var bytesToWorkers: UInt64 = 0
    /// Packets of publishers inside the server.
    package var packetsInjected: UInt64 = 0
    /// How long packets waited for others, while the worker was busy.
    package var waits = DurationHistogram(.packets)
    /// Of sessions that publish.
    package var publishers = JoinPhases()
    /// Of all others.
    package var viewers = JoinPhases()
    /// Of viewers of the feed.
    package var switches = SwitchTimes()
    /// Streams that seats of feed sessions were put on.
    package var seatsTaken: UInt64 = 0
    /// On data channels.
    package var messagesReceived: UInt64 = 0
    /// On data channels.
    package var messagesSent: UInt64 = 0
    /// Too many, too long, or for a client that reads too slowly.
    package var messagesDropped: UInt64 = 0
    /// That live now.
    package var sessions = 0
    /// Slots of sessions that live now, and those among them that carry a track.
    package var slots = 0
    /// Those of them that carry a track.
    package var slotsAttached = 0
    /// Of sessions that live now.
    package var delivery = DeliveryCensus()
    /// In `Worker.counters` of sessions that have ended; `Worker.statistics` adds those that live.
    package var media = MediaCounters()

    package init() {}
}
