import Base
import Peer
import Wire

/// One published audio or video source, and its viewers on this worker.
///
/// On its publisher's worker it is the original. On other workers with viewers it is a copy with a history of its
/// own, so that retransmissions need not cross.
package final class Track {
    let key: TrackKey
    /// The negotiated m-line of the publisher.
    package let plan: SourcePlan
    private let reader: PacketReader
    /// Nil once the publisher is gone, while slots still refer to the track.
    private weak var owner: (any TrackOwner)?
    /// In order of their first packets; renditions are stored separately.
    package private(set) var layers: [TrackLayer] = []
    /// Slots that carry this track, or will as soon as there is something to send.
    private var subscribers = PlacedList(\Slot.subscribedPlace)
    private var receivers = RelayReceivers()
    private var nextRetarget = MonotonicTime.zero
    /// Whether the spatial layers of its only encoding have changed since slots were last pointed at layers.
    private var hasNewSizes = false
    /// In the original: the layers that the publisher need not send.
    private var needs = LayerNeeds()
    private var nextTakenNotice = MonotonicTime.zero
    private var nextCall = MonotonicTime.zero
    /// Packets of the past that arrived until then are ignored.
    private var forgotten = MonotonicTime.zero
    /// Taps of other parts of the server.
    private(set) var taps: [TrackTap] = []
    private let fanOut: FanOut
    /// The layers that the server makes of it, while it does.
    private var renditions: [RenditionLayer: TrackLayer] = [:]
    private weak var renditionMaker: (any TrackOwner)?
    /// First epoch of the next rendition, by which other workers distinguish it from the last one.
    private var renditionEpoch = 0
    private var nextNeed = MonotonicTime.zero

    /// Maximum number of simulcast layers.
    static let layerLimit = 4
    static let tapLimit = 16
    /// Maximum size of the cached packets sent to a new copy, in bytes: a quarter of an inbox.
    private static let backfillLimit = RelayExchange.capacity / 4
    private static let retargetInterval = Duration.milliseconds(250)
    /// The same while a layer that rested is being called back.
    private static let callInterval = Duration.milliseconds(20)
    private static let needInterval = Duration.milliseconds(100)

    init(
        key: TrackKey, plan: SourcePlan, reader: PacketReader, owner: (any TrackOwner)?, fanOut: FanOut
    ) {
        self.key = key
        self.fanOut = fanOut
        self.plan = plan
        self.reader = reader
        self.owner = owner
    }

    package var kind: MediaKind { plan.kind }

    /// The publishing session; nil for a copy, and for media that the server makes.
    var publisher: Session? { owner as? Session }

    // MARK: Layers

    /// The layer named `rid`, created on first use; nil beyond the limit.
    func layer(rid: String?, at now: MonotonicTime) -> TrackLayer? {
        layers.first { $0.rid == rid } ?? addLayer(rid: rid, at: now)
    }

    private func addLayer(rid: String?, retargets: Bool = true, at now: MonotonicTime) -> TrackLayer? {
        guard layers.count < Self.layerLimit else { return nil }
        let layer = TrackLayer(
            index: layers.count, rid: rid, plan: plan, reader: reader, track: self, fanOut: fanOut)
        layers.append(layer)
        if retargets { retarget(at: now) }
        return layer
    }

    /// Size to which the history of `layer` may grow, in bytes, so that all layers together stay within the limit.
    func cacheCapacity(of layer: TrackLayer) -> Int {
        var others = 0
        for other in layers + allRenditions where other !== layer { others += other.history.storage.count }
        return max(GOPCache.maximumBytes - others, 0)
    }

    /// Forgets cached pictures; new viewers begin with the next key frame.
    package func flush(at now: MonotonicTime) {
        for layer in layers + allRenditions { layer.flush(at: now) }
        forget(before: now)
    }

    /// Ignores packets from before a time that are still on their way from another worker.
    func forget(before time: MonotonicTime?) {
        if let time { forgotten = max(forgotten, time) }
    }

    /// Stops keeping the copy; the next viewer begins with what the publisher's worker has cached by then.
    func forgetLayers(at now: MonotonicTime) {
        guard subscribers.isEmpty, (layers + allRenditions).allSatisfy(\.slots.isEmpty) else {
            return flush(at: now)
        }
        layers.removeAll()
        renditions.removeAll()
    }

    func keyFrameDemanded(of layer: Int, for reason: KeyFrameRequester.Reason, at now: MonotonicTime) {
        let source = RenditionLayer(index: layer) == nil ? owner : renditionMaker ?? owner
        source?.keyFrameDemanded(of: layer, of: key.track, for: reason, at: now)
    }

    /// Passes on a key-frame demand from another worker.
    func demandKeyFrame(of layer: Int, for reason: KeyFrameRequester.Reason, at now: MonotonicTime) {
        let meant =
            RenditionLayer(index: layer).map { renditions[$0] }
            ?? (layers.indices.contains(layer) ? layers[layer] : nil)
        meant?.demandKeyFrame(reason, at: now)
    }

    // MARK: Renditions

    /// Whether the server may make renditions of it, because the publisher sends one size.
    private var mayHaveRendition: Bool { kind == .video && plan.rids.isEmpty }

    private var allRenditions: [TrackLayer] {
        renditions.isEmpty ? [] : RenditionLayer.allCases.compactMap { renditions[$0] }
    }

    /// Registers the maker of renditions.
    /// - Returns: whether it is accepted: only one is, and only for video without simulcast.
    func beginRenditions(by maker: any TrackOwner) -> Bool {
        guard mayHaveRendition, renditionMaker == nil else { return false }
        renditionMaker = maker
        return true
    }

    /// Ends the renditions; slots that were sent one receive nothing until they are given another layer.
    func endRenditions() {
        renditionMaker = nil
        for layer in allRenditions {
            renditionEpoch = max(renditionEpoch, layer.epoch &+ 1)
            layer.end()
        }
        renditions.removeAll()
    }

    /// The layer of a rendition, created on first use; nil if `maker` does not make it.
    func layer(_ rendition: RenditionLayer, by maker: any TrackOwner) -> TrackLayer? {
        renditionMaker === maker ? layer(rendition) : nil
    }

    private func layer(_ rendition: RenditionLayer) -> TrackLayer {
        if let known = renditions[rendition] { return known }
        let plan = RenditionLayer.plan
        let layer = TrackLayer(
            index: rendition.index, rid: nil, rendition: rendition, epoch: renditionEpoch, plan: plan,
            reader: PacketReader(formats: plan.formats, ids: ExtensionIDs()), track: self, fanOut: fanOut)
        renditions[rendition] = layer
        return layer
    }

    /// The renditions that a slot can get now, the lowest first.
    func renditions(for slot: Slot, at now: MonotonicTime) -> [TrackLayer] {
        guard !renditions.isEmpty, slot.plan.format(for: RenditionLayer.format.codec) != nil else {
            return []
        }
        return allRenditions.filter { $0.isActive(at: now) }
    }

    /// Requests a rendition, because a viewer's path cannot carry the publisher's encoding.
    func needRendition(for slot: Slot, at now: MonotonicTime) {
        guard slot.plan.format(for: RenditionLayer.format.codec) != nil else { return }
        needRendition(at: now)
    }

    /// The same, also for viewers of another worker.
    func needRendition(at now: MonotonicTime) {
        guard mayHaveRendition, now >= nextNeed else { return }
        nextNeed = now + Self.needInterval
        owner?.renditionNeeded(of: key.track, at: now)
    }

    // MARK: Slots

    func attach(_ slot: Slot, at now: MonotonicTime) {
        subscribers.append(slot)
        aim(slot, at: bestLayer(for: slot, at: now), now)
    }

    /// Points a slot at the best layer again, because its choice has changed.
    func retarget(_ slot: Slot, at now: MonotonicTime) {
        aim(slot, at: bestLayer(for: slot, at: now), now)
    }

    /// Removes a slot, which may go on with its present layer until its next source begins.
    func removeSubscriber(_ slot: Slot) {
        subscribers.remove(slot)
    }

    /// Notes that the choice of spatial layers has changed.
    func noteNewSizes() {
        hasNewSizes = true
    }

    /// Adapts to simulcast and spatial layers that began or ended, a few times a second.
    func retargetIfDue(at now: MonotonicTime) {
        guard layers.count > 1 || hasNewSizes, now >= nextRetarget else { return }
        nextRetarget = now + Self.retargetInterval
        hasNewSizes = false
        retarget(at: now)
        guard now >= nextTakenNotice else { return }
        nextTakenNotice = now + LayerNeeds.interval
        notifyTaken(at: now)
    }

    // MARK: Layers that rest

    /// Reports the layers that slots and taps on this worker use.
    private func notifyTaken(at now: MonotonicTime) {
        guard kind == .video, !plan.rids.isEmpty else { return }
        var taken = LayerSet()
        for layer in layers where layer.isTaken || taps.contains(where: { $0.takes(layer) }) {
            taken.insert(LayerSet(layer.index))
        }
        owner?.layersTaken(taken, of: key.track, at: now)
    }

    /// Notes that some worker uses these layers of the original, and lets others rest or calls them back.
    func noteTaken(_ taken: LayerSet, at now: MonotonicTime) {
        needs.note(taken, at: now)
        let isLess: (TrackLayer, TrackLayer) -> Bool = { $0.isLess(than: $1, at: now) }
        guard layers.count > 1, let least = layers.min(by: isLess) else { return }
        var sent = LayerSet()
        for layer in layers where layer.isActive(at: now) { sent.insert(LayerSet(layer.index)) }
        guard needs.advance(sent: sent, least: least.index, at: now) else { return }
        for layer in layers {
            let isResting = needs.resting.contains(LayerSet(layer.index))
            guard isResting != (layer.rest.memory != nil) else { continue }
            layer.setRest(
                isResting
                    ? LayerRest.Memory(bitrate: layer.bitrate(at: now), resolution: layer.resolution) : nil,
                at: now)
        }
        owner?.restsChanged(of: self, at: now)
    }

    /// RIDs of the layers that the publisher has to send.
    var wantedRIDs: [String] {
        plan.rids.filter { rid in !layers.contains { $0.rid == rid && $0.rest.memory != nil } }
    }

    /// The properties of resting layers by index, for other workers; nil for those that do not rest.
    var rests: [LayerRest.Memory?] { layers.map(\.rest.memory) }

    /// Updates a copy by which layers of the original rest.
    func setRests(_ rests: [LayerRest.Memory?], at now: MonotonicTime) {
        for (index, rest) in rests.prefix(Self.layerLimit).enumerated() {
            while layers.count <= index {
                guard addLayer(rid: nil, retargets: false, at: now) != nil else { return }
            }
            layers[index].setRest(rest, at: now)
        }
        retarget(at: now)
    }

    /// The layer to send in place of one that may rest, which is called back meanwhile.
    private func present(_ layer: TrackLayer, at now: MonotonicTime) -> TrackLayer? {
        guard !layer.isActive(at: now), layers.count > 1 else { return layer }
        if layer.rest.memory != nil, now >= nextCall {
            nextCall = now + Self.callInterval
            owner?.layersTaken(LayerSet(layer.index), of: key.track, at: now)
        }
        nextRetarget = min(nextRetarget, now + Self.callInterval)
        let isLess: (TrackLayer, TrackLayer) -> Bool = { $0.isLess(than: $1, at: now) }
        let sent = layers.filter { $0.isActive(at: now) }
        return sent.filter { isLess($0, layer) }.max(by: isLess) ?? sent.min(by: isLess)
    }

    /// Points every slot and tap at the best layer that it may get.
    private func retarget(at now: MonotonicTime) {
        guard !subscribers.isEmpty || !taps.isEmpty else { return }
        let active = availableLayers(at: now)
        for slot in subscribers.elements {
            aim(slot, at: Self.best(of: active, slot.choice, at: now), now)
        }
        for tap in taps { aim(tap, among: active, at: now) }
    }

    /// The layers that a slot may get, the best last.
    func choices(for slot: Slot, at now: MonotonicTime) -> [TrackLayer] {
        let active = availableLayers(at: now)
        let choice = slot.choice
        guard active.count > 1, let best = Self.best(of: active, choice, at: now) else { return active }
        guard !choice.isOnlyBest else { return [best] }
        let isLess: (TrackLayer, TrackLayer) -> Bool = { $0.isLess(than: $1, at: now) }
        return active.filter { $0 === best || isLess($0, best) }.sorted(by: isLess)
    }

    private func bestLayer(for slot: Slot, at now: MonotonicTime) -> TrackLayer? {
        Self.best(of: availableLayers(at: now), slot.choice, at: now)
    }

    /// The layers that are being received, and those that would be on request.
    private func availableLayers(at now: MonotonicTime) -> [TrackLayer] {
        layers.count > 1 ? layers.filter { $0.isAvailable(at: now) } : layers
    }

    /// The best layer within the allowed height; if all are higher, the lowest.
    private static func best(
        of layers: [TrackLayer], _ choice: LayerChoice, at now: MonotonicTime
    ) -> TrackLayer? {
        guard layers.count > 1 else { return layers.first }
        let isLess: (TrackLayer, TrackLayer) -> Bool = { $0.isLess(than: $1, at: now) }
        guard !choice.isLeast else { return layers.min(by: isLess) }
        guard let maximum = choice.maximumHeight else { return layers.max(by: isLess) }
        // The shorter side counts, so that a rotated picture is treated like an upright one.
        let fitting = layers.filter { layer in
            layer.resolution.map { Int(min($0.width, $0.height)) <= maximum } ?? false
        }
        return fitting.max(by: isLess) ?? layers.min(by: isLess)
    }

    private func aim(_ slot: Slot, at best: TrackLayer?, _ now: MonotonicTime) {
        guard slot.plan.kind == .audio || slot.session.sendsPictures && slot.grant != .nothing else {
            return slot.stop()
        }
        var layer = best
        switch slot.grant {
        case .best, .nothing, .spatial: break
        case .layer(let index), .thinned(let index):
            if let rendition = RenditionLayer(index: index) {
                // The publisher's encoding is too much for a viewer with this grant.
                guard let made = renditions[rendition], made.isActive(at: now) else { return slot.stop() }
                if slot.current?.rendition == nil, slot.awaited !== made { slot.stop() }
                layer = made
            } else if layers.indices.contains(index), layers[index].isAvailable(at: now) {
                layer = layers[index]
            }
        }
        slot.adjustSieve(at: now)
        guard let layer = layer.flatMap({ $0.rendition == nil ? present($0, at: now) : $0 }),
            slot.awaited !== layer
        else { return }
        slot.awaited?.stopAwaiting(slot)
        slot.awaited = nil
        guard slot.current !== layer || slot.isStopped else { return }
        slot.awaited = layer
        layer.await(slot, at: now)
        if slot.awaited === layer, slot.hasTooMuch(instead: layer, at: now) { slot.hold() }
    }

    // MARK: Taps

    func open(_ tap: TrackTap, at now: MonotonicTime) {
        taps.append(tap)
        aim(tap, among: availableLayers(at: now), at: now)
        dropFinishedTaps()
    }

    func limitTap(_ id: TapID, to maximumHeight: Int?, at now: MonotonicTime) {
        guard let tap = taps.first(where: { $0.id == id }) else { return }
        tap.maximumHeight = maximumHeight
        aim(tap, among: availableLayers(at: now), at: now)
    }

    func closeTap(_ id: TapID) {
        taps.first { $0.id == id }?.finish()
        dropFinishedTaps()
    }

    /// Ends all taps, because the track has ended.
    func closeTaps() {
        for tap in taps { tap.finish() }
        taps.removeAll()
    }

    private func aim(_ tap: TrackTap, among layers: [TrackLayer], at now: MonotonicTime) {
        // A single picture, or a tap alongside, is not worth extra effort by the publisher.
        let choices = tap.isDemanding || layers.count < 2 ? layers : layers.filter { $0.isActive(at: now) }
        guard let best = Self.best(of: choices, LayerChoice(maximumHeight: tap.maximumHeight), at: now),
            let layer = present(best, at: now)
        else { return }
        // A file keeps the size that it begins with, so a new tap waits for its best layer.
        guard layer === best || tap.current != nil else { return }
        tap.aim(at: layer, at: now)
    }

    /// Hot path: passes a stored packet to the track's taps; most tracks have none.
    @inline(__always)
    func tap(_ packet: MediaPacket, _ bytes: Span<UInt8>, of layer: TrackLayer, at now: MonotonicTime) {
        guard !taps.isEmpty else { return }
        show(packet, bytes, of: layer, at: now)
    }

    private func show(
        _ packet: MediaPacket, _ bytes: Span<UInt8>, of layer: TrackLayer, at now: MonotonicTime
    ) {
        for tap in taps { tap.note(packet, bytes, of: layer, at: now) }
        dropFinishedTaps()
    }

    private func dropFinishedTaps() {
        guard taps.contains(where: \.isFinished) else { return }
        taps.removeAll { $0.isFinished }
    }

    // MARK: Other workers

    /// Sets the workers that have viewers of the track's programme.
    func relayTo(_ workers: Set<Int>) { receivers.setProgramme(workers) }

    /// Notes whether another worker has slots to which control attached the track.
    func setSubscribed(_ isSubscribed: Bool, by worker: Int) {
        receivers.setSubscribed(isSubscribed, by: worker)
    }

    /// Whether another worker keeps a copy.
    func isRelayed(to worker: Int) -> Bool { receivers.all.contains(worker) }

    /// Sends a worker that begins to keep a copy the pictures with which the next viewer here would begin.
    func backfill(_ worker: Int, over links: WorkerLinks?, at now: MonotonicTime) {
        guard let links, kind == .video else { return }
        if rests.contains(where: { $0 != nil }) { links.tell(.rest(key.track, rests), to: worker) }
        var groups = layers.compactMap { layer in layer.group(at: now).map { (layer, $0) } }
        var size = groups.reduce(0) { $0 + $1.1.bytes }
        // A missing group costs one key frame; a full inbox would lose the packets after it too.
        while size > Self.backfillLimit,
            let largest = groups.indices.max(by: { groups[$0].1.bytes < groups[$1].1.bytes })
        {
            size -= groups.remove(at: largest).1.bytes
        }
        for (index, (layer, group)) in groups.enumerated() {
            layer.relayPast(group.range, isLast: index == groups.count - 1, to: worker, over: links)
        }
    }

    /// Reports the resting layers to the other workers that have a copy.
    func relayRests(over links: WorkerLinks?) {
        for worker in receivers.all { links?.tell(.rest(key.track, rests), to: worker) }
    }

    /// Sends a packet to the other workers that have a copy, once each.
    func relay(_ packet: MediaPacket, _ bytes: Span<UInt8>, of layer: TrackLayer, over links: WorkerLinks?) {
        guard let links, !receivers.all.isEmpty else { return }
        let relayed = RelayedPacket(
            track: key.track, layer: layer.index, epoch: layer.epoch, sequenceNumber: packet.sequenceNumber,
            captured: packet.captured)
        for worker in receivers.all { links.relay(relayed, bytes, to: worker) }
    }

    /// Accepts a packet that another worker received.
    func receiveRelayed(
        _ relayed: RelayedPacket, _ bytes: Span<UInt8>, at now: MonotonicTime,
        into sink: inout some DatagramSink & ~Copyable
    ) {
        if let rendition = RenditionLayer(index: relayed.layer) {
            let layer = layer(rendition)
            guard let packet = layer.receiveRelayed(relayed, bytes, at: now) else { return }
            return layer.forward(packet, at: now, into: &sink)
        }
        while layers.count <= relayed.layer {
            // A slot that awaits a layer whose past is on its way need not request a key frame.
            guard addLayer(rid: nil, retargets: relayed.past == nil, at: now) != nil else { return }
        }
        let layer = layers[relayed.layer]
        if let past = relayed.past {
            if past.arrival > forgotten { _ = layer.receiveRelayed(relayed, bytes, at: past.arrival) }
            if past.isLast { retarget(at: now) }
            return
        }
        guard let packet = layer.receiveRelayed(relayed, bytes, at: now) else { return }
        layer.forward(packet, at: now, into: &sink)
        retargetIfDue(at: now)
    }
}

extension TrackLayer {
    /// Whether its picture is worse: smaller if sizes are known, otherwise with a lower bit rate.
    fileprivate func isLess(than other: TrackLayer, at now: MonotonicTime) -> Bool {
        if let small = resolution?.height, let large = other.resolution?.height, small != large {
            return small < large
        }
        return bitrate(at: now) < other.bitrate(at: now)
    }
}
