/// The limits of one association.
package struct SCTPConfiguration: Sendable {
    /// In each direction; each costs 110 bytes from the start.
    package var streams: UInt16 = 256
    /// Longest packet, in bytes: what DTLS can carry in one datagram.
    package var maximumPacket = 1_160
    /// Longest message in both directions, in bytes.
    package var maximumMessage = 262_144
    /// What the peer may have sent that is not yet read, in bytes.
    package var receiveBuffer = 393_216
    /// What usrsctp takes before it is acknowledged, in bytes; a longer message is taken whole.
    package var transportBuffer = 65_536
    /// What it takes beyond that of stream 0.
    package var controlBuffer = 16_384
    /// What waits for room in the transport, in bytes.
    package var sendBuffer = 1 << 20
    /// The same of one stream.
    package var streamBuffer = 1 << 19
    /// Messages that wait for room in the transport.
    package var sendQueue = 1_024
    /// Received messages that nobody has taken yet, in bytes; then the peer has to wait.
    package var inbox = 524_288
    /// The same in messages.
    package var inboxMessages = 256

    package init() {}
}
