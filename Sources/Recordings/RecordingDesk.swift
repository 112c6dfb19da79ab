import Base
import Forwarding
import Glibc
import Store
import Transcoder

/// Records the programmes of streams, and manages all recordings and clips on the disk.
///
/// A recording is a file. If it cannot continue in the same file, because the codec changed or the transcoder died, it
/// continues in another part. Its reported length and size are those that are durable.
package actor RecordingDesk {
    /// Recordings under way at the same time.
    private static let limit = 64
    /// Parts of one recording: a source that changes all the time is not worth a file for each change.
    private static let partLimit = 100
    private static let declinedLimit = 10_000
    /// Clips of one stream; beyond that, some must be deleted first.
    private static let clipLimit = 200
    /// How long the transcoder may take to complete a file.
    private static let patience = Duration.seconds(5)
    private static let pause = Duration.seconds(1)
    /// In seconds: the longest time that playback delays the deletion of an expired recording.
    private static let longestReading = 86_400

    private let shelf: RecordingShelf
    private let transcoder: TranscoderSupervisor
    private let taps: any ProgrammeTaps
    private let now: @Sendable () -> Moment
    private let log: Log
    private var active: [StreamID: ActiveRecording] = [:]
    private var programmes: [StreamID: Programme] = [:]
    private var entries: [StreamID: [RecordingEntry]] = [:]
    private var waiters: [StreamID: [CheckedContinuation<Void, Never>]] = [:]
    /// Streams that are not recorded automatically again until they end, because recording was stopped or failed.
    private var declined: Set<StreamID> = []
    private var counted = Counters()
    private var isStopped = false
    private let notices = OrderedNotices()
    private let inbox = Inbox<Event>(limit: 1_024)
    private nonisolated let readers = RecordingReaders()
    nonisolated let indexes = FragmentIndexes()
    private var listener: Task<Void, Never>?

    /// - Parameters:
    ///   - transcoder: makes files of what the taps feed to it.
    ///   - roomAt: bytes that may still be written at a path; nil if unknown. May block, as a broken disk does.
    package init(
        _ settings: RecordingSettings, transcoder: TranscoderSupervisor, taps: any ProgrammeTaps, log: Log,
        roomAt: @escaping @Sendable (String) -> Int64? = { DiskSpace.room(at: $0) },
        now: @escaping @Sendable () -> Moment
    ) {
        let log = log.subsystem("recordings")
        shelf = RecordingShelf(settings, log: log, roomAt: roomAt)
        self.transcoder = transcoder
        self.taps = taps
        self.log = log
        self.now = now
    }

    /// Loads the entries on the disk, and starts handling events.
    /// - Parameter tell: called when recording of a stream starts or ends, and with each part that has ended.
    package func start(_ tell: @escaping @Sendable (StreamID, Bool, RecordingEntry?) async -> Void) async {
        guard listener == nil else { return }
        notices.start(tell)
        // One recording's file may take long to complete, for which no other recording waits.
        let lanes = InboxLanes(of: inbox) { $0.stream }
        let body: @Sendable (Event) async -> Void = { [weak self] in await self?.take($0) }
        listener = Task { await lanes.handle(body) }
        for entry in await shelf.load() {
            guard let stream = StreamID(entry.stream) else { continue }
            entries[stream, default: []].append(entry)
        }
    }

    deinit { listener?.cancel() }

    /// Completes every recording, as far as the transcoder does so in time; `advance` is not called after this.
    package func stop() async {
        isStopped = true
        let limit = Task { [weak self] in
            do { try await Task.sleep(for: Self.patience) } catch { return }
            await self?.giveUp()
        }
        // In parallel, so that all of them together take no longer than one.
        await withTaskGroup(of: Void.self) { group in
            for stream in active.keys {
                group.addTask { _ = await self.stop(stream, because: .interrupted) }
            }
        }
        limit.cancel()
        listener?.cancel()
        inbox.close()
    }

    /// Completes each recording with what was written so far.
    private func giveUp() {
        for (stream, recording) in active where !recording.isConcluding {
            inbox.put(.over(stream, recording.entry.id))
        }
    }

    // MARK: Looking

    /// A stream's recordings and clips, the oldest first.
    package func recordings(of stream: StreamID) -> [RecordingEntry] {
        (entries[stream] ?? []).map { entry in
            guard let file = active[stream]?.file, active[stream]?.entry.id == entry.id else { return entry }
            var entry = entry
            let status = file.status
            (entry.milliseconds, entry.size) = (status.milliseconds, status.size)
            entry.filmedAt = status.filmedAt ?? entry.filmedAt
            return entry
        }.sorted { ($0.startedAt, $0.part) < ($1.startedAt, $1.part) }
    }

    /// Whether a part is being written or the next one is about to begin.
    package func isRecording(_ stream: StreamID) -> Bool { active[stream] != nil }

    /// The path of a file that is about to be read; reading delays its automatic deletion.
    package nonisolated func readingPath(of entry: RecordingEntry) -> String? {
        readers.note(entry.id, at: now().elapsed)
        return shelf.path(of: entry)
    }

    /// Numbers of the desk's own queue of events.
    package nonisolated var inboxCounters: InboxCounters { inbox.counters }

    /// Numbers for metrics, with the bytes of recordings under way.
    package var counters: Counters {
        var result = counted
        result.active = active.count
        result.bytes &+= active.values.reduce(0) { $0 &+ UInt64($1.file?.status.written ?? 0) }
        return result
    }

    // MARK: Starting and stopping

    /// Starts recording a stream; returns the current part if it is being recorded already.
    /// - Parameter tier: the tier that watching requires now; nil for none.
    package func record(
        _ stream: StreamID, tier: String? = nil
    ) async throws(RecordingRefusal) -> (entry: RecordingEntry, isNew: Bool) {
        // What is not on the disk yet may be refused, which concerns everybody who asks for it.
        while active[stream]?.hasBegun == false { await change(of: stream) }
        if let active = active[stream] { return (active.entry, false) }
        guard !isStopped else { throw .stopping }
        guard active.count < Self.limit else { throw .overloaded }
        let id = RecordingEntry.makeID()
        let entry = RecordingEntry(
            id: id, stream: stream, part: 1, startedAt: now().wall.milliseconds, tier: tier)
        active[stream] = ActiveRecording(entry: entry, base: id, inputs: ProgrammeInputs(taps, transcoder))
        entries[stream, default: []].append(entry)
        if let failure = await shelf.admit(entry) {
            // If it was ended meanwhile, the end is concluded, and stored once the disk accepts it.
            if active[stream]?.entry.id == id, active[stream]?.isConcluding != true {
                active[stream] = nil
                forget(id, of: stream)
            }
            resumeWaiters(of: stream)
            log.error("recording.refused", ["stream": stream, "reason": failure.text])
            throw failure.isFull ? .diskFull : .storage
        }
        if active[stream]?.entry.id == id { active[stream]?.hasBegun = true }
        resumeWaiters(of: stream)
        counted.started &+= 1
        log.info("recording.started", ["stream": stream, "recording": id])
        if active[stream]?.entry.id == id, active[stream]?.reason == nil {
            launch(stream)
            await notices.tell(stream, true, nil)
        }
        return (entry, true)
    }

    /// Starts recording a stream whose settings request it, unless its recording was stopped or failed before.
    package func recordAutomatically(_ stream: StreamID, tier: String? = nil) async {
        guard active[stream] == nil, !declined.contains(stream) else { return }
        do throws(RecordingRefusal) {
            _ = try await record(stream, tier: tier)
        } catch {
            log.warning("recording.not-begun", ["stream": stream, "reason": "\(error)"])
            declined.insert(stream)
        }
    }

    /// Ends a stream's recording, and waits until it is complete.
    /// - Returns: the last part; nil if the stream is not being recorded.
    package func stop(
        _ stream: StreamID, because reason: RecordingEntry.EndReason
    ) async -> RecordingEntry? {
        guard let ending = active[stream] else { return nil }
        end(stream, because: reason)
        // By the time that this continues, the next recording of the stream may have begun.
        while active[stream]?.base == ending.base { await change(of: stream) }
        return entries[stream]?.first { $0.id == ending.entry.id } ?? ending.entry
    }

    /// Begins to end a stream's recording; it is complete a little later.
    private func end(_ stream: StreamID, because reason: RecordingEntry.EndReason) {
        guard var ending = active[stream], ending.reason == nil else { return }
        ending.reason = reason
        ending.deadline = now().elapsed + Self.patience
        active[stream] = ending
        if let job = ending.job {
            transcoder.command(job, RecordingCommand.stop)
        } else if !ending.isConcluding {
            inbox.put(.over(stream, ending.entry.id))
        }
    }

    /// Deletes a recording that has ended.
    package func remove(_ id: String, of stream: StreamID) async throws(RecordingRefusal) {
        guard let entry = entries[stream]?.first(where: { $0.id == id }) else { throw .unknownRecording }
        guard entry.state == .ended else { throw .underWay }
        if let reason = await shelf.remove(entry) {
            log.error("recording.not-removed", ["stream": stream, "recording": id, "reason": reason])
            throw .storage
        }
        forget(id, of: stream)
    }

    /// Deletes files that ended before `time`, the oldest first, except those that are being read.
    /// - Parameter limit: files at most.
    package func expire(
        _ kind: RecordingEntry.Kind = .recording, endedBefore time: WallTime, limit: Int
    ) async -> Expiry {
        let now = now().elapsed
        let latest = time.advanced(bySeconds: -Self.longestReading)
        let old = entries.values.joined().filter { entry in
            let endedAt = WallTime(milliseconds: entry.endedAt ?? entry.startedAt)
            return entry.kind == kind && entry.state == .ended && endedAt < time
                && (endedAt < latest || !readers.isRead(entry.id, at: now))
        }.sorted { ($0.endedAt ?? 0, $0.id) < ($1.endedAt ?? 0, $1.id) }
        var expiry = Expiry()
        expiry.isMore = old.count > limit
        for entry in old.prefix(limit) {
            guard let stream = StreamID(entry.stream) else { continue }
            do throws(RecordingRefusal) {
                try await remove(entry.id, of: stream)
            } catch .unknownRecording {
                // Another request has deleted it.
                continue
            } catch {
                expiry.failure = "\(kind.rawValue) \(entry.id) couldn't be deleted"
                continue
            }
            expiry.recordings += 1
            expiry.bytes += entry.size
            log.info(
                "\(kind.rawValue).expired",
                ["stream": entry.stream, kind.rawValue: entry.id, "bytes": entry.size])
        }
        return expiry
    }

    // MARK: Clips

    /// Registers a clip that is about to be made.
    func admit(_ clip: RecordingEntry, of stream: StreamID) async throws(ClipRefusal) {
        let clips = (entries[stream] ?? []).count { $0.kind == .clip }
        guard clips < Self.clipLimit else { throw .tooMany }
        entries[stream, default: []].append(clip)
        guard let failure = await shelf.admit(clip) else { return }
        forget(clip.id, of: stream)
        log.error("clip.refused", ["stream": stream, "reason": failure.text])
        throw failure.isFull ? .diskFull : .storage
    }

    /// Stores the entry of a completed clip.
    func settle(_ clip: RecordingEntry, of stream: StreamID) async {
        replace(clip, of: stream)
        if let failure = await shelf.conclude(clip) {
            log.error("clip.not-kept", ["clip": clip.id, "reason": failure.text])
        }
    }

    /// Deletes a clip that could not be made.
    func discard(_ clip: RecordingEntry, of stream: StreamID) async {
        forget(clip.id, of: stream)
        if let reason = await shelf.remove(clip) {
            log.error("clip.not-removed", ["clip": clip.id, "reason": reason])
        }
    }

    /// The file of a registered clip.
    /// - Parameter fail: called once, with the error after which nothing more is written.
    nonisolated func file(
        for clip: RecordingEntry, _ container: RecordingContainer,
        fail: @escaping @Sendable (FileError) -> Void
    ) -> RecordingFile {
        let file = RecordingFile(reserve: shelf.settings.reserve, fail: fail)
        file.begin(shelf.path(of: clip, container.fileExtension), container.fileExtension)
        return file
    }

    // MARK: Programmes

    /// Follows what viewers of a stream receive now; nil while they receive nothing.
    package func update(_ stream: StreamID, to programme: Programme?) {
        guard programmes[stream] != programme else { return }
        programmes[stream] = programme
        guard let recording = active[stream], !recording.isConcluding, recording.reason == nil else { return }
        connect(stream)
    }

    /// Handles deadlines and retries; called every second.
    /// - Parameter ended: returns whether a stream has ended.
    package func advance(ended: @Sendable (StreamID) -> Bool) {
        declined = declined.filter { !ended($0) }
        for stream in shelf.unkeptStreams { inbox.put(.unkept(stream)) }
        let time = now().elapsed
        for (stream, recording) in active where !recording.isConcluding {
            if ended(stream), recording.reason == nil {
                end(stream, because: .streamEnded)
            } else if let deadline = recording.deadline, time >= deadline {
                inbox.put(.over(stream, recording.entry.id))
            } else if let retryAt = recording.retryAt, time >= retryAt, recording.reason == nil {
                launch(stream)
            } else if recording.reason == nil {
                connect(stream)
            }
        }
    }

    // MARK: Parts

    /// Starts a transcoder job for a part.
    private func launch(_ stream: StreamID) {
        guard var recording = active[stream], recording.reason == nil, recording.job == nil else { return }
        let id = recording.entry.id
        let file = RecordingFile(reserve: shelf.settings.reserve) { [inbox] failure in
            inbox.put(.failed(stream, id, failure))
        }
        let request = RecordingRequest(
            expectsVideo: programmes[stream]?.video != nil, expectsAudio: programmes[stream]?.audio != nil)
        let listener = PartListener(
            stream: stream, entry: recording.entry, file: file, shelf: shelf, inbox: inbox, now: now)
        recording.job = transcoder.begin(.recording, request.bytes, listener.receive)
        recording.retryAt = recording.job == nil ? now().elapsed + Self.pause : nil
        recording.file = recording.job == nil ? nil : file
        active[stream] = recording
        connect(stream)
    }

    /// Feeds what viewers receive now to the job.
    private func connect(_ stream: StreamID) {
        guard let job = active[stream]?.job else { return }
        active[stream]?.inputs.connect(to: programmes[stream], of: stream, for: job) { [inbox] tap in
            inbox.put(.tapEnded(stream, tap))
        }
    }

    private func take(_ event: Event) async {
        switch event {
        case .began(let stream, let id, let container):
            guard var recording = active[stream], recording.entry.id == id else { return }
            recording.entry.fileExtension = container.fileExtension
            recording.entry.filmedAt = now().wall.milliseconds
            active[stream] = recording
            replace(recording.entry, of: stream)
            _ = await shelf.save(recording.entry)
        case .over(let stream, let id):
            if active[stream]?.entry.id == id { await conclude(stream) }
        case .failed(let stream, let id, let failure):
            guard active[stream]?.entry.id == id else { return }
            log.error("recording.failed", ["stream": stream, "recording": id, "reason": failure.text])
            active[stream]?.reason = RecordingEntry.EndReason(failure)
            await conclude(stream)
        case .unkept(let stream): await keepUnkept(of: stream)
        case .tapEnded(let stream, let tap):
            active[stream]?.inputs.tapEnded(tap)
        case .keyFrameWanted(let stream, let input):
            active[stream]?.inputs.keyFrameWanted(for: input)
        }
    }

    /// Completes a part, and continues with the next one unless the recording ends.
    private func conclude(_ stream: StreamID) async {
        guard var recording = active[stream], !recording.isConcluding else { return }
        recording.isConcluding = true
        recording.inputs.disconnect()
        if let job = recording.job { transcoder.end(job) }
        recording.job = nil
        active[stream] = recording
        let status = await recording.file?.close() ?? RecordingFile.Status()
        // Read again: the recording may have been ended during the wait.
        let reason = active[stream]?.reason
        var entry = active[stream]?.entry ?? recording.entry
        (entry.milliseconds, entry.size) = (status.milliseconds, status.size)
        entry.filmedAt = status.filmedAt ?? entry.filmedAt
        if reason == nil, entry.fileExtension == nil {
            // The part has no file yet, so it starts again under the same ID.
            active[stream]?.isConcluding = false
            active[stream]?.retryAt = now().elapsed + Self.pause
            return
        }
        entry.state = .ended
        entry.endedAt = now().wall.milliseconds
        entry.endReason = reason ?? (entry.part < Self.partLimit ? .continued : .failed)
        replace(entry, of: stream)
        var failure = await shelf.conclude(entry)
        if entry.endReason == .continued, let late = active[stream]?.reason {
            entry.endReason = late
            replace(entry, of: stream)
            failure = await shelf.conclude(entry)
        }
        if let failure {
            log.error("recording.not-kept", ["recording": entry.id, "reason": failure.text])
        }
        count(entry)
        await follow(entry, in: stream, isKept: failure == nil)
    }

    /// Tries again to store a stream's entries that ended while the disk failed.
    private func keepUnkept(of stream: StreamID) async {
        for entry in await shelf.keepUnkept(of: stream) {
            replace(entry, of: stream)
            log.info("\(entry.kind.rawValue).kept", ["stream": stream, entry.kind.rawValue: entry.id])
            if entry.kind == .recording { await notices.tell(stream, hasBegun(stream), entry) }
        }
    }

    /// Starts the next part, or finishes the recording; does neither if the stream has another recording by now.
    /// - Parameter isKept: whether the ended part is on the disk; only then it is reported.
    func follow(_ entry: RecordingEntry, in stream: StreamID, isKept: Bool) async {
        guard let recording = active[stream], recording.entry.id == entry.id else {
            if isKept { await notices.tell(stream, hasBegun(stream), entry) }
            return
        }
        guard recording.reason == nil, entry.part < Self.partLimit else {
            // Before the waiting requests continue, so that their callers see the same state everywhere.
            await notices.tell(stream, false, isKept ? entry : nil)
            guard active[stream]?.entry.id == entry.id else { return }
            active[stream] = nil
            if declined.count < Self.declinedLimit { declined.insert(stream) }
            resumeWaiters(of: stream)
            return
        }
        let next = RecordingEntry(
            id: "\(recording.base)-\(entry.part + 1)", stream: stream, part: entry.part + 1,
            startedAt: now().wall.milliseconds, tier: entry.tier)
        active[stream] = ActiveRecording(
            entry: next, base: recording.base, inputs: ProgrammeInputs(taps, transcoder), hasBegun: true)
        entries[stream, default: []].append(next)
        if let failure = await shelf.save(next) {
            inbox.put(.failed(stream, next.id, FileError(code: EIO)))
            log.error("recording.not-kept", ["recording": next.id, "reason": failure.text])
        }
        if active[stream]?.entry.id == next.id { launch(stream) }
        await notices.tell(stream, hasBegun(stream), isKept ? entry : nil)
    }

    private func count(_ entry: RecordingEntry) {
        counted.ended[entry.endReason ?? .stopped, default: 0] &+= 1
        counted.bytes &+= UInt64(clamping: entry.size)
        log.info(
            "recording.ended",
            [
                "stream": entry.stream, "recording": entry.id, "reason": entry.endReason?.rawValue ?? "",
                "milliseconds": entry.milliseconds, "bytes": entry.size,
            ])
    }

    private func replace(_ entry: RecordingEntry, of stream: StreamID) {
        guard let index = entries[stream]?.firstIndex(where: { $0.id == entry.id }) else { return }
        entries[stream]?[index] = entry
    }

    private func forget(_ id: String, of stream: StreamID) {
        entries[stream]?.removeAll { $0.id == id }
        if entries[stream]?.isEmpty == true { entries[stream] = nil }
    }

    /// Whether others may be told that the stream is recorded: not before the disk has taken the recording.
    private func hasBegun(_ stream: StreamID) -> Bool { active[stream]?.hasBegun == true }

    /// Waits until a recording of the stream has begun, was refused, or is over.
    private func change(of stream: StreamID) async {
        await withCheckedContinuation { waiters[stream, default: []].append($0) }
    }

    private func resumeWaiters(of stream: StreamID) {
        for waiter in waiters.removeValue(forKey: stream) ?? [] { waiter.resume() }
    }
}
