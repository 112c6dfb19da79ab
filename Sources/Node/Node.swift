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
    /// Nil where nobody is taken by RTMP or SRT.
    nonisolated let entrance: IngestEntrance?
    /// Who publishes by RTMP or SRT.
    var ingests = IngestRegister()
    nonisolated let desks: NodeDesks
    /// What others leave for it.
    nonisolated let inboxes = NodeInboxes()
    var omissions = LogOmissions()
    /// Streams as their sessions make them: what decides, and waits for nothing.
    var live: LiveStreams
    let directory: StreamDirectory
    /// Streams as their stages make them, each an actor of its own.
    var registry: StreamRegistry
    var random = SecureRandom()
    var tasks = NodeTasks()
    /// Of what is kept for so long and no longer.
    var retention = Retention()

    /// Opens the ports and starts the workers.
    /// - Parameter now: what the time is taken from.
    /// - Throws: what stands in the way, in words for an operator.
    package init(
        configuration: NodeConfiguration, log: Log, store: any StreamStore = MemoryStore(),
        now: @escaping @Sendable () -> Moment = { Moment.now() }
    ) throws {
        self.configuration = configuration
        self.now = now
        let directory = StreamDirectory()
        self.directory = directory
        let report: (@Sendable (StageEvent, StageRecord, WallTime) -> OutboxEvent)? =
            configuration.reportsEvents ? StageReport.event : nil
        registry = StreamRegistry(
            StreamHost.Environment(
                store: store, log: log.subsystem("stage"), directory: directory, now: now,
                report: report, review: configuration.reviewer,
                hasRoom: { [inboxes] in inboxes.stages.hasRoom() },
                duels: { [inboxes] in inboxes.duels.put($0) },
                perform: { [inboxes] in inboxes.stages.put(StageOrder(effect: $0, stream: $1)) }))
        self.log = log.subsystem("node")
        live = LiveStreams(
            directory: directory, settings: LiveSettings(configuration),
            feedTag: UInt32.random(in: 0...UInt32.max))
        entrance = try configuration.ingest.map { [inboxes] settings in
            try IngestEntrance(settings, isDecoding: configuration.transcoder != nil) {
                inboxes.ingest.put($0)
            }
        }
        workers = try WorkerPool(configuration, events: inboxes.workers, now: now)
        desks = NodeDesks(configuration, workers: workers, log: log, now: now)
    }

    /// Nil where nothing is decoded.
    package nonisolated var transcoder: TranscoderSupervisor? { desks.transcoder }

    /// Nil where nothing is decoded.
    package nonisolated var previews: PreviewDesk? { desks.previews }

    /// Nil where nothing is kept on a disk.
    package nonisolated var recordings: RecordingDesk? { desks.recordings }
    /// Nil where none are made.
    package nonisolated var clips: ClipDesk? { desks.clips }

    /// Nil where no HLS is made.
    package nonisolated var packagings: PackagingDesk? { desks.packagings }

    /// Whether something is deleted when it is old enough.
    package nonisolated var deletesWhatExpires: Bool { configuration.retention != RetentionSettings() }

    /// Nil where no programme is sent on.
    package nonisolated var restreams: RestreamDesk? { desks.restreams }

    /// Whether it begins nothing any more.
    var isStopping: Bool { tasks.isStopping }

    /// Where each worker receives.
    package nonisolated var addresses: [TransportAddress] { workers.addresses }

    /// What the candidates of a session say, that of UDP first; workers differ in their ports only.
    package nonisolated var announced: [TransportAddress] { workers.announced }

    /// Where connections over TCP are taken; nil if they are not.
    package nonisolated var tcpAddress: TransportAddress? { workers.tcpAddress }

    /// Where publishers are taken by RTMP; nil if they are not.
    package nonisolated var rtmpAddress: TransportAddress? { entrance?.address }

    /// Where publishers are taken by RTMPS; nil if they are not.
    package nonisolated var rtmpsAddress: TransportAddress? { entrance?.secureAddress }

    /// Where publishers are taken by SRT; nil if they are not.
    package nonisolated var srtAddress: TransportAddress? { entrance?.srtAddress }

    /// Where clients are taken by TURN.
    package nonisolated var turnAddresses: TURNAddresses { workers.turn?.addresses ?? TURNAddresses() }

    /// Of clients by TURN; nil where nobody is taken by it.
    package nonisolated var turnStatistics: TURNStatistics? { workers.turn?.statistics }

    /// Who connects by RTMPS, or by TURN over TLS, from now on is answered by this.
    package nonisolated func renewCertificate(_ identity: TLSIdentity) {
        entrance?.renew(identity)
        workers.turn?.renew(identity)
    }

    /// Begins to act on what the workers tell.
    package func start() async {
        guard tasks.isEmpty, !isStopping else { return }
        tasks.listen(to: inboxes.workers) { [weak self] in await self?.take($0) }
        tasks.listen(to: inboxes.stages) { [weak self] in await self?.perform($0.effect, in: $0.stream) }
        tasks.listen(to: inboxes.duels) { [weak self] in await self?.take($0) }
        tasks.listen(to: inboxes.presence) { [weak self] in await self?.take($0) }
        tasks.listen(to: directory.news) { [weak self] in await self?.takeFeedNews() }
        tasks.drive(by: inboxes.ingest) { [weak self] in await self?.take($0) }
        tasks.drive(by: inboxes.programmes) { [weak self] in await self?.followProgramme(of: $0.stream) }
        tasks.drive(by: inboxes.recorded) { [weak self] in await self?.followRecording(of: $0.stream) }
        await beginPreviews()
        await beginPausePictures()
        await beginRecordings()
        await packagings?.start()
        await beginRestreams()
        tasks.drive(by: inboxes.compositions) { [weak self] in await self?.take($0.event, of: $0.stream) }
        tasks.drive(by: inboxes.pauses) { [weak self] in await self?.take($0.event, of: $0.stream) }
        tasks.drive(by: inboxes.renditions) { [weak self] in await self?.take($0) }
        tasks.repeatEvery(.seconds(1)) { [weak self] in await self?.keepHouse() }
        // By itself, because it waits for a disk.
        tasks.repeatEvery(.seconds(1)) { [weak self] in await self?.deleteExpired() }
        tasks.repeatEvery(StageRoom.interval) { [weak self] in await self?.advanceStages() }
    }

    /// Ends every session with a DTLS close, and the workers.
    package func stop() async {
        guard !isStopping else { return }
        tasks.stopDrivers()
        live.stop()
        entrance?.stop()
        // While there are packets to complete files with.
        await clips?.stop()
        await recordings?.stop()
        await restreams?.stop()
        await packagings?.stop()
        tasks.cancelListeners()
        workers.stop()
        await previews?.stop()
        transcoder?.stop()
        live.clear()
        for host in registry.all {
            await host.saveReactions()
            await host.close(.goingAway)
        }
    }
}
