import Base
import CLinux
import Synchronization

/// State shared by a worker's thread and its owner.
final class WorkerShared<Command: Sendable>: Sendable {
    let socket: DatagramSocket
    let waker: Waker
    let mailbox: Mailbox<Command>
    /// TCP connections handed to the worker and not yet adopted.
    let handovers = Mailbox<ConnectionHandover>(capacity: 1_024)
    /// Datagrams from other workers on the same port; nil if the port is not shared.
    let handedOver: DatagramMailbox?
    /// The thread's latest copy of its counters; it holds the lock for the copy only.
    let statistics = Mutex(WorkerStatistics())

    init(
        socket: DatagramSocket, waker: Waker, mailbox: Mailbox<Command>, handedOver: DatagramMailbox?
    ) {
        self.socket = socket
        self.waker = waker
        self.mailbox = mailbox
        self.handedOver = handedOver
    }
}

/// The loop of one worker: waits, takes a batch of events, lets the handler process them, sends.
struct WorkerLoop<Handler: DatagramHandler & ~Copyable>: ~Copyable {
    /// Most `recvmmsg` calls in one batch, so that a flood of datagrams delays neither timers nor sending.
    private static var receivesPerBatch: Int { 4 }
    /// Between two copies of the counters, in nanoseconds.
    private static var statisticsInterval: Int64 { 1_000_000_000 }
    /// How long to wait if a handler did not move a deadline that has passed, in nanoseconds.
    private static var stalledDeadline: Int64 { 1_000_000 }
    /// How long the last datagrams may wait for room in the socket's buffer when the worker stops.
    private static var farewellMilliseconds: Int32 { 100 }

    private let shared: WorkerShared<Handler.Command>
    private var handler: Handler
    private var poller: Poller
    private let streams: TCPConnections
    private var handovers: [ConnectionHandover] = []
    private var sink: SendBatch
    private var arrivals: ReceiveBatch
    /// Datagrams from other workers, swapped out of the mailbox.
    private var handedOver = DatagramBundle()
    private var received = TrafficCounters()
    /// Commands swapped out of the mailbox; the two arrays change places, so neither is allocated again.
    private var commands: [Handler.Command] = []
    private var statistics = WorkerStatistics()
    /// When the counters were last copied.
    private var copied: MonotonicTime
    /// Whether the counters may have changed since the last copy.
    ///
    /// Without that the loop need not wake up to copy them.
    private var hasNews = false

    init(
        shared: WorkerShared<Handler.Command>, poller: consuming Poller, streams: TCPConnections,
        sink: consuming SendBatch, handler: consuming Handler, now: MonotonicTime
    ) {
        self.shared = shared
        self.poller = poller
        self.streams = streams
        self.sink = sink
        self.handler = handler
        arrivals = ReceiveBatch(coalesces: shared.socket.coalesces)
        copied = now
        statistics.time = now
    }

    /// Runs until the mailbox is closed and its last commands were performed.
    mutating func run() {
        var now = MonotonicClock.now()
        while true {
            // `now` is still the end of the batch before.
            let ready = poller.wait(nanoseconds: patience(at: now))
            now = MonotonicClock.now()
            let sentBefore = sink.counters.datagramsOut
            sink.begin(at: now)
            streams.begin(at: now)
            // Connections that were closed or expired in the last batch come before new events; see `tendStreams`.
            if streams.deadline.map({ $0 <= now }) ?? false { tendStreams(at: now) }
            if ready.writable { sink.becameWritable(at: now) }
            var isOpen = ready.waker ? takeCommands(at: now) : true
            if ready.readable, !takeDatagrams(at: now) { isOpen = false }
            if let mailbox = shared.handedOver, !takeHandedOver(from: mailbox, at: now) { isOpen = false }
            if ready.streams { takeFrames(at: now) }
            // Stopping: `stop` of the handler replaces what would still be due.
            guard isOpen else { break }
            // All input of the batch has been received. Now the handler acts on it, and everything leaves together.
            handler.endOfBatch(at: now, into: &sink)
            if let deadline = handler.deadline, deadline <= now { handler.advance(to: now, into: &sink) }
            sink.flush(at: now)
            streams.flush()
            poller.watchWritable(sink.isBlocked, of: shared.socket)
            let end = MonotonicClock.now()
            statistics.noteBatch(from: now, to: end, sent: sink.counters.datagramsOut &- sentBefore)
            now = end
            hasNews = true
            if now.nanoseconds(since: copied) >= Self.statisticsInterval { copyStatistics(at: now) }
        }
        sayGoodbye()
    }

    /// How long to wait for events, in nanoseconds: until a deadline or the next copy of the counters; nil for no
    /// limit.
    private func patience(at now: MonotonicTime) -> Int64? {
        if handler.wantsTurn { return 0 }
        var wait: Int64?
        if let deadline = handler.deadline {
            let left = deadline.nanoseconds(since: now)
            wait = left > 0 ? left : Self.stalledDeadline
        }
        if let deadline = streams.deadline {
            let left = max(deadline.nanoseconds(since: now), 0)
            wait = min(wait ?? left, left)
        }
        if hasNews {
            let left = max(Self.statisticsInterval - now.nanoseconds(since: copied), 0)
            wait = min(wait ?? left, left)
        }
        return wait
    }

