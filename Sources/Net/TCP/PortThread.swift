import Base
import CLinux
import Glibc

/// The logic for a TCP port's connections; it is made on the port's thread and never leaves it.
protocol PortHandler: ~Copyable, SendableMetatype {
    /// When `endTurn` has something to do even if nothing happens; nil if there is nothing to do.
    var deadline: MonotonicTime? { get }
    /// Takes over an accepted connection, or counts it as refused and closes it.
    mutating func admit(_ arrival: ConnectionArrival, at now: MonotonicTime)
    /// Handles a connection that has input, was closed, or has room to write again.
    mutating func serve(_ token: UInt32, at now: MonotonicTime)
    /// Ends a turn of the loop; also called after a wake-up without any event.
    mutating func endTurn(at now: MonotonicTime)
    /// Closes everything; the last call.
    mutating func stop(at now: MonotonicTime)
}

/// A TCP port and the thread that accepts its connections and serves them.
///
/// A port that is released without `stop` is told to stop, without waiting for its end.
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

    /// Where it listens, with the actual port.
    var localAddress: TransportAddress { port.localAddress }

    /// Makes the thread take another turn.
    func wake() { port.waker.wake() }

    /// Closes the port and every connection that the handler still has, and waits for that.
    func stop() {
        port.requestStop()
        thread.join()
    }
}

/// The loop of a port's thread.
private struct PortLoop<Handler: PortHandler & ~Copyable>: ~Copyable {
    /// Connections accepted before others have their turn.
    private static var acceptsPerTurn: Int { 32 }
    /// How long to stop accepting when there is no descriptor or memory for another connection.
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

    /// Accepts waiting connections, up to a limit; epoll reports the port again if more wait.
    private mutating func accept(at now: MonotonicTime) {
        for _ in 0..<Self.acceptsPerTurn {
            var remote = clinux_address()
            let descriptor = port.accept(&remote)
            switch -descriptor {
            case EAGAIN, EWOULDBLOCK: return
            case EMFILE, ENFILE, ENOBUFS, ENOMEM: return pauseListening(at: now)
            // This connection failed before it was accepted; the next one may not.
            case 1...: continue
            default:
                let arrival = ConnectionArrival(
                    descriptor: descriptor, remote: TransportAddress(remote).over(.tcp))
                handler.admit(arrival, at: now)
            }
        }
    }

    /// Stops watching the port: it would stay readable, and the thread would never sleep.
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
