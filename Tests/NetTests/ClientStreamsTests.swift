import Base
import CLinux
import Testing

@testable import Net

/// Connections of clients, and the ends of a server that takes them.
private final class Lines {
    let waker: Waker
    let streams: ClientStreams
    private let listener: ListeningPort
    /// The server's ends, in the order of opening.
    private(set) var ends: [Int32] = []

    init() throws {
        waker = try Waker()
        streams = try ClientStreams(waker: waker)
        listener = try ListeningPort(TransportAddress(ip: .loopback, port: 0))
    }

    deinit {
        for end in ends { clinux_close(end) }
    }

    func open(_ token: Int) throws {
        try streams.open(listener.localAddress, token: token)
        var remote = clinux_address()
        let end = listener.accept(&remote)
        try #require(end >= 0)
        ends.append(end)
    }

    func send(_ bytes: [UInt8], from end: Int) {
        _ = bytes.withUnsafeBytes {
            clinux_stream_send(ends[end], $0.baseAddress, Int32(clamping: $0.count))
        }
    }

    /// What comes at the server's end, which is waited for.
    /// - Returns: nil at the end of the connection.
    func receive(at end: Int) -> [UInt8]? {
        guard clinux_wait_readable(ends[end], 60_000) > 0 else { return [] }
        var input = [UInt8](repeating: 0, count: 1_024)
        let count = input.withUnsafeMutableBytes {
            Int(clinux_stream_receive(ends[end], $0.baseAddress, Int32(clamping: $0.count)))
        }
        return count > 0 ? Array(input.prefix(count)) : nil
    }

    func close(_ end: Int) {
        clinux_stream_end(ends[end])
    }

    /// Waits until something is told of, which must be read by `visit`.
    func wait(_ visit: (Int) -> Void) {
        streams.wait(nanoseconds: 60_000_000_000, visit)
    }

    /// Waits until a connection is told of, and reads all of it.
    func read(_ token: Int, by size: Int = 64) -> (bytes: [UInt8], hasEnded: Bool) {
        var found: [UInt8] = []
        var hasEnded = false
        var buffer = [UInt8](repeating: 0, count: size)
        while found.isEmpty, !hasEnded {
            var told: [Int] = []
            wait { told.append($0) }
            guard !told.isEmpty else { return (found, hasEnded) }
            guard told.contains(token) else { continue }
            reading: while true {
                switch streams.receive(token: token, into: &buffer) {
                case .bytes(let count, age: _): found += buffer.prefix(count)
                case .nothing: break reading
                case .ended:
                    hasEnded = true
                    break reading
                }
            }
        }
        return (found, hasEnded)
    }
}

@Suite(.timeLimit(.minutes(5))) struct `Plain connections of many clients` {
    @Test func `are told of by their tokens, and read in as many pieces as it takes`() throws {
        let lines = try Lines()
        try lines.open(3)
        try lines.open(70)
        lines.send(Array(0..<200), from: 1)
        let read = lines.read(70, by: 64)
        #expect(read.bytes == Array(0..<200) && !read.hasEnded)
        lines.send([9], from: 0)
        let other = lines.read(3)
        #expect(other.bytes == [9])
        var buffer = [UInt8](repeating: 0, count: 8)
        let rest = lines.streams.receive(token: 70, into: &buffer)
        #expect(rest == .nothing)
    }

    @Test func `send to their own server's end`() throws {
        let lines = try Lines()
        try lines.open(1)
        try lines.open(0)
        let isSent = lines.streams.send([1, 2], token: 0) && lines.streams.send([3], token: 1)
        #expect(isSent)
        #expect(lines.receive(at: 1) == [1, 2])
        #expect(lines.receive(at: 0) == [3])
    }

    @Test(arguments: [-1, 1 << 20, Int.max, 5])
    func `are not opened under a token that cannot be or is in use`(token: Int) throws {
        let lines = try Lines()
        try lines.open(5)
        let address = TransportAddress(ip: .loopback, port: 1)
        #expect(throws: NetError.self) { try lines.streams.open(address, token: token) }
        // The one that was there is still there.
        let isSent = lines.streams.send([4], token: 5)
        #expect(isSent)
        #expect(lines.receive(at: 0) == [4])
    }

    @Test func `are closed once, and may be opened again under the same token`() throws {
        let lines = try Lines()
        try lines.open(2)
        lines.streams.close(token: 2)
        lines.streams.close(token: 2)
        #expect(lines.receive(at: 0) == nil)
        let isSent = lines.streams.send([1], token: 2)
        #expect(!isSent)
        try lines.open(2)
        lines.send([8], from: 1)
        let read = lines.read(2)
        #expect(read.bytes == [8] && !read.hasEnded)
        let isSentNow = lines.streams.send([1], token: 2)
        #expect(isSentNow)
        #expect(lines.receive(at: 1) == [1])
    }

    @Test(arguments: [-1, 0, 7, Int.max, Int.min])
    func `are over where there are none`(token: Int) throws {
        let lines = try Lines()
        try lines.open(3)
        var buffer = [UInt8](repeating: 0, count: 8)
        let received = lines.streams.receive(token: token, into: &buffer)
        #expect(received == .ended)
        let isSent = lines.streams.send([1], token: token)
        #expect(!isSent)
        lines.streams.close(token: token)
        let left = lines.streams.receive(token: 3, into: &buffer)
        #expect(left == .nothing)
    }

    @Test func `end after what came before`() throws {
        let lines = try Lines()
        try lines.open(4)
        lines.send([1, 2, 3], from: 0)
        lines.close(0)
        var all = lines.read(4)
        if !all.hasEnded {
            let rest = lines.read(4)
            all = (all.bytes + rest.bytes, rest.hasEnded)
        }
        #expect(all.bytes == [1, 2, 3] && all.hasEnded)
    }

    @Test func `are not told of when the waker is signaled, and are afterwards`() throws {
        let lines = try Lines()
        try lines.open(1)
        lines.waker.wake()
        var told: [Int] = []
        lines.wait { told.append($0) }
        #expect(told.isEmpty)
        #expect(lines.waker.isPending)
        lines.waker.clear()
        lines.send([6], from: 0)
        let read = lines.read(1)
        #expect(read.bytes == [6])
    }
}
