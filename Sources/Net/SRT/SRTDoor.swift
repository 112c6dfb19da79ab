import Base
import CLinux
import CSRT
import Dispatch
import Synchronization

/// Admission of SRT callers until their connection is accepted: limits their number, and has `admit` decide about
/// them.
///
/// SRT sends the reason of a refusal only if the library's callback returns it. The decision may be made on another
/// thread, so the callback blocks for it, for a moment.
final class SRTDoor: Sendable {
    /// How long the callback may block the library's receiving thread.
    ///
    /// After that the caller is let in, and a later refusal ends the connection without a reason.
    private static let patience = DispatchTimeInterval.milliseconds(100)
    /// How long an admitted caller has until its connection must appear.
    ///
    /// It may never appear, because the rest of the handshake fails or the passphrase is wrong.
    static let joinLimit = Duration.seconds(4)

    /// A caller that has not been accepted yet.
    private final class Visitor: Sendable {
        let call: SRTCall
        let began: MonotonicTime
        /// Signaled by `answer`; the library's thread waits for it.
        let answered = DispatchSemaphore(value: 0)

        init(_ call: SRTCall, at now: MonotonicTime) {
            self.call = call
            began = now
        }
    }

    private struct State {
        var nextNumber: UInt64 = 0
        /// Callers by the library's socket.
        var visitors: [Int32: Visitor] = [:]
        /// Callers about whom no decision has been made yet.
        var asking: Set<ConnectionNumber> = []
        /// Refusals that the library's thread has not returned yet.
        var rejections: [ConnectionNumber: SRTRejection] = [:]
        var refused: UInt64 = 0
    }

    private let state = Mutex(State())
    private let quota: ConnectionQuota
    private let limits: StreamServerLimits
    private let waker: Waker
    private let admit: SharedAction<SRTCall, SRTRejection?>

    init(
        _ limits: StreamServerLimits, waker: Waker, admit: @escaping @Sendable (SRTCall) -> SRTRejection?
    ) {
        self.limits = limits
        self.waker = waker
        self.admit = SharedAction(admit)
        quota = ConnectionQuota(
            total: limits.total, perAddress: limits.perAddress, share: limits.total / 2)
    }

    /// Callers refused because a limit was reached.
    var refused: UInt64 { state.withLock { $0.refused } }

    // MARK: For the library's thread

    /// Decides about a caller; called by the library's receiving thread, which it may block for up to `patience`.
    ///
    /// - Returns: why the caller is refused; nil if it is let in.
    func knock(_ socket: Int32, from remote: TransportAddress, _ streamID: String, at now: MonotonicTime)
        -> SRTRejection?
    {
        guard let visitor = enter(socket, from: remote, streamID, at: now) else { return .overload }
        let number = visitor.call.number
        // `admit` is gone once the door is closed.
        let refusal = admit(visitor.call) ?? .overload
        if let refusal {
            leave(socket)
            return refusal
        }
        let isAnswered = visitor.answered.wait(timeout: .now() + Self.patience) == .success
        let rejection = state.withLock { state in
            state.asking.remove(number)
            // The answer may have come between the timeout and this lock.
            return state.rejections.removeValue(forKey: number)
        }
        if let rejection {
            leave(socket)
            return rejection
        }
        // The answer took too long. The server's thread looks now, so that the command with the answer reaches the
        // connection.
        if !isAnswered { waker.wake() }
        return nil
    }

    /// Counts and registers a caller, if the limits permit.
    private func enter(
        _ socket: Int32, from remote: TransportAddress, _ streamID: String, at now: MonotonicTime
    ) -> Visitor? {
        guard quota.take(remote.ip) else {
            state.withLock { $0.refused &+= 1 }
            return nil
        }
        let visitor = state.withLock { state -> Visitor? in
            guard state.visitors.count < limits.waiting, state.visitors[socket] == nil else {
                state.refused &+= 1
                return nil
            }
            state.nextNumber &+= 1
            let number = ConnectionNumber(value: state.nextNumber)
            let visitor = Visitor(SRTCall(number: number, remote: remote, streamID: streamID), at: now)
            state.visitors[socket] = visitor
            state.asking.insert(number)
            return visitor
        }
        if visitor == nil { quota.giveBack(remote.ip) }
        return visitor
    }

    private func leave(_ socket: Int32) {
        let visitor = state.withLock { state in
            let visitor = state.visitors.removeValue(forKey: socket)
            if let visitor { state.asking.remove(visitor.call.number) }
            return visitor
        }
        if let visitor { quota.giveBack(visitor.call.remote.ip) }
    }

