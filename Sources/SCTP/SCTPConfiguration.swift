/// The limits of one association.
package struct SCTPConfiguration: Sendable {
    /// Streams in each direction; each costs 110 bytes from the start.
    package var streams: UInt16 = 256
    /// Longest packet, in bytes: what DTLS can transport in one datagram.
    package var maximumPacket = 1_160
    /// Longest message in either direction, in bytes.
    package var maximumMessage = 262_144
    /// Bytes that the peer may have sent and that were not read yet.
    package var receiveBuffer = 393_216
    /// Unacknowledged bytes that usrsctp accepts; longer messages are accepted whole, one at a time.
    package var transportBuffer = 65_536
    /// Bytes of stream 0 that it accepts beyond that.
    package var controlBuffer = 16_384
    /// Bytes that may wait until the transport accepts them.
    package var sendBuffer = 1 << 20
    /// Bytes of one stream that may wait until the transport accepts them.
    package var streamBuffer = 1 << 19
    /// Messages that may wait until the transport accepts them.
    package var sendQueue = 1_024
    /// Bytes of received messages that may wait for `takeEvents`; beyond that the peer has to wait.
    package var inbox = 524_288
    /// Events that may wait for `takeEvents`.
    package var inboxMessages = 256

    /// The limits of a participant's connection.
    package init() {}
}
