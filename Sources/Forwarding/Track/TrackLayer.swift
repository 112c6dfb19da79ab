import Base
import Peer
import Wire

/// One encoding of a track: a simulcast layer, or the whole track where there is no simulcast.
///
/// Holds the history that every slot's retransmissions come from, and the slots that are being sent this layer.
package final class TrackLayer {
    /// Place among the track's layers.
    let index: Int
    /// The RID of a simulcast layer; nil where there is only one, and on workers that the track is relayed to.
    package let rid: String?
    /// What the server makes of the track itself; nil for what the publisher sends.
    package let rendition: RenditionLayer?
    package let reader: PacketReader
    let plan: SourcePlan
    private(set) weak var track: Track?
    /// Counts how often the source started anew; what was sent in an earlier one is never read out of this history.
    private(set) var epoch: Int
    /// Reception state; nil until the first packet, and on workers that the track is relayed to.
    package private(set) var stream: ReceiveStream?
    package private(set) var history: PacketHistory
    /// Where in the history a new viewer begins.
    private(set) var cache = GOPCache()
    package private(set) var keyFrames: KeyFrameRequester
    /// Of the latest key frame that told its size, in pixels.
    package private(set) var resolution: VideoResolution?
    package private(set) var lastArrival: MonotonicTime?
    private(set) var rest = LayerRest()
    /// Of VP9, and of AV1 with dependency descriptors; none of other sources.
    var spatial = SpatialLayers()
    /// When a packet last told where temporal layers may be taken in.
    private var lastSwitchingPoint: MonotonicTime?
    private var rate = RateMeter()
    private var keyFrameCost = KeyFrameCost()
    /// What goes on to who can ask for a key frame.
    private var demands = DemandGate()
    private var restarts = RestartBudget()
    /// Whether the sender has told how its time stamps relate to its clock.
    private(set) var hasSenderReport = false
    /// From the latest key frame with a dependency descriptor.
    private var structure: DependencyStructure?
    private var pictureIDs = PictureIDExtender()
    /// Packets that the publisher was asked to send again.
    private(set) var repairsRequested: UInt64 = 0
    /// Slots that this layer is being sent to.
    private(set) var slots = PlacedList(\Slot.place) { didSet { hints.invalidate() } }
    private var hints = SlotHints()
    /// Slots that change to this layer at its next entry point: those that say so by `awaited`.
    private var awaiting = PlacedList(\Slot.awaitedPlace)
    /// Packets to be sent on; see `FanOut`.
    private(set) var outgoing: OutgoingQueue
    /// Whether `fanOut` knows that packets wait.
    private var isListed = false
    private let fanOut: FanOut

    /// - Parameter epoch: where to begin to count.
    init(
        index: Int, rid: String?, rendition: RenditionLayer? = nil, epoch: Int = 0, plan: SourcePlan,
        reader: PacketReader, track: Track, fanOut: FanOut
    ) {
        self.index = index
        self.rendition = rendition
        self.epoch = epoch
        self.track = track
        self.fanOut = fanOut
        self.rid = rid
        self.plan = plan
        outgoing = OutgoingQueue(isVideo: plan.kind == .video)
        self.reader = reader
        keyFrames = KeyFrameRequester(
            pictureLossIndication: plan.supportsPLI, fullIntraRequest: plan.supportsFIR)
        // Video: a second of 8 Mbit/s, or what the cache keeps. Audio: a second of Opus at its highest rate.
        history =
            plan.kind == .video
            ? PacketHistory(maximumCapacity: 1 << 20, maximumPackets: 4_096)
            : PacketHistory(maximumCapacity: 1 << 16, maximumPackets: 128)
    }

    /// Of the media packets; nil before the first.
    package var ssrc: UInt32? { stream?.ssrc }

    package var isVideo: Bool { plan.kind == .video }

    /// Whether packets came lately; a layer that the sender has switched off is not active.
    package func isActive(at now: MonotonicTime) -> Bool {
        guard let lastArrival else { return false }
        return now < lastArrival + (rendition?.silence ?? .seconds(1))
    }

    /// Whether it can be had: it comes, or its publisher only waits to be asked for it.
    func isAvailable(at now: MonotonicTime) -> Bool {
        isActive(at: now) || rest.bitrate(isSent: false, at: now) != nil
    }

    /// In bits a second, over about the last second; of a layer that rests, and of one that has just been called back,
    /// what it was before.
    package func bitrate(at now: MonotonicTime) -> Int {
        max(rate.bitrate(at: now), rest.bitrate(isSent: isActive(at: now), at: now) ?? 0)
    }

    /// The publisher need not send it from now on; nil: it has to send it again.
    /// - Parameter memory: as another worker knows it.
    func setRest(_ memory: LayerRest.Memory?, at now: MonotonicTime) {
        guard let memory else { return rest.callBack(isSent: isActive(at: now), at: now) }
        rest.begin(memory, at: now)
        resolution = resolution ?? memory.resolution
    }

    /// Whether anybody is sent it or waits for it.
    var isTaken: Bool { !slots.isEmpty || !awaiting.isEmpty }

    /// Whether the source has no other picture to choose.
    var isOnly: Bool { rendition == nil && track?.layers.count == 1 }

    /// Whether it has temporal layers that can be left out and later be taken in again.
    func tellsWhereToSwitch(at now: MonotonicTime) -> Bool {
        guard let lastSwitchingPoint else { return false }
        return now.nanoseconds(since: lastSwitchingPoint) < 2_000_000_000
    }

    /// The source starts anew under another SSRC: what was stored is no longer what its numbers mean.
    ///
    /// - Returns: whether it does; not if it did so too often lately.
    @discardableResult
    func restart(ssrc: UInt32, at now: MonotonicTime) -> Bool {
        guard stream == nil || restarts.take(at: now) else { return false }
        let repair: ReceiveStream.Repair =
            !plan.supportsNACK ? .none : isVideo ? .packetsAndKeyFrames : .packets
        stream = ReceiveStream(ssrc: ssrc, clockRate: plan.clockRate, repair: repair)
        hasSenderReport = false
        beginEpoch(at: now)
        return true
    }

    private func beginEpoch(at now: MonotonicTime) {
        startAnew(in: epoch &+ 1)
        demandEntryPoint(at: now)
    }

    private func demandEntryPoint(at now: MonotonicTime) {
        if !awaiting.isEmpty { demandKeyFrame(.beginning, at: now) }
    }

    private func startAnew(in epoch: Int) {
        self.epoch = epoch
        history.removeAll()
        outgoing.removeWaiting()
        cache.reset()
        keyFrameCost = KeyFrameCost()
        lastSwitchingPoint = nil
        spatial = SpatialLayers()
        for slot in slots.takeAll() { letWait(slot) }
    }

    /// Lets go of the pictures of the past, and of replays that show them: nobody is to begin with them any more.
    package func flush(at now: MonotonicTime) {
        cache.flush(&history, at: now)
        let replaying = slots.elements.filter(\.isReplaying)
        guard !replaying.isEmpty else { return }
        for slot in replaying {
            remove(slot)
            letWait(slot)
        }
        demandKeyFrame(.beginning, at: now)
    }

    /// Has `slot`, which this layer was being sent to, go on with its next entry point, unless it waits for another's.
    private func letWait(_ slot: Slot) {
        slot.endReplay()
        guard slot.awaited == nil else { return }
        slot.awaited = self
        awaiting.append(slot)
    }

    /// Nothing more comes of it: who waits for it does so no longer, and who was sent it is sent nothing until it is
    /// given another layer.
    func end() {
        outgoing.removeWaiting()
        for slot in awaiting.takeAll() where slot.awaited === self { slot.awaited = nil }
        for slot in slots.elements {
            if slot.awaited == nil {
                slot.stop()
            } else {
                slot.endReplay()
                remove(slot)
            }
        }
    }

    // MARK: Slots

    /// Lets `slot` change to this layer: at once if the cache has where to begin, else at the next entry point, and
    /// asks for one.
    func await(_ slot: Slot, at now: MonotonicTime) {
        guard !awaiting.contains(slot), isWorthWaiting(for: slot, at: now) || !replay(to: slot, at: now)
        else { return }
        awaiting.append(slot)
        // Pictures that did not get through before are not worth much of the publisher's bitrate; but who has too much
        // of them waits for less.
        let isTrial = slot.isStopped && slot.session.hasFailed(at: now)
        demandKeyFrame(isTrial ? .repetition : .beginning, at: now)
    }

    /// Begins to send `slot` what the cache holds, if that is of use to it.
    func replay(to slot: Slot, at now: MonotonicTime) -> Bool {
        // Of what is made here a key frame costs less than the past would take of a path that has little room.
        guard isVideo, rendition == nil, let edge = cache.edge,
            let start = cache.entry(in: history, isRepaired: plan.supportsNACK, at: now),
            let range = history.range(of: start), let packet = packet(at: range, sequenceNumber: start),
            packet.startsKeyFrame,
            slot.isReplaying || isOther(slot) || mayCatchUp(slot, from: start, at: now),
            slot.beginReplay(of: self, with: packet, to: edge, at: now)
        else { return false }
        awaiting.remove(slot)
        slots.append(slot)
        return true
    }

    /// Whether a slot shows another track, whose viewer rather sees an old picture of this one than none.
    private func isOther(_ slot: Slot) -> Bool { slot.current?.track !== track }

    /// A viewer has just been sent some of what the cache holds.
    func noteReplay(at now: MonotonicTime) {
        cache.noteReplay(at: now)
    }

    /// A replay can no longer go on: `slot` waits for the next entry point.
    func abandonReplay(to slot: Slot, at now: MonotonicTime) {
        remove(slot)
        letWait(slot)
        demandKeyFrame(.beginning, at: now)
    }

    func demandKeyFrame(_ reason: KeyFrameRequester.Reason, at now: MonotonicTime) {
        guard isVideo else { return }
        keyFrames.demand(reason, at: now)
        guard demands.admit(reason, at: now) else { return }
        track?.keyFrameDemanded(of: index, for: reason, at: now)
    }

    func stopAwaiting(_ slot: Slot) {
        awaiting.remove(slot)
    }

    func remove(_ slot: Slot) {
        slots.remove(slot)
    }

    // MARK: Packets

    /// Takes a decrypted packet in: statistics and history.
    ///
    /// - Parameter clock: the publisher's, for the capture time; nil while it is not known for all that it sends.
    /// - Returns: what is to be forwarded; nil for a duplicate or a packet that comes far too late.
    func receive(
        _ bytes: Span<UInt8>, _ header: RTPHeader, origin: ReceiveStream.Origin, clock: SourceClock?,
        captured: MonotonicTime? = nil, at now: MonotonicTime
    ) throws(WireError) -> MediaPacket? {
        var packet = try reader.read(bytes, header, structure: structure)
        let startsKeyFrame = isVideo && packet.isEntryPoint
        let arrival = stream?.receive(
            sequenceNumber: header.sequenceNumber, timestamp: header.timestamp, size: bytes.count,
            origin: origin, startsKeyFrame: startsKeyFrame, head: packet.keyFrameHead, at: now)
        switch arrival {
        case .new(let index), .repaired(let index): packet.sequenceNumber = index
        case .duplicate, .tooOld, nil: return nil
        }
        // Numbers that leap would leap for viewers, too, whose roll-over counters do not follow just anywhere.
        let step = packet.sequenceNumber &- (history.newest ?? packet.sequenceNumber)
        if step > Int64(SequenceWindow.maximumDropout) {
            guard restarts.take(at: now) else { return nil }
            beginEpoch(at: now)
        }
        packet.captured =
            captured ?? clock.flatMap { stream?.captureTime(ofTimestamp: header.timestamp, by: $0) }
        if stream?.takeKeyFrameDemand() == true { demandKeyFrame(.loss, at: now) }
        return note(&packet, bytes, at: now) ? packet : nil
    }

    /// Takes a packet in that the server made itself; another SSRC means that its maker started anew.
    func receiveInjected(
        _ bytes: Span<UInt8>, captured: MonotonicTime?, at now: MonotonicTime
    ) throws(WireError) -> MediaPacket? {
        let header = try RTPHeader(parsing: bytes)
        guard ssrc == header.ssrc || restart(ssrc: header.ssrc, at: now) else { return nil }
        return try receive(bytes, header, origin: .original, clock: nil, captured: captured, at: now)
    }

    /// Takes a packet in that another worker received and checked.
    func receiveRelayed(_ relayed: RelayedPacket, _ bytes: Span<UInt8>, at now: MonotonicTime) -> MediaPacket?
    {
        if relayed.epoch != epoch {
            startAnew(in: relayed.epoch)
            // Where its past comes first, that is what is begun with.
            if relayed.past == nil { demandEntryPoint(at: now) }
        }
        guard let header = try? RTPHeader(parsing: bytes),
            var packet = try? reader.read(bytes, header, structure: structure)
        else { return nil }
        packet.sequenceNumber = relayed.sequenceNumber
        packet.captured = relayed.captured
        return note(&packet, bytes, at: now) ? packet : nil
    }

    /// Remembers what later packets, slots and NACKs need of this one.
    ///
    /// - Returns: whether it is in the history, out of which it is sent; not if it comes far too late.
    private func note(_ packet: inout MediaPacket, _ bytes: Span<UInt8>, at now: MonotonicTime) -> Bool {
        lastArrival = now
        rate.add(bytes.count, at: now)
        extendPictureID(of: &packet)
        if let attached = packet.dependency?.attachedStructure { structure = attached }
        if let size = packet.video?.resolution { resolution = size }
        let layers = LayerPlace(packet)
        if layers.tellsWhereToSwitch { lastSwitchingPoint = now }
        if spatial.note(packet, bytes, at: now) { track?.noteNewSizes() }
        if isVideo, packet.isEntryPoint {
            keyFrames.keyFrameArrived(at: now)
            demands.noteKeyFrame()
        }
        let isStored = history.store(
            bytes, 0..<bytes.count, sequenceNumber: packet.sequenceNumber,
            pictureID: packet.pictures.pictureID ?? 0, layers: layers.code, at: now)
        guard isVideo, isStored else { return isStored }
        let capacity = packet.isEntryPoint ? track?.cacheCapacity(of: self) ?? 0 : 0
        let keyFrameSize = cache.note(packet, size: bytes.count, in: &history, upTo: capacity, at: now)
        if let size = keyFrameCost.note(keyFrameSize, at: now) {
            keyFrames.measured(size, ofBitrate: rate.bitrate(at: now))
            cache.last(for: plan.answersKeyFrameRequests ? keyFrames.costInterval : GOPCache.maximumAge)
        }
        return true
    }

    private func extendPictureID(of packet: inout MediaPacket) {
        guard packet.descriptor.hasShortPictureID, let short = packet.pictures.pictureID else { return }
        packet.pictures.pictureID = pictureIDs.extend(short)
    }

    /// Reads a stored packet again, to be retransmitted or replayed: it gets no padding that it did not have before.
    func packet(at range: Range<Int>, sequenceNumber: Int64) -> ForwardedPacket? {
        let storage = history.storage
        let bytes = storage.span.extracting(range)
        guard let header = try? RTPHeader(parsing: bytes),
            var packet = try? reader.read(bytes, header, structure: structure)
        else { return nil }
        packet.sequenceNumber = sequenceNumber
        // As it was extended when it came: closest to the latest one now could be another.
        if packet.descriptor.hasShortPictureID {
            packet.pictures.pictureID = history.pictureID(of: sequenceNumber)
        }
        // As they were known then: by another structure of layers it would be another packet under the same number.
        let layers = LayerPlace(code: history.layers(of: sequenceNumber))
        var forwarded = ForwardedPacket(packet, layers: layers, at: .zero)
        forwarded.padding = history.pad(sequenceNumber, by: 0)
        forwarded.place = range.lowerBound..<(range.upperBound + forwarded.padding)
        return forwarded
    }

    /// Hot path: lets one packet wait to be sent to every slot on this layer.
    ///
    /// Below this line there is no `await`, no lock, no allocation and no log line, except where a slot begins.
    func forward(
        _ packet: MediaPacket, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) {
        if packet.isEntryPoint, !awaiting.isEmpty { admit(packet, at: now, into: &sink) }
        outgoing.note(marker: packet.header.marker, at: now)
        guard !slots.isEmpty else { return }
        if !isListed { fanOut.add(self) }
        isListed = true
        outgoing.append(
            ForwardedPacket(packet, at: now), size: packet.header.payloadRange.upperBound, at: now)
        if outgoing.isFull { sendWaiting(at: now, into: &sink) }
    }

    private func admit(
        _ packet: MediaPacket, at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable
    ) {
        // What came before belongs to those who were here before.
        sendWaiting(at: now, into: &sink)
        for slot in awaiting.takeAll() {
            slot.current?.sendWaiting(at: now, into: &sink)
            if slot.begin(self, with: ForwardedPacket(packet, at: now), at: now) { slots.append(slot) }
        }
        outgoing.hurry()
    }

    /// Sends what waits to every slot, without company.
    func sendWaiting(at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable) {
        guard beginSending() else { return }
        _ = send(hasCompany: false, round: fanOut.nextRound(), at: now, into: &sink)
        endSending()
    }

    /// Lets what waits leave; `send` and `endSending` have to follow.
    /// - Returns: whether there is anything.
    func beginSending() -> Bool { outgoing.begin(in: &history) }

    /// Sends what leaves to every slot that did not get it in this round, viewer by viewer.
    ///
    /// By indices: iterators allocate in a debug build, where it is tested that nothing does for a viewer.
    /// - Parameter hasCompany: whether other layers are about to send too: viewers of both get that right behind.
    /// - Returns: how many packets that were.
    func send(
        hasCompany: Bool, round: UInt64, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) -> Int {
        let storage = history.storage
        let leaving = outgoing.leaving
        let keyFrame = outgoing.leavingKeyFrame
        hints.update(for: slots.elements)
        let companion = hasCompany ? slots.first.flatMap(companion) : nil
        var sent = 0
        var index = 0
        while index < slots.count {
            let slot = slots[index]
            index += 1
            guard slot.round != round else { continue }
            slot.round = round
            hints.prefetch(after: index)
            companion?.hints.prefetchSlot(after: index)
            slot.send(leaving.span, of: self, keyFrame: keyFrame, from: storage.span, at: now, into: &sink)
            sent += leaving.count
            if hasCompany { sent += sendCompany(of: slot, round: round, at: now, into: &sink) }
        }
        return sent
    }

    func endSending() {
        outgoing.end()
    }

    /// Whether packets wait; asked once all that are due have left.
    func stayListed() -> Bool {
        isListed = !outgoing.isEmpty
        return isListed
    }

    // MARK: Reports

    func receiveSenderReport(_ report: SenderReport, at now: MonotonicTime) -> Bool {
        guard stream?.receive(report, at: now) == true else { return false }
        hasSenderReport = true
        return true
    }

    func reportBlock(at now: MonotonicTime) -> ReportBlock? {
        stream?.reportBlock(at: now)
    }

    func takeLoss() -> ReceiveStream.LossInterval? {
        stream?.takeLoss()
    }

    /// When `appendFeedback` has something to say.
    var feedbackDeadline: MonotonicTime {
        min(keyFrames.deadline ?? .distantFuture, stream?.deadline ?? .distantFuture)
    }

    /// The NACKs and the key-frame request that are due.
    /// - Returns: what the request is for; nil without one.
    func appendFeedback(
        from sender: UInt32, rtt: Duration?, at now: MonotonicTime, to packets: inout [RTCPPacket]
    ) -> KeyFrameRequester.Occasion? {
        guard let ssrc else { return nil }
        var lost: [UInt16] = []
        stream?.nacksDue(at: now, rtt: rtt, into: &lost)
        if !lost.isEmpty {
            repairsRequested &+= UInt64(lost.count)
            packets.append(
                .nack(NegativeAcknowledgement(senderSSRC: sender, mediaSSRC: ssrc, lost: lost)))
        }
        if stream?.takeKeyFrameDemand() == true { demandKeyFrame(.loss, at: now) }
        guard let request = keyFrames.requestDue(at: now, rtt: rtt) else { return nil }
        packets.append(request.packet(senderSSRC: sender, mediaSSRC: ssrc))
        return keyFrames.occasion
    }
}
