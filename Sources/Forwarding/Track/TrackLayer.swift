import Base
import Peer
import Wire

/// One encoding of a track: a simulcast layer, a rendition, or the whole track without simulcast.
///
/// It has the history that all slots' retransmissions come from, and the slots that are being sent this layer.
package final class TrackLayer {
    /// Index among the track's layers.
    let index: Int
    /// The RID of a simulcast layer; nil for a single layer, and on workers that the track is relayed to.
    package let rid: String?
    /// Set for a layer that the server makes; nil for one that the publisher sends.
    package let rendition: RenditionLayer?
    package let reader: PacketReader
    let plan: SourcePlan
    private(set) weak var track: Track?
    /// Counts restarts of the source; packets sent in an earlier epoch are never read from this history.
    private(set) var epoch: Int
    /// Reception state; nil until the first packet, and on workers that the track is relayed to.
    package private(set) var stream: ReceiveStream?
    package private(set) var history: PacketHistory
    /// The place in the history where a new viewer begins.
    private(set) var cache = GOPCache()
    package private(set) var keyFrames: KeyFrameRequester
    /// Size of the latest key frame that contained one, in pixels.
    package private(set) var resolution: VideoResolution?
    /// When the latest packet arrived; nil before the first.
    package private(set) var lastArrival: MonotonicTime?
    private(set) var rest = LayerRest()
    /// Spatial layers of VP9, and of AV1 with dependency descriptors; empty for other sources.
    var spatial = SpatialLayers()
    /// When a packet last marked where temporal layers may be resumed.
    private var lastSwitchingPoint: MonotonicTime?
    private var rate = RateMeter()
    private var keyFrameCost = KeyFrameCost()
    /// Limits the key-frame demands that are passed on to the track's owner.
    private var demands = DemandGate()
    private var restarts = RestartBudget()
    /// Whether a sender report has related the sender's timestamps to its clock.
    private(set) var hasSenderReport = false
    /// From the latest key frame with a dependency descriptor.
    private var structure: DependencyStructure?
    private var pictureIDs = PictureIDExtender()
    /// Packets that the publisher was asked to send again.
    private(set) var repairsRequested: UInt64 = 0
    /// Slots that this layer is being sent to.
    private(set) var slots = PlacedList(\Slot.place) { didSet { hints.invalidate() } }
    private var hints = SlotHints()
    /// Slots that change to this layer at its next entry point, which have it in `awaited`.
    private var awaiting = PlacedList(\Slot.awaitedPlace)
    /// Packets to be forwarded; see `FanOut`.
    private(set) var outgoing: OutgoingQueue
    /// Whether `fanOut` has this layer in its list.
    private var isListed = false
    private let fanOut: FanOut

    /// - Parameter epoch: the first epoch.
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
        // Video: a second at 8 Mbit/s, beside the cached group. Audio: a second of Opus at its highest rate.
        history =
            plan.kind == .video
            ? PacketHistory(maximumCapacity: 1 << 20, maximumPackets: 4_096)
            : PacketHistory(maximumCapacity: 1 << 16, maximumPackets: 128)
    }

    /// The SSRC of the media packets; nil before the first.
    package var ssrc: UInt32? { stream?.ssrc }

    package var isVideo: Bool { plan.kind == .video }

    /// Whether packets arrived recently; a layer that the sender has switched off is not active.
    package func isActive(at now: MonotonicTime) -> Bool {
        guard let lastArrival else { return false }
        return now < lastArrival + (rendition?.silence ?? .seconds(1))
    }

    /// Whether it can be sent: it is active, or its publisher only waits for a request.
    func isAvailable(at now: MonotonicTime) -> Bool {
        isActive(at: now) || rest.bitrate(isSent: false, at: now) != nil
    }

    /// Bit rate in bits a second over about the last second; the earlier one for a layer that rests or was just
    /// called back.
    package func bitrate(at now: MonotonicTime) -> Int {
        max(rate.bitrate(at: now), rest.bitrate(isSent: isActive(at: now), at: now) ?? 0)
    }

    /// Lets the layer rest, or with nil calls it back.
    /// - Parameter memory: its properties before the rest, also for a copy on another worker.
    func setRest(_ memory: LayerRest.Memory?, at now: MonotonicTime) {
        guard let memory else { return rest.callBack(isSent: isActive(at: now), at: now) }
        rest.begin(memory, at: now)
        resolution = resolution ?? memory.resolution
    }

    /// Whether any slot is sent it or awaits it.
    var isTaken: Bool { !slots.isEmpty || !awaiting.isEmpty }

    /// Whether it is the only encoding that the publisher sends.
    var isOnly: Bool { rendition == nil && track?.layers.count == 1 }

    /// Whether it has temporal layers that can be dropped and resumed later.
    func tellsWhereToSwitch(at now: MonotonicTime) -> Bool {
        guard let lastSwitchingPoint else { return false }
        return now.nanoseconds(since: lastSwitchingPoint) < 2_000_000_000
    }

    /// Restarts the layer under another SSRC: sequence numbers of stored packets are no longer valid.
    ///
    /// - Returns: whether it did; false if it restarted too often recently.
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

    /// Drops cached pictures, and replays of them, so that no viewer begins with them any more.
    package func flush(at now: MonotonicTime) {
        cache.flush(&history, at: now)
        let replaying = slots.elements.filter(\.isReplaying)
        guard !replaying.isEmpty else { return }
        for slot in replaying { letWait(slot) }
        demandKeyFrame(.beginning, at: now)
    }

    /// Stops `slot`, which was sent this layer, and lets it await the next entry point, unless it awaits another layer.
    ///
    /// If it were only removed, it would still be sent live packets behind those of another slot of its session, and a
    /// slot that is pointed back at this layer would be taken for one that is sent it.
    private func letWait(_ slot: Slot) {
        slot.hold()
        guard slot.awaited == nil else { return }
        slot.awaited = self
        awaiting.append(slot)
    }

    /// Ends the layer: slots stop awaiting it, and those that were sent it get nothing until they are given another
    /// layer.
    func end() {
        outgoing.removeWaiting()
        for slot in awaiting.takeAll() where slot.awaited === self { slot.awaited = nil }
        for slot in slots.elements {
            if slot.awaited == nil { slot.stop() } else { slot.hold() }
        }
    }

    // MARK: Slots

    /// Changes `slot` to this layer: immediately if the cache has a group for it, otherwise at the next entry point,
    /// for which a key frame is requested.
    func await(_ slot: Slot, at now: MonotonicTime) {
        guard !awaiting.contains(slot), isWorthWaiting(for: slot, at: now) || !replay(to: slot, at: now)
        else { return }
        awaiting.append(slot)
        // Another trial of pictures that failed is not urgent; a viewer who still gets too much awaits a smaller
        // layer, which is.
        let isTrial = slot.isStopped && slot.session.hasFailed(at: now)
        demandKeyFrame(isTrial ? .repetition : .beginning, at: now)
    }

    /// Begins a replay of the cached group to `slot`, if that is useful to it.
    func replay(to slot: Slot, at now: MonotonicTime) -> Bool {
        // A rendition's key frame costs less than a replay would take of a path that has little room.
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

    /// Whether a slot shows another track; its viewer prefers an old picture of this one to none.
    private func isOther(_ slot: Slot) -> Bool { slot.current?.track !== track }

    /// Notes that a viewer has just been sent a part of the cached group.
    func noteReplay(at now: MonotonicTime) {
        cache.noteReplay(at: now)
    }

    /// Ends a replay that can no longer go on; `slot` gets nothing until the next entry point.
    func abandonReplay(to slot: Slot, at now: MonotonicTime) {
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

    /// Accepts a decrypted packet: statistics and history.
    ///
    /// - Parameter clock: the publisher's, for the capture time; nil until it is known for all of its tracks.
    /// - Returns: the packet to forward; nil for a duplicate or a packet that is far too late.
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
        // A jump in numbers would reach viewers, whose roll-over counters do not follow every jump.
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

    /// Accepts a packet that the server made; another SSRC means that its producer restarted.
    func receiveInjected(
        _ bytes: Span<UInt8>, captured: MonotonicTime?, at now: MonotonicTime
    ) throws(WireError) -> MediaPacket? {
        let header = try RTPHeader(parsing: bytes)
        guard ssrc == header.ssrc || restart(ssrc: header.ssrc, at: now) else { return nil }
        return try receive(bytes, header, origin: .original, clock: nil, captured: captured, at: now)
    }

    /// Accepts a packet that another worker received and checked.
    func receiveRelayed(_ relayed: RelayedPacket, _ bytes: Span<UInt8>, at now: MonotonicTime) -> MediaPacket?
    {
        if relayed.epoch != epoch {
            startAnew(in: relayed.epoch)
            // If packets of the past come first, viewers begin with those.
            if relayed.past == nil { demandEntryPoint(at: now) }
        }
        guard let header = try? RTPHeader(parsing: bytes),
            var packet = try? reader.read(bytes, header, structure: structure)
        else { return nil }
        packet.sequenceNumber = relayed.sequenceNumber
        packet.captured = relayed.captured
        return note(&packet, bytes, at: now) ? packet : nil
    }

    /// Stores a packet, and what later packets, slots and NACKs need of it.
    ///
    /// - Returns: whether it is in the history, from which it is sent; false if it is far too late.
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
            // One that comes late, by a retransmission, may be older than a loss.
            let precedesLoss = stream?.hasLoss(after: packet.sequenceNumber) ?? false
            keyFrames.keyFrameArrived(precedesLoss: precedesLoss, at: now)
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

    /// Parses a stored packet again for retransmission or replay; its padding stays as it was first sent.
    func packet(at range: Range<Int>, sequenceNumber: Int64) -> ForwardedPacket? {
        let storage = history.storage
        let bytes = storage.span.extracting(range)
        guard let header = try? RTPHeader(parsing: bytes),
            var packet = try? reader.read(bytes, header, structure: structure)
        else { return nil }
        packet.sequenceNumber = sequenceNumber
        // The extended ID from its arrival is used, because extending it by the latest one now could give another.
        if packet.descriptor.hasShortPictureID {
            packet.pictures.pictureID = history.pictureID(of: sequenceNumber)
        }
        // The layers from its arrival are used: with another structure it would be a different packet under the same
        // number.
        let layers = LayerPlace(code: history.layers(of: sequenceNumber))
        var forwarded = ForwardedPacket(packet, layers: layers, at: .zero)
        forwarded.padding = history.pad(sequenceNumber, by: 0)
        forwarded.place = range.lowerBound..<(range.upperBound + forwarded.padding)
        return forwarded
    }

    /// Hot path: queues one packet for every slot on this layer.
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
        // Earlier packets are sent only to the slots that were here before.
        sendWaiting(at: now, into: &sink)
        for slot in awaiting.takeAll() {
            slot.current?.sendWaiting(at: now, into: &sink)
            if slot.begin(self, with: ForwardedPacket(packet, at: now), at: now) { slots.append(slot) }
        }
        outgoing.hurry()
    }

    /// Sends waiting packets to every slot, without those of other layers.
    func sendWaiting(at now: MonotonicTime, into sink: inout some DatagramSink & ~Copyable) {
        guard beginSending() else { return }
        _ = send(hasCompany: false, round: fanOut.nextRound(), at: now, into: &sink)
        endSending()
    }

    /// Begins sending waiting packets; `send` and `endSending` must follow.
    /// - Returns: whether there are any packets.
    func beginSending() -> Bool { outgoing.begin(in: &history) }

    /// Sends outgoing packets to every slot that was not served in this round, viewer by viewer.
    ///
    /// It uses indices because iterators allocate in debug builds, where tests check that nothing is allocated per
    /// viewer.
    /// - Parameter hasCompany: whether other layers are about to be sent too; viewers of both get their packets
    ///   directly behind.
    /// - Returns: number of packets sent.
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

    /// Whether a packet waits to be sent for the first time.
    func isWaiting(_ sequenceNumber: Int64) -> Bool { outgoing.isWaiting(sequenceNumber) }

    /// Whether packets wait; called after all that are due have been sent.
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

    /// When `appendFeedback` has to run next.
    var feedbackDeadline: MonotonicTime {
        min(keyFrames.deadline ?? .distantFuture, stream?.deadline ?? .distantFuture)
    }

    /// Appends the NACKs and the key-frame request that are due.
    /// - Returns: the reason for the key-frame request; nil without one.
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
