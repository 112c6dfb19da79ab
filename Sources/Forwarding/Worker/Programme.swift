import Base
import Peer

/// What a stream's viewers on this worker get: one video and one audio track.
///
/// It remains when its publisher leaves, so that viewers need not reconnect when the publisher returns. The publisher
/// is on this worker, or on another one that relays its packets.
final class Programme {
    struct Source {
        /// Nil for a publisher on another worker.
        let session: Session?
        /// Later publishers have higher numbers, and replace earlier ones.
        let order: UInt64
        let tracks: [Track]
    }

    /// Nil while the stream has no publisher.
    private(set) var source: Source?
    /// The seats on this worker that carry the programme.
    private(set) var followers: [Seat] = []
    /// Other workers with viewers of this stream.
    private(set) var wanters: Set<Int> = []

    /// The tracks that control chose for viewers, at most one of a kind; without one they get the source's.
    private(set) var chosen: [PublishedTrack] = []

    var isEmpty: Bool { source == nil && followers.isEmpty && wanters.isEmpty && chosen.isEmpty }

    func choose(_ tracks: [PublishedTrack]) {
        chosen = tracks
    }

    /// Changes to a new source; slots change at its tracks' next entry points.
    /// - Returns: the source that it replaces; nil if there was none.
    func change(to new: Source, at now: MonotonicTime) -> Source? {
        let previous = source
        source?.tracks.forEach { $0.relayTo([]) }
        source = new
        if new.session != nil { new.tracks.forEach { $0.relayTo(wanters) } }
        for follower in followers { connect(follower, at: now) }
        return previous
    }

    /// Removes the source, whose publisher has left; viewers wait for the next one.
    func loseSource() {
        source = nil
        for follower in followers {
            for slot in follower.slots where slot.assigned == nil { slot.detach() }
        }
    }

    func follow(_ seat: Seat) {
        followers.append(seat)
    }

    /// Removes a seat.
    /// - Returns: whether it followed the programme.
    func unfollow(_ seat: Seat) -> Bool {
        guard let index = followers.firstIndex(where: { $0 === seat }) else { return false }
        followers.remove(at: index)
        return true
    }

    /// Notes whether another worker has viewers of this stream.
    /// - Returns: the source's tracks of which that worker had nothing before, and now begins a copy.
    func setWanted(_ isWanted: Bool, by worker: Int) -> [Track] {
        if isWanted { wanters.insert(worker) } else { wanters.remove(worker) }
        guard let source, source.session != nil else { return [] }
        let new = isWanted ? source.tracks.filter { !$0.isRelayed(to: worker) } : []
        source.tracks.forEach { $0.relayTo(wanters) }
        return new
    }

    /// Attaches the source's tracks to a seat's slots, as far as control did not choose others.
    func connect(_ follower: Seat, at now: MonotonicTime) {
        guard let source else { return }
        for kind in [MediaKind.audio, .video] where !chosen.contains(where: { $0.plan.kind == kind }) {
            guard let slot = follower.slot(kind), slot.assigned == nil,
                let track = source.tracks.first(where: { $0.kind == kind })
            else { continue }
            slot.attach(track, at: now)
        }
    }
}
