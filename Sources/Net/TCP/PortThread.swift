import Base
import CLinux
import Glibc

/// What becomes of the connections that come by a TCP port: it is made on the port's thread and never leaves it.
protocol PortHandler: ~Copyable, SendableMetatype {
    /// When `endTurn` has something to do although nothing came; nil if it has not.
    var deadline: MonotonicTime? { get }
    /// Takes a connection that was accepted, or counts it as refused and closes it.
    mutating func admit(_ arrival: ConnectionArrival, at now: MonotonicTime)
    /// A connection has input, is closed, or has room to write again.
    mutating func serve(_ token: UInt32, at now: MonotonicTime)
    /// Comes last in each turn, also after a wake-up that brought nothing.
    mutating func endTurn(at now: MonotonicTime)
    /// Comes once, last.
    mutating func stop(at now: MonotonicTime)
}

/// A TCP port and the thread that accepts its connections and serves them.
///
/// One that is let go without `stop` is told to stop, and not waited for.
final class PortThread: Sendable {
    private let port: ListeningPort
    private let thread: NativeThread

    /// Starts the thread.
    /// - Parameters:
    ///   - name: of the thread, at most 15 bytes.
    ///   - makeHandler: called once, on the new thread.
    init<Handler: PortHandler & ~Copyable>(
        _ port: ListeningPort, name: String,
        makeHandler: @escaping @Sendable (ListeningPort) -> Handler
    ) throws(NetError) {
        self.port = port
        thread = try NativeThread(name: name, cpu: nil) {
            var loop = PortLoop<Handler>(port: port, handler: makeHandler(port))
            loop.run()
        }
    }

    deinit {
        port.requestStop()
    }

    /// Where it listens; the port is the real one.
    var localAddress: TransportAddress { port.localAddress }

    /// Has the thread take another turn.
    func wake() { port.waker.wake() }

    /// Closes the port and every connection that the handler still has.
    func stop() {
        port.requestStop()
        thread.join()
    }
}

/// The loop of a port's thread.
private struct PortLoop<Handler: PortHandler & ~Copyable>: ~Copyable {
    /// Between two looks at what came first.
    private static var acceptsPerTurn: Int { 32 }
    /// How long to leave the port alone when there is no descriptor for one more connection.
    private static var pause: Duration { .milliseconds(200) }

    private let port: ListeningPort
    private var handler: Handler
    private var tokens = [UInt32](repeating: 0, count: 64)
    private var pausedUntil: MonotonicTime?

    init(port: ListeningPort, handler: consuming Handler) {
        self.port = port
        self.handler = handler
    }

    /// Runs until the port is told to stop.
    mutating func run() {
        while !port.isStopped {
            let count = port.wait(until: deadline, into: &tokens)
            let now = MonotonicClock.now()
            for token in tokens.prefix(count) {
                switch token {
                case ListeningPort.Token.waker:
                    port.waker.clear()
                    for arrival in port.takeArrivals() { handler.admit(arrival, at: now) }
                case ListeningPort.Token.socket: accept(at: now)
                default: handler.serve(token, at: now)
                }
            }
            handler.endTurn(at: now)
            resume(at: now)
        }
        port.closeInbox()
        handler.stop(at: MonotonicClock.now())
    }

    private var deadline: MonotonicTime? {
        guard let pausedUntil else { return handler.deadline }
        return min(handler.deadline ?? pausedUntil, pausedUntil)
    }

    private mutating func accept(at now: MonotonicTime) {
        for _ in 0..<Self.acceptsPerTurn {
            var remote = clinux_address()
            let descriptor = port.accept(&remote)
            switch -descriptor {
            case EAGAIN, EWOULDBLOCK: return
            case EMFILE, ENFILE, ENOBUFS, ENOMEM: return pauseListening(at: now)
            // One that was given up before it was accepted; the next may be well.
            case 1...: continue
            default:
                let arrival = ConnectionArrival(
                    descriptor: descriptor, remote: TransportAddress(remote).over(.tcp))
                handler.admit(arrival, at: now)
            }
        }
    }

    /// Without this, a port that cannot be served would keep the thread busy.
    private mutating func pauseListening(at now: MonotonicTime) {
        guard pausedUntil == nil else { return }
        pausedUntil = now + Self.pause
        port.setListening(false)
    }

    private mutating func resume(at now: MonotonicTime) {
        guard let until = pausedUntil, until <= now else { return }
        pausedUntil = nil
        port.setListening(true)
    }
}
