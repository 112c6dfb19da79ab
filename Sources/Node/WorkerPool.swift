import Base
import Crypto
import Forwarding
import Net
import Peer
import Synchronization
import Wire

/// The workers of a node, their common certificate, and what they share.
struct WorkerPool: Sendable {
    private let workers: [WorkerHandle]
    /// Relays packets between workers; nil if there is only one.
    private let exchange: RelayExchange?
    /// Nil if each worker has its own port.
    private let port: SharedPort?
    /// Nil without ICE over TCP.
    private let entrance: TCPEntrance?
    /// Nil if TURN is not served.
    let turn: TURNEntrance?
    /// Of the certificate, as every answer states it.
    private let fingerprint: SDPFingerprint

    /// Opens the ports and starts the workers.
    /// - Parameters:
    ///   - events: receives the workers' events.
    ///   - now: the clock; read once for all workers, so that their sender reports agree.
    /// - Throws: an error whose description tells an operator what is wrong.
    init(
        _ configuration: NodeConfiguration, events: Inbox<WorkerEvent>, now: @escaping @Sendable () -> Moment
    ) throws {
        let start = now()
        let identity = try DTLSIdentity()
        fingerprint = SDPFingerprint(
            algorithm: identity.fingerprint.algorithm.rawValue, bytes: identity.fingerprint.bytes)
        let count = configuration.workerCount
        let exchange = count > 1 ? RelayExchange(workers: count) : nil
        self.exchange = exchange
        let port = count > 1 && !configuration.hasPortPerWorker ? SharedPort(workers: count) : nil
        self.port = port
        let routes = ChannelRoutes()
        var started: [WorkerHandle] = []
        var tcp: TCPEntrance?
        do {
            // The first worker binds the shared port; the others join its socket.
            for index in 0..<count {
                started.append(
                    try WorkerHandle(
                        index: index, configuration: configuration, identity: identity, exchange: exchange,
                        port: port, first: port.flatMap { _ in started.first },
                        routes: configuration.turn?.udp == nil ? nil : routes, events: events,
                        start: start))
            }
            tcp = try configuration.tcp.map {
                try TCPEntrance(at: $0, of: started, configuration: configuration)
            }
            turn = try configuration.turn.map {
                try TURNEntrance(
                    $0, inboxes: configuration.inboxes, peers: Self.turnPeers(started), routes: routes,
                    now: now)
            }
        } catch {
            // Threads that were started would otherwise keep running without an owner.
            tcp?.stop()
            for worker in started { worker.stop() }
            throw error
        }
        workers = started
        entrance = tcp
    }

    subscript(_ index: Int) -> WorkerHandle { workers[index] }

    /// Posts a command to all workers; one that accepts no more has nothing that the command would change.
    func post(_ command: WorkerCommand) {
        for worker in workers { _ = worker.post(command) }
    }

    /// Wakes the loop of each worker.
    func wake() {
        for worker in workers { worker.waker.wake() }
    }

    /// The workers whose loops have not turned since they were woken.
    var asleep: [Int] { workers.indices.filter { workers[$0].waker.isPending } }

    /// Where each worker receives; the same for all unless each has a port of its own.
    var addresses: [TransportAddress] { workers.map(\.address) }

    /// The addresses in the candidates of a session, those for UDP first; workers differ at most in their ports.
    var announced: [TransportAddress] { (workers.first?.advertised ?? []) + (entrance?.advertised ?? []) }

    /// Where ICE over TCP is served; nil if it is not.
    var tcpAddress: TransportAddress? { entrance?.address }

    /// The peers that TURN clients may name: the workers alone, so that the port relays to no other host.
    private static func turnPeers(_ workers: [WorkerHandle]) -> TURNPeers {
        let local = workers.first.map { LocalAddresses.advertised(for: $0.address.ip) } ?? []
        return TURNPeers(
            workers.map { TURNPeers.Worker(bound: $0.address, advertised: $0.advertised) }, local: local)
    }

    /// The server's end of a session on `worker`, as the answer describes it.
    func transport(of worker: Int, credentials: ICECredentials) -> LocalTransport {
        LocalTransport(
            credentials: credentials, fingerprint: fingerprint, udp: workers[worker].advertised,
            tcp: entrance?.advertised ?? [])
    }

    /// A copy of each worker's counters, in order.
    var reports: [WorkerReportCopy] {
        workers.enumerated().map { index, worker in
            WorkerReportCopy(
                index: index, counters: worker.report.counters.withLock { $0 }, network: worker.statistics,
                relayOverflow: exchange?.droppedPackets(of: index) ?? 0,
                handoverOverflow: port?.mailboxes[index].dropped ?? 0)
        }
    }

    /// Ends every session with a DTLS close, and waits for the workers' threads.
    func stop() {
        entrance?.stop()
        for worker in workers { worker.stop() }
        // After the workers, because their last packets to TURN clients pass through it.
        turn?.stop()
    }
}

extension NodeConfiguration {
    /// There is always one.
    var workerCount: Int { max(workers, 1) }
}
