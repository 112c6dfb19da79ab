import Base
import CLinux

/// A bound UDP socket that never blocks; closed when its last owner is gone.
package final class DatagramSocket: Sendable {
    /// Where it is bound; the port is the real one even if 0 was asked for.
    package let localAddress: TransportAddress
    /// Whether the kernel cuts one large message into datagrams (UDP_SEGMENT).
    package let canSegment: Bool
    /// Whether the kernel hands over runs of datagrams as one message (UDP_GRO).
    package let coalesces: Bool
    /// Whether the kernel tells when each datagram arrived (SO_TIMESTAMPNS), however late it is read.
    package let stampsArrivals: Bool
    /// What the kernel granted, in its own count, which is about twice the payload.
    package let receiveBufferBytes: Int
    /// Counted like `receiveBufferBytes`.
    package let sendBufferBytes: Int

    let descriptor: Int32
    /// An IPv4 socket; else IPv6, which takes IPv4 in mapped form.
    let isIPv4: Bool

    /// - Parameters:
    ///   - address: 0.0.0.0 serves IPv4 only, `::` serves IPv6 and IPv4. Port 0 lets the kernel choose.
    ///   - bufferBytes: asked for in each direction; the kernel may grant less.
    ///   - coalescing: false to get every datagram by itself.
    ///   - stamping: true to learn from the kernel when each datagram arrived.
    ///   - sharing: whether further sockets may be bound to its port, by `init(joining:bufferBytes:)`.
    package convenience init(
        bind address: TransportAddress, bufferBytes: Int = 4 << 20, coalescing: Bool = true,
        stamping: Bool = false, sharing: Bool = false
    ) throws(NetError) {
        // Not joining, so that a port that another program shares is in use.
        let descriptor = clinux_udp_open(clinux_address(address), 0)
        guard descriptor >= 0 else { throw NetError(binding: address, code: -descriptor) }
        try self.init(
            descriptor, at: address, bufferBytes: bufferBytes, coalescing: coalescing, stamping: stamping)
        let result = sharing ? clinux_share_port(descriptor) : 0
        guard result == 0 else { throw .system(operation: "share a UDP port", code: -result) }
    }

    /// Binds the port that `first` has, which must be shared.
    ///
    /// The kernel gives each client's datagrams to one of the sockets, by the client's address and port, until another
    /// joins or leaves.
    package convenience init(joining first: DatagramSocket, bufferBytes: Int) throws(NetError) {
        let address = first.localAddress
        let descriptor = clinux_udp_open(clinux_address(address), 1)
        guard descriptor >= 0 else { throw NetError(binding: address, code: -descriptor) }
        try self.init(
            descriptor, at: address, bufferBytes: bufferBytes, coalescing: true, stamping: false)
    }

    /// Owns the descriptor from here on.
    private init(
        _ descriptor: Int32, at address: TransportAddress, bufferBytes: Int, coalescing: Bool, stamping: Bool
    ) throws(NetError) {
        var bound = clinux_address()
        guard unsafe clinux_local_address(descriptor, &bound) == 0 else {
            clinux_close(descriptor)
            throw NetError(binding: address, code: 0)
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

    /// Datagrams the kernel dropped since the start because nobody read them in time.
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
