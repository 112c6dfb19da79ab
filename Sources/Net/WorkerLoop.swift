import Base
import CLinux
import Synchronization

/// What a worker's thread and its owner share.
final class WorkerShared<Command: Sendable>: Sendable {
    let socket: DatagramSocket
    let waker: Waker
    let mailbox: Mailbox<Command>
    /// TCP connections on their way to the worker.
    let handovers = Mailbox<ConnectionHandover>(capacity: 1_024)
    /// Datagrams from workers that share the port; nil where none does.
    let handedOver: DatagramMailbox?
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

/// The loop of one worker: waits, takes a batch, lets the handler work on it, sends.
struct WorkerLoop<Handler: DatagramHandler & ~Copyable>: ~Copyable {
    /// `recvmmsg` calls in one batch, so that a flood delays neither timers nor what is to be sent.
    private static var receivesPerBatch: Int { 4 }
    private static var statisticsInterval: Int64 { 1_000_000_000 }
    /// How long to wait when a handler does not move a deadline that has passed.
    private static var stalledDeadline: Int64 { 1_000_000 }
    /// How long the last datagrams may take to leave.
    private static var farewellMilliseconds: Int32 { 100 }

    private let shared: WorkerShared<Handler.Command>
    private var handler: Handler
    private var poller: Poller
    private let streams: TCPConnections
    private var handovers: [ConnectionHandover] = []
    private var sink: SendBatch
    private var arrivals: ReceiveBatch
    private var handedOver = DatagramBundle()
    private var received = TrafficCounters()
    private var commands: [Handler.Command] = []
    private var statistics = WorkerStatistics()
    private var copied: MonotonicTime
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

    /// Runs until the mailbox is closed.
    mutating func run() {
        var now = MonotonicClock.now()
        while true {
            // Here, `now` is the end of the turn before.
            let ready = poller.wait(nanoseconds: patience(at: now))
            now = MonotonicClock.now()
            let sentBefore = sink.counters.datagramsOut
            sink.begin(at: now)
            streams.begin(at: now)
            if streams.deadline.map({ $0 <= now }) ?? false { tendStreams(at: now) }
            if ready.writable { sink.becameWritable(at: now) }
            var isOpen = ready.waker ? takeCommands(at: now) : true
            if ready.readable, !takeDatagrams(at: now) { isOpen = false }
            if let mailbox = shared.handedOver, !takeHandedOver(from: mailbox, at: now) { isOpen = false }
            if ready.streams { takeFrames(at: now) }
            guard isOpen else { break }
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

    /// How long to wait for the next event: until the handler's deadline, or the next copy of statistics.
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

    /// - Returns: false if these were the last.
    private mutating func takeCommands(at now: MonotonicTime) -> Bool {
        shared.waker.clear()
        let isOpen = shared.mailbox.swap(into: &commands)
        statistics.commands &+= UInt64(commands.count)
        for index in commands.indices { handler.perform(commands[index], at: now, into: &sink) }
        commands.removeAll(keepingCapacity: true)
        _ = shared.handovers.swap(into: &handovers)
        if !handovers.isEmpty { takeConnections(at: now) }
        return isOpen
    }

    /// What control asked for before a datagram was sent is done before the datagram is looked at: a session whose
    /// client has its answer is there when its first check comes, however long this thread had to wait for a CPU.
    ///
    /// - Returns: false if commands came meanwhile that were the last.
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

    /// What other workers took from the port, by the same rule.
    /// - Returns: false if commands came meanwhile that were the last.
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

    /// Commands come before: the session of a connection may be among them.
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

    private mutating func takeFrames(at now: MonotonicTime) {
        tellLosses(at: now)
        streams.receive { datagram, source in
            handler.receive(&datagram, from: source, at: now, into: &sink)
        }
        tellLosses(at: now)
    }

    /// Comes before the batch's work, so that what a session said last has left.
    private mutating func tendStreams(at now: MonotonicTime) {
        streams.sweep { handler.knows($0) }
        tellLosses(at: now)
        streams.measure { address, backlog in handler.note(backlog, of: address, at: now) }
    }

    private mutating func tellLosses(at now: MonotonicTime) {
        for address in streams.takeLost() { handler.lose(address, at: now, into: &sink) }
    }

    /// Copies the counters to where others can read them.
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