    // MARK: For everybody

    /// Delivers a decision, and lets the library's thread continue.
    ///
    /// May be called from any thread.
    /// - Returns: the caller; nil if the callback no longer waits for a decision about this number.
    func answer(_ rejection: SRTRejection?, to number: ConnectionNumber) -> SRTCall? {
        let visitor = state.withLock { state -> Visitor? in
            guard state.asking.remove(number) != nil else { return nil }
            if let rejection { state.rejections[number] = rejection }
            return state.visitors.values.first { $0.call.number == number }
        }
        visitor?.answered.signal()
        return visitor?.call
    }

    // MARK: For the server's thread

    /// Takes the caller whose connection was accepted.
    /// - Returns: nil for a socket that was never admitted.
    func take(_ socket: Int32) -> SRTCall? {
        state.withLock { $0.visitors.removeValue(forKey: socket)?.call }
    }

    /// Releases the place of an accepted connection that is gone.
    func giveBack(_ call: SRTCall) { quota.giveBack(call.remote.ip) }

    /// Whether a caller with this number may still appear.
    func expects(_ number: ConnectionNumber) -> Bool {
        state.withLock { $0.visitors.values.contains { $0.call.number == number } }
    }

    /// Removes admitted callers whose connection did not appear in time, and releases their places.
    func takeLost(at now: MonotonicTime) -> [SRTCall] {
        let lost = state.withLock { state -> [SRTCall] in
            let late = state.visitors.filter {
                now >= $0.value.began + Self.joinLimit && !state.asking.contains($0.value.call.number)
            }
            for socket in late.keys { state.visitors[socket] = nil }
            return late.values.map(\.call)
        }
        for call in lost { quota.giveBack(call.remote.ip) }
        return lost
    }

    /// Refuses all further callers.
    func close() { admit.set(nil) }
}

/// A UDP port that speaks SRT, and the library's poll that watches it and its connections.
final class SRTPort: Sendable {
    let socket: Int32
    let poll: Int32
    let localAddress: TransportAddress
    let door: SRTDoor

    init(
        _ address: TransportAddress, _ settings: SRTServerSettings, _ door: SRTDoor, waker: Waker
    ) throws(NetError) {
        self.door = door
        // Never released: the library may still call back while or after the port is closed.
        let context = unsafe Unmanaged.passRetained(door).toOpaque()
        socket = unsafe Self.listen(address, settings, context)
        guard socket >= 0 else {
            unsafe Unmanaged<SRTDoor>.fromOpaque(context).release()
            throw NetError(binding: address, code: -socket)
        }
        var bound = clinux_address()
        let result = unsafe csrt_local_address(socket, &bound)
        localAddress = TransportAddress(bound)
        poll = csrt_poll_open()
        guard result == 0, poll >= 0, csrt_poll_watch(poll, socket) == 0,
            csrt_poll_watch_descriptor(poll, waker.descriptor) == 0
        else {
            csrt_close(socket)
            if poll >= 0 { csrt_poll_close(poll) }
            throw .tooManyOpenFiles
        }
    }

    private static func listen(
        _ address: TransportAddress, _ settings: SRTServerSettings, _ context: UnsafeMutableRawPointer
    ) -> Int32 {
        func open(_ passphrase: UnsafePointer<CChar>?) -> Int32 {
            let options = unsafe csrt_options(
                passphrase: passphrase, latency: Int32(clamping: settings.latency), backlog: 64)
            return unsafe csrt_listen(
                clinux_address(address), options,
                { context, socket, remote, streamID in
                    guard let context = unsafe context else { return SRTRejection.overload.rawValue }
                    let door = unsafe Unmanaged<SRTDoor>.fromOpaque(context).takeUnretainedValue()
                    let text = unsafe streamID.map { unsafe String(cString: $0) } ?? ""
                    let rejection = door.knock(
                        socket, from: TransportAddress(remote), text, at: MonotonicClock.now())
                    return rejection?.rawValue ?? 0
                }, context)
        }
        guard let passphrase = settings.passphrase else { return open(nil) }
        return unsafe passphrase.exposed.withCString { unsafe open($0) }
    }

    /// Refuses all further callers, then closes the port.
    func close() {
        door.close()
        csrt_close(socket)
        csrt_poll_close(poll)
    }
}
