import Base
import Synchronization

/// The logic that runs on a client thread: it is made there, called there, and never leaves it.
///
/// It is the counterpart of `DatagramHandler` for the client's side, and sends through its own `DirectSink`s.
package protocol ClientHandler: ~Copyable, SendableMetatype {
    associatedtype Command: Sendable

    /// Performs one command; commands come in the order of posting.
    mutating func perform(_ command: Command, at now: MonotonicTime)

    /// Receives one datagram, whose bytes it may change in place and must not keep.
    ///
    /// - Parameters:
    ///   - token: of the socket that received it.
    ///   - arrival: when it arrived at the socket, as recorded by the kernel if it does; never later than `now`.
    ///   - now: read after the socket was.
    mutating func receive(
        _ datagram: inout MutableSpan<UInt8>, token: Int, from source: TransportAddress,
        arrival: MonotonicTime, at now: MonotonicTime
    )

    /// Does what is due; called when `deadline` has passed, and must move it.
    mutating func advance(to now: MonotonicTime)

    /// When `advance` has to be called next; nil if nothing is scheduled.
    ///
    /// Read at least once per turn of the loop, so it must be cheap.
    var deadline: MonotonicTime? { get }

    /// The last call.
    mutating func stop(at now: MonotonicTime)
}

/// What a client handler gets when it is made, on its own thread.
package struct ClientStart {
    /// The thread's sockets, to which the handler adds its clients'.
    package let sockets: ClientSockets
    /// Buffer for all sinks of the thread.
    package let buffer: DirectSinkBuffer
    /// When the handler was made.
    package let now: MonotonicTime
}

/// A thread with one epoll loop over the sockets of many clients.
package final class ClientThread<Handler: ClientHandler & ~Copyable>: Sendable {
    private let waker: Waker
    private let mailbox: Mailbox<Handler.Command>
    private let thread: NativeThread

    /// Commands that may wait in the mailbox; as many essential ones again.
    package static var mailboxLimit: Int { 1 << 17 }

    /// Whether the thread is restricted to the requested CPU.
    package var isPinned: Bool { thread.isPinned }

    /// Starts the thread.
    /// - Parameters:
    ///   - name: of the thread; at most 15 bytes are kept.
    ///   - cpu: the only CPU that the thread may run on; nil for any.
    ///   - coalesces: whether its sockets will have UDP_GRO on.
    package convenience init(
        name: String, cpu: Int?, coalesces: Bool,
        makeHandler: @escaping @Sendable (ClientStart) -> Handler
    ) throws(NetError) {
        try self.init(
            name: name, cpu: cpu, coalesces: coalesces, limits: LoadGauge.Limits(), makeHandler: makeHandler)
    }

    /// - Parameter limits: when the thread counts as under load.
    init(
        name: String, cpu: Int?, coalesces: Bool, limits: LoadGauge.Limits,
        makeHandler: @escaping @Sendable (ClientStart) -> Handler
    ) throws(NetError) {
        let waker = try Waker()
        let mailbox = Mailbox<Handler.Command>(capacity: Self.mailboxLimit)
        self.waker = waker
        self.mailbox = mailbox
        thread = try NativeThread(name: name, cpu: cpu) {
            // Without an epoll instance the thread cannot wait for anything. Commands are refused from then on.
            guard let sockets = try? ClientSockets(waker: waker) else { return mailbox.close() }
            var loop = ClientLoop<Handler>(
                waker: waker, mailbox: mailbox, sockets: sockets, coalesces: coalesces, limits: limits,
                makeHandler: makeHandler)
            loop.run()
        }
    }

    deinit {
        requestStop()
    }

    /// Queues a command.
    /// - Parameter isEssential: for commands that release something and so must get through; see `Mailbox`.
    /// - Returns: false if the thread was told to stop, or its mailbox is full.
    @discardableResult
    package func post(_ command: Handler.Command, isEssential: Bool = false) -> Bool {
        switch mailbox.post(command, isEssential: isEssential) {
        case .first:
            waker.wake()
            return true
        case .queued: return true
        case .full, .closed: return false
        }
    }

    /// Makes the thread end, without waiting for that.
    package func requestStop() {
        mailbox.close()
        waker.wake()
    }

    /// Ends the thread and waits for that.
    package func stop() {
        requestStop()
        thread.join()
    }
}

