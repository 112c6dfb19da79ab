import Base
import CLinux

@testable import Net

/// A peer on the loopback interface: a plain socket that a test reads and writes.
struct Remote: ~Copyable {
    struct Datagram: Equatable {
        let bytes: [UInt8]
        let source: TransportAddress
        /// By the kernel's account, if it was asked.
        var arrival: MonotonicTime?
    }

    let socket: DatagramSocket
    private var arrivals: ReceiveBatch
    private var sink: SendBatch
    private(set) var counters = TrafficCounters()

    var address: TransportAddress { socket.localAddress }

    /// - Parameter coalescing: take runs of datagrams as the kernel glued them, if it does.
    init(_ ip: IPAddress = .loopback, coalescing: Bool = false, stamping: Bool = false) throws {
        socket = try DatagramSocket(
            bind: TransportAddress(ip: ip, port: 0), coalescing: coalescing, stamping: stamping)
        arrivals = ReceiveBatch(coalesces: socket.coalesces)
        sink = SendBatch(socket: socket, hashKey: 1)
    }

    /// Sends datagrams to one address, in this order.
    mutating func send(_ datagrams: [[UInt8]], to destination: TransportAddress) {
        for datagram in datagrams { sink.append(datagram, to: destination) }
        sink.flush(at: .zero)
    }

    /// Waits until `count` datagrams have come.
    /// - Returns: what came; fewer than `count` if none came for a minute.
    mutating func receive(_ count: Int) -> [Datagram] {
        var result: [Datagram] = []
        while result.count < count, clinux_wait_readable(socket.descriptor, 60_000) > 0 {
            result += receiveWaiting()
        }
        return result
    }

    /// What has come, without waiting: on the loopback interface a datagram has come when it was sent.
    mutating func receiveWaiting() -> [Datagram] {
        var result: [Datagram] = []
        var more = true
        while more {
            more = arrivals.fill(from: socket, counting: &counters)
            arrivals.forEach(counting: &counters) { span, source, arrival in
                result.append(
                    Datagram(bytes: span.withUnsafeBytes { Array($0) }, source: source, arrival: arrival))
            }
        }
        return result
    }
}

extension SendBatch {
    mutating func append(_ bytes: [UInt8], to destination: TransportAddress) {
        append(to: destination, capacity: 1_500) { span in
            span.withUnsafeMutableBytes { $0.copyBytes(from: bytes) }
            return bytes.count
        }
    }
}

/// A datagram that tells itself from all others: `number` in front, then a filling that depends on it.
func datagram(_ number: Int, size: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: number &* 31), count: size)
    for index in 0..<min(4, size) { bytes[index] = UInt8(truncatingIfNeeded: number >> (24 - 8 * index)) }
    return bytes
}
