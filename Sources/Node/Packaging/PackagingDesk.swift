import Base
import Forwarding
import HLS
import Recordings
import Transcoder
import Wire

/// Has streams encoded while somebody takes it, and makes HLS of it, of which it holds the last segments in memory.
///
/// There is one encode of a stream, whoever takes it. The first request for a playlist begins it, or the first listener
/// to its samples; it ends when nobody has asked for half a minute and nobody listens. Requests for what is about to
/// come wait here, bounded in number and time; nothing waits for the transcoder but them.
package actor PackagingDesk {
    /// What is counted.
    package struct Counters: Equatable, Sendable {
        /// Under way now.
        package var active = 0
        /// Of them, those that are watched by HLS.
        package var watched = 0
        /// Of all, those whose pictures are passed on as their publisher encoded them.
        package var passed = 0
        /// Requests that wait now.
        package var waiting = 0
        /// Bytes of segments in memory.
        package var bytes = 0
        package var started: UInt64 = 0
        /// Those that could not begin, because there were as many as may be.
        package var refused: UInt64 = 0
        /// Times that one went on in another job: its transcoder died.
        package var lost: UInt64 = 0
        package var parts: UInt64 = 0
    }

    /// Told of `format` and `sample`, in order; must not block.
    typealias Listener = @Sendable (PackagingReport) -> Void

    /// How long one goes on when nobody asks any more.
    static let idleTime = Duration.seconds(30)
    /// Three target durations: what a request waits at most (RFC 8216bis §6.2.5.2).
    static let waitingTime = Duration.milliseconds(3 * PackagingTiming.segmentMilliseconds)
    /// Requests that wait for one stream, of which a player has two: for the playlist, and for the part that is hinted.
    private static let waiterLimit = 8_000
    /// And for all.
    private static let totalWaiterLimit = 16_000
    private static let pause = Duration.seconds(1)

    private let limit: Int
    private let timing: PackagingTiming
    private let transcoder: TranscoderSupervisor
    private let taps: any ProgrammeTaps
    private let now: @Sendable () -> Moment
    private let log: Log
    private var active: [StreamID: Packaging] = [:]
    private var programmes: [StreamID: RecordingDesk.Programme] = [:]
    private var counted = Counters()
    private var isStopped = false
    private var lastNumber: UInt64 = 0
    private let inbox = Inbox<Event>(limit: 1_024)
    private var listener: Task<Void, Never>?

    init(
        limit: Int, timing: PackagingTiming, transcoder: TranscoderSupervisor, taps: any ProgrammeTaps,
        log: Log,
        now: @escaping @Sendable () -> Moment
    ) {
        self.limit = limit
        self.timing = timing
        self.transcoder = transcoder
        self.taps = taps
        self.log = log.subsystem("hls")
        self.now = now
    }

    /// Begins to act on what the transcoder says.
    func start() {
        guard listener == nil else { return }
        listener = Task { [inbox, weak self] in
            for await _ in inbox.news {
                for event in inbox.takeAll() { await self?.take(event) }
            }
        }
    }

    /// Ends all, and lets nobody wait any longer.
    func stop() {
        isStopped = true
        for stream in active.keys { end(stream) }
        listener?.cancel()
        inbox.close()
    }

    /// What waits for the desk.
    package nonisolated var inboxCounters: InboxCounters { inbox.counters }

    /// As of now.
    package var counters: Counters {
        var result = counted
        result.active = active.count
        result.watched = watched
        result.passed = active.values.count(where: \.isPassed)
        result.waiting = totalWaiters
        result.bytes = active.values.reduce(0) { $0 + $1.playlist.byteCount }
        return result
    }

    // MARK: Requests

    /// Whether HLS is made at all.
    package nonisolated var makesHLS: Bool { limit > 0 }

    /// Whether HLS is made of a stream.
    func isActive(_ stream: StreamID) -> Bool {
        isKept(stream) && active[stream]?.playlist.hasEnded == false
    }

    /// Whether HLS is made of a stream, or was and is still there.
    func isKept(_ stream: StreamID) -> Bool { active[stream]?.lastRequest != nil }

    private var totalWaiters: Int { active.values.reduce(0) { $0 + $1.waiters.count } }
    private var watched: Int { active.values.count { $0.lastRequest != nil } }

    /// Begins to make HLS of a stream, where that is not under way.
    func begin(_ stream: StreamID, _ programme: RecordingDesk.Programme?) throws(HLSRefusal) {
        guard !isActive(stream) else { return }
        // It has ended, and is live again.
        if active[stream]?.playlist.hasEnded == true { end(stream) }
        guard !isStopped else { throw .unavailable }
        guard watched < limit else {
            counted.refused &+= 1
            throw .full
        }
        if active[stream] == nil { encode(stream, programme) }
        active[stream]?.lastRequest = now().elapsed
        counted.started &+= 1
        log.info("hls.started", ["stream": stream])
    }

    private func encode(_ stream: StreamID, _ programme: RecordingDesk.Programme?) {
        programmes[stream] = programme
        active[stream] = Packaging(
            playlist: LivePlaylist(tag: Self.makeTag(), timing: playlistTiming),
            inputs: ProgrammeInputs(taps, transcoder, origin: SourceOrigin.packaging))
        launch(stream)
    }

    // MARK: Samples

    /// Has somebody told of what a stream's encode makes, which begins where it is not under way.
    /// - Parameter name: of the listener, never used twice.
    func listen(
        to stream: StreamID, _ programme: RecordingDesk.Programme?, as name: UInt64,
        _ listener: @escaping Listener
    ) {
        guard !isStopped else { return }
        // What is still there of a stream that ended is not this one, which began anew under its name.
        if active[stream]?.playlist.hasEnded == true { end(stream) }
        if active[stream] == nil { encode(stream, programme) }
        let isFirst = active[stream]?.listeners.isEmpty ?? false
        active[stream]?.listeners[name] = listener
        if let format = active[stream]?.format { listener(.format(format)) }
        if isFirst { commandSamples(of: stream) }
    }

    /// Tells a listener nothing more; the encode ends soon where nobody takes it any longer.
    func endListening(_ name: UInt64, to stream: StreamID) {
        guard active[stream]?.listeners.removeValue(forKey: name) != nil else { return }
        if active[stream]?.listeners.isEmpty == true { commandSamples(of: stream) }
    }

    private func commandSamples(of stream: StreamID) {
        guard let packaging = active[stream], let job = packaging.job else { return }
        transcoder.command(job, PackagingCommand.reportSamples(!packaging.listeners.isEmpty).bytes)
    }

    // MARK: Playlists

    /// The playlist that names the others.
    /// - Parameter uri: of the media playlist.
    func multivariantPlaylist(of stream: StreamID, uri: String) async throws(HLSRefusal) -> String {
        let playlist = try await playlist(of: stream, when: .beginning)
        guard let text = playlist.multivariantText(uri: uri) else { throw .late }
        return text
    }

    /// The playlist of segments and parts.
    func mediaPlaylist(of stream: StreamID, _ query: PlaylistQuery) async throws(HLSRefusal) -> String {
        guard let position = query.position else {
            let playlist = try await playlist(of: stream, when: .segment)
            guard playlist.hasCompleteSegment else { throw .late }
            return playlist.text(skips: query.skips)
        }
        let playlist = try await playlist(of: stream, when: .position(position))
        switch playlist.standing(of: position) {
        case .there: return playlist.text(skips: query.skips)
        case .tooFar, .nowhere: throw .tooFarAhead
        case .awaited: throw .late
        }
    }

    /// A part, segment or initialization segment; one that comes next is waited for.
    func file(named name: String, of stream: StreamID) async throws(HLSRefusal) -> [UInt8] {
        let playlist = try await playlist(of: stream, when: .file(name))
        let (standing, bytes) = playlist.file(named: name)
        switch standing {
        case .there: return bytes
        case .tooFar: throw .tooFarAhead
        case .awaited: throw .late
        case .nowhere: throw .unknownFile
        }
    }

    /// The playlist once a wish is fulfilled, or was waited for long enough.
    private func playlist(
        of stream: StreamID, when wish: Packaging.Wish
    ) async throws(HLSRefusal) -> LivePlaylist {
        guard isKept(stream) else { throw .unknownFile }
        let time = now().elapsed
        active[stream]?.lastRequest = time
        if let playlist = active[stream]?.playlist(when: wish) { return playlist }
        // Whoever waits must hold no copy of what there is: it would have the list of all who waited before.
        let waiting = active[stream]?.waiters.count ?? 0
        guard waiting < Self.waiterLimit, totalWaiters < Self.totalWaiterLimit else { throw .overloaded }
        let refusal: HLSRefusal? = await withCheckedContinuation { continuation in
            active[stream]?.waiters.append(
                Packaging.Waiter(
                    wish: wish, deadline: time + Self.waitingTime, continuation: continuation))
        }
        if let refusal { throw refusal }
        guard let playlist = active[stream]?.playlist else { throw .unknownFile }
        return playlist
    }

    // MARK: What is made

    /// Takes in what viewers get of a stream now; nil for nothing.
    func update(_ stream: StreamID, to programme: RecordingDesk.Programme?) {
        guard active[stream] != nil, programmes[stream] != programme else { return }
        programmes[stream] = programme
        connect(stream)
    }

    /// Does what is due; called every second.
    /// - Parameters:
    ///   - ended: whether a stream has ended.
    ///   - off: whether a stream's settings allow no HLS.
    func advance(ended: @Sendable (StreamID) -> Bool, off: @Sendable (StreamID) -> Bool) {
        let time = now().elapsed
        for (stream, packaging) in active {
            if let last = packaging.lastRequest {
                if off(stream) {
                    endHLS(of: stream, because: "off", refusing: .off)
                } else if time >= last + Self.idleTime, packaging.waiters.isEmpty {
                    endHLS(of: stream, because: "nobody asks", refusing: .unknownFile)
                }
            }
            if active[stream]?.lastRequest == nil, packaging.listeners.isEmpty {
                end(stream)
                continue
            }
            if ended(stream), !packaging.playlist.hasEnded {
                active[stream]?.playlist.end()
                release(stream)
            } else if let retryAt = packaging.retryAt, time >= retryAt {
                launch(stream)
            } else {
                connect(stream)
            }
            resume(stream)
        }
    }

    /// Lets nobody watch by HLS any longer; whatever else takes the encode goes on.
    private func endHLS(of stream: StreamID, because reason: String, refusing refusal: HLSRefusal) {
        active[stream]?.lastRequest = nil
        let waiters = active[stream]?.waiters ?? []
        active[stream]?.waiters = []
        for waiter in waiters { waiter.continuation.resume(returning: refusal) }
        log.info("hls.ended", ["stream": stream, "reason": reason])
    }

    private func launch(_ stream: StreamID) {
        guard var packaging = active[stream], packaging.job == nil, !packaging.playlist.hasEnded else {
            return
        }
        lastNumber += 1
        let name = lastNumber
        packaging.number = name
        let job = transcoder.begin(.packaging, timing.bytes) { [inbox] event in
            switch event {
            case .report(let bytes):
                guard let report = try? PackagingReport(bytes) else { return }
                inbox.put(.report(stream, name, report))
            case .keyFrameWanted(let input): inbox.put(.keyFrameWanted(stream, input))
            case .ended, .lost: inbox.put(.over(stream, name))
            case .packet: break
            }
        }
        packaging.job = job
        packaging.retryAt = job == nil ? now().elapsed + Self.pause : nil
        active[stream] = packaging
        if !packaging.listeners.isEmpty { commandSamples(of: stream) }
        connect(stream)
    }

    /// Sees to it that what viewers get now is what is packaged.
    private func connect(_ stream: StreamID) {
        guard let job = active[stream]?.job else { return }
        active[stream]?.inputs.connect(to: programmes[stream], of: stream, for: job) { [inbox] tap in
            inbox.put(.tapEnded(stream, tap))
        }
    }

    private func take(_ event: Event) {
        switch event {
        case .report(let stream, let job, let report): take(report, of: job, in: stream)
        case .over(let stream, let job): lose(job, of: stream)
        case .tapEnded(let stream, let tap): active[stream]?.inputs.tapEnded(tap)
        case .keyFrameWanted(let stream, let input): active[stream]?.inputs.keyFrameWanted(for: input)
        }
    }

    private func take(_ report: PackagingReport, of number: UInt64, in stream: StreamID) {
        guard active[stream]?.number == number else { return }
        switch report {
        case .began(let beginning):
            active[stream]?.isPassed = beginning.framesPerSecond == nil
            active[stream]?.playlist.begin(
                initialization: beginning.initialization, codecs: beginning.codecs,
                width: beginning.resolution.width, height: beginning.resolution.height,
                framesPerSecond: beginning.framesPerSecond)
            log.info(
                "hls.pictures",
                [
                    "stream": stream, "passed": beginning.framesPerSecond == nil, "codecs": beginning.codecs,
                    "width": beginning.resolution.width, "height": beginning.resolution.height,
                ])
        case .part(let part):
            counted.parts &+= 1
            active[stream]?.playlist.append(
                LivePlaylist.Part(
                    bytes: part.bytes, milliseconds: Int(part.milliseconds),
                    startsSegment: part.startsSegment,
                    endsSegment: part.endsSegment, date: date(of: part.captured)))
        case .format(let format):
            active[stream]?.format = format
            for listener in active[stream]?.listeners.values.map(\.self) ?? [] { listener(report) }
            return
        case .sample:
            for listener in active[stream]?.listeners.values.map(\.self) ?? [] { listener(report) }
            return
        }
        resume(stream)
    }

    /// A moment of the past on the clock of days.
    private func date(of time: MonotonicTime) -> WallTime {
        let moment = now()
        let age = min(max(moment.elapsed.nanoseconds(since: time) / 1_000_000, 0), 60_000)
        return WallTime(milliseconds: moment.wall.milliseconds - age)
    }

    /// The job is over: the transcoder died, or could not go on.
    private func lose(_ number: UInt64, of stream: StreamID) {
        guard active[stream]?.number == number, active[stream]?.job != nil else { return }
        counted.lost &+= 1
        log.warning("hls.lost", ["stream": stream])
        release(stream)
        active[stream]?.retryAt = now().elapsed + Self.pause
    }

    private func release(_ stream: StreamID) {
        active[stream]?.inputs.disconnect()
        if let job = active[stream]?.job { transcoder.end(job) }
        active[stream]?.job = nil
    }

    private func end(_ stream: StreamID) {
        release(stream)
        programmes[stream] = nil
        let waiters = active.removeValue(forKey: stream)?.waiters ?? []
        for waiter in waiters { waiter.continuation.resume(returning: nil) }
    }

    /// Lets those go on whose wish is fulfilled, or who waited long enough.
    private func resume(_ stream: StreamID) {
        let time = now().elapsed
        for waiter in active[stream]?.takeWaiters(at: time) ?? [] {
            waiter.continuation.resume(returning: nil)
        }
    }

    private var playlistTiming: LivePlaylist.Timing {
        LivePlaylist.Timing(
            part: timing.partMilliseconds, segment: PackagingTiming.segmentMilliseconds,
            partsPerSegment: timing.partsPerSegment)
    }

    /// 40 random bits: the names of one packaging are never another's.
    private static func makeTag() -> String {
        let alphabet = Array("abcdefghijkmnpqrstuvwxyz23456789")
        return String((0..<8).map { _ in alphabet[Int.random(in: 0..<alphabet.count)] })
    }
}