/// The loop of one client thread.
private struct ClientLoop<Handler: ClientHandler & ~Copyable>: ~Copyable {
    /// How long to wait if a handler did not move a deadline that has passed, in nanoseconds.
    private static var stalledDeadline: Int64 { 1_000_000 }
    /// Between two rounds over all sockets under load, in nanoseconds; an answer may be late by that.
    private static var pause: Int64 { 1_000_000 }

    private let waker: Waker
    private let mailbox: Mailbox<Handler.Command>
    private let sockets: ClientSockets
    private var arrivals: ReceiveBatch
    private var received = TrafficCounters()
    private var handler: Handler
    private var commands: [Handler.Command] = []
    private var gauge: LoadGauge
    /// When sockets that are not watched are polled next.
    private var nextLook = MonotonicTime.zero

    init(
        waker: Waker, mailbox: Mailbox<Handler.Command>, sockets: ClientSockets, coalesces: Bool,
        limits: LoadGauge.Limits, makeHandler: @Sendable (ClientStart) -> Handler
    ) {
        self.waker = waker
        self.mailbox = mailbox
        self.sockets = sockets
        arrivals = ReceiveBatch(coalesces: coalesces)
        let now = MonotonicClock.now()
        gauge = LoadGauge(limits, at: now)
        handler = makeHandler(ClientStart(sockets: sockets, buffer: DirectSinkBuffer(), now: now))
    }

    /// Runs until the mailbox is closed.
    mutating func run() {
        var isOpen = true
        while isOpen {
            let limit = sockets.isWatching ? patience(at: MonotonicClock.now()) : 0
            let isAwake = sockets.wait(nanoseconds: limit) { token in read(token) }
            if !sockets.isWatching { look() }
            if isAwake { isOpen = takeCommands() }
            let now = MonotonicClock.now()
            if let deadline = handler.deadline, deadline <= now { handler.advance(to: now) }
            noteLoad(at: now)
            if !sockets.isWatching, isOpen { rest() }
        }
        handler.stop(at: MonotonicClock.now())
    }

    /// Switches between watching and polling: under load there is no callback per datagram, see `SocketRound`.
    private mutating func noteLoad(at now: MonotonicTime) {
        gauge.note(datagrams: received.datagramsIn, at: now)
        if gauge.isUnderLoad { sockets.stopWatching() } else { sockets.startWatching() }
    }

    /// Polls the next sockets, and begins a new round only after the pause.
    private mutating func look() {
        guard nextLook <= MonotonicClock.now(), sockets.look({ token in read(token) }) else { return }
        nextLook = MonotonicClock.now().advanced(byNanoseconds: Self.pause)
    }

    /// Sleeps until the next round, so that more datagrams gather.
    ///
    /// Measured latency does not suffer: it uses the arrival times that the kernel records.
    private func rest() {
        let end = min(nextLook, handler.deadline ?? .distantFuture)
        MonotonicClock.sleep(nanoseconds: end.nanoseconds(since: MonotonicClock.now()))
    }

    /// How long to wait for events, in nanoseconds; nil for no limit.
    private func patience(at now: MonotonicTime) -> Int64? {
        guard let deadline = handler.deadline else { return nil }
        let left = deadline.nanoseconds(since: now)
        return left > 0 ? left : Self.stalledDeadline
    }

    /// Receives everything that has arrived at one socket.
    private mutating func read(_ token: Int) {
        guard let socket = sockets[token] else {
            return sockets.readStream(token) { datagram, source in
                let now = MonotonicClock.now()
                handler.receive(&datagram, token: token, from: source, arrival: now, at: now)
            }
        }
        var mayHaveMore = true
        while mayHaveMore {
            mayHaveMore = arrivals.fill(from: socket, counting: &received)
            let now = MonotonicClock.now()
            arrivals.forEach(counting: &received) { datagram, source, stamped in
                handler.receive(
                    &datagram, token: token, from: source, arrival: min(stamped ?? now, now), at: now)
            }
        }
    }

    /// Performs the waiting commands.
    /// - Returns: false if the mailbox is closed, so that these were the last.
    private mutating func takeCommands() -> Bool {
        waker.clear()
        let isOpen = mailbox.swap(into: &commands)
        let now = MonotonicClock.now()
        for command in commands { handler.perform(command, at: now) }
        commands.removeAll(keepingCapacity: true)
        return isOpen
    }
}
