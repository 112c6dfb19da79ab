import Base
import Crypto
import Peer
import Wire

/// A command from control to a worker.
package enum WorkerCommand: Sendable {
    /// Creates a session.
    case open(SessionOpening)
    /// Sets new ICE credentials of both sides; both pairs are valid until the first check with the new ones (RFC 8445
    /// §2.4).
    case restartICE(SessionID, ICECredentials, remote: ICECredentials)
    /// Ends a session with a DTLS close.
    case close(SessionID)
    /// Makes a session on a stage the source of its stream, which has lost its former one.
    ///
    /// - Parameter order: higher than any session's, so that it also takes effect where the loss is not known yet.
    case makeSource(SessionID, order: UInt64)
    /// Attaches a track of any worker to a slot, named by its MID; nil empties the slot.
    case attach(SessionID, mid: String, PublishedTrack?, maximumHeight: Int?)
    /// Gives the pictures of these m-lines priority over the session's others, if its path cannot carry the best of
    /// all.
    case favour(SessionID, mids: [String])
    /// Limits the height of a slot's video, in pixels, whatever it carries; nil for the best layer.
    case limit(SessionID, mid: String, maximumHeight: Int?)
    /// Sets a viewer's preferences for all pictures, which apply in addition to control's limits.
    case prefer(SessionID, DeliveryPreferences)
    /// Gives a stream's viewers these tracks, at most one of a kind, instead of its source's.
    case setProgramme(StreamID, [PublishedTrack])
    /// Puts a seat of a feed session on a stream, as a preview or in full quality; nil for none.
    ///
    /// - Parameter requested: when the viewer requested it, for statistics; nil if the viewer did not.
    case seat(SessionID, pair: Int, StreamID?, isPreview: Bool, requested: MonotonicTime?)
    /// Reports `passed` when every earlier command has been performed.
    case fence(UInt64)
    /// Forgets cached pictures of a stream, because others may see it from now on.
    case flush(StreamID)
    /// Sends a message on the control channel; dropped while there is none.
    case sendControl(SessionID, DataChannelMessage)
    /// Sets how far a stream's audience takes part in data tracks.
    case setDataAccess(StreamID, DataAccess)
    /// Closes the sessions of a stream's viewers, because it will not come back.
    case dismissFollowers(StreamID)
    /// Passes the packets of a track to another part of the server.
    case openTap(TapOpening)
    case closeTap(TapID)
    /// Limits the height of a tap's layer from the next key frame on; nil for the best.
    case limitTap(TapID, maximumHeight: Int?)
    /// Requests a key frame, without which the tap's owner cannot go on.
    case demandKeyFrame(TapID)
    /// Delivers packets that the publisher of a session without a peer connection sent, by index of its sources.
    case ingest(SessionID, InjectedPackets)
    /// Creates tracks for media that the server makes itself.
    case openInjection(InjectionOpening)
    case inject(InjectionID, InjectedPackets)
    case closeInjection(InjectionID)
    /// Reports the state of a session.
    case measure(SessionID, Inquiry<SessionMeasurements>)
    /// Reports the reception of a publisher's track.
    case measureTrack(TrackID, Inquiry<TrackMeasurements>)
    /// Records the headers of a session's packets for a while.
    case capture(CaptureOpening, Inquiry<CaptureOutcome>)
}

