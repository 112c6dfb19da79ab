import Wire

/// What happened on the data channels of a connection; channels go by their SCTP stream.
package enum DataChannelEvent: Equatable, Sendable {
    /// The peer opened a channel, or the one agreed in advance can be used.
    case opened(UInt16, DataChannelOpen)
    case message(UInt16, DataChannelMessage)
    /// By the peer, or because it broke a rule; not told of a channel that was closed from here.
    case closed(UInt16)
}

/// Why a message was not taken, or a channel not opened.
package enum DataChannelError: Error, Equatable, Sendable {
    /// There are no data channels, or no such channel.
    case noChannel
    /// Longer than the peer takes.
    case tooLong
    /// The peer takes less than it is sent: as much waits as may wait.
    case bufferFull
    /// As many channels are open as may be.
    case tooManyChannels
}
