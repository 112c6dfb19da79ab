import Base
import Forwarding
import Glibc
import Store
import Transcoder

/// Keeps what streams sent last, and makes clips of it when somebody wants one.
///
/// What is kept lies in the transcoder's memory as it came, so it costs no encoder, and no publisher sends more for it.
/// A clip is encoded as H.264 and AAC, which everything plays, whatever the stream is sent as.
package actor ClipDesk {
    /// What is counted.
    package struct Counters: Equatable, Sendable {
        /// Streams of which the last minutes are kept now.
        package var streams = 0
        /// Clips that are being made now.
        package var making = 0
        package var made: UInt64 = 0
        package var failed: UInt64 = 0
    }

    /// What is kept of a stream.
    private struct Ring {
        var inputs: ProgrammeInputs
        var job: JobID?
        /// Of the job, as the desk counts all of them.
        var number: UInt64 = 0
        /// When the transcoder is asked again.
        var retryAt: MonotonicTime?
        var making: Making?
        /// Whether it is kept only until the clip that is being made is complete.
        var isUnwanted = false
        /// When the latest clips were asked for.
        var times: [MonotonicTime] = []
    }

    /// A clip that is being made.
    private struct Making {
        let number: UInt64
        var entry: RecordingEntry
        /// When it is given up.
        var deadline: MonotonicTime
        /// Who asked, until that is answered.
        var continuation: CheckedContinuation<Result<RecordingEntry, ClipRefusal>, Never>?
        var isConcluding = false
    }

    /// In seconds, of a clip.
    package static let lengths = 1...120
    /// In seconds, where nobody says another.
    package static let usualLength = 30
    /// Made at the same time, of all streams: the transcoder has other work.
    private static let makingLimit = 2
    /// Of one stream, within `window`.
    private static let rateLimit = 6
    private static let window = Duration.seconds(60)
    /// How long the transcoder may take to say that it makes a clip.
    private static let answerTime = Duration.seconds(10)
    /// For each second of a clip: on a busy machine encoding is slower than time.
    private static let secondsForOne = 5
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
    private var tell: (@Sendable (StreamID, RecordingEntry) async -> Void)?
    private let inbox = Inbox<Event>(limit: 1_024)
    private nonisolated let files = ClipFiles()
    private var listener: Task<Void, Never>?

    /// - Parameters:
    ///   - limit: streams of which the last minutes are kept at once.
    ///   - recordings: has the files, with those of recordings.
    ///   - taps: take what is sent for others.
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

    /// Begins to act on what the transcoder says.
    /// - Parameter tell: hears of each clip that is complete.
    package func start(_ tell: @escaping @Sendable (StreamID, RecordingEntry) async -> Void) {
        guard listener == nil else { return }
        self.tell = tell
        listener = Task { [inbox, weak self] in
            for await _ in inbox.news {
                for event in inbox.takeAll() { await self?.take(event) }
            }
        }
    }

    /// Gives up what is being made, and lets go of all that is kept.
    package func stop() async {
        isStopped = true
        for stream in rings.keys {
            await conclude(stream, because: .interrupted)
            end(stream)
        }
        listener?.cancel()
        inbox.close()
    }

    /// What waits for the desk.
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

    /// Takes in what viewers get of a stream now, of which clips may be made; nil for nothing.
    package func update(_ stream: StreamID, to programme: RecordingDesk.Programme?) {
        guard !isStopped else { return }
        rings[stream]?.isUnwanted = false
        guard programmes[stream] != programme else { return }
        programmes[stream] = programme
        if rings[stream] == nil { keep(stream) } else { connect(stream) }
    }

    /// Nobody makes clips of a stream any more.
    package func forget(_ stream: StreamID) {
        programmes[stream] = nil
        guard let ring = rings[stream] else { return }
        if ring.making == nil { end(stream) } else { rings[stream]?.isUnwanted = true }
    }

    /// Does what is due; called every second.
    /// - Parameter ended: whether a stream has ended.
    package func advance(ended: @Sendable (StreamID) -> Bool) async {
        guard !isStopped else { return }
        let time = now().elapsed
        for (stream, ring) in rings {
            if let making = ring.making, time >= making.deadline {
                log.warning("clip.late", ["stream": stream, "clip": making.entry.id])
                await conclude(stream, because: .failed)
                // Who does not answer is asked for nothing else.
                release(stream)
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

    /// Begins to keep what comes of a stream, where there is room.
    private func keep(_ stream: StreamID) {
        guard programmes[stream] != nil, rings.count < limit else { return }
        rings[stream] = Ring(inputs: ProgrammeInputs(taps, transcoder, origin: SourceOrigin.packaging))
        launch(stream)
    }

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

    /// What is done with what the transcoder says: bytes go to the file, the rest comes here.
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

    /// Sees to it that what viewers get now is what is kept.
    private func connect(_ stream: StreamID) {
        guard let job = rings[stream]?.job else { return }
        rings[stream]?.inputs.connect(to: programmes[stream], of: stream, for: job) { [inbox] tap in
            inbox.put(.tapEnded(stream, tap))
        }
    }

    private func release(_ stream: StreamID) {
        rings[stream]?.inputs.disconnect()
        if let job = rings[stream]?.job { transcoder.end(job) }
        rings[stream]?.job = nil
        rings[stream]?.retryAt = now().elapsed + Self.pause
    }

    private func end(_ stream: StreamID) {
        release(stream)
        rings[stream] = nil
    }

    // MARK: Making

    /// Has a clip made of the last `seconds` of a stream; it is complete a little later.
    /// - Parameter tier: which one watching takes now; nil for none.
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
            if rings[stream]?.making?.number == number { rings[stream]?.making = nil }
            throw error
        }
        // Meanwhile the transcoder may have died, or the server ends.
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

    /// - Returns: the job that makes it.
    private func admit(_ stream: StreamID, at time: MonotonicTime) throws(ClipRefusal) -> JobID {
        guard !isStopped else { throw .unavailable }
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

    /// There is nothing to make a clip of.
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

    /// Completes a clip, or says that there is none.
    /// - Parameter reason: nil for one that is complete.
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
            // Before it is seen to be complete: whoever sees that may ask for the next one.
            finish(stream, making.number, .lost)
            await recordings.settle(entry, of: stream)
        } else {
            // What is left of the file goes with the entry.
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

    /// - Parameter refusal: for who asked, where that was not answered yet.
    private func finish(_ stream: StreamID, _ number: UInt64, _ refusal: ClipRefusal) {
        guard let making = rings[stream]?.making, making.number == number else { return }
        rings[stream]?.making = nil
        making.continuation?.resume(returning: .failure(refusal))
        if rings[stream]?.isUnwanted == true { end(stream) }
    }
}
