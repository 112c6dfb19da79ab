import Base
import CLinux
import CSRT
import Dispatch
import Synchronization

/// Who calls a server by SRT, until their connection is there: how many there may be, and whether they are let in.
///
/// Refusing has to be done within the library's call, or callers are not told why; whoever decides is another thread.
final class SRTDoor: Sendable {
    /// How long the library's thread that receives may wait for an answer; then the caller is let in, and learns of a
    /// refusal by the end of the connection.
    private static let patience = DispatchTimeInterval.milliseconds(100)
    /// Within this, who was let in has to come: what is left of the handshake, or the passphrase, may be wrong.
    static let joinLimit = Duration.seconds(4)

    private final class Visitor: Sendable {
        let call: SRTCall
        let began: MonotonicTime
        let answered = DispatchSemaphore(value: 0)

        init(_ call: SRTCall, at now: MonotonicTime) {
            self.call = call
            began = now
        }
    }

    private struct State {
        var nextNumber: UInt64 = 0
        /// By the library's sockets.
        var visitors: [Int32: Visitor] = [:]
        /// Those that wait for an answer.
        var asking: Set<ConnectionNumber> = []
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

    /// That were more than may be.
    var refused: UInt64 { state.withLock { $0.refused } }

    // MARK: For the library's thread

    /// - Returns: why it is not let in; nil if it is.
    func knock(_ socket: Int32, from remote: TransportAddress, _ streamID: String, at now: MonotonicTime)
        -> SRTRejection?
    {
        guard let visitor = enter(socket, from: remote, streamID, at: now) else { return .overload }
        let number = visitor.call.number
        // Nobody is asked any more once the door is closed.
        let refusal = admit(visitor.call) ?? .overload
        if let refusal {
            leave(socket)
            return refusal
        }
        let isAnswered = visitor.answered.wait(timeout: .now() + Self.patience) == .success
        let rejection = state.withLock { state in
            state.asking.remove(number)
            // The answer may have come in between.
            return state.rejections.removeValue(forKey: number)
        }
        if let rejection {
            leave(socket)
            return rejection
        }
        if !isAnswered { waker.wake() }
        return nil
    }

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

    /// Somebody who was let in is there.
    /// - Returns: nil for a socket that nobody let in.
    func take(_ socket: Int32) -> SRTCall? {
        state.withLock { $0.visitors.removeValue(forKey: socket)?.call }
    }

    /// A connection that was taken is gone.
    func giveBack(_ call: SRTCall) { quota.giveBack(call.remote.ip) }

    /// Whether somebody by this number may still come.
    func expects(_ number: ConnectionNumber) -> Bool {
        state.withLock { $0.visitors.values.contains { $0.call.number == number } }
    }

    /// Those who were let in and did not come.
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

    /// Nobody is let in any more.
    func close() { admit.set(nil) }
}

/// A UDP port by SRT, and what watches it and its connections.
final class SRTPort: Sendable {
    let socket: Int32
    let poll: Int32
    let localAddress: TransportAddress
    let door: SRTDoor

    init(
        _ address: TransportAddress, _ settings: SRTServerSettings, _ door: SRTDoor, waker: Waker
    ) throws(NetError) {
        self.door = door
        // Never released: the library may still be calling when the port is closed.
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

    /// Lets nobody in any more, and closes the port.
    func close() {
        door.close()
        csrt_close(socket)
        csrt_poll_close(poll)
    }
}
