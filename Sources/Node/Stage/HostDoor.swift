import Synchronization

/// Whether sessions can still be admitted to a stream whose host may be closing.
///
/// The node admits sessions on its own actor while an idle host closes on another. A session that was admitted in that
/// moment would belong to a host from which nobody hears anything more, not even of its end. So a host closes only if
/// nobody has entered since the node saw that the stream had no sessions.
final class HostDoor: Sendable {
    private struct State {
        var isClosed = false
        var arrivals: UInt64 = 0
    }

    private let state = Mutex(State())

    /// Whether nobody can enter any more; a closed door does not open again.
    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// How many have entered so far.
    var arrivals: UInt64 { state.withLock { $0.arrivals } }

    /// Notes that a session is about to be admitted.
    /// - Returns: false if the door is closed.
    func enter() -> Bool {
        state.withLock { state in
            guard !state.isClosed else { return false }
            state.arrivals &+= 1
            return true
        }
    }

    /// Closes the door, whoever has entered.
    func close() {
        state.withLock { $0.isClosed = true }
    }

    /// Closes the door unless somebody has entered since.
    /// - Parameter arrivals: how many had entered when it was found that nobody is there; nil for now.
    /// - Returns: whether it is closed.
    func close(since arrivals: UInt64?) -> Bool {
        state.withLock { state in
            guard arrivals ?? state.arrivals == state.arrivals else { return false }
            state.isClosed = true
            return true
        }
    }
}
