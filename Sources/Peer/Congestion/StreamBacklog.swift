import Base

/// How far a TCP connection has come with what it was given to send.
package struct StreamBacklog: Equatable, Sendable {
    /// Bytes that the peer has acknowledged since the connection stands.
    package var acknowledged: UInt64
    /// Bytes that wait: for room in the kernel, for their turn, or for the peer's acknowledgement.
    package var waiting: Int
    /// The shortest round trip that the kernel has measured; nil for none.
    package var roundTrip: Duration?

    package init(acknowledged: UInt64, waiting: Int, roundTrip: Duration?) {
        self.acknowledged = acknowledged
        self.waiting = waiting
        self.roundTrip = roundTrip
    }
}
