import Base
import Crypto
import Forwarding
import Net
import Peer
import Synchronization

/// Connects a `Worker` to the loop of its thread.
///
/// Created on that thread and never leaves it. Everything that control reads goes out through `WorkerReport`.
struct WorkerHost: DatagramHandler, ~Copyable {
    private let worker: Worker
    /// Nil if the worker has its own port.
    private let sharer: PortSharer?
    private let report: WorkerReport
    /// When the counters may be copied again.
    private var nextReport: MonotonicTime
    /// Whether the loop has turned since the last report, so that the counters may have changed.
    private var isReportStale = false

    /// Copying the counters once a second keeps their cost off the packet path.
    private static let reportInterval = Duration.seconds(1)

    init(worker: Worker, sharer: PortSharer? = nil, report: WorkerReport, at now: MonotonicTime) {
        self.worker = worker
        self.sharer = sharer
        self.report = report
        nextReport = now
    }

    /// A command may begin or end a capture, so the sink's is set anew.
    mutating func perform(_ command: WorkerCommand, at now: MonotonicTime, into sink: inout SendBatch) {
        worker.perform(command, at: now, into: &sink)
        sink.capture = worker.headerCapture
    }

    mutating func receive(
        _ datagram: inout MutableSpan<UInt8>, from source: TransportAddress, at now: MonotonicTime,
        into sink: inout SendBatch
    ) {
        worker.receive(&datagram, from: source, at: now, into: &sink)
    }

    mutating func receiveHandedOver(
        _ datagram: inout MutableSpan<UInt8>, from source: TransportAddress, at now: MonotonicTime,
        into sink: inout SendBatch
    ) {
        worker.receive(&datagram, from: source, isHandedOver: true, at: now, into: &sink)
    }

    /// Hands datagrams over to other workers first, then does the worker's own work.
    mutating func endOfBatch(at now: MonotonicTime, into sink: inout SendBatch) {
        sharer?.flush(at: now)
        worker.endOfBatch(at: now, into: &sink)
        sink.capture = worker.headerCapture
        tell(at: now)
    }

    mutating func advance(to now: MonotonicTime, into sink: inout SendBatch) {
        worker.advance(to: now, into: &sink)
        sink.capture = worker.headerCapture
        tell(at: now)
    }

    /// When the worker or the next report is due.
    ///
    /// A worker that becomes idle wakes once more, so that its last report includes the latest events.
    var deadline: MonotonicTime? {
        guard isReportStale else { return worker.deadline }
        return worker.deadline.map { min($0, nextReport) } ?? nextReport
    }
    var wantsTurn: Bool { worker.wantsTurn }

    func knows(_ address: TransportAddress) -> Bool { worker.knows(address) }

    mutating func lose(_ address: TransportAddress, at now: MonotonicTime, into sink: inout SendBatch) {
        worker.lose(address, at: now, into: &sink)
    }

    mutating func note(_ backlog: StreamBacklog, of address: TransportAddress, at now: MonotonicTime) {
        worker.note(backlog, of: address, at: now)
    }

    /// Ends all sessions, and makes a last report regardless of the interval.
    mutating func stop(at now: MonotonicTime, into sink: inout SendBatch) {
        worker.closeAll(at: now, into: &sink)
        nextReport = now
        tell(at: now)
    }

    /// Reports events immediately, and counters at most once per `reportInterval`.
    private mutating func tell(at now: MonotonicTime) {
        for event in worker.takeEvents() { report.events.put(event) }
        guard now >= nextReport else {
            isReportStale = true
            return
        }
        isReportStale = false
        nextReport = now + Self.reportInterval
        let statistics = worker.statistics
        report.counters.withLock { $0 = statistics }
    }
}

/// What a worker's thread reports to control.
final class WorkerReport: Sendable {
    /// Shared by all workers.
    let events: Inbox<WorkerEvent>
    /// At most a second old while the worker has something to do.
    let counters = Mutex(WorkerCounters())

    init(events: Inbox<WorkerEvent>) {
        self.events = events
    }
}

/// Control's handle to one worker.
struct WorkerHandle: Sendable {
    private let thread: WorkerThread<WorkerHost>
    let report: WorkerReport
    /// The worker's addresses in candidates.
    let advertised: [TransportAddress]

