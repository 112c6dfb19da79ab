import Base
import CLinux
import Synchronization

/// How a worker is set up.
package struct WorkerConfiguration: Sendable {
    /// Where its socket is bound; port 0 lets the kernel choose.
    package var address: TransportAddress
    /// Names the thread: `rostrum-w0`.
    package var index = 0
    /// Of the thread, at most 15 bytes, where it is not to be named by the index.
    package var name: String?
    /// The only CPU it may run on; nil for any.
    package var cpu: Int?
    /// Of the thread, where the system allows it (`RLIMIT_NICE`, `CAP_SYS_NICE`).
    package var niceness = Self.wantedNiceness
    /// Commands that may wait; as many essential ones again.
    package var mailboxCapacity = 16_384
    package var socketBufferBytes = 4 << 20
    package var sendCapacity = SendBatch.Capacity()
    /// What may wait for the reader of a TCP connection.
    var frameLimits = FrameQueue.Limits()
    /// Of another worker, whose port this one is to have too; nil for a port of its own, at `address`.
    package var joined: DatagramSocket?
    /// Whether other workers may have this one's port.
    package var isPortShared = false
    /// Where those leave what they take from it, and is not theirs.
    package var handedOver: DatagramMailbox?
    /// The clients by TURN over UDP that it sends to itself; nil where there are none.
    package var routes: ChannelRoutes?
    /// Answers in the kernel's place about what is sent, on the worker's thread; for tests.
    package var refuse: (@Sendable (OutgoingMessage) -> Int32?)?

    /// What takes microseconds for each packet is not to wait for those who work for milliseconds.
    package static let wantedNiceness: Int32 = -8

    package init(address: TransportAddress) {
        self.address = address
    }
}

/// A thread with one epoll loop and one UDP socket, on which a handler lives.
///
/// The handler is made on the thread and is not `Sendable`, so the compiler keeps it and all it owns there.
/// Others reach it by `post`. A worker that is let go without `stop` is told to stop, and not waited for.
package final class WorkerThread<Handler: DatagramHandler & ~Copyable>: Sendable {
    package typealias Command = Handler.Command

    /// Where its socket is bound; the port is the real one.
    package var localAddress: TransportAddress { shared.socket.localAddress }
    package var socket: DatagramSocket { shared.socket }
    /// Whether the CPU asked for was granted.
    package var isPinned: Bool { thread.isPinned }
    /// Lets others wake the loop without a command, as a ring between workers does.
    package var waker: Waker { shared.waker }

    private let shared: WorkerShared<Command>
    private let thread: NativeThread

    /// Binds the socket, then starts the thread.
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
        // Opened here, where errors can be thrown.
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

    /// What the thread does from its first to its last moment.
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

    /// Queues a command; the handler gets it with its next batch.
    /// - Parameter isEssential: for commands that take something away, and so must come through; see `Mailbox`.
    /// - Returns: false if the mailbox is full or the worker has been told to stop.
    package func post(_ command: Command, isEssential: Bool = false) -> Bool {
        switch shared.mailbox.post(command, isEssential: isEssential) {
        case .first, .queued:
            // The thread that posted first may not have rung the wake-up yet.
            shared.waker.wake()
            return true
        case .full, .closed: return false
        }
    }

    /// Gives the worker a TCP connection: each of its frames is a datagram from its address.
    /// - Returns: false if too many wait already or the worker has been told to stop.
    package func adopt(_ handover: ConnectionHandover) -> Bool {
        switch shared.handovers.post(handover) {
        case .first, .queued:
            shared.waker.wake()
            return true
        case .full, .closed: return false
        }
    }

    /// The counters as of the last second in which something happened; final after `stop`.
    package var statistics: WorkerStatistics {
        shared.statistics.withLock { $0 }
    }

    /// Tells the worker to carry out what is in its mailbox, say goodbye and end, without waiting for it.
    package func requestStop() {
        shared.mailbox.close()
        shared.handovers.close()
        shared.waker.wake()
    }

    /// Ends the worker and waits for it: its handler's `stop` has come, and what it sent has left.
    package func stop() {
        requestStop()
        thread.join()
    }
}
