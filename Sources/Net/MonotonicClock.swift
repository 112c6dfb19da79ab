import Base
import CLinux
import Glibc

/// The media clock: CLOCK_MONOTONIC.
///
/// Nothing else reads it. A worker reads it once per batch and passes the time on, so that protocol code depends on
/// no clock and tests can choose the time.
package enum MonotonicClock {
    /// The current time; a worker calls it once per batch, not per packet.
    package static func now() -> MonotonicTime {
        MonotonicTime(nanoseconds: clinux_monotonic_nanoseconds())
    }

    /// How far CLOCK_REALTIME, which the kernel's arrival times use, is ahead of the media clock now, in nanoseconds.
    ///
    /// The media clock is read before and after, and the middle is taken, so that a preemption in between distorts
    /// less.
    static func realtimeOffset() -> Int64 {
        let before = clinux_monotonic_nanoseconds()
        let realtime = clinux_realtime_nanoseconds()
        return realtime &- (before &+ (clinux_monotonic_nanoseconds() &- before) / 2)
    }

    /// Blocks the calling thread for less than a second; returns immediately if the time is not positive.
    static func sleep(nanoseconds: Int64) {
        guard nanoseconds > 0 else { return }
        var time = timespec(tv_sec: 0, tv_nsec: Int(min(nanoseconds, 999_999_999)))
        unsafe clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nil)
    }
}

extension Moment {
    /// Reads both clocks, for code outside the workers that has to know the time occasionally.
    package static func now() -> Moment {
        Moment(
            elapsed: MonotonicClock.now(),
            wall: WallTime(milliseconds: clinux_realtime_nanoseconds() / 1_000_000))
    }
}

/// CPU time used, for load figures.
package enum ProcessorClock {
    /// CPU time of the calling thread, in nanoseconds.
    package static func threadNanoseconds() -> Int64 { clinux_thread_nanoseconds() }

    /// CPU time of all threads of this process, in nanoseconds.
    package static func processNanoseconds() -> Int64 { clinux_process_nanoseconds() }
}
