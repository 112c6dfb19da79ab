import Base
import Peer

/// One peer connection on its worker, with what it publishes and the slots it receives in.
///
/// A session stays on one worker. It is not `Sendable`: everything here runs on that worker's thread.
package final class Session {
    /// Chosen by control; unique within the node.
    package let id: SessionID
    /// What offer and answer agreed on.
    package let plan: SessionPlan
    /// ICE, DTLS, SRTP and SCTP of this session.
    package let connection: PeerConnection
    /// The stream whose programme the slots follow; nil for a session that only publishes.
    package let follows: StreamID?
    /// The stream whose programme the sources are; nil for a session that is no stream's source.
    package internal(set) var publishes: StreamID?
    /// The stage that it takes part in; nil for all others.
    package let stage: StreamID?
    /// The identity of the client; nil for an anonymous viewer.
    package let participant: ParticipantID?
    var channels: SessionChannels
    /// The stream whose data tracks it may receive as a viewer with data channels; nil for all others.
    var hearsDataOf: StreamID? { stage == nil && plan.dataChannel != nil ? follows : nil }
    /// Watches what the client publishes; nil if control does not need to know.
    var monitor: SourceMonitor?
    /// What the client publishes, one per sending m-line.
    package private(set) var sources: [Source] = []
    /// What the client receives, one per receiving m-line.
    package private(set) var slots: [Slot] = []
    /// The slots, those first that take priority if the path cannot carry the best quality of all.
    var slotsByImportance: [Slot] = []
    /// Pairs of slots that carry programmes: one for a player, two for a feed session.
    private(set) var seats: [Seat] = []
    private let recorder: JoinRecorder
    private let renditions: RenditionBoard

    /// The sender SSRC of our RTCP: the first slot's, or a random one in a session without slots.
    let reportSSRC: UInt32
    let packer: ControlPacker
    var scheduler: ReportScheduler
    var exchange: ReferenceTimeExchange
    var roundTrip = RTTEstimator()
    var publisherClock = SourceClock()
    /// Whether a sender report has arrived for every track that the client sends.
    var isPublisherClockKnown = false
    /// Destinations of received SSRCs.
    var routes = SessionRoutes()
    /// Congestion feedback on the client's media; at most one of these two exists, as negotiated.
    var feedback: TransportFeedbackRecorder?
    var estimator: REMBEstimator?
    var nextLossLook = MonotonicTime.zero
    /// Decides by reported loss whether pictures are sent, while the path is not measured.
    package internal(set) var delivery: LossResponse
    /// The path to the client; nil until something measures it.
    ///
    /// It exists from the beginning for a client that sends feedback on each packet. For others it is created with
    /// the first estimate (REMB), with a TCP connection, or when too much is lost and something lower can be sent.
    var path: OutgoingPath?
    /// The client's preferences for pictures.
    var preferences = DeliveryPreferences()
    /// Where the session publishes its quality for other threads.
    package let gauge: QualityGauge
    /// When the quality is evaluated next.
    var nextTelling = MonotonicTime.zero
    /// The quality that the client was last notified of, or will be next.
    var toldQuality: DeliveryQuality?
    var hasNewQuality = false
    /// When the client last reported on loss.
    var lastReception = MonotonicTime.zero
    /// Loss before this time is attributed to the burst with which a slot began.
    var excused = MonotonicTime.zero
    var counters = MediaCounters()
    /// Later sessions have higher numbers; of two publishers of a stream the later one is its source.
    var order: UInt64
    let links: WorkerLinks?
    private let wakeList: WakeList
    private var isOnWakeList = false
    /// The phases of the client's joining.
    var progress: JoinProgress
    /// MIDs of m-lines whose wanted layers have changed since the last batch; only a few.
    private var changedRests: [String] = []
    /// Whether media has arrived from the client.
    var hasMedia = false

    /// One sending m-line of the client and the track it became.
    package struct Source {
        /// The negotiated m-line.
        package let plan: SourcePlan
        /// Parses the m-line's packets.
        package let reader: PacketReader
        /// The track that carries the m-line's media to viewers.
        package let track: Track
    }

    /// In an ingested session, minimum time between two requests for a key frame from the encoder.
    private static let keyFrameWishInterval = Duration.milliseconds(250)
    private var lastKeyFrameWish: MonotonicTime?
    private var hasKeyFrameWish = false

    /// Whether viewers of an ingested session need a key frame; true once per request.
    func takeKeyFrameWish() -> Bool {
        defer { hasKeyFrameWish = false }
        return hasKeyFrameWish
    }

    /// Requests not reported to control yet; at most one per layer, which are sent together.
    private var keyFrameRequests: [SentKeyFrameRequest] = []

    func noteKeyFrameRequest(_ occasion: KeyFrameRequester.Occasion, of layer: TrackLayer, mid: String) {
        keyFrameRequests.append(SentKeyFrameRequest(mid: mid, rid: layer.rid, occasion: occasion))
    }

    /// The key-frame requests sent to the publisher since the last call.
    func takeKeyFrameRequests() -> [SentKeyFrameRequest] {
        guard !keyFrameRequests.isEmpty else { return [] }
        defer { keyFrameRequests.removeAll() }
        return keyFrameRequests
    }

    /// The RTP timestamp with which a stream's video begins in a seat.
    struct Beginning {
        let pair: Int
        let stream: StreamID
        let timestamp: UInt32
    }

    /// Beginnings not reported to control yet; at most one per stream put on a seat within a batch.
    private var beginnings: [Beginning] = []

    func takeBeginnings() -> [Beginning] {
        guard !beginnings.isEmpty else { return [] }
        defer { beginnings.removeAll() }
        return beginnings
    }

    init(
        _ opening: SessionOpening, connection: PeerConnection, firstTrack: UInt64, wakeList: WakeList,
        fanOut: FanOut, recorder: JoinRecorder, renditions: RenditionBoard, links: WorkerLinks?,
        using random: inout some RandomNumberGenerator, at now: MonotonicTime
    ) {
        id = opening.id
        gauge = opening.gauge
        plan = opening.plan
        self.connection = connection
        publishes = opening.publishes
        follows = opening.follows
        order = opening.order
        stage = opening.stage
        participant = opening.participant
        channels = SessionChannels(isOnStage: opening.stage != nil, at: now)
        monitor = opening.stage == nil ? nil : SourceMonitor(sources: opening.plan.sources.count)
        self.wakeList = wakeList
        self.recorder = recorder
        self.renditions = renditions
        progress = JoinProgress(
            requested: opening.requested ?? now, isPublisher: opening.publishes != nil, recorder: recorder)
        self.links = links
        let ssrc = plan.slots.first?.ssrc ?? UInt32.random(in: 1...UInt32.max, using: &random)
        reportSSRC = ssrc
        packer = ControlPacker(
            localSSRC: ssrc, canonicalName: plan.slots.first?.cname ?? "rostrum",
            reducedSize: plan.allowsReducedSizeRTCP)
        scheduler = ReportScheduler(at: now, using: &random)
        exchange = ReferenceTimeExchange(localSSRC: ssrc)
        delivery = LossResponse()
        path = plan.slots.contains(where: \.tellsOfPackets) ? OutgoingPath() : nil
        switch plan.congestionFeedback {
        case .transportWide: feedback = TransportFeedbackRecorder(senderSSRC: ssrc, mediaSSRC: 0)
        case .receiverEstimate: estimator = REMBEstimator()
        case .none: break
        }
        for (index, source) in plan.sources.enumerated() {
            let reader = PacketReader(formats: source.formats, ids: plan.publishedExtensions)
            let id = TrackID(number: firstTrack &+ UInt64(index))
            let key = TrackKey(worker: links?.index ?? 0, track: id)
            let track = Track(key: key, plan: source, reader: reader, owner: self, fanOut: fanOut)
            sources.append(Source(plan: source, reader: reader, track: track))
        }
        for slot in plan.slots { slots.append(Slot(plan: slot, session: self, using: &random)) }
        slotsByImportance = slots
        for pair in 0..<(follows != nil ? 1 : opening.isFeed ? 2 : 0) { seats.append(Seat(pair, of: self)) }
        seats.first?.reserve(follows, isPreview: false, requested: nil)
    }

    /// Detaches all slots; called when the session or its programme ends.
    package func detachAll() {
        for slot in slots { slot.detach() }
    }

    /// The published tracks, as programmes and slots of any worker need them.
    var published: [PublishedTrack] {
        sources.map {
            PublishedTrack(key: $0.track.key, plan: $0.plan, extensions: plan.publishedExtensions)
        }
    }

    /// Makes the worker look at this session at the end of the batch.
    func requestWake() {
        guard !isOnWakeList else { return }
        isOnWakeList = true
        wakeList.add(self)
    }

    func leaveWakeList() {
        isOnWakeList = false
    }

    /// Notes that a slot began with another source; a sender report is sent immediately, for lip sync.
    /// - Parameter timestamp: the first RTP timestamp in the receiver's time line.
    func noteSwitch(of slot: Slot, from timestamp: UInt32?, at now: MonotonicTime) {
        if !seats.isEmpty { progress.noteMedia(at: now) }
        if follows == nil, let timestamp, let pair = seats.firstIndex(where: { $0.video === slot }),
            let stream = seats[pair].takeBeginning()
        {
            beginnings.append(Beginning(pair: pair, stream: stream, timestamp: timestamp))
        }
        noteSwitchTimes(at: now)
        scheduler.expedite(at: now)
        requestWake()
    }

    /// Records the durations of switches that have completed.
    func noteSwitchTimes(at now: MonotonicTime) {
        for seat in seats {
            if let change = seat.takeSwitch() { recorder.switches.note(change, at: now) }
        }
    }

    /// All counters of the session, its slots and its tracks.
    package var totals: MediaCounters {
        var totals = counters
        for slot in slots {
            totals.add(slot.counters)
            let sent = MediaCounters.Volume(
                packets: slot.counters.packetsSent, bytes: slot.counters.bytesSent)
            if slot.plan.kind == .audio { totals.audioSent.add(sent) } else { totals.videoSent.add(sent) }
        }
        for source in sources {
            for layer in source.track.layers {
                totals.keyFrameDemands &+= layer.keyFrames.demandCount
                totals.keyFrameRequests &+= layer.keyFrames.requestCount
                totals.keyFrames &+= layer.keyFrames.keyFrameCount
                totals.repairsRequested &+= layer.repairsRequested
            }
        }
        return totals
    }
}

