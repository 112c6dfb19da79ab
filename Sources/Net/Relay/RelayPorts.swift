import Base
import CLinux
import Synchronization

/// UDP sockets at the relayed addresses of clients (TURN), and the thread that reads them.
///
/// Received datagrams wait in the port, within a limit, until its owner takes them. The owner is notified when the
/// first one waits.
package final class RelayPorts: Sendable {
    private static let wakerToken: UInt32 = 1

    private struct State {
        var ports: [UInt32: RelayPort] = [:]
        var lastToken = wakerToken
    }

    /// State shared by the thread and the owner.
    private final class Shared: Sendable {
        let events: TCPEvents
        let waker: Waker
        let isStopping = Atomic(false)
        let state = Mutex(State())

        init() throws(NetError) {
            events = try TCPEvents()
            waker = try Waker()
            let result = clinux_poll_set(events.descriptor, waker.descriptor, wakerToken, 0, 1)
            guard result == 0 else { throw .system(operation: "watch a descriptor", code: -result) }
        }
    }

    private let shared: Shared
    private let thread: NativeThread
    /// Buffer for datagrams sent by any port; its lock makes sends from several threads take turns.
    private let sender = Mutex(DirectSinkBuffer())

    /// Starts the thread.
    /// - Throws: if the system has no descriptor or thread left.
    package init() throws(NetError) {
        let shared = try Shared()
        self.shared = shared
        thread = try NativeThread(name: "rostrum-relay", cpu: nil) { Self.read(shared) }
    }

    deinit {
        shared.isStopping.store(true, ordering: .releasing)
        shared.waker.wake()
    }

    /// Opens a port at an address of this machine.
    /// - Parameter notify: called on the reading thread when a datagram arrives and none waited before; must not
    ///   block.
    /// - Throws: if the address is not of this machine, or the system has no descriptor left.
    package func open(
        at ip: IPAddress, notify: @escaping @Sendable () -> Void
    ) throws(NetError) -> RelayPort {
        let port = try RelayPort(at: ip, notify: notify)
        let token = shared.state.withLock { state in
            repeat {
                state.lastToken = state.lastToken == .max ? Self.wakerToken + 1 : state.lastToken + 1
            } while state.ports[state.lastToken] != nil
            state.ports[state.lastToken] = port
            return state.lastToken
        }
        port.token.store(token, ordering: .relaxed)
        let result = clinux_poll_set(shared.events.descriptor, port.socket.descriptor, token, 0, 1)
        guard result == 0 else {
            close(port)
            throw .system(operation: "watch a descriptor", code: -result)
        }
        return port
    }

    /// Closes a port: its owner gets no more datagrams, and the socket closes with its last owner.
    package func close(_ port: RelayPort) {
        let token = port.token.load(ordering: .relaxed)
        guard shared.state.withLock({ $0.ports.removeValue(forKey: token) }) != nil else { return }
        _ = clinux_poll_forget(shared.events.descriptor, port.socket.descriptor)
    }

    /// Sends one datagram immediately; drops it if the kernel does not accept it.
    package func send(_ datagram: [UInt8], by port: RelayPort, to peer: TransportAddress) {
        sender.withLock { buffer in
            var sink = DirectSink(socket: port.socket, buffer: buffer)
            sink.append(to: peer, capacity: datagram.count) { bytes in
                for index in datagram.indices { bytes[index] = datagram[index] }
                return datagram.count
            }
        }
    }

    /// Ends the thread and waits for that, then releases all ports.
    package func stop() {
        shared.isStopping.store(true, ordering: .releasing)
        shared.waker.wake()
        thread.join()
        shared.state.withLock { $0.ports.removeAll() }
    }

    /// Body of the thread.
    private static func read(_ shared: Shared) {
        var tokens = [UInt32](repeating: 0, count: 64)
        var batch = ReceiveBatch(coalesces: true)
        var counters = TrafficCounters()
        while !shared.isStopping.load(ordering: .acquiring) {
            let count = unsafe clinux_poll_wait_many(
                shared.events.descriptor, &tokens, Int32(clamping: tokens.count), -1)
            for token in tokens.prefix(Int(max(count, 0))) {
                guard token != wakerToken else {
                    shared.waker.clear()
                    continue
                }
                guard let port = shared.state.withLock({ $0.ports[token] }) else { continue }
                // One read per turn, so that a busy port does not delay others; epoll reports the port again if more
                // waits.
                _ = batch.fill(from: port.socket, counting: &counters)
                port.take(&batch, counting: &counters)
            }
        }
    }
}

