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
        guard let links, remoteOwners.indices.contains(key.worker) else { return nil }
        let track = relayedTrack(published)
        slotUses[key, default: 0] += 1
        if slotUses[key] == 1, lingering.tracks.removeValue(forKey: key) == nil {
            links.tell(.subscribe(key.track, true), to: key.worker)
        }
        return track
    }

    func giveBack(_ key: TrackKey, at now: MonotonicTime) {
        guard let uses = slotUses[key] else { return }
        slotUses[key] = uses > 1 ? uses - 1 : nil
        guard uses == 1 else { return }
        lingering.tracks[key] = now + Lingering.time
    }

    /// The copy of another worker's track, which slots and programmes share; created on first use.
    func relayedTrack(_ published: PublishedTrack) -> Track {
        if let known = relayed[published.key] { return known }
        let track = Track(
            key: published.key, plan: published.plan,
            reader: PacketReader(formats: published.plan.formats, ids: published.extensions),
            owner: remoteOwners[published.key.worker], fanOut: fanOut)
        relayed[published.key] = track
        return track
    }

    func forgetRelayedIfUnused(_ key: TrackKey) {
        guard slotUses[key] == nil, lingering.tracks[key] == nil, !programmeTracks.contains(key) else {
            return
        }
        relayed[key] = nil
    }
}
