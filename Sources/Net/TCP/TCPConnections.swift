import Base
import CLinux
import Glibc
import Peer
import Wire

/// An epoll instance for a worker's TCP connections; closed when its last owner is gone.
///
/// The worker's own instance watches this one, so that a turn without TCP costs nothing.
final class TCPEvents: Sendable {
    let descriptor: Int32

    init() throws(NetError) {
        descriptor = clinux_poll_open()
        guard descriptor >= 0 else { throw .system(operation: "open an epoll instance", code: -descriptor) }
    }

    deinit {
        clinux_close(descriptor)
    }
}

/// The TCP connections of one worker: each stands for an address, as if its frames were datagrams.
///
/// Belongs to the worker's thread and never blocks. A connection is closed when its client closes it, when its
/// framing is broken, when its reader accepts nothing for half a minute, and when no session has its address (any
/// more). The handler is asked about that once a second.
package final class TCPConnections {
    /// Bytes of a datagram at most, and size of the buffer in which datagrams are written before they are queued.
    private static let longestDatagram = 2_048
    /// Bytes after which a connection is flushed within a batch, so that a burst does not count as a long queue.
    private static let earlyFlush = 64 << 10
    /// Connections read in one batch; epoll reports the others in the next.
    private static let readsPerBatch = 64
    /// Between two checks which connections sessions still need.
    private static let sweepInterval = Duration.seconds(1)
    /// A connection whose kernel buffer accepts nothing for this long is closed.
    private static let stall = Duration.seconds(30)
    /// Between two reports of a backlog: several in the time in which a queue becomes noticeable.
    private static let measurementInterval = Duration.milliseconds(20)

    private let events: TCPEvents
    private let limits: FrameQueue.Limits
    /// Bytes that all queues together may hold before each is limited to little.
    private let budget: Int
    private var connections: [UInt32: TCPConnection] = [:]
    private var byAddress: [TransportAddress: TCPConnection] = [:]
    private var tokens = [UInt32](repeating: 0, count: readsPerBatch)
    /// Connections with new output in this batch.
    private var dirty: [TCPConnection] = []
    /// Addresses of closed connections, for `takeLost`.
    private var lost: [TransportAddress] = []
    private var nextToken: UInt32 = 0
    private var nextSweep = MonotonicTime.zero
    /// Connections whose backlog is reported; see `measure`.
    private var measured: [TCPConnection] = []
    private var nextMeasurement = MonotonicTime.distantFuture
    private var input = [UInt8](repeating: 0, count: 64 << 10)
    private var output = MessageMemory(
        .init(bytes: longestDatagram, messages: 0, vectors: 0, names: 0), isIPv4: true)
    /// Bytes in all queues together.
    private var waiting = 0
    private var now = MonotonicTime.zero
    private var totals = TCPCounters()

    init(events: TCPEvents, limits: FrameQueue.Limits = .init(), budget: Int = 64 << 20) {
        self.events = events
        self.limits = limits
        self.budget = budget
    }

    /// When `sweep`, `measure` or `takeLost` should be called; nil without connections.
    var deadline: MonotonicTime? {
        guard lost.isEmpty else { return .zero }
        return connections.isEmpty ? nil : min(nextSweep, nextMeasurement)
    }

    var counters: TCPCounters {
        var counters = totals
        counters.connections = connections.count
        return counters
    }

    /// Begins a batch; other methods use its time.
    func begin(at now: MonotonicTime) {
        self.now = now
    }

    // MARK: Coming and going

    /// Adopts a connection.
    ///
    /// The bytes that came with it are passed to `take(_:from:_:)` afterwards.
    ///
    /// - Returns: nil if there is no free token or the kernel refuses; the connection is then closed.
    func adopt(_ handover: ConnectionHandover) -> TCPConnection? {
        // The client has connected again from the same address and port, so the older connection is over.
        if let older = byAddress[handover.connection.remote] { close(older, because: \.closedByPeer) }
        guard let token = freeToken() else { return nil }
        let connection = TCPConnection(
            handover.connection, token: token, deadline: handover.deadline, limits: limits, at: now)
        guard clinux_poll_set(events.descriptor, connection.descriptor, token, 0, 1) == 0 else { return nil }
        if connections.isEmpty { nextSweep = now + Self.sweepInterval }
        connections[token] = connection
        byAddress[connection.address] = connection
        totals.adopted &+= 1
        return connection
    }

    private func freeToken() -> UInt32? {
        for _ in 0...connections.count {
            nextToken &+= 1
            if connections[nextToken] == nil { return nextToken }
        }
        return nil
    }

    /// Closes a connection and counts why.
    private func close(_ connection: TCPConnection, because reason: WritableKeyPath<TCPCounters, UInt64>) {
        guard connections.removeValue(forKey: connection.token) != nil else { return }
        byAddress[connection.address] = nil
        // The list would keep the connection, and so its socket, alive.
        if connection.isMeasured { measured.removeAll { $0 === connection } }
        _ = clinux_poll_forget(events.descriptor, connection.descriptor)
        waiting -= connection.queue.waiting
        totals[keyPath: reason] &+= 1
        lost.append(connection.address)
    }

    /// Takes the addresses of connections that were closed since the last call.
    func takeLost() -> [TransportAddress] {
        guard !lost.isEmpty else { return [] }
        defer { lost.removeAll() }
        return lost
    }

    /// Closes connections that no session needs and connections that are stalled, once a second.
    /// - Parameter isKnown: whether a session has the address.
    func sweep(_ isKnown: (TransportAddress) -> Bool) {
        guard nextSweep <= now else { return }
        nextSweep = now + Self.sweepInterval
        for connection in Array(connections.values) {
            if isKnown(connection.address) {
                connection.deadline = nil
            } else if connection.deadline.map({ $0 <= now }) ?? true {
                // Checked once a second, so the session's last words, such as a goodbye, had that long to leave.
                close(connection, because: \.closedStrange)
                continue
            }
            if !connection.queue.isEmpty, now - connection.lastProgress > Self.stall {
                close(connection, because: \.closedStalled)
            }
        }
    }

    // MARK: Reading

    /// Reads once from each connection that has input, and calls `visit` with every datagram.
    func receive(_ visit: (inout MutableSpan<UInt8>, TransportAddress) -> Void) {
        let ready = unsafe clinux_poll_wait_many(
            events.descriptor, &tokens, Int32(clamping: Self.readsPerBatch), 0)
        for index in 0..<Int(max(ready, 0)) {
            guard let connection = connections[tokens[index]] else { continue }
            // Room to write is reported together with input. The flush comes at the end of the batch.
            if connection.isBlocked { markDirty(connection) }
            read(connection, visit)
        }
    }

    private func read(
        _ connection: TCPConnection, _ visit: (inout MutableSpan<UInt8>, TransportAddress) -> Void
    ) {
        let count = unsafe input.withUnsafeMutableBytes { buffer in
            unsafe Int(
                clinux_stream_receive(
                    connection.descriptor, buffer.baseAddress, Int32(clamping: buffer.count)))
        }
        if count > 0 {
            take(input[..<count], from: connection, visit)
        } else if count != -Int(EAGAIN) {
            close(connection, because: \.closedByPeer)
        }
    }

    /// Receives bytes of a connection, and closes it if its framing is broken.
    func take(
        _ bytes: ArraySlice<UInt8>, from connection: TCPConnection,
        _ visit: (inout MutableSpan<UInt8>, TransportAddress) -> Void
    ) {
        var frames: UInt64 = 0
        let isFraming = connection.take(bytes) { datagram in
            frames &+= 1
            visit(&datagram, connection.address)
        }
        totals.bytesIn &+= UInt64(bytes.count)
        totals.framesIn &+= frames
        if !isFraming { close(connection, because: \.closedMalformed) }
    }

    // MARK: Sending

    /// Queues a datagram for a connection; drops it if the connection is gone or its reader is too slow.
    func append<Failure: Error>(
        to destination: TransportAddress, capacity: Int,
        _ write: (inout MutableSpan<UInt8>) throws(Failure) -> Int
    ) throws(Failure) {
        guard let connection = byAddress[destination], capacity <= Self.longestDatagram else {
            totals.droppedClosed &+= 1
            return
        }
        let length = try output.withBytes(at: 0, count: capacity, write)
        guard length > 0, length <= capacity else { return }
        let before = connection.queue.waiting
        let drops = connection.queue.drops
        output.withBytes(at: 0, count: length) { datagram in
            connection.queue.append(datagram.span, isTight: waiting > budget, at: now)
        }
        count(connection, before: before, drops: drops)
        if !connection.isBlocked {
            markDirty(connection)
            if connection.queue.waiting >= Self.earlyFlush { flush(connection) }
        }
    }

    /// Lists a connection to be flushed at the end of the batch.
    private func markDirty(_ connection: TCPConnection) {
        guard !connection.isDirty else { return }
        connection.isDirty = true
        dirty.append(connection)
    }

    /// Sends what waits on the connections that have new output or new room.
    func flush() {
        guard !dirty.isEmpty else { return }
        for connection in dirty {
            connection.isDirty = false
            if connections[connection.token] === connection { flush(connection) }
        }
        dirty.removeAll(keepingCapacity: true)
    }

    /// Reports the backlog of connections with data under way, and once more when all of it is acknowledged.
    func measure(_ visit: (TransportAddress, StreamBacklog) -> Void) {
        guard nextMeasurement <= now else { return }
        measured.removeAll { connection in
            guard let backlog = connection.backlog else {
                connection.isMeasured = false
                return true
            }
            connection.isMeasured = backlog.waiting > 0
            visit(connection.address, backlog)
            return !connection.isMeasured
        }
        nextMeasurement = measured.isEmpty ? .distantFuture : now + Self.measurementInterval
    }

    /// Starts reporting a connection's backlog, until everything is acknowledged.
    private func beginMeasuring(_ connection: TCPConnection) {
        guard !connection.isMeasured else { return }
        connection.isMeasured = true
        measured.append(connection)
        nextMeasurement = min(nextMeasurement, now + Self.measurementInterval)
    }

    private func flush(_ connection: TCPConnection) {
        beginMeasuring(connection)
        let before = connection.queue.waiting
        let drops = connection.queue.drops
        let (framesBefore, bytesBefore) = (connection.queue.framesSent, connection.queue.bytesSent)
        let isAlive = connection.flush(at: now)
        totals.framesOut &+= connection.queue.framesSent &- framesBefore
        totals.bytesOut &+= connection.queue.bytesSent &- bytesBefore
        count(connection, before: before, drops: drops)
        guard isAlive else { return close(connection, because: \.closedByPeer) }
        if connection.isBlocked != connection.watchesWritable {
            connection.watchesWritable = connection.isBlocked
            _ = clinux_poll_set(
                events.descriptor, connection.descriptor, connection.token, connection.isBlocked ? 1 : 0, 0)
        }
    }

    /// Updates the totals after one connection's queue has changed.
    private func count(_ connection: TCPConnection, before: Int, drops: FrameQueue.Drops) {
        let now = connection.queue.drops
        waiting += connection.queue.waiting - before
        totals.droppedVideo &+= now.video &- drops.video
        totals.droppedOther &+= now.other &- drops.other
    }
}
