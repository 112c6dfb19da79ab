import Base
import CLinux
import Glibc

/// The media clock: CLOCK_MONOTONIC.
///
/// The only place that reads it. A worker reads it once per batch and hands the instant down, so that everything
/// below stays free of clocks.
package enum MonotonicClock {
    /// Once per batch, not per packet.
    package static func now() -> MonotonicTime {
        MonotonicTime(nanoseconds: clinux_monotonic_nanoseconds())
    }

    /// How far CLOCK_REALTIME, which the kernel's time stamps are of, is ahead just now, in nanoseconds.
    static func realtimeOffset() -> Int64 {
        let before = clinux_monotonic_nanoseconds()
        let realtime = clinux_realtime_nanoseconds()
        return realtime &- (before &+ (clinux_monotonic_nanoseconds() &- before) / 2)
    }

    /// Lets the calling thread rest for less than a second; not at all if the time is not positive.
    static func sleep(nanoseconds: Int64) {
        guard nanoseconds > 0 else { return }
        var time = timespec(tv_sec: 0, tv_nsec: Int(min(nanoseconds, 999_999_999)))
        unsafe clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nil)
    }
}

extension Moment {
    /// A look at both clocks: what is handed to whoever lives at the edge and has to know the time now and then.
    package static func now() -> Moment {
        Moment(
            elapsed: MonotonicClock.now(),
            wall: WallTime(milliseconds: clinux_realtime_nanoseconds() / 1_000_000))
    }
}

/// CPU time spent, for load figures.
package enum ProcessorClock {
    /// Nanoseconds the calling thread has run for.
    package static func threadNanoseconds() -> Int64 { clinux_thread_nanoseconds() }

    /// Nanoseconds all threads of this process have run for.
    package static func processNanoseconds() -> Int64 { clinux_process_nanoseconds() }
}
