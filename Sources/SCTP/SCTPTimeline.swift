import Base
import Synchronization

/// How far usrsctp's timers have been advanced along one clock.
///
/// The library has a single list of timers and is only told how much time has passed. Associations with the same
/// clock must share its timeline; otherwise the same time would pass once for each of them. A simulation in virtual
/// time has a timeline of its own.
package final class SCTPTimeline: Sendable {
    /// For all associations that use the system's monotonic clock.
    package static let system = SCTPTimeline()

    /// The time up to which the timers have been advanced; nil before the first call.
    private let driven = Mutex<MonotonicTime?>(nil)

    /// A timeline whose clock begins with the first use.
    package init() {}

    /// Milliseconds to advance the timers by: the time since they were last advanced, or 0 until that is a whole
    /// tick.
    func elapsedMilliseconds(to now: MonotonicTime) -> UInt32 {
        driven.withLock { driven in
            guard let last = driven else {
                driven = now
                return 0
            }
            let elapsed = now.nanoseconds(since: last) / 1_000_000
            guard elapsed >= SCTPStack.tickMilliseconds else { return 0 }
            driven = last + .milliseconds(elapsed)
            return UInt32(clamping: elapsed)
        }
    }
}