    /// Binds the worker's port and starts its thread.
    /// - Parameters:
    ///   - exchange: relays packets between workers; nil if there is only one.
    ///   - port: what it shares with the other workers; nil for a port of its own.
    ///   - first: the worker that bound the shared port; nil for the first one.
    ///   - routes: the TURN clients over UDP to which it sends directly; nil if there can be none.
    ///   - start: any moment; the time of day in sender reports is derived from it.
    /// - Throws: `NetError` or `CryptoError`, with a description for an operator.
    init(
        index: Int, configuration: NodeConfiguration, identity: DTLSIdentity, exchange: RelayExchange?,
        port: SharedPort?, first: WorkerHandle?, routes: ChannelRoutes?, events: Inbox<WorkerEvent>,
        start: Moment
    ) throws {
        // Tried here first, because an error on the thread could not be thrown to the caller.
        _ = try DTLSContext(identity: identity)
        let report = WorkerReport(events: events)
        let engine = configuration.srtpEngine
        var ice = ICELiteAgent.Configuration()
        ice.connectTimeout = configuration.connectTimeout
        ice.consentTimeout = configuration.consentTimeout
        var settings = WorkerConfiguration(address: configuration.udp.forWorker(index))
        settings.index = index
        settings.routes = routes
        if let port {
            settings.isPortShared = true
            settings.joined = first?.thread.socket
            settings.handedOver = port.mailboxes[index]
        }
        settings.cpu =
            configuration.pinsWorkers ? Self.processor(of: index, among: ProcessResources.processors()) : nil
        let clock = WallClock(
            unixNanoseconds: start.wall.milliseconds * 1_000_000, at: start.elapsed)
        thread = try WorkerThread(settings) { [ice] start in
            guard let dtls = try? DTLSContext(identity: identity) else {
                preconditionFailure("a DTLS context could be made once but not again")
            }
            let environment = WorkerEnvironment(
                clock: clock, random: SecureRandom(),
                connection: PeerConnection.Environment(dtls: dtls, engine: engine, ice: ice))
            let sharer = port.map { PortSharer($0, index: index) }
            let worker = Worker(
                environment: environment, index: index, exchange: exchange, neighbours: sharer)
            return WorkerHost(worker: worker, sharer: sharer, report: report, at: start.now)
        }
        exchange?.setWaker(of: index) { [waker = thread.waker] in waker.wake() }
        self.report = report
        let local = thread.localAddress
        advertised = configuration.advertised(for: local.ip).map {
            TransportAddress(ip: $0, port: local.port)
        }
    }

    /// The CPU that a worker is pinned to: of those that this process may use, which need not begin with 0.
    static func processor(of worker: Int, among processors: [Int]) -> Int? {
        processors.isEmpty ? nil : processors[worker % processors.count]
    }

    var address: TransportAddress { thread.localAddress }
    var waker: Waker { thread.waker }
    var statistics: WorkerStatistics { thread.statistics }

    /// Queues a command.
    /// - Returns: false if so many wait that the worker must be stuck, or if it is stopping.
    func post(_ command: WorkerCommand) -> Bool {
        thread.post(command, isEssential: command.isEssential)
    }

    /// Hands over a TCP connection that belongs to one of the worker's sessions.
    func adopt(_ handover: ConnectionHandover) -> Bool {
        thread.adopt(handover)
    }

    /// Ends every session of the worker with a DTLS close, and waits for its thread.
    func stop() {
        thread.stop()
    }
}

extension WorkerCommand {
    /// Whether the command may use the second half of the mailbox: it ends something, or it would not be repeated.
    fileprivate var isEssential: Bool {
        switch self {
        case .close, .makeSource, .dismissFollowers, .closeInjection, .closeTap, .flush, .fence,
            .setDataAccess:
            true
        case .seat(_, _, let stream, _, _): stream == nil
        case .open, .restartICE, .attach, .favour, .limit, .prefer, .setProgramme, .sendControl,
            .openInjection, .inject, .ingest, .openTap, .limitTap, .demandKeyFrame, .measure, .measureTrack,
            .capture:
            false
        }
    }
}

extension TransportAddress {
    /// The address of a worker with a port of its own: port + *n*, or still port 0, which lets the system choose.
    fileprivate func forWorker(_ index: Int) -> TransportAddress {
        TransportAddress(ip: ip, port: port == 0 ? 0 : port &+ UInt16(truncatingIfNeeded: index))
    }
}

extension NodeConfiguration {
    /// The addresses under which a socket bound to `bound` can be reached, the public ones first.
    package func advertised(for bound: IPAddress) -> [IPAddress] {
        (publicAddresses + LocalAddresses.advertised(for: bound, includeLoopback: advertisesLoopback))
            .uniqued()
    }
}

extension [IPAddress] {
    /// The addresses without repetitions, in the same order.
    fileprivate func uniqued() -> [IPAddress] {
        var seen = Set<IPAddress>()
        return filter { seen.insert($0).inserted }
    }
}
