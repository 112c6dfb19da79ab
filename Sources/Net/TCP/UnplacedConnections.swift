import Base
import CLinux
import Glibc
import Synchronization
import Wire

/// A listener's connections whose session is not known yet; used by the listener's thread only.
struct UnplacedConnections: PortHandler, ~Copyable {
    /// Most bytes of a first frame; a connectivity check has about 120.
    private static let longestCheck = 1_024

    /// A connection whose first frame is not complete.
    private struct Waiting {
        let connection: AcceptedConnection
        let deadline: MonotonicTime
        /// Counts up, so that the oldest connection can be found.
        let number: UInt64
        var reader = FrameReader(limit: longestCheck)
        /// Everything that was read; the worker needs all of it.
        var bytes: [UInt8] = []
    }

    private let shared: ListenerShared
    private let limits: ConnectionLimits
    private let place: ConnectionListener.Placement
    /// Places that a connection keeps until it closes, also after it was handed over.
    private let all: ConnectionQuota
    /// Places that a connection occupies only while it waits here.
    private let strangers: ConnectionQuota
    private var waiting: ConnectionTable<Waiting>
    private var nextNumber: UInt64 = 0
    private var input = [UInt8](repeating: 0, count: 4_096)

    init(
        of port: ListeningPort, shared: ListenerShared, limits: ConnectionLimits,
        place: @escaping ConnectionListener.Placement
    ) {
        self.shared = shared
        self.limits = limits
        self.place = place
        waiting = ConnectionTable(of: port)
        all = ConnectionQuota(
            total: limits.total, perAddress: limits.perAddress, share: limits.total / 2)
        strangers = ConnectionQuota(
            total: .max, perAddress: limits.waitingPerAddress, share: limits.waiting / 2)
    }

    var deadline: MonotonicTime? { waiting.all.values.lazy.map(\.deadline).min() }

    mutating func admit(_ arrival: ConnectionArrival, at now: MonotonicTime) {
        let (descriptor, remote) = (arrival.descriptor, arrival.remote)
        guard strangers.take(remote.ip) else { return refuse(descriptor) }
        guard all.take(remote.ip) else {
            strangers.giveBack(remote.ip)
            return refuse(descriptor)
        }
        let connection = AcceptedConnection(descriptor: descriptor, remote: remote, quotas: [all])
        if waiting.all.count >= limits.waiting,
            let oldest = waiting.all.min(by: { $0.value.number < $1.value.number })?.key
        {
            forget(oldest, \.displaced)
        }
        nextNumber &+= 1
        let entry = Waiting(connection: connection, deadline: now + limits.patience, number: nextNumber)
        guard waiting.add(descriptor, { entry }) != nil else {
            strangers.giveBack(remote.ip)
            return withExtendedLifetime(connection) { count(\.refused) }
        }
        count(\.accepted)
    }

    /// Closes a connection; a client that sees the close finds it counted.
    private func refuse(_ descriptor: Int32) {
        count(\.refused)
        clinux_close(descriptor)
    }

    mutating func endTurn(at now: MonotonicTime) {
        for (token, entry) in waiting.all where entry.deadline <= now { forget(token, \.expired) }
    }

    mutating func stop(at now: MonotonicTime) {
        for (token, entry) in waiting.all { _ = waiting.remove(token, entry.connection.descriptor) }
    }

    // MARK: Who is it?

    mutating func serve(_ token: UInt32, at now: MonotonicTime) {
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
            // Behind a complete check, a frame that is longer than checks are is not an error here.
            guard first != nil else { return forget(token, \.strange) }
        }
        entry.bytes += input[..<received]
        guard let first else {
            // Empty frames do not count as a first frame, and could go on without end.
            guard entry.bytes.count <= Self.longestCheck + FrameReader.headerLength else {
                return forget(token, \.strange)
            }
            waiting.update(token, to: entry)
            return
        }
        let handover = ConnectionHandover(
            connection: entry.connection, firstBytes: entry.bytes, deadline: entry.deadline)
        forget(token, place(handover, first) ? \.placed : \.strange)
    }

    /// Removes a connection, which closes it unless it was handed over.
    private mutating func forget(_ token: UInt32, _ reason: WritableKeyPath<ListenerCounters, UInt64>) {
        guard let entry = waiting[token] else { return }
        strangers.giveBack(entry.connection.remote.ip)
        count(reason)
        _ = waiting.remove(token, entry.connection.descriptor)
    }

    private func count(_ counter: WritableKeyPath<ListenerCounters, UInt64>) {
        shared.counters.withLock { $0[keyPath: counter] &+= 1 }
    }
}
