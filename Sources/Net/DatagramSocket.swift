import Base
import CLinux

/// A bound, non-blocking UDP socket; closed when its last owner is gone.
package final class DatagramSocket: Sendable {
    /// Where it is bound; the actual port even if port 0 was requested.
    package let localAddress: TransportAddress
    /// Whether the kernel can cut one large message into datagrams (UDP_SEGMENT).
    package let canSegment: Bool
    /// Whether the kernel may deliver a run of datagrams as one message (UDP_GRO).
    package let coalesces: Bool
    /// Whether the kernel records when each datagram arrived (SO_TIMESTAMPNS), however late the datagram is read.
    package let stampsArrivals: Bool
    /// Receive buffer that the kernel granted, in bytes as it counts them: about twice the payload that fits.
    package let receiveBufferBytes: Int
    /// Send buffer that the kernel granted, counted like `receiveBufferBytes`.
    package let sendBufferBytes: Int

    let descriptor: Int32
    /// True for an IPv4 socket; an IPv6 socket also accepts IPv4, in mapped form.
    let isIPv4: Bool

    /// Opens a socket and binds it.
    /// - Parameters:
    ///   - address: 0.0.0.0 serves IPv4 only, `::` serves IPv6 and IPv4. Port 0 lets the kernel choose.
    ///   - bufferBytes: requested for each direction; the kernel may grant less.
    ///   - coalescing: false to receive every datagram as a message by itself.
    ///   - stamping: true to have the kernel record when each datagram arrived.
    ///   - sharing: whether further sockets may be bound to its port, by `init(joining:bufferBytes:)`.
    /// - Throws: if the port is in use, even by a program that shares it, or the kernel refuses for another reason.
    package convenience init(
        bind address: TransportAddress, bufferBytes: Int = 4 << 20, coalescing: Bool = true,
        stamping: Bool = false, sharing: Bool = false
    ) throws(NetError) {
        // Opened without SO_REUSEPORT: otherwise a port that another program shares would not count as in use.
        let descriptor = clinux_udp_open(clinux_address(address), 0)
        guard descriptor >= 0 else { throw NetError(binding: address, code: -descriptor) }
        try self.init(
            descriptor, at: address, bufferBytes: bufferBytes, coalescing: coalescing, stamping: stamping)
        let result = sharing ? clinux_share_port(descriptor) : 0
        guard result == 0 else { throw .system(operation: "share a UDP port", code: -result) }
    }

    /// Opens a further socket on the port of `first`, which must have been opened with `sharing`.
    ///
    /// The kernel chooses one of the sockets by the client's address and port. A client's datagrams all go to the
    /// same socket until another socket joins or leaves.
    package convenience init(joining first: DatagramSocket, bufferBytes: Int) throws(NetError) {
        let address = first.localAddress
        let descriptor = clinux_udp_open(clinux_address(address), 1)
        guard descriptor >= 0 else { throw NetError(binding: address, code: -descriptor) }
        try self.init(
            descriptor, at: address, bufferBytes: bufferBytes, coalescing: true, stamping: false)
    }

    /// Takes over the descriptor, and closes it if it throws.
    private init(
        _ descriptor: Int32, at address: TransportAddress, bufferBytes: Int, coalescing: Bool, stamping: Bool
    ) throws(NetError) {
        var bound = clinux_address()
        let result = unsafe clinux_local_address(descriptor, &bound)
        guard result == 0 else {
            clinux_close(descriptor)
            throw NetError(binding: address, code: -result)
        }
        let size = Int32(clamping: bufferBytes)
        receiveBufferBytes = Int(clinux_set_receive_buffer(descriptor, size))
        sendBufferBytes = Int(clinux_set_send_buffer(descriptor, size))
        canSegment = clinux_supports_segmentation(descriptor) != 0
        coalesces = coalescing && clinux_enable_coalescing(descriptor) == 0
        stampsArrivals = stamping && clinux_enable_arrival_times(descriptor) == 0
        localAddress = TransportAddress(bound)
        isIPv4 = address.ip.ipv4 != nil
        self.descriptor = descriptor
    }

    deinit {
        clinux_close(descriptor)
    }

    /// Datagrams that the kernel dropped since the start because the receive buffer was full.
    package var droppedByKernel: UInt64 {
        UInt64(clamping: clinux_receive_drops(descriptor))
    }
}

extension clinux_address {
    init(_ address: TransportAddress) {
        self.init(high: address.ip.high, low: address.ip.low, port: address.port)
    }
}

extension TransportAddress {
    init(_ address: clinux_address) {
        self.init(ip: IPAddress(high: address.high, low: address.low), port: address.port)
    }
}
