import Base
import CWebSockets
import Glibc
import Synchronization

/// A connection that another component has accepted and hands over.
struct Adoption: Sendable {
    /// Owned by the holder of the adoption, which has to serve or close it.
    let descriptor: CInt
    /// The client's address, which may differ from the socket's peer.
    let client: TransportAddress
    /// Whether TLS has been terminated before.
    let isDecrypted: Bool
}

/// Passes commands from any thread to the service thread.
///
/// Commands go through a locked queue; the first one in an empty queue wakes the loop by `uv_async_send`, the only
/// libuv call that other threads may make.
final class ServiceLink: Sendable {
    enum Command: Sendable {
        /// A handler's response to the exchange of that id.
        case answer(UInt64, HTTPResponse)
        /// The next piece of a file for the exchange of that id; empty if it cannot be read.
        case piece(UInt64, [UInt8])
        /// The streamed body of the exchange of that id has more bytes, or has ended.
        case streamed(UInt64)
        /// Serve a connection that another component has accepted.
        case adopt(Adoption)
        /// Present a certificate, by the address that `ServerCertificate.relinquish` returned.
        case present(certificate: UInt)
        /// Resume the continuation, as a sign that the loop runs.
        case turn(CheckedContinuation<Void, Never>)
        /// Finish requests for up to this time, then stop.
        case stop(grace: Duration)
    }

    private struct State {
        var commands: [Command] = []
        /// Number of handed-over connections that have not been admitted yet.
        var adoptions = 0
        /// Ids of WebSockets with queued output; separate, so that responses do not wait behind thousands of them.
        var sockets: [UInt64] = []
        /// Address of the `uv_async_t` that wakes the loop; nil before the start and after the end.
        var wakeup: UInt?
        /// Set once the thread is done, so that late calls of `finished` return immediately.
        var isFinished = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    /// Queues a command.
    /// - Returns: false if the loop is not running, and the command was not queued.
    @discardableResult
    func post(_ command: Command) -> Bool {
        state.withLock { state in
            guard let wakeup = state.wakeup else { return false }
            state.commands.append(command)
            // Under the lock, so that the handle cannot be closed during the call.
            if state.commands.count == 1 { unsafe uv_async_send(UnsafeMutablePointer(bitPattern: wakeup)) }
            return true
        }
    }

    /// Hands a connection over.
    /// - Returns: false if too many are waiting or the loop is not running; the descriptor then remains the caller's.
    func post(_ adoption: Adoption) -> Bool {
        let hasRoom = state.withLock { state in
            guard state.adoptions < Self.mostAdoptions else { return false }
            state.adoptions += 1
            return true
        }
        guard hasRoom else { return false }
        guard post(.adopt(adoption)) else {
            endAdoption()
            return false
        }
        return true
    }

    /// Notes that a handed-over connection has been admitted or closed.
    func endAdoption() { state.withLock { $0.adoptions -= 1 } }

    /// Limit of connections on their way, as each holds a descriptor; equal to the listening socket's backlog.
    private static let mostAdoptions = 1_024

    /// Hands a certificate over; freed here if the loop is not running.
    func present(_ certificate: consuming ServerCertificate) {
        let address = certificate.relinquish()
        if !post(.present(certificate: address)) { _ = ServerCertificate(address: address) }
    }

    /// Notifies the loop that a WebSocket has queued output or is to be closed.
    func serveSocket(_ number: UInt64) {
        state.withLock { state in
            guard let wakeup = state.wakeup else { return }
            state.sockets.append(number)
            if state.sockets.count == 1 { unsafe uv_async_send(UnsafeMutablePointer(bitPattern: wakeup)) }
        }
    }

    /// Waits until the service thread has ended.
    func finished() async {
        await withCheckedContinuation { continuation in
            let isFinished = state.withLock { state in
                if !state.isFinished { state.waiters.append(continuation) }
                return state.isFinished
            }
            if isFinished { continuation.resume() }
        }
    }

    // MARK: The service thread's side

    /// Publishes the wake-up handle: from here on commands are accepted.
    func open(_ wakeup: UnsafeMutablePointer<uv_async_t>) {
        let address = UInt(bitPattern: wakeup)
        state.withLock { $0.wakeup = address }
    }

    /// Removes and returns all queued commands, in order.
    func take() -> [Command] {
        state.withLock { state in
            let commands = state.commands
            state.commands.removeAll(keepingCapacity: true)
            return commands
        }
    }

    /// Swaps the queued ids of WebSockets with `numbers`, which must be empty; both arrays keep their memory.
    func takeSockets(into numbers: inout [UInt64]) {
        state.withLock { swap(&$0.sockets, &numbers) }
    }

    /// Stops accepting commands and disposes of queued ones; must be called before the wake-up handle is closed.
    func close() {
        let left = state.withLock { state in
            defer { state.commands.removeAll() }
            state.wakeup = nil
            state.sockets.removeAll()
            return state.commands
        }
        for command in left {
            switch command {
            case .present(let address): _ = ServerCertificate(address: address)
            case .turn(let continuation): continuation.resume()
            case .adopt(let adoption): Glibc.close(adoption.descriptor)
            case .answer, .piece, .streamed, .stop: break
            }
        }
    }

    /// Resumes everything that waits in `finished`.
    func finish() {
        let waiters = state.withLock { state in
            state.isFinished = true
            defer { state.waiters.removeAll() }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }
}