/// A request to create a session.
package struct SessionOpening: Sendable {
    /// Chosen by control; unique within the node.
    package let id: SessionID
    /// What offer and answer agreed on.
    package let plan: SessionPlan
    /// The server's credentials; the first check finds the session by their ufrag.
    package let localCredentials: ICECredentials
    /// The stream whose source this session is; nil for none.
    package let publishes: StreamID?
    /// The stream that a player watches; nil for all others.
    package let follows: StreamID?
    /// Whether it is a feed session, with two seats that control puts on streams.
    package let isFeed: Bool
    /// The stage that it takes part in, so that control fills its slots and is notified of its sources; nil for all
    /// others.
    package let stage: StreamID?
    /// Nil for an anonymous viewer.
    package let participant: ParticipantID?
    /// Later sessions of the node have higher numbers; of two publishers of a stream the later one is its source.
    package let order: UInt64
    /// When the client's request arrived; nil to measure from when the worker receives this.
    package let requested: MonotonicTime?
    /// Where the worker publishes the quality that it delivers.
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

/// An event that a worker reports to control.
package enum WorkerEvent: Equatable, Sendable {
    /// The first valid check arrived, so a client uses the session.
    case checked(SessionID)
    /// ICE and DTLS have completed; media is sent to this address, which may change. No profile if there is no peer.
    case connected(SessionID, SRTPProfile?, TransportAddress?)
    /// The first media packet of a publisher arrived.
    case mediaStarted(SessionID)
    case closed(SessionID, PeerConnection.CloseReason)
    /// A session of a stage is connected, and has these tracks.
    case published(SessionID, [PublishedTrack])
    /// Media of a stage's session began or stopped on an m-line.
    case sourceChanged(SessionID, mid: String, isActive: Bool)
    /// The simulcast layers of a session that are used; its client may stop sending the others.
    case layersWanted(SessionID, mid: String, rids: [String])
    /// The loudness of a stage's session from now on, 0 to 127.
    case voice(SessionID, level: UInt8)
    /// Much of what a stage's session sends is lost; repeated at least every 10 s while that goes on.
    case uplinkWeak(SessionID)
    /// Every command before this fence has been performed.
    case passed(UInt64)
    /// The control channel is open, or its client has to be sent everything again.
    case controlOpened(SessionID)
    case controlMessage(SessionID, DataChannelMessage)
    /// The video of a stream begins in a seat of a feed session, with this RTP timestamp.
    case begun(SessionID, pair: Int, StreamID, timestamp: UInt32)
    /// The quality that a client receives has changed.
    case qualityChanged(SessionID, DeliveryQuality)
    /// An injection has been opened, with these tracks.
    case injected(InjectionID, [PublishedTrack])
    /// Viewers of an injection need a key frame.
    case keyFrameWanted(InjectionID, source: Int, layer: Int)
    /// The same for a session whose publisher uses another protocol than WebRTC.
    case sessionKeyFrameWanted(SessionID)
    /// A key frame was requested from a publisher.
    case keyFrameRequested(SessionID, SentKeyFrameRequest)
    /// Viewers of some worker need a rendition of a session's track, or have not needed it for a while.
    case renditionWanted(SessionID, PublishedTrack, isWanted: Bool)
}

/// A key-frame request to the publisher of one layer, and its reason.
package struct SentKeyFrameRequest: Equatable, Sendable {
    /// The MID of the publisher's m-line.
    package let mid: String
    /// Nil for a single layer.
    package let rid: String?
    /// Why the key frame was requested.
    package let occasion: KeyFrameRequester.Occasion
}

/// What a worker has counted since its creation.
package struct WorkerCounters: Equatable, Sendable {
    /// Datagrams from an unknown address or with an unknown ufrag, or of an unknown protocol.
    package var strangers: UInt64 = 0
    /// Datagrams from the address of a session that ended a moment ago, which were on their way.
    package var afterTheEnd: UInt64 = 0
    /// Sessions created by `.open` commands.
    package var sessionsOpened: UInt64 = 0
    /// Sessions of those that have connected.
    package var sessionsConnected: UInt64 = 0
    /// STUN datagrams of sessions.
    package var checks: UInt64 = 0
    /// DTLS datagrams of sessions: handshakes and data channels.
    package var handshakes: UInt64 = 0
    /// DTLS records of joining clients for which there was no room.
    package var handshakesDropped: UInt64 = 0
    /// SRTP datagrams of sessions.
    package var mediaDatagrams: UInt64 = 0
    /// SRTCP datagrams of sessions.
    package var controlDatagrams: UInt64 = 0
    /// Packets received from other workers.
    package var packetsRelayed: UInt64 = 0
    /// Bytes of those packets.
    package var bytesRelayed: UInt64 = 0
    /// Packets received from other workers for a track that is gone.
    package var relayedInVain: UInt64 = 0
    /// Packets sent to other workers, counted once per worker.
    package var packetsToWorkers: UInt64 = 0
    /// Bytes of those packets.
    package var bytesToWorkers: UInt64 = 0
    /// Packets of publishers inside the server.
    package var packetsInjected: UInt64 = 0
    /// How long packets waited for others, while the worker was busy.
    package var waits = DurationHistogram(.packets)
    /// Joining times of sessions that publish.
    package var publishers = JoinPhases()
    /// Joining times of all others.
    package var viewers = JoinPhases()
    /// Switching times of viewers of the feed.
    package var switches = SwitchTimes()
    /// Number of times that a seat of a feed session was put on a stream.
    package var seatsTaken: UInt64 = 0
    /// Messages received on data channels.
    package var messagesReceived: UInt64 = 0
    /// Messages sent on data channels.
    package var messagesSent: UInt64 = 0
    /// Messages dropped because there were too many, they were too long, or the client reads too slowly.
    package var messagesDropped: UInt64 = 0
    /// Number of living sessions.
    package var sessions = 0
    /// Number of slots of living sessions.
    package var slots = 0
    /// Number of those slots that carry a track.
    package var slotsAttached = 0
    /// What living sessions are sent.
    package var delivery = DeliveryCensus()
    /// In `Worker.counters` only of sessions that have ended; `Worker.statistics` adds living ones.
    package var media = MediaCounters()

    package init() {}
}
