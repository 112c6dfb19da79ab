import Base
import CLinux
import Crypto
import Glibc
import Synchronization
import Wire

/// Terminates TLS without a protocol name until its first plain byte shows what it is for.
///
/// Connections for TURN are then passed on to TURN's server, which continues the TLS. Connections for HTTP are
/// relayed to the HTTP server by a `TLSPipe`.
struct TLSEnds: PortHandler, ~Copyable {
    /// A connection whose first plain byte has not arrived.
    private struct Beginning {
        let descriptor: Int32
        let remote: TransportAddress
        let tls: SharedTLS
        let deadline: MonotonicTime
        /// Counts up, so that the oldest connection can be found.
        let number: UInt64
        /// Encrypted bytes that the kernel has not accepted yet.
        var output: [UInt8] = []
    }

    private enum Connection {
        case beginning(Beginning)
        /// A relayed connection; in the table twice, under the tokens of both its ends.
        case pipe(TLSPipe, client: TransportAddress)
    }

    /// Between two checks for expired connections.
    private static var lookInterval: Duration { .seconds(1) }

    private let shared: MixedPortShared
    private let routes: MixedPort.Routes
    private let limits: MixedPort.Limits
    /// Places of connections whose purpose is not known yet.
    private let strangers: ConnectionQuota
    /// Places of relayed connections.
    private let piped: ConnectionQuota
    private var connections: ConnectionTable<Connection>
    /// Connections in the table whose purpose is not known yet.
    private var beginnings = 0
    /// Tokens of pipes that used up their turn and have more to move.
    private var busy: Set<UInt32> = []
    private var nextNumber: UInt64 = 0
    private var nextLook = MonotonicTime.zero
    private var buffer = [UInt8](repeating: 0, count: 32 << 10)

    init(of port: ListeningPort, shared: MixedPortShared, routes: MixedPort.Routes, limits: MixedPort.Limits)
    {
        self.shared = shared
        self.routes = routes
        self.limits = limits
        strangers = ConnectionQuota(
            total: .max, perAddress: limits.undecidedPerAddress, share: limits.undecided / 2)
        piped = ConnectionQuota(
            total: limits.pipes, perAddress: limits.pipesPerAddress, share: limits.pipes / 2)
        connections = ConnectionTable(of: port)
    }

    var deadline: MonotonicTime? {
        guard busy.isEmpty else { return .zero }
        return connections.all.isEmpty ? nil : nextLook
    }

    mutating func endTurn(at now: MonotonicTime) {
        // A pipe that becomes busy again now has its next turn after new events.
        let waiting = busy
        busy = []
        for token in waiting { serve(token, at: now) }
        guard now >= nextLook else { return }
        nextLook = now + Self.lookInterval
        // The keys are a copy and each is looked up again, because removing a pipe removes both its tokens.
        for token in connections.all.keys {
            if case .beginning(let beginning) = connections[token] {
                if beginning.deadline <= now { drop(token, \.expired) }
            } else {
                serve(token, at: now)
            }
        }
    }

    mutating func stop(at now: MonotonicTime) {
        for token in connections.all.keys {
            switch connections[token] {
            case .beginning: drop(token, \.gone)
            case .pipe(let pipe, let client): forget(pipe, of: client)
            case nil: continue
            }
        }
    }

    mutating func serve(_ token: UInt32, at now: MonotonicTime) {
        switch connections[token] {
        case .beginning(let beginning): serve(beginning, token, at: now)
        case .pipe(let pipe, let client): pump(pipe, token, of: client, at: now)
        case nil: return
        }
    }

    // MARK: Beginning

    mutating func admit(_ arrival: ConnectionArrival, at now: MonotonicTime) {
        let (descriptor, remote) = (arrival.descriptor, arrival.remote)
        // First, because to read the certificate for a connection takes as long as many refusals.
        guard strangers.take(remote.ip) else { return shared.close(descriptor, \.refused) }
        let identity = shared.identity.withLock { $0 }
        guard let identity, let tls = try? SharedTLS(identity) else {
            strangers.giveBack(remote.ip)
            return shared.close(descriptor, \.strange)
        }
        // Without Nagle's delay for small answers, and with detection of dead clients.
        clinux_stream_tune(descriptor)
        if beginnings >= limits.undecided, let oldest { drop(oldest, \.displaced) }
        nextNumber &+= 1
        let beginning = Beginning(
            descriptor: descriptor, remote: remote, tls: tls, deadline: now + limits.patience,
            number: nextNumber)
        if connections.all.isEmpty { nextLook = now + Self.lookInterval }
        guard connections.add(descriptor, forChanges: true, { .beginning(beginning) }) != nil else {
            strangers.giveBack(remote.ip)
            return shared.close(descriptor, \.refused)
        }
        beginnings += 1
        shared.counters.withLock { $0.undecided += 1 }
    }

    private var oldest: UInt32? {
        var found: (token: UInt32, number: UInt64)?
        for case (let token, .beginning(let beginning)) in connections.all
        where found.map({ beginning.number < $0.number }) ?? true {
            found = (token, beginning.number)
        }
        return found?.token
    }

