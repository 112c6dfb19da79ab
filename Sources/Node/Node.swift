import Base
import Crypto
import Forwarding
import Net
import Peer
import Recordings
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
    let workers: WorkerPool
    /// Nil where nothing is decoded.
    package nonisolated let transcoder: TranscoderSupervisor?
    /// Nil where nothing is decoded.
    package nonisolated let previews: PreviewDesk?
    /// Nil where nothing is kept on a disk.
    package nonisolated let recordings: RecordingDesk?
    package nonisolated let taps = TapNumbers()
    /// What others leave for it.
    nonisolated let inboxes = NodeInboxes()
    var omissions = LogOmissions()
    var sessions: SessionCensus
    let offerDesk: OfferDesk
    /// Streams that have sessions.
    var streams: [StreamID: LiveStream] = [:]
    var injections = Injections()
    let directory = StreamDirectory()
    var registry: StreamRegistry
    var compositions: CompositionDesk
    var pauses = PauseDesk()
    /// Nil where nothing is kept on a disk.
    let pauseShelf: PausePictureShelf?
    var feed: LiveFeed
    var random = SecureRandom()
    var tasks = NodeTasks()

    /// Opens the ports and starts the workers.
    /// - Parameter now: what the time is taken from.
    /// - Throws: what stands in the way, in words for an operator.
    package init(
        configuration: NodeConfiguration, log: Log, store: any StreamStore = MemoryStore(),
        now: @escaping @Sendable () -> Moment = { Moment.now() }
    ) throws {
        self.configuration = configuration
        self.now = now
        compositions = CompositionDesk(limit: configuration.compositionLimit)
        offerDesk = OfferDesk(negotiator: configuration.negotiator)
        let report: (@Sendable (StageEvent, StageRecord, WallTime) -> OutboxEvent)? =
            configuration.reportsEvents ? StageReport.event : nil
        registry = StreamRegistry(
            StreamHost.Environment(
                store: store, log: log.subsystem("stage"), directory: directory, now: now,
                report: report, hasRoom: { [inboxes] in inboxes.stages.hasRoom() },
                perform: { [inboxes] in inboxes.stages.put(StageOrder(effect: $0, stream: $1)) }))
        self.log = log.subsystem("node")
        feed = LiveFeed(
            directory: directory, sessionLimit: configuration.sessionLimit,
            weights: configuration.feedWeights, tag: UInt32.random(in: 0...UInt32.max))
        sessions = SessionCensus(
            workers: configuration.workerCount,
            limits: SessionCensus.Limits(
                ofAll: configuration.sessionLimit, ofStrangersAddress: configuration.sessionLimitForAddress))
        let workers = try WorkerPool(configuration, events: inboxes.workers, start: now())
        self.workers = workers
        transcoder = configuration.transcoder.map { TranscoderSupervisor($0, log: log) }
        previews = transcoder.map { [taps] transcoder in
            PreviewDesk(
                transcoder: transcoder, locator: configuration.locator,
                limit: configuration.previewMemory, taps: taps, now: now,
                post: { workers[$0].post($1) })
        }
        pauseShelf =
            transcoder == nil ? nil : configuration.pausePictures.map { PausePictureShelf(directory: $0) }
        recordings = transcoder.flatMap { [taps] transcoder in
            configuration.recordings.map {
                RecordingDesk(
                    $0, transcoder: transcoder,
                    taps: WorkerTaps(transcoder: transcoder, numbers: taps) { workers[$0].post($1) },
                    log: log, now: now)
            }
        }
    }

    /// Whether it begins nothing any more.
    var isStopping: Bool { tasks.isStopping }

    /// Where each worker receives.
    package nonisolated var addresses: [TransportAddress] { workers.addresses }

    /// What the candidates of a session say, that of UDP first; workers differ in their ports only.
    package nonisolated var announced: [TransportAddress] { workers.announced }

    /// Where connections over TCP are taken; nil if they are not.
    package nonisolated var tcpAddress: TransportAddress? { workers.tcpAddress }

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
        tasks.stopDrivers()
        // While there are packets to complete files with.
        await recordings?.stop()
        tasks.cancelListeners()
        workers.stop()
        await previews?.stop()
        transcoder?.stop()
        sessions.removeAll()
        feed.closeFollowers(.goingAway)
        for host in registry.all { await host.close(.goingAway) }
    }
}
