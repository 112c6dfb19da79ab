import Wire

/// What happened on the data channels of a connection; a channel is identified by its SCTP stream.
package enum DataChannelEvent: Equatable, Sendable {
    /// The peer opened a channel, or the channel negotiated in advance can be used.
    case opened(UInt16, DataChannelOpen)
    case message(UInt16, DataChannelMessage)
    /// The peer closed the channel, or broke a rule on it; not reported for a channel closed from this side.
    case closed(UInt16)
}

/// Why a message was not accepted, or a channel not opened.
package enum DataChannelError: Error, Equatable, Sendable {
    /// There are no data channels, or no such channel.
    case noChannel
    /// The message is longer than the peer accepts.
    case tooLong
    /// The queue is full: the peer accepts less than it is sent.
    case bufferFull
    /// The limit of open channels is reached.
    case tooManyChannels
}
