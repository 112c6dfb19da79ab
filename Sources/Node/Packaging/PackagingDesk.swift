import Base
import Forwarding
import HLS
import Recordings
import Transcoder
import Wire

/// Packages streams' programmes, and serves them as HLS, of which the last segments are in memory.
///
/// Each rendition of a stream is encoded at most once, and shared. The first request for its playlist starts it, or
/// the first listener to the source's samples. It ends when there is no listener and no request for half a minute.
/// Requests for the next part wait here, bounded in number and time; nothing else waits for the transcoder.
package actor PackagingDesk {
    /// Receives `format` and `sample` reports in order, on the desk's actor; must not block.
    typealias Listener = @Sendable (PackagingReport) -> Void

    /// How long HLS of a rendition goes on without a request.
    static let idleTime = Duration.seconds(30)
    /// The longest that a request waits: three target durations (RFC 8216bis §6.2.5.2).
    static let waitingTime = Duration.milliseconds(3 * PackagingTiming.segmentMilliseconds)
    /// Requests that may wait for one rendition.
    ///
    /// A player has two: for the playlist, and for the hinted part.
    private static let waiterLimit = 8_000
    /// Requests that may wait in total.
    private static let totalWaiterLimit = 16_000
    /// How long after a lost or refused job the next one is requested.
    private static let pause = Duration.seconds(1)
    /// Media captured up to this long before the packaging began still gets a positive media time.
    private static let past = Duration.seconds(10)

    /// Streams that may be watched by HLS at the same time; 0 for no HLS.
    private let limit: Int
    let timing: PackagingTiming
    private let transcoder: TranscoderSupervisor
    private let taps: any ProgrammeTaps
    private let originals: any ProgrammeTaps
    private let now: @Sendable () -> Moment
    private let log: Log
    /// Nil where viewers cannot go back.
    private let shelf: SegmentShelf?
    nonisolated let atHand = PlaylistsAtHand()
    private(set) var active: [Packaging.Key: Packaging] = [:]
    private(set) var earlier = EarlierPlaylists()
    private var programmes: [StreamID: RecordingDesk.Programme] = [:]
    private var refusals = OriginalRefusals()
    /// The time that is 0 in the media times of all renditions of a stream.
    private var origins: [StreamID: MonotonicTime] = [:]
    private var counted = Counters()
    private var isStopped = false
    /// The number of the job that was started last.
    private var lastNumber: UInt64 = 0
    private let inbox = Inbox<Event>(limit: 1_024)
    private var listener: Task<Void, Never>?

    /// - Parameter originals: taps on what publishers sent, for `original`; nil to use `taps` there, too.
    init(
        limit: Int, timing: PackagingTiming, dvr: DVRSettings? = nil, transcoder: TranscoderSupervisor,
        taps: any ProgrammeTaps, originals: (any ProgrammeTaps)? = nil, log: Log,
        now: @escaping @Sendable () -> Moment
    ) {
        self.limit = limit
        self.timing = timing
        self.transcoder = transcoder
        self.taps = taps
        self.originals = originals ?? taps
        self.log = log.subsystem("hls")
        shelf = dvr.map { SegmentShelf($0, log: log.subsystem("hls")) }
        self.now = now
    }

    /// Begins to process the events of the transcoder, of taps and of the shelf.
    func start() {
        guard listener == nil else { return }
        listener = Task { [inbox, weak self] in
            for await _ in inbox.news {
                for event in inbox.takeAll() { await self?.take(event) }
            }
        }
    }

    /// Ends all packagings and resumes every waiting request.
    func stop() {
        isStopped = true
        for key in active.keys { end(key) }
        listener?.cancel()
        inbox.close()
    }

    /// Counts of the events that wait for the desk.
    package nonisolated var inboxCounters: InboxCounters { inbox.counters }

    /// The counts as of now.
    package var counters: Counters {
        var result = counted
        result.active = active.count
        result.watched = watched.count
        result.reduced = active.keys.count(where: \.rendition.isReduced)
        result.passed = active.values.count(where: \.isPassed)
        result.waiting = totalWaiters
        result.bytes = active.values.reduce(0) { $0 + $1.playlist.byteCount }
        result.kept = active.values.count { $0.playlist.window > 0 }
        (result.storedBytes, result.notStored) =
            shelf.map { ($0.counters.bytes, $0.counters.failed) } ?? (0, 0)
        return result
    }

    // MARK: Requests

    /// Whether the server makes HLS at all.
    package nonisolated var makesHLS: Bool { limit > 0 }

    /// Whether HLS of a rendition is being made.
    func isActive(_ key: Packaging.Key) -> Bool {
        isKept(key) && active[key]?.playlist.hasEnded == false
    }

    /// Whether HLS of a rendition is being made, or is still available after the stream's end.
    func isKept(_ key: Packaging.Key) -> Bool { active[key]?.lastRequest != nil }

    private var totalWaiters: Int { active.values.reduce(0) { $0 + $1.waiters.count } }
    private var watched: Set<StreamID> { Set(active.keys.filter(isActive).map(\.stream)) }

    /// Whether one more stream may be watched by HLS.
    var hasRoom: Bool { watched.count < limit }
    /// The longest window that the server allows, in seconds; 0 where viewers cannot go back.
    package nonisolated var longestWindow: Int { shelf?.settings.secondsLimit ?? 0 }

    /// Starts HLS of a rendition, unless it is under way.
    /// - Throws: `stopping` or `full`.
    func begin(_ key: Packaging.Key, _ programme: RecordingDesk.Programme?) throws(HLSRefusal) {
        guard !isActive(key) else { return }
        // The stream ended and is live again.
        if active[key]?.playlist.hasEnded == true { end(key) }
        guard !isStopped else { throw .stopping }
        let watched = watched
        guard watched.contains(key.stream) || watched.count < limit else {
            counted.refused &+= 1
            throw .full
        }
        if active[key] == nil { encode(key, programme) }
        active[key]?.lastRequest = now().elapsed
        show(key)
        counted.started &+= 1
        log.info("hls.started", ["stream": key.stream, "rendition": key.rendition.rawValue])
    }

    private func encode(_ key: Packaging.Key, _ programme: RecordingDesk.Programme?) {
        programmes[key.stream] = programme
        if origins[key.stream] == nil { origins[key.stream] = now().elapsed - Self.past }
        let taps = key.rendition == .original ? originals : taps
        active[key] = Packaging(
            playlist: makePlaylist(for: key),
            inputs: ProgrammeInputs(taps, transcoder, origin: SourceOrigin.packaging))
        launch(key)
    }

    /// Writes complete segments of the source to disk, and removes those that have left the window.
    private func shelve(_ key: Packaging.Key) {
        guard let shelf, key.rendition == .source else { return }
        active[key]?.shelve(on: shelf, key.stream, at: now().elapsed) { [inbox] name in
            inbox.put(.stored(key, name))
        }
    }

    private func noteStored(_ name: String, of key: Packaging.Key) {
        guard active[key]?.playlist.noteStored(name) != true else { return }
        shelf?.remove([name], of: key.stream, at: now().elapsed)
    }

    // MARK: Samples

    /// Adds a listener to the samples of a stream's source, and starts the encode if there is none.
    /// - Parameter name: identifies the listener; never used twice.
    func listen(
        to stream: StreamID, _ programme: RecordingDesk.Programme?, as name: UInt64,
        _ listener: @escaping Listener
    ) {
        guard !isStopped else { return }
        let key = Packaging.Key(stream: stream, rendition: .source)
        // What remains of an ended stream is not the one that began again under its name.
        if active[key]?.playlist.hasEnded == true { end(key) }
        if active[key] == nil { encode(key, programme) }
        let isFirst = active[key]?.listeners.isEmpty ?? false
        active[key]?.listeners[name] = listener
        if let format = active[key]?.format { listener(.format(format)) }
        if isFirst { commandSamples(of: key) }
    }

    /// Removes a listener; an encode without listeners and HLS requests ends within a second.
    func endListening(_ name: UInt64, to stream: StreamID) {
        let key = Packaging.Key(stream: stream, rendition: .source)
        guard active[key]?.listeners.removeValue(forKey: name) != nil else { return }
        if active[key]?.listeners.isEmpty == true { commandSamples(of: key) }
    }

    private func commandSamples(of key: Packaging.Key) {
        guard let packaging = active[key], let job = packaging.job else { return }
        transcoder.command(job, PackagingCommand.reportSamples(!packaging.listeners.isEmpty).bytes)
    }

    // MARK: Playlists

    /// Returns a media playlist, and waits for the requested part or segment.
    /// - Parameters:
    ///   - uri: of the source's media playlist.
    ///   - reachesBack: whether the playlist begins with the segments on disk.
    func mediaPlaylist(
        of key: Packaging.Key, uri: String, _ query: PlaylistQuery, reachesBack: Bool = false
    ) async throws(HLSRefusal) -> String {
        let text = { [self] (playlist: LivePlaylist) in
            playlist.text(skips: query.skips, reachesBack: reachesBack, reports: reports(beside: key, uri))
        }
        guard !reachesBack || (active[key]?.playlist.window ?? 0) > 0 || isStopped else { throw .noWindow }
        active[key]?.isLoaded = true
        guard let position = query.position else {
            let playlist = try await playlist(key, when: .segment)
            guard playlist.hasCompleteSegment else { throw .late }
            return text(playlist)
        }
        let playlist = try await playlist(key, when: .position(position))
        switch playlist.standing(of: position) {
        case .there, .onDisk: return text(playlist)
        case .tooFar, .nowhere: throw .tooFarAhead
        case .awaited: throw .late
        }
    }

    /// Returns a part, segment or initialization segment, and waits for one that is made next.
    func file(named name: String, of stream: StreamID) async throws(HLSRefusal) -> HLSFile {
        let keys = PackagedRendition.allCases.map { Packaging.Key(stream: stream, rendition: $0) }
        guard let key = keys.first(where: { active[$0]?.playlist.names(name) == true }) else {
            throw isStopped ? .stopping : .unknownFile
        }
        let playlist = try await playlist(key, when: .file(name))
        let (standing, bytes) = playlist.file(named: name)
        switch standing {
        case .there: return .bytes(bytes)
        case .onDisk:
            guard let shelf else { throw .unknownFile }
            return .stored(path: shelf.path(of: name, in: stream))
        case .tooFar: throw .tooFarAhead
        case .awaited: throw .late
        case .nowhere: throw .unknownFile
        }
    }

    /// Whether the `original` rendition of a stream may be offered.
    func mayPassOriginal(of stream: StreamID) -> Bool { refusals.mayTry(stream) }

    /// Notes that `original` fell back to H.264, and ends it, unless a player already plays it.
    func refuseOriginal(_ key: Packaging.Key) {
        guard refusals.refuse(key.stream, programmes[key.stream], at: now().elapsed) else { return }
        log.info("hls.not-passed", ["stream": key.stream])
        if active[key]?.isLoaded == false { end(key) }
    }

    /// Returns the playlist once it satisfies a wish, or after `waitingTime` as it is then.
    func playlist(
        _ key: Packaging.Key, when wish: Packaging.Wish
    ) async throws(HLSRefusal) -> LivePlaylist {
        guard isKept(key) else { throw isStopped ? .stopping : .unknownFile }
        let time = now().elapsed
        active[key]?.lastRequest = time
        if let playlist = active[key]?.playlist(when: wish) { return playlist }
        // Hold no copy of `active[key]` across the wait: it would contain all waiters so far.
        let waiting = active[key]?.waiters.count ?? 0
        guard waiting < Self.waiterLimit, totalWaiters < Self.totalWaiterLimit else { throw .overloaded }
        let refusal: HLSRefusal? = await withCheckedContinuation { continuation in
            active[key]?.waiters.append(
                Packaging.Waiter(
                    wish: wish, deadline: time + Self.waitingTime, continuation: continuation))
        }
        if let refusal { throw refusal }
        // It may have ended after its part came, before this call could go on.
        guard let playlist = active[key]?.playlist else { throw isStopped ? .stopping : .unknownFile }
        return playlist
    }

    // MARK: What is made

    /// Takes note of a stream's current programme; nil while viewers get nothing.
    func update(_ stream: StreamID, to programme: RecordingDesk.Programme?) {
        refusals.update(stream, to: programme)
        guard origins[stream] != nil, programmes[stream] != programme else { return }
        programmes[stream] = programme
        refusals.expect(stream, at: now().elapsed)
        for rendition in PackagedRendition.allCases {
            connect(Packaging.Key(stream: stream, rendition: rendition))
        }
    }

    /// Reconnects `original`, because a session's own video can be tapped from now on.
    ///
    /// A tap opened earlier took what viewers get instead. Other publishers' video is not concerned.
    func renewOriginal(of stream: StreamID, from session: SessionID) {
        let publisher = programmes[stream]?.video?.session ?? refusals.publisher(of: stream)
        guard publisher == session else { return }
        let key = Packaging.Key(stream: stream, rendition: .original)
        refusals.expect(stream, at: now().elapsed)
        active[key]?.inputs.disconnectVideo()
        connect(key)
    }

    /// Does what is due; called every second.
    /// - Parameters:
    ///   - ended: whether a stream has ended.
    ///   - off: whether a stream's settings disable HLS.
    ///   - window: a stream's window, in seconds.
    func advance(
        ended: @Sendable (StreamID) -> Bool, off: @Sendable (StreamID) -> Bool,
        window: @Sendable (StreamID) -> Int = { _ in 0 }
    ) {
        let time = now().elapsed
        shelf?.advance(at: time)
        refusals.advance(at: time)
        forgetOldest()
        for key in active.keys where atHand.takeAsked(key) { active[key]?.lastRequest = time }
        for (key, packaging) in active {
            let stream = key.stream
            if key.rendition == .source {
                active[key]?.playlist.window = 1_000 * min(window(stream), longestWindow)
            }
            if let last = packaging.lastRequest {
                if off(stream) {
                    endHLS(of: key, because: "off", refusing: .off)
                } else if time >= last + Self.idleTime, packaging.waiters.isEmpty,
                    active[key]?.isKept(at: time) != true
                {
                    endHLS(of: key, because: "nobody asks", refusing: .unknownFile)
                }
            }
            if active[key]?.lastRequest == nil, packaging.listeners.isEmpty {
                end(key)
                continue
            }
            shelve(key)
            if ended(stream), !packaging.playlist.hasEnded {
                active[key]?.playlist.end()
                active[key]?.endedAt = time
                shelve(key)
                release(key)
            } else if let endedAt = packaging.endedAt {
                if time >= endedAt + Self.idleTime { active[key]?.playlist.releaseStored() }
            } else if let retryAt = packaging.retryAt, time >= retryAt {
                launch(key)
            } else {
                connect(key)
            }
            resume(key)
        }
    }

    /// Ends HLS of the streams that ended first, where more than `limit` ended streams are kept.
    private func forgetOldest() {
        let ended = active.filter { $0.value.endedAt != nil && $0.key.rendition == .source }
        guard ended.count > limit else { return }
        let oldest = ended.sorted { ($0.value.endedAt ?? .zero) < ($1.value.endedAt ?? .zero) }
        for key in oldest.prefix(ended.count - limit).map(\.key) {
            endHLS(of: key, because: "others ended since", refusing: .unknownFile)
        }
    }

    /// Ends HLS of a rendition and refuses its waiting requests; listeners keep the encode.
    private func endHLS(of key: Packaging.Key, because reason: String, refusing refusal: HLSRefusal) {
        active[key]?.lastRequest = nil
        show(key)
        let waiters = active[key]?.waiters ?? []
        active[key]?.waiters = []
        for waiter in waiters { waiter.continuation.resume(returning: refusal) }
        log.info(
            "hls.ended", ["stream": key.stream, "rendition": key.rendition.rawValue, "reason": reason])
    }

    private func launch(_ key: Packaging.Key) {
        guard var packaging = active[key], packaging.job == nil, !packaging.playlist.hasEnded else { return }
        lastNumber += 1
        let name = lastNumber
        packaging.number = name
        let request = PackagingRequest(
            rendition: key.rendition, timing: timing, origin: origins[key.stream])
        let job = transcoder.begin(.packaging, request.bytes) { [inbox] event in
            switch event {
            case .report(let bytes):
                guard let report = try? PackagingReport(bytes) else { return }
                inbox.put(.report(key, name, report))
            case .keyFrameWanted(let input): inbox.put(.keyFrameWanted(key, input))
            case .ended, .lost: inbox.put(.over(key, name))
            case .packet: break
            }
        }
        packaging.job = job
        packaging.retryAt = job == nil ? now().elapsed + Self.pause : nil
        active[key] = packaging
        if !packaging.listeners.isEmpty { commandSamples(of: key) }
        connect(key)
    }

    /// Connects the job to the stream's current programme.
    private func connect(_ key: Packaging.Key) {
        guard let job = active[key]?.job else { return }
        var programme = programmes[key.stream]
        if key.rendition == .sound { programme?.video = nil }
        active[key]?.inputs.connect(to: programme, of: key.stream, for: job) { [inbox] tap in
            inbox.put(.tapEnded(key, tap))
        }
    }

    /// Processes an event of the transcoder, of a tap or of the shelf.
    func take(_ event: Event) {
        switch event {
        case .report(let key, let job, let report): take(report, of: job, in: key)
        case .over(let key, let job): lose(job, of: key)
        case .tapEnded(let key, let tap): active[key]?.inputs.tapEnded(tap)
        case .keyFrameWanted(let key, let input): active[key]?.inputs.keyFrameWanted(for: input)
        case .stored(let key, let name): noteStored(name, of: key)
        }
    }

    private func take(_ report: PackagingReport, of number: UInt64, in key: Packaging.Key) {
        guard active[key]?.number == number else { return }
        switch report {
        case .began(let beginning): begin(beginning, in: key)
        case .part(let part):
            counted.parts &+= 1
            active[key]?.playlist.append(
                LivePlaylist.Part(
                    bytes: part.bytes, milliseconds: Int(part.milliseconds),
                    startsSegment: part.startsSegment, endsSegment: part.endsSegment,
                    date: now().date(of: part.captured)))
            if part.endsSegment || part.startsSegment { shelve(key) }
        case .format(let format):
            active[key]?.format = format
            for listener in active[key]?.listeners.values.map(\.self) ?? [] { listener(report) }
            return
        case .sample:
            for listener in active[key]?.listeners.values.map(\.self) ?? [] { listener(report) }
            return
        }
        resume(key)
    }

    private func begin(_ beginning: PackagingReport.Beginning, in key: Packaging.Key) {
        let size = beginning.resolution
        let isPassed = !key.rendition.isReduced && beginning.framesPerSecond == nil
        active[key]?.isPassed = isPassed
        active[key]?.playlist.begin(
            initialization: beginning.initialization, codecs: beginning.codecs, width: size.width,
            height: size.height, framesPerSecond: beginning.framesPerSecond,
            meant: key.rendition.bitrates(of: size, arePassed: isPassed))
        log.info(
            "hls.pictures",
            [
                "stream": key.stream, "rendition": key.rendition.rawValue, "passed": isPassed,
                "codecs": beginning.codecs, "width": size.width, "height": size.height,
            ])
    }

    /// Handles the end of a job: the transcoder died, or could not continue.
    private func lose(_ number: UInt64, of key: Packaging.Key) {
        guard active[key]?.number == number, active[key]?.job != nil else { return }
        counted.lost &+= 1
        log.warning("hls.lost", ["stream": key.stream, "rendition": key.rendition.rawValue])
        release(key)
        active[key]?.retryAt = now().elapsed + Self.pause
    }

    private func release(_ key: Packaging.Key) {
        active[key]?.inputs.disconnect()
        if let job = active[key]?.job { transcoder.end(job) }
        active[key]?.job = nil
    }

    private func end(_ key: Packaging.Key) {
        release(key)
        earlier.note(active[key]?.playlist, of: key)
        shelf?.remove(active[key]?.playlist.forgetAll() ?? [], of: key.stream, at: now().elapsed)
        let waiters = active.removeValue(forKey: key)?.waiters ?? []
        show(key)
        if !active.keys.contains(where: { $0.stream == key.stream }) {
            programmes[key.stream] = nil
            origins[key.stream] = nil
        }
        for waiter in waiters { waiter.continuation.resume(returning: isStopped ? .stopping : nil) }
    }

    /// Publishes the current playlist to the threads that answer without the desk.
    private func show(_ key: Packaging.Key) {
        atHand.set(isKept(key) ? active[key]?.playlist : nil, of: key)
    }

    /// Resumes the requests whose wish is fulfilled or whose time is up.
    private func resume(_ key: Packaging.Key) {
        show(key)
        let time = now().elapsed
        for waiter in active[key]?.takeWaiters(at: time) ?? [] {
            waiter.continuation.resume(returning: nil)
        }
    }
}
