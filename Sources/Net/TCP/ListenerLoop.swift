import Base
import CLinux
import Glibc
import Synchronization
import Wire

/// The loop of a listener's thread.
struct ListenerLoop: ~Copyable {
    static let wakerToken: UInt32 = 1
    static let socketToken: UInt32 = 2
    private static let firstToken: UInt32 = 16

    /// Between two looks at what came first.
    private static let acceptsPerTurn = 32
    /// A connectivity check has about 120 bytes.
    private static let longestCheck = 1_024
    /// How long to leave the port alone when there is no descriptor for one more connection.
    private static let pause = Duration.milliseconds(200)

    /// A connection that has not said whose it is.
    private struct Waiting {
        let connection: AcceptedConnection
        let deadline: MonotonicTime
        /// In the order in which they came.
        let number: UInt64
        var reader = FrameReader(limit: longestCheck)
        var bytes: [UInt8] = []
    }

    private let shared: ListenerShared
    private let events: TCPEvents
    private let limits: ConnectionLimits
    private let place: ConnectionListener.Placement
    private let all: ConnectionQuota
    private let strangers: ConnectionQuota
    private var waiting: [UInt32: Waiting] = [:]
    private var nextToken = firstToken
    private var nextNumber: UInt64 = 0
    private var tokens = [UInt32](repeating: 0, count: 64)
    private var input = [UInt8](repeating: 0, count: 4_096)
    private var pausedUntil: MonotonicTime?

    init(
        shared: ListenerShared, events: TCPEvents, limits: ConnectionLimits,
        place: @escaping ConnectionListener.Placement
    ) {
        self.shared = shared
        self.events = events
        self.limits = limits
        self.place = place
        all = ConnectionQuota(
            total: limits.total, perAddress: limits.perAddress, share: limits.total / 2)
        strangers = ConnectionQuota(
            total: .max, perAddress: limits.waitingPerAddress, share: limits.waiting / 2)
    }

    /// Runs until the listener is stopped.
    mutating func run() {
        while !shared.isStopped.load(ordering: .acquiring) {
            let count = unsafe clinux_poll_wait_many(
                events.descriptor, &tokens, Int32(clamping: tokens.count), patience())
            let now = MonotonicClock.now()
            for token in tokens.prefix(Int(max(count, 0))) {
                switch token {
                case Self.wakerToken: shared.waker.clear()
                case Self.socketToken: accept(at: now)
                default: read(token)
                }
            }
            expire(at: now)
            resume(at: now)
        }
        waiting.removeAll()
    }

    private func patience() -> Int64 {
        var next = waiting.values.lazy.map(\.deadline).min()
        if let pausedUntil { next = min(next ?? pausedUntil, pausedUntil) }
        return next.map { max($0.nanoseconds(since: MonotonicClock.now()), 0) } ?? -1
    }

    // MARK: Accepting

    private mutating func accept(at now: MonotonicTime) {
        for _ in 0..<Self.acceptsPerTurn {
            var remote = clinux_address()
            let descriptor = unsafe clinux_tcp_accept(shared.socket.descriptor, &remote)
            switch -descriptor {
            case EAGAIN, EWOULDBLOCK: return
            case EMFILE, ENFILE, ENOBUFS, ENOMEM: return pauseListening(at: now)
            // One that was given up before it was accepted; the next may be well.
            case 1...: continue
            default: admit(descriptor, TransportAddress(remote).over(.tcp), at: now)
            }
        }
    }

    private mutating func admit(_ descriptor: Int32, _ remote: TransportAddress, at now: MonotonicTime) {
        guard strangers.take(remote.ip) else { return refuse(descriptor) }
        guard all.take(remote.ip) else {
            strangers.giveBack(remote.ip)
            return refuse(descriptor)
        }
        let connection = AcceptedConnection(descriptor: descriptor, remote: remote, quotas: [all])
        if waiting.count >= limits.waiting,
            let oldest = waiting.min(by: { $0.value.number < $1.value.number })?.key
        {
            forget(oldest, \.displaced)
        }
        let token = freeToken()
        guard clinux_poll_set(events.descriptor, descriptor, token, 0, 1) == 0 else {
            strangers.giveBack(remote.ip)
            return count(\.refused)
        }
        nextNumber &+= 1
        waiting[token] = Waiting(
            connection: connection, deadline: now + limits.patience, number: nextNumber)
        count(\.accepted)
    }

    /// Whoever sees that it is closed finds it counted.
    private func refuse(_ descriptor: Int32) {
        count(\.refused)
        clinux_close(descriptor)
    }

    private mutating func freeToken() -> UInt32 {
        repeat {
            nextToken = nextToken == .max ? Self.firstToken : nextToken + 1
        } while waiting[nextToken] != nil
        return nextToken
    }

    /// Without this, a port that cannot be served would keep the thread busy.
    private mutating func pauseListening(at now: MonotonicTime) {
        guard pausedUntil == nil else { return }
        pausedUntil = now + Self.pause
        _ = clinux_poll_forget(events.descriptor, shared.socket.descriptor)
    }

    private mutating func resume(at now: MonotonicTime) {
        guard let until = pausedUntil, until <= now else { return }
        pausedUntil = nil
        _ = clinux_poll_set(events.descriptor, shared.socket.descriptor, Self.socketToken, 0, 1)
    }

    // MARK: Who is it?

    private mutating func read(_ token: UInt32) {
        guard var entry = waiting[token] else { return }
        let received = unsafe input.withUnsafeMutableBytes { buffer in
            unsafe Int(
                clinux_stream_receive(
                    entry.connection.descriptor, buffer.baseAddress, Int32(clamping: buffer.count)))
        }
        guard received > 0 else {
            if received != -Int(EAGAIN) { forget(token, \.strange) }
            return
        }
        var first: [UInt8]?
        do throws(WireError) {
            try entry.reader.read(input[..<received]) { datagram in
                if first == nil { first = unsafe datagram.withUnsafeBytes { unsafe Array($0) } }
            }
        } catch {
            // A check, and behind it something longer than checks are, is no fault.
            guard first != nil else { return forget(token, \.strange) }
        }
        entry.bytes += input[..<received]
        guard let first else {
            // Empty frames go on for ever without ever making a first one.
            guard entry.bytes.count <= Self.longestCheck + FrameReader.headerLength else {
                return forget(token, \.strange)
            }
            waiting[token] = entry
            return
        }
        _ = clinux_poll_forget(events.descriptor, entry.connection.descriptor)
        let handover = ConnectionHandover(
            connection: entry.connection, firstBytes: entry.bytes, deadline: entry.deadline)
        forget(token, place(handover, first) ? \.placed : \.strange)
    }

    private mutating func expire(at now: MonotonicTime) {
        for (token, entry) in waiting where entry.deadline <= now { forget(token, \.expired) }
    }

    private mutating func forget(_ token: UInt32, _ reason: WritableKeyPath<ListenerCounters, UInt64>) {
        guard let entry = waiting[token] else { return }
        strangers.giveBack(entry.connection.remote.ip)
        count(reason)
        waiting[token] = nil
    }

    private func count(_ counter: WritableKeyPath<ListenerCounters, UInt64>) {
        shared.counters.withLock { $0[keyPath: counter] &+= 1 }
    }
}
