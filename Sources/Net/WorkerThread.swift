import Base
import CLinux
import Synchronization

/// How a worker is set up.
package struct WorkerConfiguration: Sendable {
    /// Where its socket is bound; port 0 lets the kernel choose.
    package var address: TransportAddress
    /// Used in the thread's name: `rostrum-w0`.
    package var index = 0
    /// Name of the thread, at most 15 bytes; nil to use the index.
    package var name: String?
    /// The only CPU that the thread may run on; nil for any.
    package var cpu: Int?
    /// Niceness of the thread, if the system permits it (`RLIMIT_NICE`, `CAP_SYS_NICE`).
    package var niceness = Self.wantedNiceness
    /// Commands that may wait in the mailbox; as many essential ones again.
    package var mailboxCapacity = 16_384
    /// Bytes requested for the socket's buffer, in each direction.
    package var socketBufferBytes = 4 << 20
    /// Memory for a batch of datagrams and for the backlog.
    package var sendCapacity = SendBatch.Capacity()
    /// Limits for data that waits for the reader of a TCP connection.
    var frameLimits = FrameQueue.Limits()
    /// The socket of another worker whose port this one joins; nil to bind `address`.
    package var joined: DatagramSocket?
    /// Whether other workers may join this one's port.
    package var isPortShared = false
    /// Where those workers leave datagrams that belong to this one; nil if the port is not shared.
    package var handedOver: DatagramMailbox?
    /// Routes to clients of TURN over UDP, to which the worker sends directly; nil if there are none.
    package var routes: ChannelRoutes?
    /// Answers in the kernel's place to what is sent, on the worker's thread; for tests.
    package var refuse: (@Sendable (OutgoingMessage) -> Int32?)?

    /// Niceness of workers: they need microseconds per packet and must not wait for threads that work for
    /// milliseconds.
    package static let wantedNiceness: Int32 = -8

    /// - Parameter address: where the socket is to be bound.
    package init(address: TransportAddress) {
        self.address = address
    }
}

/// A thread with one epoll loop and one UDP socket, on which a handler lives.
///
/// The handler is made on the thread and is not `Sendable`, so the compiler keeps it and everything it owns there.
/// Other threads reach it by `post`. A worker that is released without `stop` is told to stop, without waiting for
/// its end.
package final class WorkerThread<Handler: DatagramHandler & ~Copyable>: Sendable {
    package typealias Command = Handler.Command

    /// Where its socket is bound, with the actual port.
    package var localAddress: TransportAddress { shared.socket.localAddress }
    /// Its socket, for workers that join the port.
    package var socket: DatagramSocket { shared.socket }
    /// Whether the thread is restricted to the requested CPU.
    package var isPinned: Bool { thread.isPinned }
    /// Wakes the loop without a command, for inboxes that other workers fill.
    package var waker: Waker { shared.waker }

    private let shared: WorkerShared<Command>
    private let thread: NativeThread

    /// Binds the socket, then starts the thread.
    ///
    /// - Throws: if the address is in use or not permitted, or the system has no descriptor or thread left.
    /// - Parameter makeHandler: called once, on the new thread.
    package init(
        _ configuration: WorkerConfiguration, makeHandler: @escaping @Sendable (WorkerStart) -> Handler
    ) throws(NetError) {
        let socket =
            if let first = configuration.joined {
                try DatagramSocket(joining: first, bufferBytes: configuration.socketBufferBytes)
            } else {
                try DatagramSocket(
                    bind: configuration.address, bufferBytes: configuration.socketBufferBytes,
                    sharing: configuration.isPortShared)
            }
        let shared = WorkerShared<Command>(
            socket: socket, waker: try Waker(), mailbox: Mailbox(capacity: configuration.mailboxCapacity),
            handedOver: configuration.handedOver)
        configuration.handedOver?.setWaker(shared.waker)
        // Opened here and not on the thread, so that errors can be thrown.
        let streams = try TCPEvents()
        let events = try EventQueue(waker: shared.waker, socket: socket, streams: streams)
        self.shared = shared
        let name = configuration.name ?? "rostrum-w\(configuration.index)"
        thread = try NativeThread(name: name, cpu: configuration.cpu) {
            Self.live(shared, events, streams, configuration, makeHandler)
        }
    }

    deinit {
        requestStop()
    }

    /// Body of the thread: makes the handler and the loop, and runs them until the worker is stopped.
    private static func live(
        _ shared: WorkerShared<Command>, _ events: EventQueue, _ streamEvents: TCPEvents,
        _ configuration: WorkerConfiguration,
        _ makeHandler: @Sendable (WorkerStart) -> Handler
    ) {
        _ = clinux_thread_prefer(configuration.niceness)
        let now = MonotonicClock.now()
        let streams = TCPConnections(events: streamEvents, limits: configuration.frameLimits)
        var loop = WorkerLoop<Handler>(
            shared: shared, poller: Poller(events), streams: streams,
            sink: SendBatch(
                socket: shared.socket, streams: streams, routes: configuration.routes,
                capacity: configuration.sendCapacity,
                hashKey: UInt64.random(in: .min ... .max), refuse: configuration.refuse),
            handler: makeHandler(WorkerStart(localAddress: shared.socket.localAddress, now: now)),
            now: now)
        loop.run()
    }

    /// Queues a command; the handler performs it in its next batch.
    /// - Parameter isEssential: for commands that release something and so must get through; see `Mailbox`.
    /// - Returns: false if the mailbox is full or the worker has been told to stop.
    package func post(_ command: Command, isEssential: Bool = false) -> Bool {
        switch shared.mailbox.post(command, isEssential: isEssential) {
        case .first, .queued:
            // Even for `.queued`: the thread that posted the first command may not have called `wake` yet.
            shared.waker.wake()
            return true
        case .full, .closed: return false
        }
    }

    /// Gives the worker a TCP connection, whose frames it receives as datagrams from the connection's address.
    /// - Returns: false if too many wait already or the worker has been told to stop.
    package func adopt(_ handover: ConnectionHandover) -> Bool {
        switch shared.handovers.post(handover) {
        case .first, .queued:
            shared.waker.wake()
            return true
        case .full, .closed: return false
        }
    }

    /// The counters as of the last copy, at most about a second before the latest activity; final after `stop`.
    package var statistics: WorkerStatistics {
        shared.statistics.withLock { $0 }
    }

    /// Makes the worker perform what is in its mailbox, say goodbye and end, without waiting for that.
    package func requestStop() {
        shared.mailbox.close()
        shared.handovers.close()
        shared.waker.wake()
    }

    /// Stops the worker and waits for its end: its handler's `stop` was called, and what it sent has left.
    package func stop() {
        requestStop()
        thread.join()
    }
}
