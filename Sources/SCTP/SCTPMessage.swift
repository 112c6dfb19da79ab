import Wire

/// One message to send or received.
package struct SCTPMessage: Equatable, Sendable {
    /// The number of the data channel; below what was agreed at the beginning.
    package var stream: UInt16
    /// PPID, which SCTP itself does not look at (RFC 9260 §3.3.1).
    package var payload: UInt32
    /// Order, and how long the message is tried.
    package var delivery: DataChannelDelivery
    /// At least one: SCTP has no empty messages.
    package var bytes: [UInt8]

    /// - Parameter delivery: of a received message, only the order is known.
    package init(
        stream: UInt16, payload: UInt32, delivery: DataChannelDelivery = DataChannelDelivery(), bytes: [UInt8]
    ) {
        self.stream = stream
        self.payload = payload
        self.delivery = delivery
        self.bytes = bytes
    }
}
