import Forwarding
import Synchronization

/// How many events of the workers wait for the node, and what is left out when that is too many.
///
/// What tells that a session begins or ends always waits: there are a few such events for each session, and sessions are
/// bounded. What is told anew soon, or what clients say of their own accord, is dropped first.
final class EventBacklog: Sendable {
    /// Several seconds of a busy server.
    static let limit = 16_384

    private let waiting = Atomic<Int>(0)
    private let dropped = Atomic<Int>(0)

    /// Counts an event that is to wait.
    /// - Returns: false if it is to be dropped instead.
    func admit(_ event: WorkerEvent) -> Bool {
        guard waiting.load(ordering: .relaxed) < Self.limit || event.isNeeded else {
            dropped.add(1, ordering: .relaxed)
            return false
        }
        waiting.add(1, ordering: .relaxed)
        return true
    }

    /// An event waits no longer.
    func take() {
        waiting.subtract(1, ordering: .relaxed)
    }

    /// How many were dropped since the last call.
    func takeDropped() -> Int {
        dropped.exchange(0, ordering: .relaxed)
    }
}

extension WorkerEvent {
    /// Whether nothing else would tell what it tells.
    fileprivate var isNeeded: Bool {
        switch self {
        case .voice, .controlMessage, .begun, .keyFrameWanted: false
        case .checked, .connected, .mediaStarted, .closed, .published, .sourceChanged, .passed,
            .controlOpened,
            .injected:
            true
        }
    }
}
