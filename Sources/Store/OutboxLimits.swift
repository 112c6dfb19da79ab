/// The capacity of an outbox; beyond it the oldest events are dropped and counted.
///
/// Within a stream's lane, events about participants who joined or left are dropped first.
package struct OutboxLimits: Sendable, Equatable {
    /// Events of one stream for one receiver.
    package var lane = 1_000
    /// Events of all streams for all receivers.
    package var total = 100_000

    package init() {}

    /// - Parameters: `lane` and `total`: in events, as above.
    package init(lane: Int, total: Int) {
        self.lane = lane
        self.total = total
    }
}
