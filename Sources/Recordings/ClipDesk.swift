import Base
import Forwarding
import Glibc
import Store
import Transcoder

/// Keeps the last minutes of live streams in memory, and makes clips of them on request.
///
/// The transcoder's process keeps the packets as they were published, so keeping costs no encoder, and taps request
/// nothing from publishers that is not sent for others anyway. A clip is encoded as H.264 and AAC, which every player
/// supports, whatever the stream's codecs are.
package actor ClipDesk {
    /// Numbers for metrics.
    package struct Counters: Equatable, Sendable {
        /// Streams whose last minutes are kept now.
        package var streams = 0
        /// Clips that are being made now.
        package var making = 0
        /// Since the start.
        package var made: UInt64 = 0
        /// Since the start.
        package var failed: UInt64 = 0
    }

    /// What is kept of one stream.
    private struct Ring {
        var inputs: ProgrammeInputs
        /// The transcoder's job that keeps the packets; nil while there is none.
        var job: JobID?
        /// The job's number across all streams, by which its events are recognized.
        var number: UInt64 = 0
        /// When the transcoder is asked for a job again; nil while there is one.
        var retryAt: MonotonicTime?
        /// Nil while no clip of the stream is being made.
        var making: Making?
        /// Whether it ends once the clip that is being made is complete.
        var isUnwanted = false
        /// When the latest clips were requested, for the rate limit.
        var times: [MonotonicTime] = []
    }

    /// A clip that is being made.
    private struct Making {
        let number: UInt64
        var entry: RecordingEntry
        /// When the clip is given up.
        var deadline: MonotonicTime
        /// The request that waits for the transcoder's answer; nil once it is answered.
        var continuation: CheckedContinuation<Result<RecordingEntry, ClipRefusal>, Never>?
        /// Whether the clip is being completed or discarded, so that this happens once.
        var isConcluding = false
    }

    /// Seconds that a clip may have.
    package static let lengths = 1...120
    /// Seconds of a clip if the request names no length.
    package static let usualLength = 30
    /// Clips made at the same time, over all streams, because the transcoder has other work.
    private static let makingLimit = 2
    /// Clips of one stream within `window`.
    private static let rateLimit = 6
    private static let window = Duration.seconds(60)
    /// How long the transcoder may take to accept a clip.
    private static let answerTime = Duration.seconds(10)
    /// Seconds allowed for each second of a clip: on a busy machine encoding is slower than real time.
    private static let secondsForOne = 5
    /// Between two attempts to start a job.
    private static let pause = Duration.seconds(1)

    private let limit: Int
    private let recordings: RecordingDesk
    private let transcoder: TranscoderSupervisor
    private let taps: any ProgrammeTaps
    private let now: @Sendable () -> Moment
    private let log: Log
    private var rings: [StreamID: Ring] = [:]
    private var programmes: [StreamID: RecordingDesk.Programme] = [:]
    private var counted = Counters()
    private var lastNumber: UInt64 = 0
    private var isStopped = false
    /// Receives each completed clip.
    private var tell: (@Sendable (StreamID, RecordingEntry) async -> Void)?
    private let inbox = Inbox<Event>(limit: 1_024)
    // Reached by the transcoder's thread without waiting for the actor.
    nonisolated let files = ClipFiles()
    private var listener: Task<Void, Never>?

    /// - Parameters:
    ///   - limit: streams whose last minutes are kept at the same time.
    ///   - recordings: stores the files, together with those of recordings.
    ///   - taps: request nothing from publishers that is not sent for others.
    package init(
        limit: Int, recordings: RecordingDesk, transcoder: TranscoderSupervisor, taps: any ProgrammeTaps,
        log: Log, now: @escaping @Sendable () -> Moment
    ) {
        self.limit = limit
        self.recordings = recordings
        self.transcoder = transcoder
        self.taps = taps
        self.log = log.subsystem("clips")
        self.now = now
    }

    /// Starts handling events.
    /// - Parameter tell: called with each completed clip.
    package func start(_ tell: @escaping @Sendable (StreamID, RecordingEntry) async -> Void) {
        guard listener == nil else { return }
        self.tell = tell
        // One clip's file may take long to complete, for which no other stream waits.
        let lanes = InboxLanes(of: inbox) { $0.stream }
        let body: @Sendable (Event) async -> Void = { [weak self] in await self?.take($0) }
        listener = Task { await lanes.handle(body) }
    }

    /// Abandons the clips that are being made, and releases everything that is kept.
    package func stop() async {
        isStopped = true
        for stream in rings.keys {
            await conclude(stream, because: .interrupted)
            end(stream)
        }
        listener?.cancel()
        inbox.close()
    }

    /// Numbers of the desk's own queue of events.
    package nonisolated var inboxCounters: InboxCounters { inbox.counters }

    /// As of now.
    package var counters: Counters {
        var result = counted
        result.streams = rings.count
        result.making = making
        return result
    }

    private var making: Int { rings.values.count { $0.making != nil } }

    // MARK: What is kept

    /// Follows what viewers of a stream receive now; nil while they receive nothing.
    package func update(_ stream: StreamID, to programme: RecordingDesk.Programme?) {
        guard !isStopped else { return }
        rings[stream]?.isUnwanted = false
        guard programmes[stream] != programme else { return }
        programmes[stream] = programme
        if rings[stream] == nil { keep(stream) } else { connect(stream) }
    }

    /// Stops keeping a stream, of which no clips are to be made any more.
    package func forget(_ stream: StreamID) {
        programmes[stream] = nil
        guard let ring = rings[stream] else { return }
        if ring.making == nil { end(stream) } else { rings[stream]?.isUnwanted = true }
    }

    /// Handles deadlines and retries; called every second, and does not wait for the disk.
    /// - Parameter ended: returns whether a stream has ended.
    package func advance(ended: @Sendable (StreamID) -> Bool) {
        guard !isStopped else { return }
        let time = now().elapsed
        for (stream, ring) in rings {
            if let making = ring.making, time >= making.deadline {
                inbox.put(.late(stream, clip: making.number))
            } else if ring.making == nil, ended(stream) {
                programmes[stream] = nil
                end(stream)
            } else if let retryAt = ring.retryAt, time >= retryAt {
                launch(stream)
            } else {
                connect(stream)
            }
        }
        for stream in programmes.keys where rings[stream] == nil { keep(stream) }
    }

    /// Begins to keep a stream if the limit permits.
    private func keep(_ stream: StreamID) {
        guard programmes[stream] != nil, rings.count < limit else { return }
        rings[stream] = Ring(inputs: ProgrammeInputs(taps, transcoder, origin: SourceOrigin.packaging))
        launch(stream)
    }

    /// Starts the job that keeps a stream's packets.
    private func launch(_ stream: StreamID) {
        guard var ring = rings[stream], ring.job == nil, !isStopped else { return }
        lastNumber += 1
        let name = lastNumber
        ring.number = name
        ring.job = transcoder.begin(.clips, [], hearing(stream, job: name))
        ring.retryAt = ring.job == nil ? now().elapsed + Self.pause : nil
        rings[stream] = ring
        connect(stream)
    }

    /// The handler of a job's events, which runs on the transcoder's thread: bytes go directly to the file, everything
    /// else to the inbox.
    private func hearing(_ stream: StreamID, job: UInt64) -> TranscoderSupervisor.Handler {
        { [inbox, files] event in
            switch event {
            case .report(let bytes):
                guard let report = try? ClipReport(bytes) else { return }
                switch report.content {
                case .bytes(let offset, let bytes): files[report.number]?.write(bytes, at: offset)
                case .finished(let milliseconds):
                    files[report.number]?.flush(UInt64(milliseconds), isEnd: true)
                    inbox.put(.report(stream, report))
                case .accepted, .refused, .failed: inbox.put(.report(stream, report))
                }
            case .keyFrameWanted(let input): inbox.put(.keyFrameWanted(stream, input))
            case .ended, .lost: inbox.put(.over(stream, job: job))
            case .packet: break
            }
        }
    }

    /// Feeds what viewers receive now to the job.
    private func connect(_ stream: StreamID) {
        guard let job = rings[stream]?.job else { return }
        rings[stream]?.inputs.connect(to: programmes[stream], of: stream, for: job) { [inbox] tap in
            inbox.put(.tapEnded(stream, tap))
        }
    }

    /// Ends the job; another one follows after a pause unless the ring is removed.
    private func release(_ stream: StreamID) {
        rings[stream]?.inputs.disconnect()
        if let job = rings[stream]?.job { transcoder.end(job) }
        rings[stream]?.job = nil
        rings[stream]?.retryAt = now().elapsed + Self.pause
    }

    private func end(_ stream: StreamID) {
        release(stream)
        // Whatever is completing or discarding a clip now does not find its request any more.
        rings.removeValue(forKey: stream)?.making?.continuation?.resume(returning: .failure(.lost))
    }

    // MARK: Making

    /// Makes a clip of the last `seconds` of a stream.
    ///
    /// Returns when the transcoder has accepted the clip; it is complete a little later, as `tell` reports.
    /// - Parameter tier: the tier that watching requires now; nil for none.
    package func make(
        of stream: StreamID, seconds: Int, title: String?, tier: String?
    ) async throws(ClipRefusal) -> RecordingEntry {
        let moment = now()
        let job = try admit(stream, at: moment.elapsed)
        lastNumber += 1
        let number = lastNumber
        let entry = RecordingEntry(
            id: RecordingEntry.makeID(), stream: stream, part: 1,
            startedAt: moment.wall.milliseconds - Int64(seconds) * 1_000, tier: tier, kind: .clip,
            title: title)
        let allowance = Duration.seconds(seconds * Self.secondsForOne)
        rings[stream]?.times.append(moment.elapsed)
        rings[stream]?.making = Making(
            number: number, entry: entry, deadline: moment.elapsed + Self.answerTime + allowance)
        do throws(ClipRefusal) {
            try await recordings.admit(entry, of: stream)
        } catch {
            finish(stream, number, error)
            throw error
        }
        // During the wait for the disk the transcoder may have died, or the server may have begun to stop.
        guard let making = rings[stream]?.making, making.number == number, !making.isConcluding else {
            throw .lost
        }
        files[number] = recordings.file(for: entry, .mp4) { [inbox] failure in
            inbox.put(.failed(stream, clip: number, failure))
        }
        let answer = await withCheckedContinuation { continuation in
            rings[stream]?.making?.continuation = continuation
            transcoder.command(
                job, ClipCommand(number: number, milliseconds: UInt32(clamping: seconds * 1_000)).bytes)
        }
        return try answer.get()
    }

    /// Checks limits and the state of the stream.
    /// - Returns: the job that is to make the clip.
    private func admit(_ stream: StreamID, at time: MonotonicTime) throws(ClipRefusal) -> JobID {
        guard !isStopped else { throw .stopping }
        guard let ring = rings[stream] else { throw rings.count < limit ? .nothingThere : .full }
        guard ring.making == nil else { throw .underWay }
        let recent = ring.times.filter { $0 + Self.window > time }
        rings[stream]?.times = recent
        if recent.count >= Self.rateLimit, let first = recent.first {
            let wait = (first + Self.window).nanoseconds(since: time) + 999_999_999
            throw .tooOften(seconds: Int(clamping: wait / 1_000_000_000))
        }
        guard making < Self.makingLimit else { throw .busy }
        guard let job = ring.job else { throw .lost }
        return job
    }

    private func take(_ event: Event) async {
        switch event {
        case .report(let stream, let report):
            guard rings[stream]?.making?.number == report.number else { return }
            await take(report.content, of: stream)
        case .failed(let stream, let clip, let failure):
            guard let making = rings[stream]?.making, making.number == clip else { return }
            log.error("clip.failed", ["stream": stream, "clip": making.entry.id, "reason": failure.text])
            await conclude(stream, because: RecordingEntry.EndReason(failure))
        case .late(let stream, let clip):
            guard let making = rings[stream]?.making, making.number == clip, !making.isConcluding else {
                return
            }
            log.warning("clip.late", ["stream": stream, "clip": making.entry.id])
            await conclude(stream, because: .failed)
            // A job that did not answer in time is replaced by a new one.
            release(stream)
        case .over(let stream, let job):
            guard rings[stream]?.number == job, rings[stream]?.job != nil else { return }
            release(stream)
            await conclude(stream, because: .failed)
        case .tapEnded(let stream, let tap): rings[stream]?.inputs.tapEnded(tap)
        case .keyFrameWanted(let stream, let input): rings[stream]?.inputs.keyFrameWanted(for: input)
        }
    }

    private func take(_ content: ClipReport.Content, of stream: StreamID) async {
        switch content {
        case .accepted(let milliseconds):
            guard var making = rings[stream]?.making else { return }
            making.entry.startedAt = now().wall.milliseconds - Int64(milliseconds)
            let continuation = making.continuation.take()
            rings[stream]?.making = making
            continuation?.resume(returning: .success(making.entry))
        case .refused: await refuse(stream)
        case .finished: await conclude(stream, because: nil)
        case .failed: await conclude(stream, because: .failed)
        case .bytes: break
        }
    }

    /// Ends a clip for which the transcoder has nothing to encode.
    private func refuse(_ stream: StreamID) async {
        guard var making = rings[stream]?.making, !making.isConcluding else { return }
        rings[stream]?.making?.isConcluding = true
        let file = files[making.number]
        files[making.number] = nil
        _ = await file?.close()
        making.entry.fileExtension = RecordingContainer.mp4.fileExtension
        await recordings.discard(making.entry, of: stream)
        finish(stream, making.number, .nothingThere)
    }

    /// Completes a clip, or discards it.
    /// - Parameter reason: nil if the transcoder reports it complete.
    private func conclude(_ stream: StreamID, because reason: RecordingEntry.EndReason?) async {
        guard let making = rings[stream]?.making, !making.isConcluding else { return }
        rings[stream]?.making?.isConcluding = true
        let file = files[making.number]
        files[making.number] = nil
        let status = await file?.close() ?? RecordingFile.Status()
        var entry = making.entry
        entry.state = .ended
        entry.endedAt = entry.startedAt + status.milliseconds
        let isWhole = reason == nil && status.milliseconds > 0 && status.isComplete
        entry.endReason = isWhole ? .stopped : reason ?? .failed
        entry.fileExtension = RecordingContainer.mp4.fileExtension
        if isWhole {
            (entry.milliseconds, entry.size) = (status.milliseconds, status.size)
            counted.made &+= 1
            // Before the clip appears as complete: a client that sees it may immediately request the next one.
            finish(stream, making.number, .lost)
            await recordings.settle(entry, of: stream)
        } else {
            // Deletes what there is of the file with the entry.
            await recordings.discard(entry, of: stream)
            counted.failed &+= 1
            let refusal: ClipRefusal =
                switch entry.endReason {
                case .diskFull: .diskFull
                case .storage: .storage
                default: .lost
                }
            finish(stream, making.number, refusal)
        }
        log.info(
            isWhole ? "clip.made" : "clip.not-made",
            [
                "stream": stream, "clip": entry.id, "reason": entry.endReason?.rawValue ?? "",
                "milliseconds": entry.milliseconds, "bytes": entry.size,
            ])
        if isWhole { await tell?(stream, entry) }
    }

    /// Ends the making of a clip.
    /// - Parameter refusal: the answer for a request that still waits.
    private func finish(_ stream: StreamID, _ number: UInt64, _ refusal: ClipRefusal) {
        guard let making = rings[stream]?.making, making.number == number else { return }
        rings[stream]?.making = nil
        making.continuation?.resume(returning: .failure(refusal))
        if rings[stream]?.isUnwanted == true { end(stream) }
    }
}
