import Base
import Peer
import Wire

/// One published audio or video source, and who watches it on this worker.
package final class Track {
    package let id: TrackID
    package let plan: SourcePlan
    private let reader: PacketReader
    private weak var owner: Session?
    package private(set) var layers: [TrackLayer] = []
    /// The latest level, 0 to 127 in −dBov: 0 is loudest.
    package internal(set) var audioLevel: AudioLevel?
    /// Slots that carry this track or shall do so as soon as there is something to send.
    private var subscribers: [Slot] = []

    /// Simulcast layers beyond this are not accepted.
    static let layerLimit = 4

    init(id: TrackID, plan: SourcePlan, reader: PacketReader, owner: Session) {
        self.id = id
        self.plan = plan
        self.reader = reader
        self.owner = owner
    }

    package var kind: MediaKind { plan.kind }

    package var subscriberCount: Int { subscribers.count }

    /// The layer named `rid`, made on first sight; nil beyond the limit.
    func layer(rid: String?) -> TrackLayer? {
        if let known = layers.first(where: { $0.rid == rid }) { return known }
        guard layers.count < Self.layerLimit else { return nil }
        let layer = TrackLayer(rid: rid, plan: plan, reader: reader, owner: owner)
        layers.append(layer)
        return layer
    }

    func attach(_ slot: Slot, at now: MonotonicTime) {
        subscribers.append(slot)
        aim(slot, at: bestLayer(at: now), now)
    }

    /// Forgets `slot`, which may go on with what it is being sent until its next source begins.
    func removeSubscriber(_ slot: Slot) {
        subscribers.removeAll { $0 === slot }
    }

    /// Points every slot at the best layer; called when a layer came, and a few times a second.
    func retarget(at now: MonotonicTime) {
        guard let best = bestLayer(at: now) else { return }
        for slot in subscribers { aim(slot, at: best, now) }
    }

    /// The best picture that is coming in: the largest where sizes are known, else the one with most bits.
    private func bestLayer(at now: MonotonicTime) -> TrackLayer? {
        guard layers.count > 1 else { return layers.first }
        let active = layers.filter { $0.isActive(at: now) }
        return active.max { left, right in
            let heights = (left.resolution?.height, right.resolution?.height)
            if let small = heights.0, let large = heights.1, small != large { return small < large }
            return left.bitrate(at: now) < right.bitrate(at: now)
        }
    }

    private func aim(_ slot: Slot, at layer: TrackLayer?, _ now: MonotonicTime) {
        guard let layer, slot.awaited !== layer else { return }
        if slot.current === layer {
            slot.awaited?.stopAwaiting(slot)
            slot.awaited = nil
            return
        }
        slot.awaited?.stopAwaiting(slot)
        slot.awaited = layer
        layer.await(slot, at: now)
    }
}
