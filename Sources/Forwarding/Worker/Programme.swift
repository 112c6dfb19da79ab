import Base
import Peer
import Wire

/// What a stream's viewers on this worker get: one video and one audio.
///
/// Stays when its publisher leaves, so that viewers need not come back when it does. The publisher lives here, or on
/// another worker that relays its packets.
final class Programme {
    enum Origin {
        case local(Session)
        case remote(worker: Int)
    }

    struct Source {
        let origin: Origin
        /// Later publishers have higher numbers and take over from earlier ones.
        let order: UInt64
        let tracks: [Track]

        var session: Session? {
            guard case .local(let session) = origin else { return nil }
            return session
        }
    }

    private(set) var source: Source?
    private(set) var followers: [Seat] = []
    /// Other workers that have viewers of this stream.
    private(set) var wanters: Set<Int> = []

    /// What control chose for the viewers, by kind; where it chose nothing they get what the source sends.
    private(set) var chosen: [PublishedTrack] = []

    var isEmpty: Bool { source == nil && followers.isEmpty && wanters.isEmpty && chosen.isEmpty }

    func choose(_ tracks: [PublishedTrack]) {
        chosen = tracks
    }

    /// Changes to `new`, at each track's next entry point.
    /// - Returns: the source that `new` takes over from.
    func change(to new: Source, at now: MonotonicTime) -> Source? {
        let previous = source
        source?.tracks.forEach { $0.relayTo([]) }
        source = new
        if new.session != nil { new.tracks.forEach { $0.relayTo(wanters) } }
        for follower in followers { connect(follower, at: now) }
        return previous
    }

    /// The publisher is gone; its viewers wait for the next one.
    func loseSource() {
        source = nil
        for follower in followers {
            for slot in follower.slots where slot.assigned == nil { slot.detach() }
        }
    }

    func follow(_ seat: Seat) {
        followers.append(seat)
    }

    /// - Returns: whether it followed.
    func unfollow(_ seat: Seat) -> Bool {
        guard let index = followers.firstIndex(where: { $0 === seat }) else { return false }
        followers.remove(at: index)
        return true
    }

    /// Notes whether another worker has viewers.
    func setWanted(_ isWanted: Bool, by worker: Int) {
        if isWanted { wanters.insert(worker) } else { wanters.remove(worker) }
        guard let source, source.session != nil else { return }
        source.tracks.forEach { $0.relayTo(wanters) }
    }

    /// Lets slots that control does not fill carry what the source sends.
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
