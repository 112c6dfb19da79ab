import Base
import Crypto
import Forwarding
import Net
import Peer
import Stage
import Store
import Transcoder
import Wire

/// The server without its HTTP face: streams, sessions, and the workers that carry them.
///
/// Control only. Media never comes here: an actor hop costs what a worker needs for many packets.
package actor Node {
    let configuration: NodeConfiguration
    let log: Log
    /// The time, which nothing in this target asks for in any other way.
    let now: @Sendable () -> Moment
    let workers: [WorkerHandle]
    /// Nil where there is only one worker.
    let exchange: RelayExchange?
    /// Nil without ICE-TCP.
    let entrance: TCPEntrance?
    /// Nil where nothing is decoded.
    package nonisolated let transcoder: TranscoderSupervisor?
    /// Nil where nothing is decoded.
    package nonisolated let previews: PreviewDesk?
    /// Nil where nothing is kept on a disk.
    package nonisolated let recordings: RecordingDesk?
    package nonisolated let taps = TapNumbers()
    private let fingerprint: SDPFingerprint
    /// What others leave for it.
    nonisolated let inboxes = NodeInboxes()
    /// Drops that the log has been told of.
    var droppedTold: [String: UInt64] = [:]
    var sessions: SessionCensus
    let offerDesk: OfferDesk
    /// Of lines about sessions that were made or have ended.
    var sessionLines = LineRate()
    /// Streams that have sessions.
    var streams: [StreamID: LiveStream] = [:]
    var injections = Injections()
    /// Where streams are remembered.
    let store: any StreamStore
    let directory = StreamDirectory()
    /// When ended streams are looked through again for those that need not be remembered.
    var nextForgetting = MonotonicTime.zero
    var hosts: [StreamID: StreamHost] = [:]
    /// Streams that are being looked up in the store.
    var lookups: [StreamID: Task<StreamHost?, any Error>] = [:]
    /// Names that are in there for nobody.
    var absent = AbsentStreams()
    var requestsUnderWay: Set<IdempotencyKey> = []
    let hostEnvironment: StreamHost.Environment
    var compositions: CompositionDesk
    var pauses = PauseDesk()
    /// Nil where nothing is kept on a disk.
    let pauseShelf: PausePictureShelf?
    var feedDesk: FeedDesk
    var feedFollowers: FeedFollowers
    var feedFences = FeedFences()
    var feedTimer = FeedTimer()
    /// Where stages were told that feed viewers are.
    var presences: [SessionID: StreamID] = [:]
    var random = SecureRandom()
    private(set) var isStopping = false
    private var tasks = NodeTasks()

    /// Streams remembered at most; unused ones are forgotten first, the one that ended first before others.
    static let streamLimit = 10_000
    /// Seconds for which an ended stream can still be asked about.
    static let memory = 600

    /// Opens the ports and starts the workers.
    /// - Parameter now: what the time is taken from.
    /// - Throws: what stands in the way, in words for an operator.
    package init(
        configuration: NodeConfiguration, log: Log, store: any StreamStore = MemoryStore(),
        now: @escaping @Sendable () -> Moment = { Moment.now() }
    ) throws {
        self.configuration = configuration
        self.now = now
        self.store = store
        compositions = CompositionDesk(limit: configuration.compositionLimit)
        offerDesk = OfferDesk(negotiator: configuration.negotiator)
        let report: (@Sendable (StageEvent, StageRecord, WallTime) -> OutboxEvent)? =
            configuration.reportsEvents ? StageReport.event : nil
        hostEnvironment = StreamHost.Environment(
            store: store, log: log.subsystem("stage"), directory: directory, now: now,
            report: report, hasRoom: { [inboxes] in inboxes.stages.hasRoom() },
            perform: { [inboxes] in inboxes.stages.put(StageOrder(effect: $0, stream: $1)) })
        self.log = log.subsystem("node")
        feedDesk = FeedDesk(
            directory: directory, sessionLimit: configuration.sessionLimit,
            weights: configuration.feedWeights, tag: UInt32.random(in: 0...UInt32.max))
        feedFollowers = FeedFollowers(directory: directory)
        let identity = try DTLSIdentity()
        fingerprint = SDPFingerprint(
            algorithm: identity.fingerprint.algorithm.rawValue, bytes: identity.fingerprint.bytes)
        let count = max(configuration.workers, 1)
        sessions = SessionCensus(
            workers: count,
            limits: SessionCensus.Limits(
                ofAll: configuration.sessionLimit, ofStrangersAddress: configuration.sessionLimitForAddress))
        let exchange = count > 1 ? RelayExchange(workers: count) : nil
        self.exchange = exchange
        // One look for all workers, so that their clocks agree.
        let start = now()
        var started: [WorkerHandle] = []
        do {
            for index in 0..<count {
                started.append(
                    try WorkerHandle(
                        index: index, configuration: configuration, identity: identity, exchange: exchange,
                        events: inboxes.workers, start: start))
            }
            entrance = try configuration.tcp.map {
                try TCPEntrance(at: $0, of: started, configuration: configuration)
            }
        } catch {
            for worker in started { worker.stop() }
            throw error
        }
        workers = started
        transcoder = configuration.transcoder.map { TranscoderSupervisor($0, log: log) }
        previews = transcoder.map { [taps, started] transcoder in
            PreviewDesk(
                transcoder: transcoder, address: PreviewAddress(key: configuration.previewKey),
                limit: configuration.previewMemory, taps: taps, now: now,
                post: { started[$0].post($1) })
        }
        pauseShelf =
            transcoder == nil ? nil : configuration.pausePictures.map { PausePictureShelf(directory: $0) }
        recordings = transcoder.flatMap { [taps, started] transcoder in
            configuration.recordings.map {
                RecordingDesk(
                    $0, transcoder: transcoder, taps: taps, log: log, now: now,
                    post: { started[$0].post($1) })
            }
        }
    }

    /// Where each worker receives.
    package nonisolated var addresses: [TransportAddress] { workers.map(\.address) }

    /// What the candidates of a session say, that of UDP first; workers differ in their ports only.
    package nonisolated var announced: [TransportAddress] {
        (workers.first?.advertised ?? []) + (entrance?.advertised ?? [])
    }

    /// Where connections over TCP are taken; nil if they are not.
    package nonisolated var tcpAddress: TransportAddress? { entrance?.address }

    /// Begins to act on what the workers tell.
    package func start() async {
        guard tasks.isEmpty, !isStopping else { return }
        tasks.listen(to: inboxes.workers) { [weak self] in await self?.take($0) }
        tasks.listen(to: inboxes.stages) { [weak self] in await self?.perform($0.effect, in: $0.stream) }
        tasks.listen(to: inboxes.presence) { [weak self] in await self?.carryOut($0) }
        tasks.listen(to: directory.news) { [weak self] in await self?.takeFeedNews() }
        tasks.drive(by: inboxes.programmes) { [weak self] in await self?.followProgramme(of: $0.stream) }
        tasks.drive(by: inboxes.recorded) { [weak self] in await self?.followRecording(of: $0.stream) }
        await beginPreviews()
        await beginPausePictures()
        await beginRecordings()
        tasks.drive(by: inboxes.compositions) { [weak self] in await self?.take($0.event, of: $0.stream) }
        tasks.drive(by: inboxes.pauses) { [weak self] in await self?.take($0.event, of: $0.stream) }
        tasks.repeatEvery(.seconds(1)) { [weak self] in await self?.keepHouse() }
        tasks.repeatEvery(StageRoom.interval) { [weak self] in await self?.conductRooms() }
    }

    /// Ends every session with a DTLS close, and the workers.
    package func stop() async {
        guard !isStopping else { return }
        isStopping = true
        tasks.cancelDrivers()
        // While there are packets to complete files with.
        await recordings?.stop()
        tasks.cancelListeners()
        entrance?.stop()
        for worker in workers { worker.stop() }
        await previews?.stop()
        transcoder?.stop()
        feedTimer.cancel()
        sessions.removeAll()
        feedFollowers.closeAll(.goingAway)
        for host in hosts.values { await host.close(.goingAway) }
    }

    /// Our end of a session on `worker`, as its answer describes it.
    func transport(of worker: Int, credentials: ICECredentials) -> LocalTransport {
        LocalTransport(
            credentials: credentials, fingerprint: fingerprint, udp: workers[worker].advertised,
            tcp: entrance?.advertised ?? [])
    }
}
