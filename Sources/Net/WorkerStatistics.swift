import Base

/// What a worker tells about itself, about once a second.
package struct WorkerStatistics: Equatable, Sendable {
    package var traffic = TrafficCounters()
    /// Turns of the loop.
    package var batches: UInt64 = 0
    package var commands: UInt64 = 0
    /// CPU time its thread has used, in nanoseconds.
    package var processorNanoseconds: Int64 = 0
    /// Share of one CPU used between the last two copies, 0 to 1.
    package var load: Double = 0
    /// When this copy was made.
    package var time = MonotonicTime.zero

    package init() {}

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
