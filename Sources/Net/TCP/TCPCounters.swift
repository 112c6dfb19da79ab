/// What a worker's TCP connections have done since the worker's start.
package struct TCPCounters: Equatable, Sendable {
    /// Connections open now.
    package var connections = 0
    /// Connections that the worker has had.
    package var adopted: UInt64 = 0
    /// Datagrams received (RFC 4571).
    package var framesIn: UInt64 = 0
    /// Bytes received: payload and length prefixes.
    package var bytesIn: UInt64 = 0
    /// Datagrams sent.
    package var framesOut: UInt64 = 0
    /// Bytes sent: payload and length prefixes.
    package var bytesOut: UInt64 = 0
    /// Video packets dropped because readers were too slow.
    package var droppedVideo: UInt64 = 0
    /// Other datagrams dropped because readers were too slow.
    package var droppedOther: UInt64 = 0
    /// Datagrams dropped because their connection was gone.
    package var droppedClosed: UInt64 = 0
    /// Connections closed by their clients, or broken.
    package var closedByPeer: UInt64 = 0
    /// Connections closed because no session had their address, or none had it any more.
    package var closedStrange: UInt64 = 0
    /// Connections closed because their framing was broken.
    package var closedMalformed: UInt64 = 0
    /// Connections closed because their reader accepted nothing for half a minute.
    package var closedStalled: UInt64 = 0

    /// All zero.
    package init() {}
}
