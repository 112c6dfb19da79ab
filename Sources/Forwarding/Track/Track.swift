import Base
import Peer
import Wire

/// One published audio or video source, and who watches it on this worker.
///
/// On the worker of its publisher it is the original; on others that have viewers it is a copy, with a history of its
/// own, so that retransmissions need not cross.
package final class Track {
    let key: TrackKey
    package let plan: SourcePlan
    private let reader: PacketReader
    /// Gone while slots still hold on to what the publisher sent.
    private weak var owner: (any TrackOwner)?
    package private(set) var layers: [TrackLayer] = []
    /// Slots that carry this track or shall do so as soon as there is something to send.
    private var subscribers = PlacedList(\Slot.subscribedPlace)
    /// Other workers that get each packet once: those with viewers of its programme, and with slots of a stage.
    private var relays: [Int] = []
    private var programmeWorkers: Set<Int> = []
    private var subscribedWorkers: Set<Int> = []
    private var nextRetarget = MonotonicTime.zero
    /// Whether the spatial layers of its only picture are others than when slots were last pointed at theirs.
    private var hasNewSizes = false
    /// Of the original: what the publisher may let rest.
    private var needs = LayerNeeds()
    private var nextTakenNotice = MonotonicTime.zero
    private var nextCall = MonotonicTime.zero
    /// Packets of the past that came until then are not taken.
    private var forgotten = MonotonicTime.zero
    /// Whoever inside the server wants the packets.
    private(set) var taps: [TrackTap] = []
    private let fanOut: FanOut
    /// What the server makes of it itself, while it does.
    private var renditions: [RenditionLayer: TrackLayer] = [:]
    private weak var renditionMaker: (any TrackOwner)?
    /// What the next rendition begins to count with: other workers tell it by that from the one before.
    private var renditionEpoch = 0
    private var nextNeed = MonotonicTime.zero

    /// Simulcast layers beyond this are not accepted.
    static let layerLimit = 4
    static let tapLimit = 16
    /// In bytes: a quarter of what an inbox takes.
    private static let backfillLimit = RelayExchange.capacity / 4
    private static let retargetInterval = Duration.milliseconds(250)
    /// The same while a layer that rested is on its way.
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

    /// The session that sends it; nil for a copy, and for what the server makes itself.
    var publisher: Session? { owner as? Session }

    // MARK: Layers

    /// The layer named `rid`, made on first sight; nil beyond the limit.
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

    /// Bytes that the history of `layer` may grow to, so that all layers together keep to the limit.
    func cacheCapacity(of layer: TrackLayer) -> Int {
        var others = 0
        for other in layers + allRenditions where other !== layer { others += other.history.storage.count }
        return max(GOPCache.maximumBytes - others, 0)
    }

    /// Forgets the pictures of the past; whoever comes now begins with the next key frame.
    package func flush(at now: MonotonicTime) {
        for layer in layers + allRenditions { layer.flush(at: now) }
        forget(before: now)
    }

    /// What came before is not taken either when it is still on its way from another worker.
    func forget(before time: MonotonicTime?) {
        if let time { forgotten = max(forgotten, time) }
    }

    /// The copy is not kept up any more: who comes next gets what its worker has by then, and asks for nothing before.
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

    /// Passes on that a viewer of another worker cannot go on, or begin.
    func demandKeyFrame(of layer: Int, for reason: KeyFrameRequester.Reason, at now: MonotonicTime) {
        let meant =
            RenditionLayer(index: layer).map { renditions[$0] }
            ?? (layers.indices.contains(layer) ? layers[layer] : nil)
        meant?.demandKeyFrame(reason, at: now)
    }

    // MARK: Renditions

    /// Whether the server may make smaller pictures of it: the publisher sends one size.
    private var mayHaveRendition: Bool { kind == .video && plan.rids.isEmpty }

    private var allRenditions: [TrackLayer] {
        renditions.isEmpty ? [] : RenditionLayer.allCases.compactMap { renditions[$0] }
    }

    /// Somebody makes renditions of it from now on.
    /// - Returns: whether that may be.
    func beginRenditions(by maker: any TrackOwner) -> Bool {
        guard mayHaveRendition, renditionMaker == nil else { return false }
        renditionMaker = maker
        return true
    }

    /// Nothing more comes of those: who was sent them is sent nothing until it is given another layer.
    func endRenditions() {
        renditionMaker = nil
        for layer in allRenditions {
            renditionEpoch = max(renditionEpoch, layer.epoch &+ 1)
            layer.end()
        }
        renditions.removeAll()
    }

    /// The layer that packets of a rendition belong to, made on first sight; nil for who makes none.
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

    /// Those that a slot can have now, the least first.
    func renditions(for slot: Slot, at now: MonotonicTime) -> [TrackLayer] {
        guard !renditions.isEmpty, slot.plan.format(for: RenditionLayer.format.codec) != nil else {
            return []
        }
        return allRenditions.filter { $0.isActive(at: now) }
    }

    /// A viewer has no room for what the publisher sends.
    func needRendition(for slot: Slot, at now: MonotonicTime) {
        guard slot.plan.format(for: RenditionLayer.format.codec) != nil else { return }
        needRendition(at: now)
    }

    /// The same for viewers of another worker.
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

    /// The slot takes other layers than before.
    func retarget(_ slot: Slot, at now: MonotonicTime) {
        aim(slot, at: bestLayer(for: slot, at: now), now)
    }

    /// Forgets `slot`, which may go on with what it is being sent until its next source begins.
    func removeSubscriber(_ slot: Slot) {
        subscribers.remove(slot)
    }

    /// There are other spatial layers to choose from than before.
    func noteNewSizes() {
        hasNewSizes = true
    }

    /// Follows simulcast and spatial layers that came or went, a few times a second.
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

    /// Says which layers somebody here takes, itself or by a tap.
    private func notifyTaken(at now: MonotonicTime) {
        guard kind == .video, !plan.rids.isEmpty else { return }
        var taken = LayerSet()
        for layer in layers where layer.isTaken || taps.contains(where: { $0.takes(layer) }) {
            taken.insert(LayerSet(layer.index))
        }
        owner?.layersTaken(taken, of: key.track, at: now)
    }

    /// Somebody on this or another worker takes these layers of what is published here.
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

    /// RIDs of what the publisher has to send.
    var wantedRIDs: [String] {
        plan.rids.filter { rid in !layers.contains { $0.rid == rid && $0.rest.memory != nil } }
    }

    /// By the places of layers, for other workers.
    var rests: [LayerRest.Memory?] { layers.map(\.rest.memory) }

    /// Takes in which layers of the original rest.
    func setRests(_ rests: [LayerRest.Memory?], at now: MonotonicTime) {
        for (index, rest) in rests.prefix(Self.layerLimit).enumerated() {
            while layers.count <= index {
                guard addLayer(rid: nil, retargets: false, at: now) != nil else { return }
            }
            layers[index].setRest(rest, at: now)
        }
        retarget(at: now)
    }

    /// Somebody is to get a layer that may rest: what can be sent meanwhile.
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

    /// Points every slot at the best layer that it may have.
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

    /// What comes, and what would if it were asked for.
    private func availableLayers(at now: MonotonicTime) -> [TrackLayer] {
        layers.count > 1 ? layers.filter { $0.isAvailable(at: now) } : layers
    }

    /// The best picture that is not higher than somebody shows; where all are, the least.
    private static func best(
        of layers: [TrackLayer], _ choice: LayerChoice, at now: MonotonicTime
    ) -> TrackLayer? {
        guard layers.count > 1 else { return layers.first }
        let isLess: (TrackLayer, TrackLayer) -> Bool = { $0.isLess(than: $1, at: now) }
        guard !choice.isLeast else { return layers.min(by: isLess) }
        guard let maximum = choice.maximumHeight else { return layers.max(by: isLess) }
        // A picture on its side is as high as it is wide.
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
                // What the publisher sends is too much for who has this.
                guard let made = renditions[rendition], made.isActive(at: now) else { return slot.stop() }
                if slot.current?.rendition == nil { slot.stop() }
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

    /// The track has ended.
    func closeTaps() {
        for tap in taps { tap.finish() }
        taps.removeAll()
    }

    private func aim(_ tap: TrackTap, among layers: [TrackLayer], at now: MonotonicTime) {
        // A picture for once, or what is kept in case it is wanted, is not worth a publisher's effort.
        let choices = tap.isDemanding || layers.count < 2 ? layers : layers.filter { $0.isActive(at: now) }
        guard let best = Self.best(of: choices, LayerChoice(maximumHeight: tap.maximumHeight), at: now),
            let layer = present(best, at: now)
        else { return }
        // What begins with another size than it will have stays so in a file.
        guard layer === best || tap.current != nil else { return }
        tap.aim(at: layer, at: now)
    }

    /// Hot path: shows a packet that has been stored to whoever taps this track; mostly nobody does.
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

    /// Sends each packet to these workers from now on.
    func relayTo(_ workers: Set<Int>) {
        programmeWorkers = workers
        relays = programmeWorkers.union(subscribedWorkers).sorted()
    }

    /// Notes whether another worker has slots of a stage that carry it.
    func setSubscribed(_ isSubscribed: Bool, by worker: Int) {
        if isSubscribed { subscribedWorkers.insert(worker) } else { subscribedWorkers.remove(worker) }
        relays = programmeWorkers.union(subscribedWorkers).sorted()
    }

    /// Whether another worker has a copy that is kept up.
    func isRelayed(to worker: Int) -> Bool { relays.contains(worker) }

    /// Gives a worker that begins to keep a copy the pictures that the next viewer here would begin with.
    func backfill(_ worker: Int, over links: WorkerLinks?, at now: MonotonicTime) {
        guard let links, kind == .video else { return }
        if rests.contains(where: { $0 != nil }) { links.tell(.rest(key.track, rests), to: worker) }
        var groups = layers.compactMap { layer in layer.group(at: now).map { (layer, $0) } }
        var size = groups.reduce(0) { $0 + $1.1.bytes }
        // Rather one key frame more than an inbox that is full: what comes after it would be lost, too.
        while size > Self.backfillLimit,
            let largest = groups.indices.max(by: { groups[$0].1.bytes < groups[$1].1.bytes })
        {
            size -= groups.remove(at: largest).1.bytes
        }
        for (index, (layer, group)) in groups.enumerated() {
            layer.relayPast(group.range, isLast: index == groups.count - 1, to: worker, over: links)
        }
    }

    /// Tells the other workers that have a copy which layers rest.
    func relayRests(over links: WorkerLinks?) {
        for worker in relays { links?.tell(.rest(key.track, rests), to: worker) }
    }

    /// Hands a packet to the other workers that want it, once each.
    func relay(_ packet: MediaPacket, _ bytes: Span<UInt8>, of layer: TrackLayer, over links: WorkerLinks?) {
        guard let links, !relays.isEmpty else { return }
        let relayed = RelayedPacket(
            track: key.track, layer: layer.index, epoch: layer.epoch, sequenceNumber: packet.sequenceNumber,
            captured: packet.captured)
        for worker in relays { links.relay(relayed, bytes, to: worker) }
    }

    /// Takes a packet in that another worker received.
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
            // Who waits for a layer whose past is on its way need not ask for a key frame.
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
    /// Whether its picture is worse: smaller where sizes are known, else with fewer bits.
    fileprivate func isLess(than other: TrackLayer, at now: MonotonicTime) -> Bool {
        if let small = resolution?.height, let large = other.resolution?.height, small != large {
            return small < large
        }
        return bitrate(at: now) < other.bitrate(at: now)
    }
}
