import Base
import CLinux
import Glibc
import Wire

@testable import Net

/// Two ends of a connection that has no addresses.
///
/// One is for the code under test, and a test says where it comes from; the other one the test reads and writes.
/// Nothing here waits: what one end sends has come at the other.
final class StreamPair {
    /// The end for the code under test, which closes it.
    let inner: Int32
    private let outer: Int32
    private var reader = FrameReader()
    /// Whether the other end was seen to be closed.
    private(set) var isClosed = false

    init() throws {
        var ends: [Int32] = [-1, -1]
        let result = clinux_stream_pair(&ends)
        guard result == 0 else { throw NetError.system(operation: "make a pair of sockets", code: -result) }
        inner = ends[0]
        outer = ends[1]
    }

    deinit {
        clinux_close(outer)
    }

    /// Sends bytes as they are.
    func send(raw bytes: [UInt8]) {
        _ = bytes.withUnsafeBytes {
            clinux_stream_send(outer, $0.baseAddress, Int32(clamping: $0.count))
        }
    }

    func send(_ text: String) { send(raw: Array(text.utf8)) }

    /// What has come, as it is.
    func receiveRaw() -> [UInt8] {
        var found: [UInt8] = []
        var input = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = input.withUnsafeMutableBytes {
                Int(clinux_stream_receive(outer, $0.baseAddress, Int32(clamping: $0.count)))
            }
            guard count > 0 else {
                if count != -Int(EAGAIN) { isClosed = true }
                return found
            }
            found += input.prefix(count)
        }
    }

    /// The datagrams that have come in frames.
    func receive() -> [[UInt8]] {
        let bytes = receiveRaw()
        var found: [[UInt8]] = []
        try? reader.read(bytes[...]) { datagram in
            found.append(datagram.withUnsafeBytes { Array($0) })
        }
        return found
    }

    /// Whether the other end is closed; reads what came before.
    func hasEnded() -> Bool {
        _ = receiveRaw()
        return isClosed
    }
}

extension [StreamPair] {
    /// Of each, whether its other end is closed.
    func haveEnded() -> [Bool] { map { $0.hasEnded() } }
}
