import Base
import Synchronization

/// What lives on a client thread: it is made there, called there, and never leaves.
///
/// The mirror of `DatagramHandler` for the other end of the wire. Sends through `DirectSink`s of its own.
package protocol ClientHandler: ~Copyable, SendableMetatype {
    associatedtype Command: Sendable

    /// Carries out what the owner posted, in order.
    mutating func perform(_ command: Command, at now: MonotonicTime)

    /// Takes one datagram that came to the socket of this token.
    ///
    /// - Parameters:
    ///   - arrival: when it reached the socket, by the kernel's account if it gives one; not later than `now`.
    ///   - now: read after the socket was.
    mutating func receive(
        _ datagram: inout MutableSpan<UInt8>, token: Int, from source: TransportAddress,
        arrival: MonotonicTime, at now: MonotonicTime
    )

    /// Comes when `deadline` has passed; must move it.
    mutating func advance(to now: MonotonicTime)

    /// When `advance` has to be called next. Read once per turn: keep it cheap.
    var deadline: MonotonicTime? { get }

    /// Comes once, last.
    mutating func stop(at now: MonotonicTime)
}

/// What a client handler is given when it is made, on its own thread.
package struct ClientStart {
    /// Of this thread alone; the handler adds and removes.
    package let sockets: ClientSockets
    /// Shared by all sinks of the thread.
    package let buffer: DirectSinkBuffer
    /// When the handler is made.
    package let now: MonotonicTime
}

/// A thread with one epoll loop over the sockets of many clients.
package final class ClientThread<Handler: ClientHandler & ~Copyable>: Sendable {
    private let waker: Waker
    private let mailbox: Mailbox<Handler.Command>
    private let thread: NativeThread

    /// Whether the kernel agreed to the CPU that was asked for.
    package var isPinned: Bool { thread.isPinned }

    /// - Parameters:
    ///   - name: of the thread; at most 15 bytes are kept.
    ///   - cpu: the only CPU it may run on; nil for any.
    ///   - coalesces: whether its sockets will have UDP_GRO on.
    package convenience init(
        name: String, cpu: Int?, coalesces: Bool,
        makeHandler: @escaping @Sendable (ClientStart) -> Handler
    ) throws(NetError) {
        try self.init(
            name: name, cpu: cpu, coalesces: coalesces, limits: LoadGauge.Limits(), makeHandler: makeHandler)
    }

    /// - Parameter limits: what is load.
    init(
        name: String, cpu: Int?, coalesces: Bool, limits: LoadGauge.Limits,
        makeHandler: @escaping @Sendable (ClientStart) -> Handler
    ) throws(NetError) {
        let waker = try Waker()
        let mailbox = Mailbox<Handler.Command>(capacity: 1 << 17)
        self.waker = waker
        self.mailbox = mailbox
        thread = try NativeThread(name: name, cpu: cpu) {
            // Without an epoll instance there is nothing to wait with; commands then find a full mailbox.
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

    /// - Returns: false if the thread has been told to stop, or its mailbox is full.
    @discardableResult
    package func post(_ command: Handler.Command) -> Bool {
        switch mailbox.post(command) {
        case .first:
            waker.wake()
            return true
        case .queued: return true
        case .full, .closed: return false
        }
    }

    /// Returns at once; `stop` waits.
    package func requestStop() {
        mailbox.close()
        waker.wake()
    }

    /// Ends the thread and waits for it.
    package func stop() {
        requestStop()
        thread.join()
    }
}

/// The loop of one client thread.
private struct ClientLoop<Handler: ClientHandler & ~Copyable>: ~Copyable {
    /// How long to wait when a handler does not move a deadline that has passed.
    private static var stalledDeadline: Int64 { 1_000_000 }
    /// Between two rounds over all sockets under load, in nanoseconds: so late may an answer be.
    private static var pause: Int64 { 1_000_000 }

    private let waker: Waker
    private let mailbox: Mailbox<Handler.Command>
    private let sockets: ClientSockets
    private var arrivals: ReceiveBatch
    private var received = TrafficCounters()
    private var handler: Handler
    private var commands: [Handler.Command] = []
    private var gauge: LoadGauge
    /// When sockets that are not watched are looked at next.
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

    /// Under load nobody is called for each datagram; see `SocketRound`.
    private mutating func noteLoad(at now: MonotonicTime) {
        gauge.note(datagrams: received.datagramsIn, at: now)
        if gauge.isUnderLoad { sockets.stopWatching() } else { sockets.startWatching() }
    }

    private mutating func look() {
        guard nextLook <= MonotonicClock.now(), sockets.look({ token in read(token) }) else { return }
        nextLook = MonotonicClock.now().advanced(byNanoseconds: Self.pause)
    }

    /// Lets more datagrams come before the next round; latency is told by the kernel's stamps, and does not suffer.
    private func rest() {
        let end = min(nextLook, handler.deadline ?? .distantFuture)
        MonotonicClock.sleep(nanoseconds: end.nanoseconds(since: MonotonicClock.now()))
    }

    private func patience(at now: MonotonicTime) -> Int64? {
        guard let deadline = handler.deadline else { return nil }
        let left = deadline.nanoseconds(since: now)
        return left > 0 ? left : Self.stalledDeadline
    }

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

    /// - Returns: false if these were the last.
    private mutating func takeCommands() -> Bool {
        waker.clear()
        let isOpen = mailbox.swap(into: &commands)
        let now = MonotonicClock.now()
        for command in commands { handler.perform(command, at: now) }
        commands.removeAll(keepingCapacity: true)
        return isOpen
    }
}
