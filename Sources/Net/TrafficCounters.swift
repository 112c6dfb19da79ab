/// What one socket has done since it was opened.
///
/// Plain integers: only the worker's thread changes them, and it copies them for others about once a second.
package struct TrafficCounters: Equatable, Sendable {
    /// Datagrams received, without truncated ones.
    package var datagramsIn: UInt64 = 0
    /// Bytes received, UDP payload only.
    package var bytesIn: UInt64 = 0
    /// Datagrams that the kernel accepted.
    package var datagramsOut: UInt64 = 0
    /// Bytes sent, UDP payload only.
    package var bytesOut: UInt64 = 0

    /// `recvmmsg` calls.
    package var receiveCalls: UInt64 = 0
    /// Received messages that contained more than one datagram (UDP_GRO).
    package var coalescedMessagesIn: UInt64 = 0
    /// Messages that the kernel accepted: fewer than datagrams if it cut some.
    package var messagesOut: UInt64 = 0
    /// `sendmmsg` calls.
    package var sendCalls: UInt64 = 0
    /// Messages that the kernel cut into datagrams (UDP_SEGMENT).
    package var segmentedMessagesOut: UInt64 = 0
    /// Messages that the kernel refused to cut, so that their datagrams were sent one by one.
    package var segmentationRefused: UInt64 = 0
    /// Datagrams that waited for room in the socket's buffer before they were sent or dropped.
    package var delayed: UInt64 = 0

    /// Datagrams dropped because the socket's buffer and the backlog behind it were full.
    package var droppedBufferFull: UInt64 = 0
    /// Datagrams dropped because they exceed the path's MTU (EMSGSIZE).
    package var droppedTooLarge: UInt64 = 0
    /// Datagrams dropped because their destination is unreachable or not permitted.
    package var droppedUnreachable: UInt64 = 0
    /// Datagrams dropped for any other reason.
    package var droppedOther: UInt64 = 0
    /// Messages dropped on receipt because they were longer than a receive buffer.
    package var droppedTruncated: UInt64 = 0
    /// Datagrams that the kernel dropped because the socket's receive buffer was full; as of the last copy.
    package var droppedByKernel: UInt64 = 0

    /// All zero.
    package init() {}

    /// Datagrams that were dropped instead of sent.
    var unsent: UInt64 {
        droppedBufferFull &+ droppedTooLarge &+ droppedUnreachable &+ droppedOther
    }

    /// These counters plus what was sent through another socket.
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
