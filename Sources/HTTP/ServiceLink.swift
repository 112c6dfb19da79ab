import Base
import CWebSockets
import Glibc
import Synchronization

/// A connection that somebody else has accepted.
struct Adoption: Sendable {
    let descriptor: CInt
    let client: TransportAddress
    let isDecrypted: Bool
}

/// The way from any thread to the service thread.
final class ServiceLink: Sendable {
    enum Command: Sendable {
        /// A handler has answered the exchange of that number.
        case answer(UInt64, HTTPResponse)
        /// A piece of the file that answers the exchange of that number; empty if it cannot be read.
        case piece(UInt64, [UInt8])
        /// There is more of the body that answers the exchange of that number, or it has ended.
        case streamed(UInt64)
        /// Serve a connection that somebody else has accepted.
        case adopt(Adoption)
        /// Present a certificate that its owner has relinquished.
        case present(certificate: UInt)
        /// Say that the loop turns.
        case turn(CheckedContinuation<Void, Never>)
        /// Serve what is under way for at most so long, then stop.
        case stop(grace: Duration)
    }

    private struct State {
        var commands: [Command] = []
        /// Connections of others that have not been served yet.
        var adoptions = 0
        /// Numbers of WebSockets that have something to send; apart, so that answers need not wait behind thousands.
        var sockets: [UInt64] = []
        /// Address of the `uv_async_t` that wakes the loop; nil before the start and after the end.
        var wakeup: UInt?
        var isFinished = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    /// Leaves a command; without effect once the loop has ended.
    /// - Returns: whether it has not.
    @discardableResult
    func post(_ command: Command) -> Bool {
        state.withLock { state in
            guard let wakeup = state.wakeup else { return false }
            state.commands.append(command)
            // Under the lock, so that the handle cannot be closed meanwhile.
            if state.commands.count == 1 { unsafe uv_async_send(UnsafeMutablePointer(bitPattern: wakeup)) }
            return true
        }
    }

    /// Hands a connection over.
    /// - Returns: false if too many are on their way, or the loop has ended: then it is still the caller's.
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

    /// Says that one of those connections is served, or closed.
    func endAdoption() { state.withLock { $0.adoptions -= 1 } }

    private static let mostAdoptions = 1_024

    /// Hands a certificate over; without effect once the loop has ended.
    func present(_ certificate: consuming ServerCertificate) {
        let address = certificate.relinquish()
        if !post(.present(certificate: address)) { _ = ServerCertificate(address: address) }
    }

    /// Says that a WebSocket has something to send.
    func serveSocket(_ number: UInt64) {
        state.withLock { state in
            guard let wakeup = state.wakeup else { return }
            state.sockets.append(number)
            if state.sockets.count == 1 { unsafe uv_async_send(UnsafeMutablePointer(bitPattern: wakeup)) }
        }
    }

    /// Waits until the loop has ended.
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

    func open(_ wakeup: UnsafeMutablePointer<uv_async_t>) {
        let address = UInt(bitPattern: wakeup)
        state.withLock { $0.wakeup = address }
    }

    func take() -> [Command] {
        state.withLock { state in
            let commands = state.commands
            state.commands.removeAll(keepingCapacity: true)
            return commands
        }
    }

    /// Swaps the numbers of WebSockets that have something to send with `numbers`, which must be empty.
    func takeSockets(into numbers: inout [UInt64]) {
        state.withLock { swap(&$0.sockets, &numbers) }
    }

    /// Must be called before the wakeup handle is closed.
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

    func finish() {
        let waiters = state.withLock { state in
            state.isFinished = true
            defer { state.waiters.removeAll() }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }
}
