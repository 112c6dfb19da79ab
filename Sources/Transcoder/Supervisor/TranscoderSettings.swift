import Base

/// How a supervisor runs its transcoder.
package struct TranscoderSettings: Sendable {
    /// The program, whose first argument is `transcoder`; the server itself by default.
    package var executable = "/proc/self/exe"
    /// Most bytes that wait for the process; beyond it media is dropped in whole frames.
    package var queueLimit = 8 << 20
    /// Pause before a restart, doubled each time up to `longestPause`.
    package var shortestPause = Duration.milliseconds(100)
    /// Longest pause before a restart.
    package var longestPause = Duration.seconds(10)
    /// Lifetime of the process after which the pause is reset.
    package var lifeThatCounts = Duration.seconds(20)
    /// CPU time for one frame after which a decoder counts as stuck.
    ///
    /// Time spent waiting for a CPU does not count.
    package var decodingLimit = Duration.seconds(10)

    /// How far the process's priority is below that of the server, one of `nicenesses`.
    package var niceness = 10
    /// Values that the kernel supports for a lower priority.
    package static let nicenesses = 0...19
    /// Whether a process that the kernel cannot confine is ended and not used.
    package var mustBeConfined = true
    /// Limits on messages per second.
    package var messageLimits = MessageLimits()

    package init() {}
}

/// Counters of the transcoder.
package struct TranscoderStatistics: Equatable, Sendable {
    /// Whether the process is running now.
    package var isRunning = false
    /// Starts of the process, including restarts.
    package var starts: UInt64 = 0
    /// Unexpected ends of the process.
    package var deaths: UInt64 = 0
    /// CPU time of all lives of the process.
    package var cpuNanoseconds: Int64 = 0
    /// Resident memory of the process; 0 while it is not running.
    package var residentBytes: Int64 = 0
    /// Jobs in progress.
    package var jobs = 0
    /// Open inputs.
    package var inputs = 0
    /// Packets dropped because the queue was full or their input exceeded its rate.
    package var packetsDropped: UInt64 = 0
    /// Bytes that wait to be written to the process.
    package var queuedBytes = 0
    /// Sources that are refused now.
    package var refusedSources = 0

    package init() {}
}
