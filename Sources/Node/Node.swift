import Base
import Crypto
import Forwarding
import Foundation
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
    let workers: [WorkerHandle]
    /// Nil where there is only one worker.
    let exchange: RelayExchange?
    /// Nil without ICE-TCP.
    let entrance: TCPEntrance?
    /// Nil where nothing is decoded.
    package nonisolated let transcoder: TranscoderSupervisor?
    package nonisolated let previews: PreviewDesk?
    /// Nil where nothing is kept on a disk.
    package nonisolated let recordings: RecordingDesk?
    package nonisolated let taps = TapNumbers()
    private let fingerprint: SDPFingerprint
    private let events: AsyncStream<WorkerEvent>
    let backlog = EventBacklog()
    /// Says that streams may have to be recorded: what comes of that waits for a disk, and workers' events must not.
    let recordingNews = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    var sessions: [SessionID: SessionRecord] = [:]
    /// How many of them each worker has.
    var load: [Int: Int] = [:]
    var halfOpen = HalfOpenSessions()
    var strangers: StrangersSessions
    let offerDesk: OfferDesk
    var offersUnderWay = 0
    /// Of lines about sessions that were made or have ended.
    var sessionLines = LineRate()
    var streams: [StreamID: StreamRecord] = [:]
    /// Stages that have sessions.
    var rooms: [StreamID: StageRoom] = [:]
    /// Publishers inside the server.
    var injections: [InjectionID: InjectionRecord] = [:]
    var nextInjection: UInt64 = 1
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
    /// Programmes that are composed.
    var compositions: [StreamID: ComposedProgramme] = [:]
    /// Who would be in those for which there was no room.
    var waitingCompositions: [StreamID: [ComposedSpeaker]] = [:]
    /// Who would be in those that nobody watches.
    var restingCompositions: [StreamID: [ComposedSpeaker]] = [:]
    var compositionsLost: UInt64 = 0
    let compositionEvents = AsyncStream.makeStream(of: (StreamID, CompositionEvent).self)
    /// Programmes whose picture is a pause picture, and the files that hosts chose for that.
    var pauses: [StreamID: PausedProgramme] = [:]
    var pausePictures: [StreamID: [UInt8]] = [:]
    /// Nil where nothing is kept on a disk.
    let pauseShelf: PausePictureShelf?
    let pauseEvents = AsyncStream.makeStream(of: (StreamID, PauseEvent).self)
    private let effects: AsyncStream<(StageEffect, StreamID)>
    var feedDesk: FeedDesk
    var feedFollowers: FeedFollowers
    var feedFences = FeedFences()
    var feedTimer: Task<Void, Never>?
    var feedTimerAt: MonotonicTime?
    private var feedWatch: Task<Void, Never>?
    let presence: AsyncStream<PresenceChange>.Continuation
    private let presenceChanges: AsyncStream<PresenceChange>
    private var presenceKeeper: Task<Void, Never>?
    private var performer: Task<Void, Never>?
    /// Numbers sessions in the order in which they were made.
    var nextOrder: UInt64 = 1
    var random = SecureRandom()
    private(set) var isStopping = false
    private var listener: Task<Void, Never>?
    private var housekeeping: Task<Void, Never>?
    private var conducting: Task<Void, Never>?
    private var composing: Task<Void, Never>?
    private var pausing: Task<Void, Never>?
    private var recording: Task<Void, Never>?
    var launching: Task<Void, Never>?

    /// Streams remembered at most; unused ones are forgotten first, the one that ended first before others.
    static let streamLimit = 10_000
    /// Seconds for which an ended stream can still be asked about.
    static let memory = 600

    /// Opens the ports and starts the workers.
    /// - Throws: what stands in the way, in words for an operator.
    package init(
        configuration: NodeConfiguration, log: Log, store: any StreamStore = MemoryStore()
    ) throws {
        self.configuration = configuration
        strangers = StrangersSessions(limit: configuration.sessionLimitForAddress)
        self.store = store
        offerDesk = OfferDesk(negotiator: configuration.negotiator)
        let (effects, performing) = AsyncStream.makeStream(of: (StageEffect, StreamID).self)
        self.effects = effects
        let report: (@Sendable (StageEvent, StageRecord, WallTime) -> OutboxEvent)? =
            configuration.reportsEvents ? StageReport.event : nil
        hostEnvironment = StreamHost.Environment(
            store: store, log: log.subsystem("stage"), directory: directory, now: { Moment.now() },
            report: report, perform: { performing.yield(($0, $1)) })
        self.log = log.subsystem("node")
        feedDesk = FeedDesk(
            directory: directory, sessionLimit: configuration.sessionLimit,
            weights: configuration.feedWeights, tag: UInt32.random(in: 0...UInt32.max))
        feedFollowers = FeedFollowers(directory: directory)
        (presenceChanges, presence) = AsyncStream.makeStream(of: PresenceChange.self)
        let identity = try DTLSIdentity()
        fingerprint = SDPFingerprint(
            algorithm: identity.fingerprint.algorithm.rawValue, bytes: identity.fingerprint.bytes)
        let (events, continuation) = AsyncStream.makeStream(of: WorkerEvent.self)
        self.events = events
        let count = max(configuration.workers, 1)
        let exchange = count > 1 ? RelayExchange(workers: count) : nil
        self.exchange = exchange
        var started: [WorkerHandle] = []
        do {
            for index in 0..<count {
                started.append(
                    try WorkerHandle(
                        index: index, configuration: configuration, identity: identity, exchange: exchange,
                        events: continuation, backlog: backlog))
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
                limit: configuration.previewMemory, taps: taps, now: { Moment.now() },
                post: { started[$0].post($1) })
        }
        pauseShelf =
            transcoder == nil ? nil : configuration.pausePictures.map { PausePictureShelf(directory: $0) }
        recordings = transcoder.flatMap { [taps, started] transcoder in
            configuration.recordings.map {
                RecordingDesk(
                    $0, transcoder: transcoder, taps: taps, log: log, now: { Moment.now() },
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
        guard listener == nil, !isStopping else { return }
        listener = Task { [events, backlog, weak self] in
            for await event in events {
                backlog.take()
                await self?.take(event)
            }
        }
        recording = Task { [stream = recordingNews.stream, weak self] in
            for await _ in stream { await self?.advanceRecordings() }
        }
        performer = Task { [effects, weak self] in
            for await (effect, stream) in effects { await self?.perform(effect, in: stream) }
        }
        beginPreviews()
        feedWatch = Task { [directory, weak self] in
            for await _ in directory.news { await self?.takeFeedNews() }
        }
        presenceKeeper = Task { [presenceChanges, weak self] in
            for await change in presenceChanges { await self?.carryOut(change) }
        }
        await beginPausePictures()
        await beginRecordings()
        housekeeping = Task { [weak self] in
            while !Task.isCancelled {
                do { try await Task.sleep(for: .seconds(1)) } catch { return }
                await self?.keepHouse()
            }
        }
        composing = Task { [stream = compositionEvents.stream, weak self] in
            for await (id, event) in stream { await self?.take(event, of: id) }
        }
        pausing = Task { [stream = pauseEvents.stream, weak self] in
            for await (id, event) in stream { await self?.take(event, of: id) }
        }
        conducting = Task { [weak self] in
            while !Task.isCancelled {
                do { try await Task.sleep(for: StageRoom.interval) } catch { return }
                await self?.conductRooms()
            }
        }
    }

    /// Ends every session with a DTLS close, and the workers.
    package func stop() async {
        guard !isStopping else { return }
        isStopping = true
        housekeeping?.cancel()
        conducting?.cancel()
        composing?.cancel()
        pausing?.cancel()
        recording?.cancel()
        // While there are packets to complete files with.
        await recordings?.stop()
        listener?.cancel()
        entrance?.stop()
        for worker in workers { worker.stop() }
        await previews?.stop()
        transcoder?.stop()
        performer?.cancel()
        feedWatch?.cancel()
        feedTimer?.cancel()
        presenceKeeper?.cancel()
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

    /// The worker with the fewest sessions.
    var leastLoadedWorker: Int {
        workers.indices.min { load[$0, default: 0] < load[$1, default: 0] } ?? 0
    }
}

extension Moment {
    /// The edge's look at both clocks.
    static func now() -> Moment {
        Moment(
            elapsed: MonotonicClock.now(),
            wall: WallTime(milliseconds: Int64(Date().timeIntervalSince1970 * 1_000)))
    }
}