/// A UDP socket at a client's relayed address.
package final class RelayPort: Sendable {
    /// Bytes that may wait for the owner: a publisher's key frame by several workers.
    ///
    /// What exceeds it is dropped, because the owner is too slow.
    static let limit = 512 << 10
    /// Bytes requested for the kernel's buffers, for a key frame that a worker sends in one burst.
    private static let bufferBytes = 1 << 20

    /// The relayed address, with the port that the kernel chose.
    package var localAddress: TransportAddress { socket.localAddress }
    let socket: DatagramSocket
    /// Under which epoll reports it; set once, right after the port was opened.
    let token = Atomic<UInt32>(0)
    private let notify: @Sendable () -> Void
    /// Written by the reading thread, taken by the owner.
    private let waiting = Mutex(RelayedDatagrams())

    init(at ip: IPAddress, notify: @escaping @Sendable () -> Void) throws(NetError) {
        socket = try DatagramSocket(
            bind: TransportAddress(ip: ip, port: 0), bufferBytes: Self.bufferBytes, coalescing: true)
        self.notify = notify
    }

    /// Takes the datagrams that arrived since the last call.
    package func take() -> RelayedDatagrams {
        waiting.withLock { waiting in
            defer { waiting = RelayedDatagrams() }
            return waiting
        }
    }

    /// Moves what was read into the port; the owner is notified outside the lock, so that it may take them at once.
    fileprivate func take(_ batch: inout ReceiveBatch, counting counters: inout TrafficCounters) {
        var arrived = RelayedDatagrams()
        batch.forEach(counting: &counters) { datagram, source, _ in
            arrived.append(datagram.span, from: source)
        }
        let isFirst = waiting.withLock { [arrived] waiting in
            let wasEmpty = waiting.isEmpty
            waiting.append(arrived, within: Self.limit)
            return wasEmpty && !waiting.isEmpty
        }
        if isFirst { notify() }
    }
}

/// Datagrams received by a relay port, in order of arrival.
package struct RelayedDatagrams: Sendable {
    private typealias Entry = (source: TransportAddress, length: Int)

    private var bytes: [UInt8] = []
    private var entries: [Entry] = []
    /// Datagrams for which there was no room.
    package fileprivate(set) var dropped = 0

    /// No datagrams.
    package init() {}

    /// The number of datagrams.
    package var count: Int { entries.count }
    var isEmpty: Bool { entries.isEmpty }
    /// Bytes including what is stored beside each datagram, so that empty ones count, too.
    var byteCount: Int { bytes.count + entries.count * MemoryLayout<Entry>.stride }

    mutating func append(_ datagram: Span<UInt8>, from source: TransportAddress) {
        // Appending byte by byte would take microseconds per packet. The pointer is not used after the call.
        unsafe datagram.withUnsafeBufferPointer { unsafe bytes.append(contentsOf: $0) }
        entries.append((source, datagram.count))
    }

    /// Appends as many datagrams as there is room for, and counts the rest as dropped.
    /// - Parameter limit: in bytes, as `byteCount` counts.
    mutating func append(_ others: Self, within limit: Int) {
        var room = limit - byteCount
        var taken = (bytes: 0, count: 0)
        for entry in others.entries {
            room -= entry.length + MemoryLayout<Entry>.stride
            guard room >= 0 else { break }
            taken = (taken.bytes + entry.length, taken.count + 1)
        }
        bytes += others.bytes.prefix(taken.bytes)
        entries += others.entries.prefix(taken.count)
        dropped += others.count - taken.count
    }

    /// Calls `visit` with each datagram and its source, in order.
    package func forEach(_ visit: (Span<UInt8>, TransportAddress) -> Void) {
        var start = 0
        for entry in entries {
            visit(bytes.span.extracting(start..<(start + entry.length)), entry.source)
            start += entry.length
        }
    }
}