extension Session: TrackOwner {
    func keyFrameDemanded(
        of layer: Int, of track: TrackID, for reason: KeyFrameRequester.Reason, at now: MonotonicTime
    ) {
        requestWake()
        guard plan.isIngested else { return }
        // An ingested session has no RTCP, so control asks the encoder.
        if let lastKeyFrameWish, now < lastKeyFrameWish + Self.keyFrameWishInterval { return }
        lastKeyFrameWish = now
        hasKeyFrameWish = true
    }

    func renditionNeeded(of track: TrackID, at now: MonotonicTime) {
        guard let source = sources.first(where: { $0.track.key.track == track }) else { return }
        let published = PublishedTrack(
            key: source.track.key, plan: source.plan, extensions: plan.publishedExtensions)
        renditions.note(published, of: id, at: now)
    }

    func layersTaken(_ layers: LayerSet, of track: TrackID, at now: MonotonicTime) {
        sources.first { $0.track.key.track == track }?.track.noteTaken(layers, at: now)
    }

    func restsChanged(of track: Track, at now: MonotonicTime) {
        track.relayRests(over: links)
        changedRests.append(track.plan.mid)
        requestWake()
    }

    /// Reports the resting layers again, because the client may have missed the last report.
    func retellRests() {
        for source in sources where source.track.rests.contains(where: { $0 != nil }) {
            changedRests.append(source.plan.mid)
        }
        requestWake()
    }

    /// The m-lines whose wanted layers have changed since the last call, each once.
    func takeChangedRests() -> [(mid: String, rids: [String])] {
        guard !changedRests.isEmpty else { return [] }
        defer { changedRests.removeAll() }
        return sources.filter { changedRests.contains($0.plan.mid) }.map {
            ($0.plan.mid, $0.track.wantedRIDs)
        }
    }
}