    /// Performs the waiting commands, then adopts the waiting connections.
    /// - Returns: false if the mailbox is closed, so that these were the last commands.
    private mutating func takeCommands(at now: MonotonicTime) -> Bool {
        // Before the mailbox is emptied: see `Waker.clear`.
        shared.waker.clear()
        let isOpen = shared.mailbox.swap(into: &commands)
        statistics.commands &+= UInt64(commands.count)
        for index in commands.indices { handler.perform(commands[index], at: now, into: &sink) }
        commands.removeAll(keepingCapacity: true)
        _ = shared.handovers.swap(into: &handovers)
        if !handovers.isEmpty { takeConnections(at: now) }
        return isOpen
    }

    /// Receives datagrams, after commands that were posted before they were sent.
    ///
    /// A client may send its first check as soon as it has its answer, and this thread may have waited for a CPU
    /// meanwhile. So the commands are looked at once more between reading a datagram and handling it: the session
    /// then exists.
    /// - Returns: false if the mailbox was closed meanwhile.
    private mutating func takeDatagrams(at now: MonotonicTime) -> Bool {
        var isOpen = true
        for _ in 0..<Self.receivesPerBatch {
            let mayHaveMore = arrivals.fill(from: shared.socket, counting: &received)
            if shared.waker.isPending, !takeCommands(at: now) { isOpen = false }
            arrivals.forEach(counting: &received) { datagram, source, _ in
                handler.receive(&datagram, from: source, at: now, into: &sink)
            }
            guard mayHaveMore else { break }
        }
        return isOpen
    }

    /// Receives datagrams that the kernel gave to other workers, in the same order relative to commands.
    /// - Returns: false if the mailbox was closed meanwhile.
    private mutating func takeHandedOver(from mailbox: DatagramMailbox, at now: MonotonicTime) -> Bool {
        mailbox.swapContents(with: &handedOver)
        guard !handedOver.isEmpty else { return true }
        let isOpen = shared.waker.isPending ? takeCommands(at: now) : true
        handedOver.forEach { datagram, source in
            handler.receiveHandedOver(&datagram, from: source, at: now, into: &sink)
        }
        statistics.handedOver &+= UInt64(handedOver.count)
        handedOver.removeAll()
        return isOpen
    }

    // MARK: TCP

    /// Adopts handed-over connections, and receives what was already read from them.
    ///
    /// The commands of the batch were performed before, because one of them may create a connection's session.
    private mutating func takeConnections(at now: MonotonicTime) {
        for index in handovers.indices {
            let connection = streams.adopt(handovers[index])
            tellLosses(at: now)
            guard let connection else { continue }
            streams.take(handovers[index].firstBytes[...], from: connection) { datagram, source in
                handler.receive(&datagram, from: source, at: now, into: &sink)
            }
        }
        handovers.removeAll(keepingCapacity: true)
    }

    /// Receives from connections that have input; the handler learns of closed ones before and after.
    private mutating func takeFrames(at now: MonotonicTime) {
        tellLosses(at: now)
        streams.receive { datagram, source in
            handler.receive(&datagram, from: source, at: now, into: &sink)
        }
        tellLosses(at: now)
    }

    /// Closes connections that no session needs, and reports what was closed and how far the others are.
    ///
    /// Runs before the batch's other work: a session's last words were flushed at the end of the batch before.
    private mutating func tendStreams(at now: MonotonicTime) {
        streams.sweep { handler.knows($0) }
        tellLosses(at: now)
        streams.measure { address, backlog in handler.note(backlog, of: address, at: now) }
    }

    /// Notifies the handler of each connection that was closed.
    private mutating func tellLosses(at now: MonotonicTime) {
        for address in streams.takeLost() { handler.lose(address, at: now, into: &sink) }
    }

    /// Copies the counters to where other threads can read them.
    private mutating func copyStatistics(at now: MonotonicTime) {
        var traffic = sink.counters
        traffic.datagramsIn = received.datagramsIn
        traffic.bytesIn = received.bytesIn
        traffic.receiveCalls = received.receiveCalls
        traffic.coalescedMessagesIn = received.coalescedMessagesIn
        traffic.droppedTruncated = received.droppedTruncated
        traffic.droppedByKernel = shared.socket.droppedByKernel
        statistics.tcp = streams.counters
        statistics.update(traffic: traffic, processorNanoseconds: ProcessorClock.threadNanoseconds(), at: now)
        shared.statistics.withLock { [statistics] in $0 = statistics }
        copied = now
        hasNews = false
    }

    /// Lets the handler say goodbye, and waits a moment for room to send that.
    private mutating func sayGoodbye() {
        let now = MonotonicClock.now()
        streams.begin(at: now)
        handler.stop(at: now, into: &sink)
        sink.flush(at: now)
        streams.flush()
        if sink.isBlocked, clinux_wait_writable(shared.socket.descriptor, Self.farewellMilliseconds) > 0 {
            sink.becameWritable(at: now)
        }
        copyStatistics(at: MonotonicClock.now())
    }
}
