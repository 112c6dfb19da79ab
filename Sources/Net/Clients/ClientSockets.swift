import Base
import CLinux

/// Many sockets behind one epoll instance, as load tests need them: one for each client, so that servers can tell
/// clients apart by address.
///
/// Belongs to one thread. Sockets are known by tokens of the owner's choice; each one's buffer in the kernel is its
/// own, so that none overflows because of another. Datagram sockets are watched, or looked at in turns.
package final class ClientSockets {
    private let poll: Int32
    private var sockets: [Int: DatagramSocket] = [:]
    private var streams: [Int: TCPConnection] = [:]
    private var input = [UInt8](repeating: 0, count: 64 << 10)
    private var tokens = [UInt32](repeating: 0, count: 128)
    /// The datagram sockets while they are looked at; nil while they are watched.
    private var round: SocketRound?
    private var ready: [UInt32] = []

    init(waker: Waker) throws(NetError) {
        poll = clinux_poll_open()
        guard poll >= 0 else { throw .system(operation: "open an epoll instance", code: -poll) }
        let result = clinux_poll_set(poll, waker.descriptor, Self.wakerToken, 0, 1)
        guard result == 0 else {
            clinux_close(poll)
            throw .system(operation: "watch a descriptor", code: -result)
        }
    }

    deinit {
        clinux_close(poll)
    }

    private static let wakerToken = UInt32.max

    /// Begins to listen.
    /// - Parameter token: not in use, and below 2^31.
    /// - Returns: false if the kernel refuses.
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

    /// What sends through the socket of this token; nil if there is none.
    package func sink(of token: Int, buffer: DirectSinkBuffer) -> DirectSink? {
        if let socket = sockets[token] { return DirectSink(socket: socket, buffer: buffer) }
        return streams[token].map { DirectSink(connection: $0, buffer: buffer) }
    }

    /// Stops listening; the socket closes when its last owner lets it go.
    /// - Returns: datagrams that the kernel dropped because it was not read in time.
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

    /// Datagrams that the kernel dropped because the sockets now open were not read in time.
    package var droppedByKernel: UInt64 {
        sockets.values.reduce(0) { $0 &+ $1.droppedByKernel }
    }

    subscript(token: Int) -> DatagramSocket? { sockets[token] }

    /// Reads all that has come over the TCP connection of this token, and sends what still waits there.
    func readStream(_ token: Int, _ visit: (inout MutableSpan<UInt8>, TransportAddress) -> Void) {
        guard let stream = streams[token] else { return }
        _ = stream.flush(at: MonotonicClock.now())
        while true {
            let count = unsafe input.withUnsafeMutableBytes { buffer in
                unsafe Int(
                    clinux_stream_receive(
                        stream.descriptor, buffer.baseAddress, Int32(clamping: buffer.count)))
            }
            // What is closed stays silent, as a network that is down; ICE notices.
            guard count > 0, stream.take(input[..<count], { visit(&$0, stream.address) }) else { return }
        }
    }

    /// Whether `wait` tells of datagram sockets; else `look` does.
    var isWatching: Bool { round == nil }

    /// Lets datagram sockets be looked at from now on.
    func stopWatching() {
        guard isWatching else { return }
        var round = SocketRound()
        for (token, socket) in sockets {
            _ = clinux_poll_forget(poll, socket.descriptor)
            round.append(socket.descriptor, token: UInt32(token))
        }
        self.round = round
    }

    /// Lets `wait` tell of datagram sockets again, also of what came before and was not read.
    ///
    /// If the kernel refuses one of them, all are looked at as before.
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

    /// Looks at some of the datagram sockets, the next ones each time.
    /// - Parameter visit: called with the token of each that has something to read.
    /// - Returns: whether that was the end of a round over all of them.
    func look(_ visit: (Int) -> Void) -> Bool {
        guard let isOver = round?.look(into: &ready) else { return true }
        for token in ready { visit(Int(token)) }
        return isOver
    }

    /// Waits for something to read.
    /// - Parameter visit: called with each socket's token; it must read until nothing is left.
    /// - Returns: whether the waker called.
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
