import Base
import Crypto
import Peer

/// A receiving m-line of a session, to which any track can be attached at any time.
///
/// Its SSRC, MID and RTX SSRC never change. A change of track only rewrites RTP headers, which the receiver does not
/// notice. It is owned by its session; tracks only refer to it.
package final class Slot {
    // What is read for every packet comes first, within `hotBytes`, because it is loaded ahead of time; see
    // `SlotHints`.
    /// The last turn of `FanOut` in which packets were sent here.
    var round: UInt64 = 0
    /// Whether `current` is not being sent, because the viewer's path cannot carry it, or because its source or a
    /// replay broke off.
    package private(set) var isStopped = false
    /// Owns this slot.
    package unowned let session: Session
    /// The session's connection.
    let connection: PeerConnection
    /// The session's path; nil if the client sends no feedback on the packets of this m-line.
    let path: OutgoingPath?
    /// The format under which this session negotiated the current segment's codec.
    var format: MediaFormat?
    /// The negotiated m-line.
    package let plan: SlotPlan
    /// The first packet index without a MID; `Int64.max` until the receiver's first report.
    ///
    /// Until then packets contain the MID, so that the receiver can assign the SSRC to the m-line (RFC 9143 §9.2);
    /// RTX packets always do. It is an index and not a flag, because without RTX a packet is retransmitted under its
    /// own index and must be identical then.
    private(set) var firstIndexWithoutMID = Int64.max
    /// The latest picture numbers sent, which the next source continues.
    var lastPictures = PictureNumbers()
    /// The progress of a replay; nil once the slot is at the live edge.
    var replay: Replay?
    var timeline: RTPTimeline<TrackLayer>
    var stream: SendStream
    var retransmissions = RetransmissionGate()
    var counters = MediaCounters()

    /// The attached track; nil for an empty slot.
    package private(set) var track: Track?
    /// The layer to which the slot changes at its next entry point.
    package internal(set) var awaited: TrackLayer?
    /// The track that control attached; nil for a slot that follows a programme's source.
    var assigned: TrackKey?
    /// Maximum height of the video set by control, in pixels; nil for the best layer.
    private(set) var maximumHeight: Int?
    /// Whether the lowest frame rate and size suffice, for a track with a single encoding.
    private(set) var isThinned = false
    /// What the viewer's path has room for.
    var grant = Grant.best
    /// Whether the path's capacity has not been divided since the slot got its track.
    var isNewcomer = false
    /// Whether there were renditions to choose from at the last allocation.
    var hasRenditions = false
    /// The RTX stream's packet index: 16-bit sequence number and roll-over counter.
    var repairIndex: Int64
    let mid: [UInt8]
    var replayGate = ReplayGate()
    /// Numbers of recent packets, for retransmissions under their own index and for feedback by sequence number.
    ///
    /// Exists from the beginning for video without RTX, for audio whose loss is reported but not asked for, and for
    /// feedback by sequence number; otherwise from the first retransmission request on that needs it.
    var repeatable: RepeatableNumbers?
    /// The same for the RTX stream, for feedback by sequence number.
    var repairNumbers: RepeatableNumbers?
    /// Numbers that were really sent, for reading receiver reports; nil with feedback on each packet.
    var departed: DepartedNumbers?
    /// For audio to a viewer that accepts RED; nil for all others.
    var redundancy: AudioRedundancy?
    /// Lost audio that may be sent once more.
    var lostSound = LostSound()
    /// Places in the lists of `current`, `awaited` and `track`; nil while in none.
    var place: Int?
    var awaitedPlace: Int?
    var subscribedPlace: Int?

    /// How much of a track's video is sent.
    enum Grant: Equatable {
        /// The best layer that the slot may get.
        case best
        /// A simulcast layer or a rendition, by its index.
        case layer(Int)
        /// The lowest frame rate of a single encoding, at its smallest size, or of a rendition.
        case thinned(Int)
        /// A single encoding up to one of its spatial layers.
        case spatial(Int)
        case nothing
    }

    /// Percentage of a layer's bit rate that the path must carry; below it, the layer is too much.
    private static let tooMuch = 85

    /// Size of the part of a slot that sending reads and writes, in bytes.
    static let hotBytes = 1_024

    init(plan: SlotPlan, session: Session, using random: inout some RandomNumberGenerator) {
        self.plan = plan
        self.session = session
        connection = session.connection
        path = plan.tellsOfPackets ? session.path : nil
        if plan.reportsBySequenceNumber {
            let isVideo = plan.kind == .video
            let capacity = isVideo ? RepeatableNumbers.largeCapacity : RepeatableNumbers.usualCapacity
            repeatable = RepeatableNumbers(capacity: capacity)
            if plan.repairSSRC != nil { repairNumbers = RepeatableNumbers(capacity: capacity) }
        } else if path != nil, plan.repairSSRC == nil {
            if plan.kind == .video { repeatable = RepeatableNumbers() }
            if plan.kind == .audio, !plan.supportsNACK {
                repeatable = RepeatableNumbers(capacity: RepeatableNumbers.soundCapacity)
            }
        }
        if path == nil { departed = DepartedNumbers() }
        if plan.kind == .audio, plan.formats.contains(where: { $0.redundancyPayloadType != nil }) {
            redundancy = AudioRedundancy()
        }
        timeline = RTPTimeline(clockRate: plan.kind == .video ? 90_000 : 48_000, using: &random)
        stream = SendStream(ssrc: plan.ssrc, clockRate: plan.kind == .video ? 90_000 : 48_000)
        mid = Array(plan.mid.utf8)
        repairIndex = Int64.random(in: 1...0x7FFF, using: &random)
    }

    /// The layer that is being sent, or was before the slot was stopped.
    package var current: TrackLayer? { timeline.current?.source }

    /// The extended sequence number of the next new packet.
    package var nextSequence: Int64 { timeline.nextSequence }

    /// Changes to `track` at its next entry point; the present track is sent until then.
    package func attach(_ track: Track, at now: MonotonicTime) {
        guard self.track !== track else { return }
        leaveTrack()
        self.track = track
        startAfresh()
        hasRenditions = false
        session.allocate(at: now)
        track.attach(self, at: now)
    }

    /// The layers that it may get, by control's limit and the viewer's preferences.
    var choice: LayerChoice {
        let preferences = session.preferences
        let heights = [maximumHeight, preferences.maximumHeight].compactMap(\.self)
        return LayerChoice(
            maximumHeight: heights.min(), isLeast: preferences.pin == .low,
            isOnlyBest: preferences.pin != nil)
    }

    /// Resets the grant, because earlier ones do not apply to what is sent next.
    func startAfresh() {
        grant = .best
        isNewcomer = session.path?.isKnown ?? false
    }

    /// Sets control's limit on the height of the video.
    func limit(to height: Int?, at now: MonotonicTime) {
        guard maximumHeight != height else { return }
        maximumHeight = height
        // The change comes from control, not from a viewer who cannot go on, so earlier replays do not count.
        replayGate = ReplayGate()
        track?.retarget(self, at: now)
    }

    /// Drops higher temporal and spatial layers where they can be resumed later, or resumes them.
    func thin(_ isThinned: Bool, at now: MonotonicTime) {
        self.isThinned = isThinned
        adjustSieve(at: now)
    }

    /// Sends no pictures until the slot is given a layer again, which begins at its next entry point.
    func stop() {
        // Also while nothing is sent: the layer that the slot awaits must not begin now.
        awaited?.stopAwaiting(self)
        awaited = nil
        guard !isStopped else { return }
        hold()
    }

    /// Sends no pictures until the awaited layer begins.
    func hold() {
        isStopped = true
        endReplay()
        current?.remove(self)
    }

    /// Whether it is sent live pictures of this track.
    func showsPresent(of track: Track, at now: MonotonicTime) -> Bool {
        guard !isStopped, !isReplaying, let current else { return false }
        return current.track === track && current.isActive(at: now)
    }

    /// Whether the present layer must stop before a smaller one begins, because it fills the path's queue.
    ///
    /// Otherwise the smaller one's key frame, which can be requested immediately, would wait in that queue, and be
    /// lost in part.
    func hasTooMuch(instead awaited: TrackLayer, at now: MonotonicTime) -> Bool {
        guard !isStopped, let path, session.isPathFull, let current, current.track === awaited.track,
            awaited.answersAtOnce(at: now)
        else { return false }
        let bitrate = current.bitrate(at: now)
        return awaited.bitrate(at: now) < bitrate && bitrate / 100 * Self.tooMuch > path.bitrate
    }

    /// Applies `isThinned`, `choice` and `grant` to the layer being sent, if it is the track's only one or a
    /// rendition.
    func adjustSieve(at now: MonotonicTime) {
        guard let segment = timeline.current else { return }
        let layer = segment.source
        let isLower =
            layer.rendition == nil
            ? layer.isOnly && (isThinned || grant == .thinned(layer.index)) : grant == .thinned(layer.index)
        let target = FrameSieve.Limit(temporal: isLower ? 0 : .max, spatial: spatialTarget(of: layer))
        guard
            let sieve = target == FrameSieve.Limit()
                ? segment.sieve : timeline.sift(isSure: layer.tellsWhereToSwitch(at: now))
        else { return }
        let wasWaiting = sieve.isWaitingForKeyFrame
        sieve.target = target
        if !wasWaiting { demandLargerPicture(of: layer, at: now) }
    }

    /// Stops sending; the next `attach` continues where this stream stood.
    package func detach() {
        leaveTrack()
        endReplay()
        current?.remove(self)
        timeline.end()
        format = nil
        isStopped = false
        grant = .best
        replayGate = ReplayGate()
    }

    /// Notes that the receiver has reported, so it has assigned the SSRC to the m-line.
    func noteReport() {
        guard firstIndexWithoutMID == .max else { return }
        firstIndexWithoutMID = timeline.nextSequence
    }

    private func leaveTrack() {
        awaited?.stopAwaiting(self)
        awaited = nil
        track?.removeSubscriber(self)
        track = nil
    }

    /// Changes to `layer`, of which `packet` is sent next.
    ///
    /// - Parameter edge: the layer's newest packet, if there are packets up to it already.
    /// - Returns: whether the change was made; false if the receiver did not negotiate the codec.
    func begin(
        _ layer: TrackLayer, with packet: ForwardedPacket, upTo edge: GOPCache.Edge? = nil,
        at now: MonotonicTime
    ) -> Bool {
        guard let format = plan.format(for: packet.codec) else {
            counters.drops.codecNotNegotiated &+= 1
            awaited = nil
            return false
        }
        endReplay()
        current?.remove(self)
        timeline.begin(
            layer, epoch: layer.epoch, at: packet.sequenceNumber, timestamp: packet.timestamp,
            pictures: packet.pictures.offsets(after: lastPictures),
            edge: edge.map { .init(sequence: $0.sequenceNumber, timestamp: $0.timestamp) }, now: now)
        self.format = format
        isStopped = false
        // A slot that awaits another layer is still in that layer's list, and must be found there when it leaves.
        if awaited === layer { awaited = nil }
        adjustSieve(at: now)
        session.noteSwitch(
            of: self,
            from: timeline.current?.outgoing(timestamp: packet.timestamp, of: packet.sequenceNumber),
            at: now)
        return true
    }
}
