import Base
import CLinux
import Glibc
import Synchronization
import Wire

/// A mixed port's connections whose protocol is not known yet; used by the port's thread only.
struct UndecidedConnections: PortHandler, ~Copyable {
    /// A connection whose first bytes do not suffice yet.
    private struct Waiting {
        let descriptor: Int32
        let remote: TransportAddress
        let deadline: MonotonicTime
        /// Counts up, so that the oldest connection can be found.
        let number: UInt64
        /// Bytes without which the protocol cannot be recognized; fewer are not looked at.
        var needed = 1
    }

    private let shared: MixedPortShared
    private let routes: MixedPort.Routes
    private let limits: MixedPort.Limits
    private let tlsEnds: ConnectionInbox
    private let quota: ConnectionQuota
    private var waiting: ConnectionTable<Waiting>
    private var nextNumber: UInt64 = 0
    private var input = [UInt8](repeating: 0, count: StreamOpening.longest)

    /// - Parameter tlsEnds: receives TLS connections that name no protocol.
    init(
        of port: ListeningPort, shared: MixedPortShared, routes: MixedPort.Routes, limits: MixedPort.Limits,
        tlsEnds: ConnectionInbox
    ) {
        self.shared = shared
        self.routes = routes
        self.limits = limits
        self.tlsEnds = tlsEnds
        waiting = ConnectionTable(of: port)
        quota = ConnectionQuota(
            total: .max, perAddress: limits.undecidedPerAddress, share: limits.undecided / 2)
    }

    var deadline: MonotonicTime? { waiting.all.values.lazy.map(\.deadline).min() }

    mutating func admit(_ arrival: ConnectionArrival, at now: MonotonicTime) {
        guard quota.take(arrival.remote.ip) else { return shared.close(arrival.descriptor, \.refused) }
        if waiting.all.count >= limits.undecided,
            let oldest = waiting.all.min(by: { $0.value.number < $1.value.number })?.key
        {
            drop(oldest, \.displaced)
        }
        nextNumber &+= 1
        let entry = Waiting(
            descriptor: arrival.descriptor, remote: arrival.remote, deadline: now + limits.patience,
            number: nextNumber)
        // Watched for changes, which reports bytes that are already there, too. Bytes that are only peeked at stay in
        // the kernel, so the usual way of watching would report them again and again.
        guard waiting.add(arrival.descriptor, forChanges: true, { entry }) != nil else {
            quota.giveBack(arrival.remote.ip)
            return shared.close(arrival.descriptor, \.refused)
        }
        shared.counters.withLock { $0.undecided += 1 }
    }

    mutating func endTurn(at now: MonotonicTime) {
        for (token, entry) in waiting.all where entry.deadline <= now { drop(token, \.expired) }
    }

    mutating func stop(at now: MonotonicTime) {
        for token in waiting.all.keys { drop(token, \.gone) }
    }

    // MARK: Who is it?

    /// Peeks at the first bytes, and passes the connection on once they suffice.
    mutating func serve(_ token: UInt32, at now: MonotonicTime) {
        guard var entry = waiting[token] else { return }
        let count = unsafe input.withUnsafeMutableBytes { buffer in
            unsafe Int(
                clinux_stream_peek(entry.descriptor, buffer.baseAddress, Int32(clamping: buffer.count)))
        }
        guard count > 0 else {
            if count != -Int(EAGAIN) { drop(token, \.gone) }
            return
        }
        guard count >= entry.needed else { return }
        let opening: StreamOpening?
        do throws(WireError) {
            let beginning = input.span.extracting(0..<count)
            opening = try StreamOpening(beginning)
            if opening == nil { entry.needed = StreamOpening.needed(after: beginning) }
        } catch {
            return drop(token, \.strange)
        }
        guard let opening else { return waiting.update(token, to: entry) }
        hand(token, opening)
    }

    /// Passes a connection on by its protocol.
    private mutating func hand(_ token: UInt32, _ opening: StreamOpening) {
        guard let entry = forget(token) else { return }
        let arrival = ConnectionArrival(descriptor: entry.descriptor, remote: entry.remote)
        switch opening {
        case .stun: shared.hand(arrival, to: routes.turnTCP, as: \.turnTCP)
        case .framedSTUN: shared.hand(arrival, to: routes.iceTCP, as: \.iceTCP)
        case .text: handToHTTP(arrival, as: \.http)
        case .tls(let application):
            guard routes.http != nil, routes.isHTTPSecure else {
                return shared.hand(arrival, to: routes.turnTLS, as: \.turnTLS)
            }
            // TLS can only be for HTTP if TURN has no route.
            switch application {
            case _ where routes.turnTLS == nil, .http: handToHTTP(arrival, as: \.https)
            case .turn: shared.hand(arrival, to: routes.turnTLS, as: \.turnTLS)
            case nil:
                if !tlsEnds.put(arrival) { shared.close(arrival.descriptor, \.refused) }
            }
        }
    }

    private func handToHTTP(
        _ arrival: ConnectionArrival, as counter: WritableKeyPath<MixedPortCounters, UInt64>
    ) {
        guard let http = routes.http else { return shared.close(arrival.descriptor, \.unserved) }
        shared.count(counter)
        http(arrival.descriptor, arrival.remote, false)
    }

    private mutating func drop(_ token: UInt32, _ counter: WritableKeyPath<MixedPortCounters, UInt64>) {
        guard let entry = forget(token) else { return }
        shared.close(entry.descriptor, counter)
    }

    /// - Returns: its entry; the caller owns the descriptor.
    private mutating func forget(_ token: UInt32) -> Waiting? {
        guard let descriptor = waiting[token]?.descriptor, let entry = waiting.remove(token, descriptor)
        else { return nil }
        quota.giveBack(entry.remote.ip)
        shared.counters.withLock { $0.undecided -= 1 }
        return entry
    }
}
