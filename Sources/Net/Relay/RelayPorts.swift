import Base
import CLinux
import Synchronization

/// UDP sockets in the names of clients that reach this machine by a relay, and the thread that reads them.
///
/// What comes to a port waits in it, within a limit, until its owner takes it; the owner is told when there is
/// something.
package final class RelayPorts: Sendable {
    private static let wakerToken: UInt32 = 1

    private struct State {
        var ports: [UInt32: RelayPort] = [:]
        var lastToken = wakerToken
    }

    /// What the thread and the owner share.
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
    /// For what is sent by all ports.
    private let sender = Mutex(DirectSinkBuffer())

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
    /// - Parameter notify: called by the thread when something has come and nothing waited before; must not wait.
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

    /// Lets a port go: nothing comes by it any more.
    package func close(_ port: RelayPort) {
        let token = port.token.load(ordering: .relaxed)
        guard shared.state.withLock({ $0.ports.removeValue(forKey: token) }) != nil else { return }
        _ = clinux_poll_forget(shared.events.descriptor, port.socket.descriptor)
    }

    /// Sends a datagram by a port at once; drops it where the kernel does not take it.
    package func send(_ datagram: [UInt8], by port: RelayPort, to peer: TransportAddress) {
        sender.withLock { buffer in
            var sink = DirectSink(socket: port.socket, buffer: buffer)
            sink.append(to: peer, capacity: datagram.count) { bytes in
                for index in datagram.indices { bytes[index] = datagram[index] }
                return datagram.count
            }
        }
    }

    /// Ends the thread; what comes to ports is not read any more.
    package func stop() {
        shared.isStopping.store(true, ordering: .releasing)
        shared.waker.wake()
        thread.join()
        shared.state.withLock { $0.ports.removeAll() }
    }

    /// What the thread does.
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
                // Others come in between; what is left is there in the next turn.
                _ = batch.fill(from: port.socket, counting: &counters)
                port.take(&batch, counting: &counters)
            }
        }
    }
}

/// A UDP socket in the name of a client.
package final class RelayPort: Sendable {
    /// In bytes: a publisher's key frame by several workers; what is beyond is dropped, because its owner does not
    /// take it.
    static let limit = 512 << 10
    /// Of the kernel, for a key frame that a worker sends at once.
    private static let bufferBytes = 1 << 20

    /// The port is the one that the kernel chose.
    package var localAddress: TransportAddress { socket.localAddress }
    let socket: DatagramSocket
    let token = Atomic<UInt32>(0)
    private let notify: @Sendable () -> Void
    private let waiting = Mutex(RelayedDatagrams())

    init(at ip: IPAddress, notify: @escaping @Sendable () -> Void) throws(NetError) {
        socket = try DatagramSocket(
            bind: TransportAddress(ip: ip, port: 0), bufferBytes: Self.bufferBytes, coalescing: true)
        self.notify = notify
    }

    /// What came since the last call.
    package func take() -> RelayedDatagrams {
        waiting.withLock { waiting in
            defer { waiting = RelayedDatagrams() }
            return waiting
        }
    }

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

/// Datagrams that came to a relay's port, in order.
package struct RelayedDatagrams: Sendable {
    private typealias Entry = (source: TransportAddress, length: Int)

    private var bytes: [UInt8] = []
    private var entries: [Entry] = []
    /// For which there was no room.
    package fileprivate(set) var dropped = 0

    package init() {}

    package var count: Int { entries.count }
    var isEmpty: Bool { entries.isEmpty }
    /// With what is kept beside each datagram: empty ones cost something, too.
    var byteCount: Int { bytes.count + entries.count * MemoryLayout<Entry>.stride }

    mutating func append(_ datagram: Span<UInt8>, from source: TransportAddress) {
        // Byte by byte would take microseconds for each packet; the buffer is used within the call alone.
        unsafe datagram.withUnsafeBufferPointer { unsafe bytes.append(contentsOf: $0) }
        entries.append((source, datagram.count))
    }

    /// Appends as many as there is room for, the first ones, and counts the others.
    /// - Parameter limit: in bytes as `byteCount` counts them.
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

    /// Shows each datagram, in order, with where it came from.
    package func forEach(_ visit: (Span<UInt8>, TransportAddress) -> Void) {
        var start = 0
        for entry in entries {
            visit(bytes.span.extracting(start..<(start + entry.length)), entry.source)
            start += entry.length
        }
    }
}
