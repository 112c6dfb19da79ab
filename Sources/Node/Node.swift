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

/// The server without HTTP: streams, sessions, and the workers that carry them.
///
/// Control only. Media never passes through this actor: one actor hop costs as much as a worker spends on many
/// packets.
package actor Node {
    let configuration: NodeConfiguration
    let log: Log
    /// The clock; nothing in this target reads the time in any other way, so that tests can set it.
    let now: @Sendable () -> Moment
    let workers: WorkerPool
    /// The ports for RTMP and SRT; nil if the node accepts neither.
    nonisolated let entrance: IngestEntrance?
    /// The publishers by RTMP and SRT.
    var ingests = IngestRegister()
    nonisolated let desks: NodeDesks
    /// What workers, stages and jobs leave for the node.
    nonisolated let inboxes = NodeInboxes()
    var omissions = LogOmissions()
    /// The streams as far as sessions concern them; makes decisions without waiting for anything.
    var live: LiveStreams
    /// Snapshots of all streams; can be read without waiting for an actor.
    let directory: StreamDirectory
    /// The streams as far as their stages concern them; each stage lives in an actor of its own.
    var registry: StreamRegistry
    var random = SecureRandom()
    var tasks = NodeTasks()
    /// Deletes what has been kept for as long as configured.
    var retention = Retention()

    /// Opens the ports and starts the workers.
    /// - Parameters:
    ///   - store: what outlives a restart; the default keeps everything in memory.
    ///   - now: the clock.
    /// - Throws: an error whose description tells an operator what is wrong.
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
                perform: { [inboxes] in
                    inboxes.stages.put(StageOrder(effect: $0, stream: $1, number: inboxes.effects.next()))
                }))
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

    /// Nil if the node has no transcoder.
    package nonisolated var transcoder: TranscoderSupervisor? { desks.transcoder }

    /// Nil if the node has no transcoder.
    package nonisolated var previews: PreviewDesk? { desks.previews }

    /// Nil without a transcoder, or without a directory for recordings.
    package nonisolated var recordings: RecordingDesk? { desks.recordings }
    /// Nil if the node makes no clips.
    package nonisolated var clips: ClipDesk? { desks.clips }

    /// Nil if the node makes neither HLS nor restreams.
    package nonisolated var packagings: PackagingDesk? { desks.packagings }

    /// Whether any retention time is configured.
    package nonisolated var deletesWhatExpires: Bool { configuration.retention != RetentionSettings() }

    /// Nil if the node makes no restreams.
    package nonisolated var restreams: RestreamDesk? { desks.restreams }

    /// True from the beginning of `stop`: nothing new may begin.
    var isStopping: Bool { tasks.isStopping }

    /// Where each worker receives, in the workers' order.
    package nonisolated var addresses: [TransportAddress] { workers.addresses }

    /// The addresses in the candidates of a session, those for UDP first; workers differ only in their ports.
    package nonisolated var announced: [TransportAddress] { workers.announced }

    /// Where ICE over TCP is served; nil if it is not.
    package nonisolated var tcpAddress: TransportAddress? { workers.tcpAddress }

    /// Where publishers connect by RTMP; nil if they cannot.
    package nonisolated var rtmpAddress: TransportAddress? { entrance?.address }

    /// Where publishers connect by RTMPS; nil if they cannot.
    package nonisolated var rtmpsAddress: TransportAddress? { entrance?.secureAddress }

    /// Where publishers connect by SRT; nil if they cannot.
    package nonisolated var srtAddress: TransportAddress? { entrance?.srtAddress }

    /// Where TURN is served.
    package nonisolated var turnAddresses: TURNAddresses { workers.turn?.addresses ?? TURNAddresses() }

    /// Statistics of TURN clients; nil if TURN is not served.
    package nonisolated var turnStatistics: TURNStatistics? { workers.turn?.statistics }

    /// Sets the certificate for RTMPS and for TURN over TLS; connections that exist keep the earlier one.
    package nonisolated func renewCertificate(_ identity: TLSIdentity) {
        entrance?.renew(identity)
        workers.turn?.renew(identity)
    }

    /// Starts to handle what workers, stages and jobs report, and to do periodic work.
    ///
    /// Has no effect on a node that was started or stopped before.
    package func start() async {
        guard tasks.isEmpty, !isStopping else { return }
        // Listeners go on while the node stops: they handle what ends then.
        tasks.listen(to: inboxes.workers) { [weak self] in await self?.take($0) }
        tasks.listen(to: inboxes.stages) { [weak self] in
            await self?.perform($0.effect, in: $0.stream, number: $0.number)
        }
        // In lanes, because each of these may wait for the store: one stream's or publisher's must not delay another's.
        tasks.listen(to: inboxes.duels, inLanes: { $0.concerned }) { [weak self] in await self?.take($0) }
        tasks.listen(to: inboxes.presence) { [weak self] in await self?.take($0) }
        tasks.listen(to: directory.news) { [weak self] in await self?.takeFeedNews() }
        // Drivers end first: they begin sessions, recordings and jobs.
        tasks.drive(by: inboxes.ingest, inLanes: { $0.lane }) { [weak self] in await self?.take($0) }
        tasks.drive(by: inboxes.programmes) { [weak self] in await self?.followProgramme(of: $0.stream) }
        tasks.drive(by: inboxes.recorded, inLanes: { $0.stream }) { [weak self] in
            await self?.followRecording(of: $0.stream)
        }
        await beginPreviews()
        await beginPausePictures()
        await beginRecordings()
        await packagings?.start()
        await beginRestreams()
        tasks.drive(by: inboxes.compositions) { [weak self] in await self?.take($0.event, of: $0.stream) }
        tasks.drive(by: inboxes.pauses) { [weak self] in await self?.take($0.event, of: $0.stream) }
        tasks.drive(by: inboxes.renditions) { [weak self] in await self?.take($0) }
        tasks.repeatEvery(.seconds(1)) { [weak self] in await self?.keepHouse() }
        // In tasks of their own, because they wait for a disk.
        tasks.repeatEvery(.seconds(1)) { [weak self] in await self?.deleteExpired() }
        tasks.repeatEvery(.seconds(1)) { [weak self] in await self?.reopenStreams() }
        tasks.repeatEvery(StageRoom.interval) { [weak self] in await self?.advanceStages() }
    }

    /// Ends every session with a DTLS close, then stops the workers and the transcoder.
    ///
    /// The order matters: first what begins things, then what writes files, then the media, then what makes it.
    package func stop() async {
        guard !isStopping else { return }
        tasks.stopDrivers()
        live.stop()
        entrance?.stop()
        // Before the workers, because files are completed with packets that still arrive.
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
