import Base
import CLinux
import Crypto
import Glibc
import Synchronization
import Wire

/// Ends TLS that does not say what it comes for, until what comes by it does: then TURN's server goes on with it, or
/// all of it is carried to the HTTP server.
struct TLSEnds: PortHandler, ~Copyable {
    /// A connection whose first plain byte has not come.
    private struct Beginning {
        let descriptor: Int32
        let remote: TransportAddress
        let tls: SharedTLS
        let deadline: MonotonicTime
        /// In the order in which they came.
        let number: UInt64
        var output: [UInt8] = []
    }

    private enum Connection {
        case beginning(Beginning)
        /// Under the tokens of both its ends.
        case pipe(TLSPipe, client: TransportAddress)
    }

    private static var lookInterval: Duration { .seconds(1) }

    private let shared: MixedPortShared
    private let routes: MixedPort.Routes
    private let limits: MixedPort.Limits
    private let strangers: ConnectionQuota
    private let piped: ConnectionQuota
    private var connections: ConnectionTable<Connection>
    private var beginnings = 0
    /// Pipes that had their turn and are not done.
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
        // Those that become busy now have their next turn after what has come meanwhile.
        let waiting = busy
        busy = []
        for token in waiting { serve(token, at: now) }
        guard now >= nextLook else { return }
        nextLook = now + Self.lookInterval
        // Looked up one by one: with a pipe both its tokens go.
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
        let identity = shared.identity.withLock { $0 }
        guard let identity, let tls = try? SharedTLS(identity) else {
            return shared.close(descriptor, \.strange)
        }
        guard strangers.take(remote.ip) else { return shared.close(descriptor, \.refused) }
        // Small answers must not wait for acknowledgements, and clients that are gone are to be noticed.
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

    private mutating func serve(_ known: Beginning, _ token: UInt32, at now: MonotonicTime) {
        var beginning = known
        // A handshake is a few thousand bytes: no more of them are read at once than decide.
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
            // It was told why, if that is known.
            guard !beginning.tls.isClosed else { return drop(token, \.strange) }
            if count <= 0 { break }
        }
        connections.update(token, to: .beginning(beginning))
    }

    /// What the kernel does not take goes with the next piece, or with the connection.
    private func send(_ beginning: inout Beginning) {
        guard !beginning.output.isEmpty else { return }
        let count = unsafe beginning.output.withUnsafeBytes { bytes in
            unsafe Int(
                clinux_stream_send(
                    beginning.descriptor, bytes.baseAddress, Int32(clamping: bytes.count)))
        }
        if count > 0 { beginning.output.removeFirst(count) }
    }

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

    /// - Returns: what was known of it, whose descriptor is the caller's.
    private mutating func forgetBeginning(_ token: UInt32) -> Beginning? {
        guard case .beginning(let beginning) = connections[token] else { return nil }
        _ = connections.remove(token, beginning.descriptor)
        strangers.giveBack(beginning.remote.ip)
        beginnings -= 1
        shared.counters.withLock { $0.undecided -= 1 }
        return beginning
    }

    // MARK: Carrying

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
