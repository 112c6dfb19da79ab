import Base
import CLinux
import Glibc
import Synchronization

/// A listening TCP socket; closed when its last owner is gone.
private final class ListenSocket: Sendable {
    /// Connections that the kernel keeps until they are accepted.
    private static let backlog: Int32 = 512

    let descriptor: Int32
    let localAddress: TransportAddress

    init(_ address: TransportAddress) throws(NetError) {
        descriptor = clinux_tcp_listen(clinux_address(address), Self.backlog)
        guard descriptor >= 0 else { throw NetError(binding: address, code: -descriptor) }
        var bound = clinux_address()
        let result = unsafe clinux_local_address(descriptor, &bound)
        localAddress = TransportAddress(bound).over(.tcp)
        guard result == 0 else { throw NetError(binding: address, code: -result) }
    }

    deinit {
        if descriptor >= 0 { clinux_close(descriptor) }
    }
}

/// Where a server gets its TCP connections from.
package enum ConnectionSource: Sendable {
    /// From a port that the server opens.
    case port(TransportAddress)
    /// From a mixed port, which shares its port among protocols.
    case inbox(ConnectionInbox)
}

/// A TCP port, and the epoll instance that watches it and its connections; shared by the port's thread and its owner.
final class ListeningPort: Sendable {
    /// Tokens of the descriptors that are not connections.
    enum Token {
        static let waker: UInt32 = 1
        static let socket: UInt32 = 2
        static let firstConnection: UInt32 = 16
    }

    /// Nil if connections come through an inbox.
    private let socket: ListenSocket?
    private let inbox: ConnectionInbox?
    private let tunesConnections: Bool
    private let events: TCPEvents
    let waker: Waker
    private let isStopping = Atomic(false)

    /// Where it listens, with the actual port.
    let localAddress: TransportAddress

    /// - Parameter tunesConnections: whether connections are for media; see `clinux_stream_tune`.
    convenience init(_ address: TransportAddress, tunesConnections: Bool = true) throws(NetError) {
        let socket = try ListenSocket(address.over(.tcp))
        try self.init(socket, nil, at: socket.localAddress, tunesConnections)
    }

    convenience init(_ source: ConnectionSource) throws(NetError) {
        switch source {
        case .port(let address): try self.init(address)
        case .inbox(let inbox):
            try self.init(nil, inbox, at: inbox.localAddress, true)
            inbox.open(waking: waker)
        }
    }

    private init(
        _ socket: ListenSocket?, _ inbox: ConnectionInbox?, at address: TransportAddress,
        _ tunesConnections: Bool
    ) throws(NetError) {
        self.socket = socket
        self.inbox = inbox
        localAddress = address
        self.tunesConnections = tunesConnections
        waker = try Waker()
        events = try TCPEvents()
        for (token, descriptor) in [
            (Token.waker, waker.descriptor), (Token.socket, socket?.descriptor ?? -1),
        ] where descriptor >= 0 {
            let result = clinux_poll_set(events.descriptor, descriptor, token, 0, 1)
            guard result == 0 else { throw .system(operation: "watch a descriptor", code: -result) }
        }
    }

    deinit {
        closeInbox()
    }

    // MARK: For its owner

    /// Makes the thread end, without waiting for that.
    func requestStop() {
        isStopping.store(true, ordering: .releasing)
        waker.wake()
    }

    // MARK: For its thread

    var isStopped: Bool { isStopping.load(ordering: .acquiring) }

    /// Waits for an event, the waker or a deadline; nil waits without limit.
    /// - Parameter tokens: receives the tokens of the descriptors that are ready.
    /// - Returns: how many there are.
    func wait(until deadline: MonotonicTime?, into tokens: inout [UInt32]) -> Int {
        let nanoseconds = deadline.map { max($0.nanoseconds(since: MonotonicClock.now()), 0) } ?? -1
        let count = unsafe clinux_poll_wait_many(
            events.descriptor, &tokens, Int32(clamping: tokens.count), nanoseconds)
        return Int(max(count, 0))
    }

    /// Accepts the next connection, without waiting.
    /// - Returns: its descriptor, or a negative `errno`; `-EAGAIN` if none waits or there is no socket.
    func accept(_ remote: inout clinux_address) -> Int32 {
        guard let socket else { return -EAGAIN }
        return unsafe clinux_tcp_accept(socket.descriptor, &remote, tunesConnections ? 1 : 0)
    }

    /// Takes the connections that a mixed port has passed on since the last call.
    func takeArrivals() -> [ConnectionArrival] { inbox?.take() ?? [] }

    /// Refuses further connections from a mixed port, and closes those not taken yet.
    func closeInbox() { inbox?.close() }

    /// Stops or resumes watching the listening socket; meanwhile new connections wait in the kernel.
    func setListening(_ isListening: Bool) {
        guard let socket else { return }
        if isListening {
            _ = clinux_poll_set(events.descriptor, socket.descriptor, Token.socket, 0, 1)
        } else {
            _ = clinux_poll_forget(events.descriptor, socket.descriptor)
        }
    }

    /// Watches a connection for input, and reports it as long as there is some.
    /// - Returns: false if the kernel refuses.
    func watch(_ descriptor: Int32, as token: UInt32) -> Bool {
        clinux_poll_set(events.descriptor, descriptor, token, 0, 1) == 0
    }

    /// Watches a connection for input, room to write and its end; each change is reported once.
    /// - Returns: false if the kernel refuses.
    func watchChanges(_ descriptor: Int32, as token: UInt32) -> Bool {
        clinux_poll_set_changes(events.descriptor, descriptor, token) == 0
    }

    /// Starts or stops watching a connection for room to write, beside input.
    func watch(_ descriptor: Int32, as token: UInt32, forWriting: Bool) {
        _ = clinux_poll_set(events.descriptor, descriptor, token, forWriting ? 1 : 0, 0)
    }

    func forget(_ descriptor: Int32) {
        _ = clinux_poll_forget(events.descriptor, descriptor)
    }
}