    /// Continues a handshake, until the first plain byte decides.
    private mutating func serve(_ known: Beginning, _ token: UInt32, at now: MonotonicTime) {
        var beginning = known
        // One buffer at a time, since a handshake has a few thousand bytes, and never more than what decides.
        while true {
            let count = unsafe buffer.withUnsafeMutableBytes { bytes in
                unsafe Int(
                    clinux_stream_receive(
                        beginning.descriptor, bytes.baseAddress, Int32(clamping: bytes.count)))
            }
            guard count > 0 || count == -Int(EAGAIN) else { return drop(token, \.gone) }
            let plain = count > 0 ? beginning.tls.receive(buffer.span.extracting(0..<count)) : []
            beginning.output += beginning.tls.takeOutput()
            send(&beginning)
            if let first = plain.first {
                let begun = BegunTLS(tls: beginning.tls, plain: plain, output: beginning.output)
                return decide(begun, by: first, token, at: now)
            }
            // TLS has an alert with the reason in its output if there is one, and it was just sent.
            guard !beginning.tls.isClosed else { return drop(token, \.strange) }
            if count <= 0 { break }
        }
        connections.update(token, to: .beginning(beginning))
    }

    /// Sends as much as the kernel accepts; the rest is sent with the next piece, or by the connection's next owner.
    private func send(_ beginning: inout Beginning) {
        guard !beginning.output.isEmpty else { return }
        let count = unsafe beginning.output.withUnsafeBytes { bytes in
            unsafe Int(
                clinux_stream_send(
                    beginning.descriptor, bytes.baseAddress, Int32(clamping: bytes.count)))
        }
        if count > 0 { beginning.output.removeFirst(count) }
    }

    /// Passes a connection on by its first plain byte: STUN is for TURN, anything else for HTTP.
    private mutating func decide(
        _ begun: BegunTLS, by first: UInt8, _ token: UInt32, at now: MonotonicTime
    ) {
        guard let beginning = forgetBeginning(token) else { return }
        guard !StreamOpening.isSTUN(first: first) else {
            let arrival = ConnectionArrival(
                descriptor: beginning.descriptor, remote: beginning.remote, begunTLS: begun)
            return shared.hand(arrival, to: routes.turnTLS, as: \.turnTLS)
        }
        carry(begun, of: beginning, at: now)
    }

    private mutating func drop(_ token: UInt32, _ counter: WritableKeyPath<MixedPortCounters, UInt64>) {
        guard let beginning = forgetBeginning(token) else { return }
        shared.close(beginning.descriptor, counter)
    }

    /// - Returns: its entry; the caller owns the descriptor.
    private mutating func forgetBeginning(_ token: UInt32) -> Beginning? {
        guard case .beginning(let beginning) = connections[token] else { return nil }
        _ = connections.remove(token, beginning.descriptor)
        strangers.giveBack(beginning.remote.ip)
        beginnings -= 1
        shared.counters.withLock { $0.undecided -= 1 }
        return beginning
    }

    // MARK: Carrying

    /// Begins to relay a connection to the HTTP server, through a pair of sockets of which that gets one.
    private mutating func carry(_ begun: BegunTLS, of beginning: Beginning, at now: MonotonicTime) {
        let (descriptor, client) = (beginning.descriptor, beginning.remote)
        guard let http = routes.http else { return shared.close(descriptor, \.unserved) }
        guard piped.take(client.ip) else { return shared.close(descriptor, \.refused) }
        var pair: [Int32] = [-1, -1]
        guard unsafe clinux_stream_pair(&pair) == 0, let inside = pair.first, let theirs = pair.last else {
            piped.giveBack(client.ip)
            return shared.close(descriptor, \.refused)
        }
        let pipe = TLSPipe(begun, outside: descriptor, inside: inside, at: now)
        shared.counters.withLock { counters in
            counters.pipes += 1
            counters.pipedHTTPS &+= 1
        }
        http(theirs, client, true)
        pipe.outsideToken = connections.add(descriptor, forChanges: true) { .pipe(pipe, client: client) }
        pipe.insideToken = connections.add(inside, forChanges: true) { .pipe(pipe, client: client) }
        guard let token = pipe.outsideToken, pipe.insideToken != nil else { return forget(pipe, of: client) }
        pump(pipe, token, of: client, at: now)
    }

    /// Moves what a pipe can move, and removes the pipe if it is over.
    private mutating func pump(
        _ pipe: TLSPipe, _ token: UInt32, of client: TransportAddress, at now: MonotonicTime
    ) {
        switch pipe.pump(&buffer, at: now) {
        case .rest: return
        case .more: busy.insert(token)
        case .over: forget(pipe, of: client)
        }
    }

    private mutating func forget(_ pipe: TLSPipe, of client: TransportAddress) {
        for (token, end) in [(pipe.outsideToken, pipe.outside), (pipe.insideToken, pipe.inside)] {
            if let token {
                _ = connections.remove(token, end)
                busy.remove(token)
            }
            clinux_close(end)
        }
        piped.giveBack(client.ip)
        shared.counters.withLock { $0.pipes -= 1 }
    }
}
