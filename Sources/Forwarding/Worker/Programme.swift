import Base
import Peer
import Wire

/// What a stream's viewers on this worker get: one video and one audio.
///
/// Stays when its publisher leaves, so that viewers need not come back when it does.
final class Programme {
    private(set) var publisher: Session?
    private(set) var followers: [Session] = []

    var isEmpty: Bool { publisher == nil && followers.isEmpty }

    /// Makes `session` the source of the programme; viewers change over at its first key frame.
    /// - Returns: the session that it takes over from.
    func present(_ session: Session, at now: MonotonicTime) -> Session? {
        guard publisher !== session else { return nil }
        let previous = publisher
        publisher = session
        for follower in followers { connect(follower, at: now) }
        return previous
    }

    func follow(_ session: Session, at now: MonotonicTime) {
        followers.append(session)
        connect(session, at: now)
    }

    /// - Returns: whether `session` was the source.
    func remove(_ session: Session) -> Bool {
        followers.removeAll { $0 === session }
        guard publisher === session else { return false }
        publisher = nil
        for follower in followers { follower.detachAll() }
        return true
    }

    /// The first slot of each kind carries the programme.
    private func connect(_ follower: Session, at now: MonotonicTime) {
        guard let publisher else { return }
        for kind in [MediaKind.audio, .video] {
            guard let slot = follower.slots.first(where: { $0.plan.kind == kind }),
                let source = publisher.sources.first(where: { $0.plan.kind == kind })
            else { continue }
            slot.attach(source.track, at: now)
        }
    }
}
