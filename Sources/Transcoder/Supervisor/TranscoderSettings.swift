import Base

/// How a supervisor runs its transcoder.
package struct TranscoderSettings: Sendable {
    /// A program that takes `transcoder` as its first argument; the server itself.
    package var executable = "/proc/self/exe"
    /// Bytes that may wait for the process: media beyond this is dropped, whole frames of it.
    package var queueLimit = 8 << 20
    /// Before the process is started again, doubled each time up to `longestPause`.
    package var shortestPause = Duration.milliseconds(100)
    /// Between two starts.
    package var longestPause = Duration.seconds(10)
    /// A process that lived for so long has not been started in vain.
    package var lifeThatCounts = Duration.seconds(20)
    /// A decoder that takes longer over one frame is stuck; CPU time that it had, not time that it waited for it.
    package var decodingLimit = Duration.seconds(10)

    /// How far the process stands behind others when there is not enough time for all, one of `nicenesses`.
    package var niceness = 10
    package static let nicenesses = 0...19
    /// Whether a process that the kernel cannot confine is ended rather than used.
    package var mustBeConfined = true
    /// What it may say in a second.
    package var messageLimits = MessageLimits()

    package init() {}
}

/// What is counted of the transcoder.
package struct TranscoderStatistics: Equatable, Sendable {
    /// Whether there is a process now.
    package var isRunning = false
    /// First ones and those after a death.
    package var starts: UInt64 = 0
    /// Ends that nobody asked for.
    package var deaths: UInt64 = 0
    /// CPU time of all its lives.
    package var cpuNanoseconds: Int64 = 0
    /// Of the process that runs; 0 without one.
    package var residentBytes: Int64 = 0
    /// Under way now.
    package var jobs = 0
    /// Tracks that are fed now.
    package var inputs = 0
    /// Packets that found no room in the queue, or were more than their input may bring.
    package var packetsDropped: UInt64 = 0
    /// Said to the process and not written yet.
    package var queuedBytes = 0
    /// Sources that are not decoded any more.
    package var refusedSources = 0

    package init() {}
}
