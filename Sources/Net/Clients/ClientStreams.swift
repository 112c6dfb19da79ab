import Base
import CLinux
import Glibc

/// Plain TCP connections of many clients behind one epoll instance, for load tests of HTTP and WebSockets.
///
/// Belongs to one thread. Connections are identified by tokens that the owner chooses. The kernel records when bytes
/// arrive, so that a load test can subtract its own delay from its measurements.
package final class ClientStreams {
    /// The result of one read.
    package enum Received: Equatable {
        /// The number of bytes, and the nanoseconds since the last of them arrived; nil if the kernel did not record
        /// that.
        case bytes(Int, age: Int64?)
        /// Nothing has arrived.
        case nothing
        /// It was closed, or broke.
        case ended
    }

    private let poll: Int32
    /// File descriptors by token; negative where there is no connection.
    private var descriptors: [Int32] = []
    private var tokens = [UInt32](repeating: 0, count: 256)

    private static let wakerToken = UInt32.max
    /// Above every token: bounds the table, which is an array.
    private static let limit = 1 << 20

    /// - Parameter waker: interrupts `wait`; clearing it is up to the caller.
    /// - Throws: if the process has no descriptor left.
    package init(waker: Waker) throws(NetError) {
        poll = clinux_poll_open()
        guard poll >= 0 else { throw .system(operation: "open an epoll instance", code: -poll) }
        let result = clinux_poll_set(poll, waker.descriptor, Self.wakerToken, 0, 1)
        // `deinit` closes the instance, also when this throws: all properties are set.
        guard result == 0 else { throw .system(operation: "watch a descriptor", code: -result) }
    }

    deinit {
        for descriptor in descriptors where descriptor >= 0 { clinux_close(descriptor) }
        clinux_close(poll)
    }

    /// Connects, and blocks until that has succeeded or failed.
    /// - Parameter token: not in use, and below 2^20.
    package func open(
        _ address: TransportAddress, token: Int, milliseconds: Int32 = 3_000
    ) throws(NetError) {
        guard token >= 0, token < Self.limit, descriptor(token) == nil else {
            throw .system(operation: "connect to TCP \(address)", code: EINVAL)
        }
        let descriptor = clinux_tcp_connect(clinux_address(address))
        guard descriptor >= 0 else {
            throw .system(operation: "connect to TCP \(address)", code: -descriptor)
        }
        var result = clinux_tcp_finish(descriptor, milliseconds)
        if result == 0 { result = clinux_stream_note_arrivals(descriptor) }
        if result == 0 { result = clinux_poll_watch_edges(poll, descriptor, UInt32(token)) }
        guard result == 0 else {
            clinux_close(descriptor)
            throw .system(operation: "connect to TCP \(address)", code: -result)
        }
        while descriptors.count <= token { descriptors.append(-1) }
        descriptors[token] = descriptor
    }

    /// Closes a connection; does nothing if there is none.
    package func close(token: Int) {
        guard let descriptor = descriptor(token) else { return }
        descriptors[token] = -1
        clinux_close(descriptor)
    }

    /// Sends without waiting.
    /// - Returns: whether the kernel accepted all of it.
    package func send(_ bytes: [UInt8], token: Int) -> Bool {
        guard let descriptor = descriptor(token) else { return false }
        return unsafe bytes.withUnsafeBytes {
            unsafe Int(clinux_stream_send(descriptor, $0.baseAddress, Int32(clamping: $0.count))) == $0.count
        }
    }

    /// Reads once, without waiting.
    ///
    /// If the buffer was filled, read again: `wait` does not report bytes that were left.
    package func receive(token: Int, into buffer: inout [UInt8]) -> Received {
        guard let descriptor = descriptor(token) else { return .ended }
        var age: Int64 = -1
        let count = unsafe buffer.withUnsafeMutableBytes {
            unsafe Int(
                clinux_stream_receive_noted(descriptor, $0.baseAddress, Int32(clamping: $0.count), &age))
        }
        guard count <= 0 else { return .bytes(count, age: age < 0 ? nil : age) }
        return count == -Int(EAGAIN) ? .nothing : .ended
    }

    /// Waits for something to read, or for the waker.
    /// - Parameter visit: called with the token of each readable connection; it must read until nothing is left.
    package func wait(nanoseconds: Int64, _ visit: (Int) -> Void) {
        let count = unsafe Int(
            clinux_poll_wait_many(poll, &tokens, Int32(clamping: tokens.count), max(nanoseconds, 0)))
        for token in tokens.prefix(max(count, 0)) where token != Self.wakerToken { visit(Int(token)) }
    }

    private func descriptor(_ token: Int) -> Int32? {
        guard descriptors.indices.contains(token), descriptors[token] >= 0 else { return nil }
        return descriptors[token]
    }
}
