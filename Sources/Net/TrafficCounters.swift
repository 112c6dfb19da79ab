/// What one socket has done since it was opened.
///
/// Plain integers that the worker's thread counts up, and copies out about once a second.
package struct TrafficCounters: Equatable, Sendable {
    /// Received, truncated ones left out.
    package var datagramsIn: UInt64 = 0
    /// Of UDP payload.
    package var bytesIn: UInt64 = 0
    /// That the kernel took.
    package var datagramsOut: UInt64 = 0
    /// Of UDP payload.
    package var bytesOut: UInt64 = 0

    /// `recvmmsg` calls, and messages among theirs that carried more than one datagram (UDP_GRO).
    package var receiveCalls: UInt64 = 0
    /// That carried more than one datagram.
    package var coalescedMessagesIn: UInt64 = 0
    /// Messages that the kernel took: fewer than datagrams where it cut them.
    package var messagesOut: UInt64 = 0
    /// `sendmmsg` calls, and messages that the kernel cut into datagrams (UDP_SEGMENT).
    package var sendCalls: UInt64 = 0
    /// That the kernel cut.
    package var segmentedMessagesOut: UInt64 = 0
    /// Messages that the kernel refused to cut and that left as plain datagrams.
    package var segmentationRefused: UInt64 = 0
    /// Datagrams that waited for room in the socket's buffer before they left or were dropped.
    package var delayed: UInt64 = 0

    /// Datagrams not sent because the socket's buffer, and then our own, was full.
    package var droppedBufferFull: UInt64 = 0
    /// Datagrams not sent because they exceed the path's MTU (EMSGSIZE).
    package var droppedTooLarge: UInt64 = 0
    /// Datagrams not sent because there is no way to their destination, or none allowed.
    package var droppedUnreachable: UInt64 = 0
    /// Datagrams not sent for any other reason.
    package var droppedOther: UInt64 = 0
    /// Messages that arrived longer than a receive buffer.
    package var droppedTruncated: UInt64 = 0
    /// Datagrams that arrived while the socket's receive buffer was full; as of the last copy.
    package var droppedByKernel: UInt64 = 0

    package init() {}

    /// Datagrams that never left.
    var unsent: UInt64 {
        droppedBufferFull &+ droppedTooLarge &+ droppedUnreachable &+ droppedOther
    }

    /// With what else was sent.
    func adding(sentBy other: Self) -> Self {
        var sum = self
        sum.datagramsOut &+= other.datagramsOut
        sum.bytesOut &+= other.bytesOut
        sum.messagesOut &+= other.messagesOut
        sum.sendCalls &+= other.sendCalls
        sum.segmentedMessagesOut &+= other.segmentedMessagesOut
        sum.segmentationRefused &+= other.segmentationRefused
        sum.droppedBufferFull &+= other.droppedBufferFull
        sum.droppedTooLarge &+= other.droppedTooLarge
        sum.droppedUnreachable &+= other.droppedUnreachable
        sum.droppedOther &+= other.droppedOther
        return sum
    }
}
