import Base
import CLinux
import Glibc
import Wire

@testable import Net

/// A peer that connects over the loopback interface: a plain TCP socket that a test reads and writes.
final class RemoteStream {
    private let descriptor: Int32
    private var reader = FrameReader()
    private(set) var isClosed = false
    let localAddress: TransportAddress

    init(to address: TransportAddress) throws {
        descriptor = clinux_tcp_connect(clinux_address(address))
        guard descriptor >= 0, clinux_tcp_finish(descriptor, 60_000) == 0 else {
            throw NetError.system(operation: "connect", code: -descriptor)
        }
        var local = clinux_address()
        _ = clinux_local_address(descriptor, &local)
        localAddress = TransportAddress(local).over(.tcp)
    }

    deinit {
        clinux_close(descriptor)
    }

    /// Sends bytes as they are.
    func send(raw bytes: [UInt8]) {
        _ = bytes.withUnsafeBytes {
            clinux_stream_send(descriptor, $0.baseAddress, Int32(clamping: $0.count))
        }
    }

    func send(_ datagram: [UInt8]) {
        guard let (high, low) = FrameReader.header(length: datagram.count) else { return }
        send(raw: [high, low] + datagram)
    }

    /// Makes the kernel take little on this side, so that a reader that does not read is soon noticed.
    func shrinkWindow() {
        _ = clinux_set_receive_buffer(descriptor, 8_192)
    }

    /// Waits until `count` datagrams have come, or the connection is closed.
    /// - Returns: what came; fewer than `count` if nothing came for a minute.
    func receive(_ count: Int) -> [[UInt8]] {
        var found: [[UInt8]] = []
        while found.count < count, !isClosed, clinux_wait_readable(descriptor, 60_000) > 0 {
            found += receiveWaiting()
        }
        return found
    }

    /// What has come, without waiting.
    func receiveWaiting() -> [[UInt8]] {
        var found: [[UInt8]] = []
        var input = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = input.withUnsafeMutableBytes {
                Int(clinux_stream_receive(descriptor, $0.baseAddress, Int32(clamping: $0.count)))
            }
            guard count > 0 else {
                if count != -Int(EAGAIN) { isClosed = true }
                return found
            }
            try? reader.read(input[..<count]) { datagram in
                found.append(datagram.withUnsafeBytes { Array($0) })
            }
        }
    }

    /// Waits for bytes as they are.
    /// - Returns: nothing once the other side has closed, or says nothing for a minute.
    func receiveRaw() -> [UInt8] {
        guard !isClosed, clinux_wait_readable(descriptor, 60_000) > 0 else { return [] }
        var input = [UInt8](repeating: 0, count: 16_384)
        let count = input.withUnsafeMutableBytes {
            Int(clinux_stream_receive(descriptor, $0.baseAddress, Int32(clamping: $0.count)))
        }
        isClosed = count <= 0
        return Array(input.prefix(max(count, 0)))
    }

    /// Says that nothing more comes, and still reads.
    func endOutput() { clinux_stream_end(descriptor) }

    /// Waits until the other side closes; false if it says and does nothing for a minute.
    func waitForClose() -> Bool {
        while !isClosed, clinux_wait_readable(descriptor, 60_000) > 0 { _ = receiveWaiting() }
        return isClosed
    }
}
