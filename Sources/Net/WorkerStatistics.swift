import Base

/// A worker's own figures, copied for other threads about once a second.
package struct WorkerStatistics: Equatable, Sendable {
    /// UDP traffic of its socket, and what it sent through TURN channels.
    package var traffic = TrafficCounters()
    /// TCP connections that it serves.
    package var tcp = TCPCounters()
    /// Batches that its loop has processed.
    package var batches: UInt64 = 0
    /// Commands that it has performed.
    package var commands: UInt64 = 0
    /// Datagrams for this worker's sessions that the kernel gave to other workers on the same port.
    package var handedOver: UInt64 = 0
    /// CPU time that its thread has used, in nanoseconds.
    package var processorNanoseconds: Int64 = 0
    /// Time spent in batches, without waiting for events, in nanoseconds.
    package var busyNanoseconds: Int64 = 0
    /// Time from the beginning of a batch until its datagrams were with the kernel.
    ///
    /// The clock is read once at each end, and every datagram that was sent in the batch counts with that time.
    package var latency = DurationHistogram(.packets)
    /// Share of one CPU used between the last two copies, 0 to 1.
    package var load: Double = 0
    /// When this copy was made.
    package var time = MonotonicTime.zero

    /// All zero.
    package init() {}

    /// Counts one batch, in which `sent` datagrams left.
    mutating func noteBatch(from start: MonotonicTime, to end: MonotonicTime, sent: UInt64) {
        let elapsed = end.nanoseconds(since: start)
        batches &+= 1
        busyNanoseconds &+= elapsed
        latency.add(elapsed, times: sent)
    }

    /// Updates the figures for the next copy.
    /// - Parameter now: CPU time that the thread has used in total, in nanoseconds.
    mutating func update(traffic: TrafficCounters, processorNanoseconds now: Int64, at time: MonotonicTime) {
        let elapsed = time.nanoseconds(since: self.time)
        if elapsed > 0 {
            load = min(max(Double(now - processorNanoseconds) / Double(elapsed), 0), 1)
        }
        self.traffic = traffic
        self.time = time
        processorNanoseconds = now
    }
}
