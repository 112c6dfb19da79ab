import Base
import Peer
import Wire

/// Slots to which control attaches tracks of any worker one by one.
extension Worker {
    /// Attaches a track to a slot, which changes at the track's next entry point; nil empties the slot.
    func attach(
        _ id: SessionID, mid: String, _ published: PublishedTrack?, maximumHeight: Int?, at now: MonotonicTime
    ) {
        guard let slot = sessions[id]?.slots.first(where: { $0.plan.mid == mid }) else { return }
        let previous = slot.assigned
        slot.limit(to: maximumHeight, at: now)
        guard previous != published?.key || previous == nil else { return }
        if let published, published.plan.kind == slot.plan.kind, let track = take(published) {
            slot.assigned = published.key
            slot.attach(track, at: now)
        } else {
            slot.assigned = nil
            slot.detach()
        }
        if let previous { giveBack(previous, at: now) }
    }

    /// Releases the tracks that control attached to a session's slots.
    func giveBackTracks(of session: Session, at now: MonotonicTime) {
        for slot in session.slots {
            guard let key = slot.assigned else { continue }
            slot.assigned = nil
            giveBack(key, at: now)
        }
    }

    /// The track itself, or a copy that its worker is asked to relay; nil if its publisher is gone.
    private func take(_ published: PublishedTrack) -> Track? {
        let key = published.key
        guard key.worker != (links?.index ?? 0) else { return self.published[key.track] }
        guard let copy = relayed.addSlot(published) else { return nil }
        if copy.slots == 1 { requests.begin(.track(key)) }
        return copy.track
    }

    /// Releases a track that control had attached to a slot; the copy of another worker's track lingers after its last
    /// slot.
    func giveBack(_ key: TrackKey, at now: MonotonicTime) {
        guard relayed.removeSlot(key) else { return }
        requests.letLinger(.track(key), at: now)
    }
}
