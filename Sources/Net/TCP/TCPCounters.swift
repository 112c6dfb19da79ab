/// What a worker's TCP connections have done since its start.
package struct TCPCounters: Equatable, Sendable {
    /// Connections that there are.
    package var connections = 0
    /// Connections that there have been.
    package var adopted: UInt64 = 0
    /// Datagrams that came (RFC 4571).
    package var framesIn: UInt64 = 0
    /// Of the TCP stream: payload and lengths.
    package var bytesIn: UInt64 = 0
    /// Datagrams that left.
    package var framesOut: UInt64 = 0
    /// Of the TCP stream: payload and lengths.
    package var bytesOut: UInt64 = 0
    /// Video that was left out for readers that are too slow, and whatever else.
    package var droppedVideo: UInt64 = 0
    /// What was not video.
    package var droppedOther: UInt64 = 0
    /// Datagrams for connections that are gone.
    package var droppedClosed: UInt64 = 0
    /// Connections closed by their clients, or broken.
    package var closedByPeer: UInt64 = 0
    /// Connections closed because no session knows them, or knows them any more.
    package var closedStrange: UInt64 = 0
    /// Connections closed because what came was no framing.
    package var closedMalformed: UInt64 = 0
    /// Connections closed because their reader took nothing for half a minute.
    package var closedStalled: UInt64 = 0

    package init() {}
}
