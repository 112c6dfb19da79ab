import Base
import Crypto
import Peer
import Wire

/// A receiving m-line of a session, to which any track can be attached at any time.
///
/// Its SSRC, MID and RTX SSRC never change: a change of what it carries is a rewriting of RTP headers that the
/// receiver does not notice. Owned by its session; tracks only point at it.
package final class Slot {
    // What is read for every packet stands first, up to `hotBytes`: it is loaded ahead of time; see `SlotHints`.
    /// The last turn of `FanOut` in which packets were sent here.
    var round: UInt64 = 0
    /// Whether nothing is sent of `current` any more, because the viewer's link does not take it.
    package private(set) var isStopped = false
    package unowned let session: Session
    /// The session's.
    let connection: PeerConnection
    /// The session's; nil where the client does not tell of packets of this m-line, though the session may have one.
    let path: OutgoingPath?
    /// What the current segment's codec is called in this session.
    var format: MediaFormat?
    package let plan: SlotPlan
    /// Until the receiver reports, packets carry the MID, so that it can tell which m-line the SSRC belongs to
    /// (RFC 9143 §9.2); RTX packets always do.
    ///
    /// A bound in the media's numbers, not a flag: where there is no RTX a packet is repeated under its own index,
    /// and must then be the same byte for byte.
    private(set) var firstIndexWithoutMID = Int64.max
    /// The latest picture numbers sent, which the next source continues.
    var lastPictures = PictureNumbers()
    /// What is still to be sent of a cached group of pictures; nil once the slot is at the live edge.
    var replay: Replay?
    var timeline: RTPTimeline<TrackLayer>
    var stream: SendStream
    var retransmissions = RetransmissionGate()
    var counters = MediaCounters()

    package private(set) var track: Track?
    /// The layer that the slot changes to at that layer's next entry point.
    package internal(set) var awaited: TrackLayer?
    /// The track that control gave it; nil for a slot that follows a programme.
    var assigned: TrackKey?
    /// Of the picture, in pixels; nil for the best there is.
    private(set) var maximumHeight: Int?
    /// Whether the lowest frame rate and size will do, where there is only one picture to choose.
    private(set) var isThinned = false
    /// What the path to the viewer has room for.
    var grant = Grant.best
    /// Whether the room of a path that is known was not divided yet since the slot got its track.
    var isNewcomer = false
    /// Whether there were renditions to choose when that was done last.
    var hasRenditions = false
    /// The RTX stream's packet index: 16-bit sequence number and roll-over counter.
    var repairIndex: Int64
    let mid: [UInt8]
    var replayGate = ReplayGate()
    /// Where pictures are sent again under their own index, of sound once the receiver first asks for a packet, and
    /// where the client tells of packets by it.
    var repeatable: RepeatableNumbers?
    /// Of the RTX stream, where the client tells of packets by their own index.
    var repairNumbers: RepeatableNumbers?
    /// Where the viewer does not tell of each packet; nil elsewhere.
    var departed: DepartedNumbers?
    /// Of sound, where the viewer takes RED; nil elsewhere.
    var redundancy: AudioRedundancy?
    /// Among the slots of `current`, of `awaited` and of `track`; nil where it is not among them.
    var place: Int?
    var awaitedPlace: Int?
    var subscribedPlace: Int?

    /// What of a track's pictures is sent.
    enum Grant: Equatable {
        /// The best that the slot may have.
        case best
        /// A simulcast layer or a rendition, by its place among the track's.
        case layer(Int)
        /// The lowest frame rate of the only picture there is, at its smallest, or of a rendition.
        case thinned(Int)
        /// The only picture there is, up to one of its spatial layers.
        case spatial(Int)
        case nothing
    }

    /// What takes more than the path does where this many percent of it would.
    private static let tooMuch = 85

    /// Bytes of a slot that sending reads and writes.
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
        } else if path != nil, plan.kind == .video, plan.repairSSRC == nil {
            repeatable = RepeatableNumbers()
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

    /// The layer that is being sent.
    package var current: TrackLayer? { timeline.current?.source }

    /// The sequence number that the next new packet gets, extended.
    package var nextSequence: Int64 { timeline.nextSequence }

    /// Changes to `track` at its next entry point; what is being sent goes on until then.
    package func attach(_ track: Track, at now: MonotonicTime) {
        guard self.track !== track else { return }
        leaveTrack()
        self.track = track
        startAfresh()
        hasRenditions = false
        session.allocate(at: now)
        track.attach(self, at: now)
    }

    /// Which layers it may get, by control's wish and the viewer's.
    var choice: LayerChoice {
        let preferences = session.preferences
        let heights = [maximumHeight, preferences.maximumHeight].compactMap(\.self)
        return LayerChoice(
            maximumHeight: heights.min(), isLeast: preferences.pin == .low,
            isOnlyBest: preferences.pin != nil)
    }

    /// What it was granted before says nothing of what it is to get now.
    func startAfresh() {
        grant = .best
        isNewcomer = session.path?.isKnown ?? false
    }

    /// Takes the best layer up to a height from now on.
    func limit(to height: Int?, at now: MonotonicTime) {
        guard maximumHeight != height else { return }
        maximumHeight = height
        // It is control's wish, not a viewer who cannot go on.
        replayGate = ReplayGate()
        track?.retarget(self, at: now)
    }

    /// Leaves out higher temporal and spatial layers, where that can be done and taken back, or takes them in again.
    func thin(_ isThinned: Bool, at now: MonotonicTime) {
        self.isThinned = isThinned
        adjustSieve(at: now)
    }

    /// Sends no pictures until it is given a layer again; they go on at its next entry point.
    func stop() {
        guard !isStopped else { return }
        awaited?.stopAwaiting(self)
        awaited = nil
        hold()
    }

    /// Sends no pictures until the layer that it waits for begins.
    func hold() {
        isStopped = true
        endReplay()
        current?.remove(self)
    }

    /// Whether it is sent a picture of this track as it comes.
    func showsPresent(of track: Track, at now: MonotonicTime) -> Bool {
        guard !isStopped, !isReplaying, let current else { return false }
        return current.track === track && current.isActive(at: now)
    }

    /// Whether what is sent overfills a path that takes far less, while a smaller picture comes at once: that would
    /// have to wait in the path's queue, too, and be lost in part.
    func hasTooMuch(instead awaited: TrackLayer, at now: MonotonicTime) -> Bool {
        guard !isStopped, let path, session.isPathFull, let current, current.track === awaited.track,
            awaited.answersAtOnce(at: now)
        else { return false }
        let bitrate = current.bitrate(at: now)
        return awaited.bitrate(at: now) < bitrate && bitrate / 100 * Self.tooMuch > path.bitrate
    }

    /// Applies `isThinned`, `choice` and `grant` to what is being sent, where that is the only picture there is.
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

    /// The receiver has reported: it knows whose packets these are.
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

    /// Changes to `layer`, whose next packet is `packet`.
    ///
    /// - Parameter edge: the layer's newest packet, if those up to it have come before.
    /// - Returns: whether the change was made; not if the receiver cannot take the codec.
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
        // Who waits for another layer still stands in that one's list, and must be found there when it leaves.
        if awaited === layer { awaited = nil }
        adjustSieve(at: now)
        session.noteSwitch(
            of: self,
            from: timeline.current?.outgoing(timestamp: packet.timestamp, of: packet.sequenceNumber),
            at: now)
        return true
    }
}
