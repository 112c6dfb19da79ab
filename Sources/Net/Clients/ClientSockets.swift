import Base
import CLinux

/// Many sockets behind one epoll instance, one for each simulated client, as load tests need them.
///
/// Each client has an address and a kernel buffer of its own, so the server can tell clients apart and no buffer
/// overflows because of another client. Belongs to one thread. Sockets are identified by tokens that the owner
/// chooses. Datagram sockets are either watched by epoll or polled in rounds, see `SocketRound`.
package final class ClientSockets {
    private let poll: Int32
    private var sockets: [Int: DatagramSocket] = [:]
    private var streams: [Int: TCPConnection] = [:]
    private var input = [UInt8](repeating: 0, count: 64 << 10)
    private var tokens = [UInt32](repeating: 0, count: 128)
    /// The datagram sockets while they are polled; nil while they are watched.
    private var round: SocketRound?
    /// Tokens that the last round found ready; kept for its memory.
    private var ready: [UInt32] = []

    init(waker: Waker) throws(NetError) {
        poll = clinux_poll_open()
        guard poll >= 0 else { throw .system(operation: "open an epoll instance", code: -poll) }
        let result = clinux_poll_set(poll, waker.descriptor, Self.wakerToken, 0, 1)
        // `deinit` closes the instance, also when this throws: all properties are set.
        guard result == 0 else { throw .system(operation: "watch a descriptor", code: -result) }
    }

    deinit {
        clinux_close(poll)
    }

    private static let wakerToken = UInt32.max

    /// Starts receiving from a socket.
    /// - Parameter token: not in use, and below 2^31 - 1.
    /// - Returns: false if the token cannot be used or the kernel refuses.
    package func add(_ socket: ClientSocket, token: Int) -> Bool {
        guard let number = UInt32(exactly: token), number < UInt32(Int32.max), sockets[token] == nil,
            streams[token] == nil
        else { return false }
        switch socket {
        case .datagram(let socket):
            if isWatching {
                guard clinux_poll_watch_edges(poll, socket.descriptor, number) == 0 else { return false }
            } else {
                round?.append(socket.descriptor, token: number)
            }
            sockets[token] = socket
        case .stream(let socket):
            guard clinux_poll_watch_edges(poll, socket.connection.descriptor, number) == 0 else {
                return false
            }
            streams[token] = TCPConnection(
                socket.connection, token: number, deadline: nil, limits: FrameQueue.Limits(),
                at: MonotonicClock.now())
        }
        return true
    }

    /// A sink that sends through the socket of this token; nil if there is none.
    package func sink(of token: Int, buffer: DirectSinkBuffer) -> DirectSink? {
        if let socket = sockets[token] { return DirectSink(socket: socket, buffer: buffer) }
        return streams[token].map { DirectSink(connection: $0, buffer: buffer) }
    }

    /// Stops receiving from a socket; the socket closes when its last owner releases it.
    /// - Returns: datagrams that the kernel dropped because the socket was not read in time.
    @discardableResult
    package func remove(token: Int) -> UInt64 {
        if let stream = streams.removeValue(forKey: token) {
            _ = clinux_poll_forget(poll, stream.descriptor)
            return 0
        }
        guard let socket = sockets.removeValue(forKey: token) else { return 0 }
        if isWatching {
            _ = clinux_poll_forget(poll, socket.descriptor)
        } else {
            round?.remove(token: UInt32(token))
        }
        return socket.droppedByKernel
    }

    /// Datagrams that the kernel dropped because they were not read in time, over the sockets now open.
    package var droppedByKernel: UInt64 {
        sockets.values.reduce(0) { $0 &+ $1.droppedByKernel }
    }

    subscript(token: Int) -> DatagramSocket? { sockets[token] }

    /// Receives everything that has arrived on a TCP connection, after sending what still waits on it.
    func readStream(_ token: Int, _ visit: (inout MutableSpan<UInt8>, TransportAddress) -> Void) {
        guard let stream = streams[token] else { return }
        _ = stream.flush(at: MonotonicClock.now())
        while true {
            let count = unsafe input.withUnsafeMutableBytes { buffer in
                unsafe Int(
                    clinux_stream_receive(
                        stream.descriptor, buffer.baseAddress, Int32(clamping: buffer.count)))
            }
            // A closed connection just delivers nothing more, like a network that is down; the client's ICE notices.
            guard count > 0, stream.take(input[..<count], { visit(&$0, stream.address) }) else { return }
        }
    }

    /// Whether `wait` reports datagram sockets; otherwise `look` does.
    var isWatching: Bool { round == nil }

    /// Switches from watching datagram sockets to polling them.
    func stopWatching() {
        guard isWatching else { return }
        var round = SocketRound()
        for (token, socket) in sockets {
            _ = clinux_poll_forget(poll, socket.descriptor)
            round.append(socket.descriptor, token: UInt32(token))
        }
        self.round = round
    }

    /// Switches back to watching datagram sockets; `wait` also reports datagrams that arrived before.
    ///
    /// If the kernel refuses one of the sockets, all stay polled.
    func startWatching() {
        guard !isWatching else { return }
        let isWatched = sockets.allSatisfy { token, socket in
            clinux_poll_watch_edges(poll, socket.descriptor, UInt32(token)) == 0
        }
        if isWatched {
            round = nil
        } else {
            for socket in sockets.values { _ = clinux_poll_forget(poll, socket.descriptor) }
        }
    }

    /// Polls the next datagram sockets of the round.
    /// - Parameter visit: called with the token of each socket that has something to read.
    /// - Returns: whether the round is complete.
    func look(_ visit: (Int) -> Void) -> Bool {
        guard let isOver = round?.look(into: &ready) else { return true }
        for token in ready { visit(Int(token)) }
        return isOver
    }

    /// Waits for something to read.
    /// - Parameters:
    ///   - nanoseconds: the longest wait; nil for no limit.
    ///   - visit: called with the token of each readable socket. It must read until nothing is left, because epoll
    ///     reports new arrivals only.
    /// - Returns: whether the waker was signaled.
    func wait(nanoseconds: Int64?, _ visit: (Int) -> Void) -> Bool {
        let limit = nanoseconds.map { max($0, 0) } ?? -1
        let count = unsafe Int(clinux_poll_wait_many(poll, &tokens, Int32(clamping: tokens.count), limit))
        var isAwake = false
        for token in tokens.prefix(max(count, 0)) {
            if token == Self.wakerToken { isAwake = true } else { visit(Int(token)) }
        }
        return isAwake
    }
}
