/// The capacity of an outbox; beyond it the oldest events are dropped and counted.
///
/// Within a stream's lane, events about participants who joined or left are dropped first.
package struct OutboxLimits: Sendable, Equatable {
    /// Events of one stream for one receiver.
    package var lane = 1_000
    /// Events of all streams for all receivers.
    package var total = 100_000

    /// In milliseconds: how far ahead the next attempt of a lane may be.
    ///
    /// A lane that would wait for longer was delayed before the clock was set back, and is due at once: its time may
    /// be years away, if the machine started with a wrong clock.
    package static let longestDelay: Int64 = 600_000

    package init() {}

    /// - Parameters: `lane` and `total`: in events, as above.
    package init(lane: Int, total: Int) {
        self.lane = lane
        self.total = total
    }

    /// The latest time for which a lane may wait at `now`; both in milliseconds since 1970.
    static func horizon(at now: Int64) -> Int64 {
        let (time, hasOverflowed) = now.addingReportingOverflow(longestDelay)
        return hasOverflowed ? .max : time
    }
}
