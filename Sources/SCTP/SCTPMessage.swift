import Wire

/// One message to send or received.
package struct SCTPMessage: Equatable, Sendable {
    package var stream: UInt16
    /// PPID, which SCTP itself does not look at (RFC 9260 §3.3.1).
    package var payload: UInt32
    package var delivery: DataChannelDelivery
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
