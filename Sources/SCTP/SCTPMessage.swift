import Wire

/// A message to be sent, or that was received.
package struct SCTPMessage: Equatable, Sendable {
    /// The stream, which is the number of the data channel; below the number agreed on.
    package var stream: UInt16
    /// PPID, which names the kind of content and means nothing to SCTP itself (RFC 9260 §3.3.1).
    package var payload: UInt32
    /// Whether the message keeps its order, and how long its delivery is attempted.
    package var delivery: DataChannelDelivery
    /// At least one byte: SCTP has no empty messages.
    package var bytes: [UInt8]

    /// - Parameter delivery: for a received message only the order is known.
    package init(
        stream: UInt16, payload: UInt32, delivery: DataChannelDelivery = DataChannelDelivery(), bytes: [UInt8]
    ) {
        self.stream = stream
        self.payload = payload
        self.delivery = delivery
        self.bytes = bytes
    }
}
