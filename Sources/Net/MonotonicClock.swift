import Base
import CLinux

/// The media clock: CLOCK_MONOTONIC.
///
/// The only place that reads it. A worker reads it once per batch and hands the instant down, so that everything
/// below stays free of clocks.
package enum MonotonicClock {
    package static func now() -> MonotonicTime {
        MonotonicTime(nanoseconds: clinux_monotonic_nanoseconds())
    }
}

/// CPU time spent, for load figures.
package enum ProcessorClock {
    /// Nanoseconds the calling thread has run for.
    package static func threadNanoseconds() -> Int64 { clinux_thread_nanoseconds() }

    /// Nanoseconds all threads of this process have run for.
    package static func processNanoseconds() -> Int64 { clinux_process_nanoseconds() }
}
