import Base
import Peer
import Wire

/// One peer connection on its worker: what it publishes, and the slots it receives in.
///
/// Lives on one worker for life. Not `Sendable`: everything here runs on that worker's thread.
package final class Session {
    package let id: SessionID
    package let plan: SessionPlan
    package let connection: PeerConnection
    /// The stream whose programme the slots follow; nil for a session that only publishes.
    package let follows: StreamID?
    /// The stream that the sources are the programme of.
    package internal(set) var publishes: StreamID?
    /// The stage that it takes part in, and as whom.
    package let stage: StreamID?
    package let participant: ParticipantID?
    var channels: SessionChannels
    /// The stream of whose audience it is one, with data channels; nil for all others.
    var hearsDataOf: StreamID? { stage == nil && plan.dataChannel != nil ? follows : nil }
    /// Of what the client publishes; nil where control need not know.
    var monitor: SourceMonitor?
    /// What the client publishes, one per sending m-line.
    package private(set) var sources: [Source] = []
    /// What the client receives, one per receiving m-line.
    package private(set) var slots: [Slot] = []
    /// The slots, those whose pictures come first where the path does not take the best of all at the beginning.
    var slotsByImportance: [Slot] = []
    /// Pairs of slots that get programmes.
    private(set) var seats: [Seat] = []
    private let recorder: JoinRecorder
    private let renditions: RenditionBoard

    /// Ours in RTCP where no slot lends its own.
    let reportSSRC: UInt32
    let packer: ControlPacker
    var scheduler: ReportScheduler
    var exchange: ReferenceTimeExchange
    var roundTrip = RTTEstimator()
    var publisherClock = SourceClock()
    /// Whether every track that the client sends has had a sender report.
    var isPublisherClockKnown = false
    var routes: [Route] = []
    var feedback: TransportFeedbackRecorder?
    var estimator: REMBEstimator?
    var nextLossLook = MonotonicTime.zero
    /// What becomes of a client that tells of loss only.
    package internal(set) var delivery: LossResponse
    /// Nil where the client does not tell of each packet when it came, unless it says how much it can take in, is
    /// connected by TCP, or has lost too much where less could be sent.
    var path: OutgoingPath?
    /// What the client said that it wants of the pictures.
    var preferences = DeliveryPreferences()
    /// Where others find what is served.
    package let gauge: QualityGauge
    /// When that is looked at again, and what the client knows of it.
    var nextTelling = MonotonicTime.zero
    var toldQuality: DeliveryQuality?
    var hasNewQuality = false
    /// When the client last told of loss.
    var lastReception = MonotonicTime.zero
    /// What is lost before is put down to the burst that something began with.
    var excused = MonotonicTime.zero
    var counters = MediaCounters()
    /// Later sessions have higher numbers; of two publishers of a stream the later one counts.
    var order: UInt64
    let links: WorkerLinks?
    private let wakeList: WakeList
    private var isOnWakeList = false
    /// How long the client takes to join.
    var progress: JoinProgress
    /// M-lines of which layers rest, or have to come again, since the last batch; a few at most.
    private var changedRests: [String] = []
    /// Whether media came from the client.
    var hasMedia = false

    /// One sending m-line of the client and the track it became.
    package struct Source {
        package let plan: SourcePlan
        package let reader: PacketReader
        package let track: Track
    }

    /// Of an ingested session: whoever makes the pictures is asked at most this often.
    private static let keyFrameWishInterval = Duration.milliseconds(250)
    private var lastKeyFrameWish: MonotonicTime?
    private var hasKeyFrameWish = false

    /// Whether viewers of an ingested session need a key frame.
    func takeKeyFrameWish() -> Bool {
        defer { hasKeyFrameWish = false }
        return hasKeyFrameWish
    }

    /// Not told yet; at most one of each layer, which leave together.
    private var keyFrameRequests: [SentKeyFrameRequest] = []

    func noteKeyFrameRequest(_ occasion: KeyFrameRequester.Occasion, of layer: TrackLayer, mid: String) {
        keyFrameRequests.append(SentKeyFrameRequest(mid: mid, rid: layer.rid, occasion: occasion))
    }

    /// What the publisher has just been asked for.
    func takeKeyFrameRequests() -> [SentKeyFrameRequest] {
        guard !keyFrameRequests.isEmpty else { return [] }
        defer { keyFrameRequests.removeAll() }
        return keyFrameRequests
    }

    /// Where a stream's picture begins in a seat.
    struct Beginning {
        let pair: Int
        let stream: StreamID
        let timestamp: UInt32
    }

    /// Not told yet; at most as many as streams were put on seats within a batch.
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

    /// Leaves every track; called when the session or its programme ends.
    package func detachAll() {
        for slot in slots { slot.detach() }
    }

    /// What other workers have to know of what it publishes.
    var relayed: RelayedProgramme {
        RelayedProgramme(
            order: order,
            tracks: sources.map { source in
                RelayedTrack(
                    id: source.track.key.track, plan: source.plan, extensions: plan.publishedExtensions)
            })
    }

    /// What slots of any worker need to carry what it publishes.
    var published: [PublishedTrack] {
        sources.map {
            PublishedTrack(key: $0.track.key, plan: $0.plan, extensions: plan.publishedExtensions)
        }
    }

    /// Has this session looked at when the batch is done.
    func requestWake() {
        guard !isOnWakeList else { return }
        isOnWakeList = true
        wakeList.add(self)
    }

    func leaveWakeList() {
        isOnWakeList = false
    }

    /// A slot began with another source: its new time line is told at once, for lip sync.
    /// - Parameter timestamp: the first one, as the receiver gets it.
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

    /// Counts the switches that are done.
    func noteSwitchTimes(at now: MonotonicTime) {
        for seat in seats {
            if let change = seat.takeSwitch() { recorder.switches.note(change, at: now) }
        }
    }

    /// What was counted here, in its slots and in its tracks.
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
        // Nobody is there who could be asked by RTCP: control asks whoever makes the pictures.
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

    /// Has a client that may have missed it told which layers rest.
    func retellRests() {
        for source in sources where source.track.rests.contains(where: { $0 != nil }) {
            changedRests.append(source.plan.mid)
        }
        requestWake()
    }

    /// The m-lines of which other layers are wanted than was told, each once.
    func takeChangedRests() -> [(mid: String, rids: [String])] {
        guard !changedRests.isEmpty else { return [] }
        defer { changedRests.removeAll() }
        return sources.filter { changedRests.contains($0.plan.mid) }.map {
            ($0.plan.mid, $0.track.wantedRIDs)
        }
    }
}
