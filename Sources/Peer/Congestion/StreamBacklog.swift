import Base

/// How much of what a TCP connection was given has been sent and acknowledged.
package struct StreamBacklog: Equatable, Sendable {
    /// Bytes that the peer has acknowledged since the connection was established.
    package var acknowledged: UInt64
    /// Bytes that are queued here or in the kernel, or sent and not acknowledged.
    package var waiting: Int
    /// The shortest round trip that the kernel has measured; nil if it has measured none.
    package var roundTrip: Duration?

    package init(acknowledged: UInt64, waiting: Int, roundTrip: Duration?) {
        self.acknowledged = acknowledged
        self.waiting = waiting
        self.roundTrip = roundTrip
    }
}
