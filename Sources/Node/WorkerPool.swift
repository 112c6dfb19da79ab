import Base
import Crypto
import Forwarding
import Net
import Peer
import Synchronization
import Wire

/// The workers of a node, the one certificate that they have, and what they share.
struct WorkerPool: Sendable {
    private let workers: [WorkerHandle]
    /// Nil where there is only one worker.
    private let exchange: RelayExchange?
    /// Nil where each worker has a port of its own.
    private let port: SharedPort?
    /// Nil without ICE over TCP.
    private let entrance: TCPEntrance?
    /// Nil where nobody is taken by TURN.
    let turn: TURNEntrance?
    private let fingerprint: SDPFingerprint

    /// Opens the ports and starts the workers.
    /// - Parameters:
    ///   - events: where the workers leave what they have to tell.
    ///   - now: what the time is taken from, once for all workers, so that their clocks agree.
    /// - Throws: what stands in the way, in words for an operator.
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
            tcp?.stop()
            for worker in started { worker.stop() }
            throw error
        }
        workers = started
        entrance = tcp
    }

    subscript(_ index: Int) -> WorkerHandle { workers[index] }

    /// Tells all workers; one that takes nothing any more has nothing that this would change.
    func post(_ command: WorkerCommand) {
        for worker in workers { _ = worker.post(command) }
    }

    /// Makes each loop turn once more.
    func wake() {
        for worker in workers { worker.waker.wake() }
    }

    /// Those whose loops have not turned since they were woken.
    var asleep: [Int] { workers.indices.filter { workers[$0].waker.isPending } }

    /// Where each worker receives; the same for all unless each has a port of its own.
    var addresses: [TransportAddress] { workers.map(\.address) }

    /// What the candidates of a session say, those for UDP first; workers differ in their ports at most.
    var announced: [TransportAddress] { (workers.first?.advertised ?? []) + (entrance?.advertised ?? []) }

    /// Where connections over TCP are taken; nil if they are not.
    var tcpAddress: TransportAddress? { entrance?.address }

    /// Whom clients may name to a TURN port.
    private static func turnPeers(_ workers: [WorkerHandle]) -> TURNPeers {
        let local = workers.first.map { LocalAddresses.advertised(for: $0.address.ip) } ?? []
        return TURNPeers(
            workers.map { TURNPeers.Worker(bound: $0.address, advertised: $0.advertised) }, local: local)
    }

    /// Our end of a session on `worker`, as its answer describes it.
    func transport(of worker: Int, credentials: ICECredentials) -> LocalTransport {
        LocalTransport(
            credentials: credentials, fingerprint: fingerprint, udp: workers[worker].advertised,
            tcp: entrance?.advertised ?? [])
    }

    /// What each worker has done so far, in order.
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
        // Behind the workers, whose goodbye goes this way, too.
        turn?.stop()
    }
}

extension NodeConfiguration {
    /// There is always one.
    var workerCount: Int { max(workers, 1) }
}
