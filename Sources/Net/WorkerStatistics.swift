import Base

/// What a worker tells about itself, about once a second.
package struct WorkerStatistics: Equatable, Sendable {
    package var traffic = TrafficCounters()
    package var tcp = TCPCounters()
    /// Turns of the loop.
    package var batches: UInt64 = 0
    package var commands: UInt64 = 0
    /// Datagrams for this worker's sessions that came to other workers, which share the port.
    package var handedOver: UInt64 = 0
    /// CPU time its thread has used, in nanoseconds.
    package var processorNanoseconds: Int64 = 0
    /// Time spent with batches, waiting for events left out, in nanoseconds.
    package var busyNanoseconds: Int64 = 0
    /// From the moment a batch of events was there to that at which its datagrams were with the kernel.
    ///
    /// The clock is read once for each, and every datagram of the batch counts.
    package var latency = DurationHistogram(.packets)
    /// Share of one CPU used between the last two copies, 0 to 1.
    package var load: Double = 0
    /// When this copy was made.
    package var time = MonotonicTime.zero

    package init() {}

    /// Takes in a turn of the loop, in which `sent` datagrams left.
    mutating func noteBatch(from start: MonotonicTime, to end: MonotonicTime, sent: UInt64) {
        let elapsed = end.nanoseconds(since: start)
        batches &+= 1
        busyNanoseconds &+= elapsed
        latency.add(elapsed, times: sent)
    }

    /// Prepares the next copy from this one.
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
