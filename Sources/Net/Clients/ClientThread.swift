import Base
import Synchronization

/// What lives on a client thread: it is made there, called there, and never leaves.
///
/// The mirror of `DatagramHandler` for the other end of the wire. Sends through `DirectSink`s of its own.
package protocol ClientHandler: ~Copyable, SendableMetatype {
    associatedtype Command: Sendable

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
    package let sockets: ClientSockets
    package let buffer: DirectSinkBuffer
    package let now: MonotonicTime
}

/// A thread with one epoll loop over the sockets of many clients.
package final class ClientThread<Handler: ClientHandler & ~Copyable>: Sendable {
    private let waker: Waker
    private let mailbox: Mailbox<Handler.Command>
    private let thread: NativeThread

    package var isPinned: Bool { thread.isPinned }

    /// - Parameters:
    ///   - name: of the thread; at most 15 bytes are kept.
    ///   - cpu: the only CPU it may run on; nil for any.
    ///   - coalesces: whether its sockets will have UDP_GRO on.
    package init(
        name: String, cpu: Int?, coalesces: Bool,
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
                waker: waker, mailbox: mailbox, sockets: sockets, coalesces: coalesces,
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
    /// Longest rest between two rounds under load, in nanoseconds; see `rest`.
    private static var longestRest: Int64 { 500_000 }
    /// From so many datagrams a second on a thread rests.
    private static var restingRate: Int64 { 20_000 }
    private static var rateWindow: Int64 { 50_000_000 }

    private let waker: Waker
    private let mailbox: Mailbox<Handler.Command>
    private let sockets: ClientSockets
    private var arrivals: ReceiveBatch
    private var received = TrafficCounters()
    private var handler: Handler
    private var commands: [Handler.Command] = []
    private var windowStart = MonotonicClock.now()
    private var windowDatagrams: UInt64 = 0
    private var isUnderLoad = false

    init(
        waker: Waker, mailbox: Mailbox<Handler.Command>, sockets: ClientSockets, coalesces: Bool,
        makeHandler: @Sendable (ClientStart) -> Handler
    ) {
        self.waker = waker
        self.mailbox = mailbox
        self.sockets = sockets
        arrivals = ReceiveBatch(coalesces: coalesces)
        handler = makeHandler(
            ClientStart(sockets: sockets, buffer: DirectSinkBuffer(), now: MonotonicClock.now()))
    }

    mutating func run() {
        var isOpen = true
        while isOpen {
            let isAwake = sockets.wait(nanoseconds: patience(at: MonotonicClock.now())) { token in
                read(token)
            }
            if isAwake { isOpen = takeCommands() }
            let now = MonotonicClock.now()
            if let deadline = handler.deadline, deadline <= now { handler.advance(to: now) }
            noteLoad(at: now)
            if isUnderLoad, isOpen { rest() }
        }
        handler.stop(at: MonotonicClock.now())
    }

    private mutating func noteLoad(at now: MonotonicTime) {
        let elapsed = now.nanoseconds(since: windowStart)
        guard elapsed >= Self.rateWindow else { return }
        let datagrams = Int64(clamping: received.datagramsIn &- windowDatagrams)
        isUnderLoad = datagrams > elapsed / 1_000_000 * Self.restingRate / 1_000
        windowStart = now
        windowDatagrams = received.datagramsIn
    }

    /// Lets more datagrams come before the next round.
    ///
    /// Who waits on sockets is woken for each datagram, and on one machine the sender pays for that: half a
    /// microsecond and more of a server's time for each message, which no client elsewhere costs it.
    private func rest() {
        var nanoseconds = Self.longestRest
        if let deadline = handler.deadline {
            nanoseconds = min(nanoseconds, deadline.nanoseconds(since: MonotonicClock.now()))
        }
        MonotonicClock.sleep(nanoseconds: nanoseconds)
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
