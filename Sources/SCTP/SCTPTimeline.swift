import Base
import Synchronization

/// How far usrsctp's timers have been driven along one clock.
///
/// The library has one list of timers and counts only the time that it is told has passed. All who share a clock must
/// share its timeline, or time would pass once for each of them; a simulation in virtual time has one of its own.
package final class SCTPTimeline: Sendable {
    /// For everybody who reads the system's monotonic clock.
    package static let system = SCTPTimeline()

    private let driven = Mutex<MonotonicTime?>(nil)

    package init() {}

    /// Time since the last answer other than zero, once it is a tick.
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
