import Base
import Dispatch
import Forwarding
import Foundation
import Glibc
import Net
import Synchronization
import TestSupport
import Testing

@testable import Recordings
@testable import Transcoder

/// Streams of which nothing comes.
private struct NoTaps: ProgrammeTaps {
    func open(
        _ source: ProgrammeSource, into input: InputID, ended: @escaping @Sendable (TapID) -> Void
    ) -> TapID? { nil }

    func close(_ tap: TapID, of source: ProgrammeSource) {}
    func demandKeyFrame(_ tap: TapID, of source: ProgrammeSource) {}
}

/// A desk whose transcoder says nothing but what a test says for it, with a folder of its own.
private final class DeskRig: Sendable {
    let desk: RecordingDesk
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    private let transcoder: TranscoderSupervisor

    /// - Parameter roomAt: bytes that may still be written at a path.
    init(
        now: @escaping @Sendable () -> Moment = { Moment.now() },
        roomAt: @escaping @Sendable (String) -> Int64? = { _ in .max }
    ) {
        var settings = TranscoderSettings()
        settings.executable = "/nonexistent"
        transcoder = TranscoderSupervisor(settings, log: .silent)
        var shelf = RecordingSettings(directory: directory.path)
        shelf.reserve = 0
        desk = RecordingDesk(
            shelf, transcoder: transcoder, taps: NoTaps(), log: .silent, roomAt: roomAt, now: now)
    }

    /// Puts a recording on the disk, as it is after its end.
    func put(_ id: String, of stream: String, endedAt: Int64?, state: String = "ended") throws {
        let folder = directory.appendingPathComponent(stream)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let end = endedAt.map { #""endedAt":\#($0),"endReason":"stopped","# } ?? ""
        let entry =
            #"{"id":"\#(id)","stream":"\#(stream)","part":1,"state":"\#(state)","startedAt":0,\#(end)"#
            + #""milliseconds":5,"size":6,"fileExtension":"webm"}"#
        try Data(entry.utf8).write(to: folder.appendingPathComponent("\(id).json"))
        try Data("a film".utf8).write(to: folder.appendingPathComponent("\(id).webm"))
    }

    /// Has the only job begin a file and end, as it does when the codec changes.
    func endPart() {
        let hear = transcoder.state.withLock { $0.handlers.values.first }
        hear?(.report(RecordingReport.began(.webM, nil, nil, hasAudio: true).bytes))
        hear?(.ended)
    }

    var files: [String] {
        ((try? FileManager.default.subpathsOfDirectory(atPath: directory.path)) ?? []).sorted()
    }

    /// From now on the transcoder takes no job.
    func refuseJobs() { transcoder.stop() }

    deinit {
        transcoder.stop()
        try? FileManager.default.removeItem(at: directory)
    }
}

@Suite(.timeLimit(.minutes(10))) struct `A desk of recordings` {
    @Test func `comes to its end although the transcoder says nothing`() async throws {
        let rig = DeskRig()
        let desk = rig.desk
        await desk.start { _, _, _ in }
        let streams = try ["s1", "s2", "s3"].map { try #require(StreamID($0)) }
        for stream in streams { #expect(try await desk.record(stream).isNew) }
        await desk.stop()
        for stream in streams {
            #expect(await desk.recordings(of: stream).map(\.endReason) == [.interrupted])
        }
        // Nothing would complete this one.
        await #expect(throws: RecordingRefusal.stopping) { _ = try await desk.record(streams[0]) }
    }

    /// A network file system that is gone answers nothing, not even how much room it has.
    @Test func `answers others while the disk does not say how much room it has`() async throws {
        let disk = DispatchSemaphore(value: 0)
        let rig = DeskRig(roomAt: { _ in
            disk.wait()
            return .max
        })
        let desk = rig.desk
        rig.refuseJobs()
        await desk.start { _, _, _ in }
        let stream = try #require(StreamID("s1"))
        let beginning = Task { try await desk.record(stream) }
        while await !desk.isRecording(stream) { await Task.yield() }
        #expect(await desk.recordings(of: stream).map(\.state) == [.recording])
        #expect(await desk.counters.started == 0)
        disk.signal()
        #expect(try await beginning.value.isNew)
        await desk.stop()
    }

    @Test func `begins nothing on a disk without room`() async throws {
        let rig = DeskRig(roomAt: { _ in -1 })
        let desk = rig.desk
        await desk.start { _, _, _ in }
        let stream = try #require(StreamID("s1"))
        await #expect(throws: RecordingRefusal.diskFull) { _ = try await desk.record(stream) }
        let clip = RecordingEntry(id: "c1", stream: stream, part: 1, startedAt: 0, kind: .clip)
        await #expect(throws: ClipRefusal.diskFull) { try await desk.admit(clip, of: stream) }
        #expect(await desk.recordings(of: stream).isEmpty && rig.files.isEmpty)
        #expect(await !desk.isRecording(stream))
        await desk.stop()
    }

    /// Nothing would tell the stream's pages later that there is no recording.
    @Test func `tells nobody of a recording that the disk may still refuse`() async throws {
        let isFull = Mutex(false)
        let disk = DispatchSemaphore(value: 0)
        let rig = DeskRig(roomAt: { _ in
            guard isFull.withLock({ $0 }) else { return .max }
            disk.wait()
            return -1
        })
        let desk = rig.desk
        rig.refuseJobs()
        let told = Watched<[Bool]>([])
        await desk.start { _, isRecording, _ in told.change { $0.append(isRecording) } }
        let stream = try #require(StreamID("s1"))
        _ = try await desk.record(stream)
        let earlier = try #require(await desk.stop(stream, because: .stopped))
        isFull.withLock { $0 = true }
        let beginning = Task { try await desk.record(stream) }
        while await !desk.isRecording(stream) { await Task.yield() }
        // The end of the earlier one, which the disk has taken only now.
        await desk.follow(earlier, in: stream, isKept: true)
        disk.signal()
        await #expect(throws: RecordingRefusal.diskFull) { _ = try await beginning.value }
        #expect(told.value == [true, false, false])
        #expect(await !desk.isRecording(stream))
        await desk.stop()
    }

    @Test func `refuses whoever asks for a recording that the disk then refuses`() async throws {
        let disk = DispatchSemaphore(value: 0)
        let rig = DeskRig(roomAt: { _ in
            disk.wait()
            return -1
        })
        let desk = rig.desk
        await desk.start { _, _, _ in }
        let stream = try #require(StreamID("s1"))
        let first = Task { try await desk.record(stream) }
        while await !desk.isRecording(stream) { await Task.yield() }
        let second = Task { try await desk.record(stream) }
        for _ in 0..<100 { await Task.yield() }
        // The second may try again itself.
        for _ in 0..<2 { disk.signal() }
        await #expect(throws: RecordingRefusal.diskFull) { _ = try await first.value }
        await #expect(throws: RecordingRefusal.diskFull) { _ = try await second.value }
        #expect(await desk.recordings(of: stream).isEmpty)
        await desk.stop()
    }

    /// The first press saves an entry, which takes as long as the disk does.
    @Test func `ends what is ended while it begins`() async throws {
        let rig = DeskRig()
        let desk = rig.desk
        // A recording that has begun by then ends without the transcoder, which would take its time.
        rig.refuseJobs()
        await desk.start { _, _, _ in }
        let stream = try #require(StreamID("s1"))
        for number in 1...50 {
            let beginning = Task { try await desk.record(stream) }
            while await desk.recordings(of: stream).count < number, await !desk.isRecording(stream) {
                await Task.yield()
            }
            let ended = await desk.stop(stream, because: .stopped)
            #expect(ended?.endReason == .stopped)
            let begun = try await beginning.value
            #expect(begun.entry.id == ended?.id && begun.isNew)
            #expect(await !desk.isRecording(stream))
            let states = await desk.recordings(of: stream).map(\.state)
            #expect(states.count == number && states.allSatisfy { $0 == .ended })
        }
        await desk.stop()
    }

    @Test func `tells that a recording has ended before those who ended it hear of it`() async throws {
        let rig = DeskRig()
        let desk = rig.desk
        let order = Mutex<[String]>([])
        await desk.start { [weak desk] stream, isRecording, _ in
            guard !isRecording else { return }
            // Whoever ended it waits for as long as it is under way.
            let isAwaited = await desk?.isRecording(stream) == true
            order.withLock { $0.append(isAwaited ? "told" : "told too late") }
        }
        let stream = try #require(StreamID("s1"))
        _ = try await desk.record(stream)
        await desk.stop()
        order.withLock { $0.append("answered") }
        #expect(order.withLock { $0 } == ["told", "answered"])
    }

    /// Whoever hears of the end first would take the stream for recorded for ever.
    @Test func `tells of a recording's beginning before its end, however long that takes`() async throws {
        let rig = DeskRig()
        let desk = rig.desk
        rig.refuseJobs()
        let told = Watched<[Bool]>([])
        let isHearing = Watched((begins: false, goesOn: false))
        await desk.start { _, isRecording, _ in
            if isRecording {
                isHearing.change { $0.begins = true }
                try? await isHearing.wait { $0.goesOn }
            }
            told.change { $0.append(isRecording) }
        }
        let stream = try #require(StreamID("s1"))
        let beginning = Task { try await desk.record(stream) }
        try await isHearing.wait { $0.begins }
        let ending = Task { await desk.stop(stream, because: .stopped) }
        while await desk.counters.ended.isEmpty { await Task.yield() }
        for _ in 0..<100 { await Task.yield() }
        isHearing.change { $0.goesOn = true }
        #expect(try await beginning.value.isNew)
        #expect(await ending.value?.endReason == .stopped)
        #expect(told.value == [true, false])
        await desk.stop()
    }

    @Test func `tells how a recording ended once that is on the disk, however late`() async throws {
        let clock = TestClock()
        let rig = DeskRig { clock.now }
        let desk = rig.desk
        let (ends, told) = AsyncStream.makeStream(
            of: RecordingEntry?.self, bufferingPolicy: .bufferingNewest(4))
        await desk.start { _, isRecording, entry in
            if !isRecording { told.yield(entry) }
        }
        var end = ends.makeAsyncIterator()
        let stream = try #require(StreamID("s1"))
        let id = try await desk.record(stream).entry.id
        // A file is where its folder was: nothing can be written there.
        let (folder, aside) = (rig.directory.appending(path: "s1"), rig.directory.appending(path: "aside"))
        try FileManager.default.moveItem(at: folder, to: aside)
        try Data().write(to: folder)
        await desk.advance { _ in true }
        // The transcoder, which says nothing, has had its time.
        clock.set(10)
        await desk.advance { _ in true }
        #expect(await end.next() == .some(nil))
        #expect(await desk.recordings(of: stream).map(\.endReason) == [.streamEnded])
        try FileManager.default.removeItem(at: folder)
        try FileManager.default.moveItem(at: aside, to: folder)
        await desk.advance { _ in true }
        #expect(await end.next()??.endReason == .streamEnded)
        let kept = try JSONDecoder().decode(
            RecordingEntry.self, from: Data(contentsOf: folder.appending(path: "\(id).json")))
        #expect(kept.state == .ended)
        #expect(await desk.recordings(of: stream) == [kept])
    }

    @Test func `says of the hundredth part that it has failed, because no other continues it`() async throws {
        let clock = TestClock()
        let rig = DeskRig { clock.now }
        let desk = rig.desk
        let (notices, told) = AsyncStream.makeStream(of: Bool.self)
        await desk.start { _, isRecording, _ in
            told.yield(isRecording)
        }
        var notice = notices.makeAsyncIterator()
        let stream = try #require(StreamID("s1"))
        _ = try await desk.record(stream)
        var isRecording = await notice.next()
        for part in 1...100 {
            try #require(isRecording == true, "part \(part)")
            rig.endPart()
            isRecording = await notice.next()
        }
        #expect(isRecording == false)
        let reasons = await desk.recordings(of: stream).compactMap(\.endReason)
        let expected: [RecordingEntry.EndReason] = Array(repeating: .continued, count: 99) + [.failed]
        #expect(reasons == expected)
        await desk.stop()
    }

    /// It would be taken for ended, and another part would begin beside it.
    @Test func `records on, whatever follows late from an earlier recording of the stream`() async throws {
        let rig = DeskRig()
        let desk = rig.desk
        // A recording ends without the transcoder, which would take its time.
        rig.refuseJobs()
        let told = Watched<[Bool]>([])
        await desk.start { _, isRecording, entry in
            if entry != nil { told.change { $0.append(isRecording) } }
        }
        let stream = try #require(StreamID("s1"))
        _ = try await desk.record(stream)
        let earlier = try #require(await desk.stop(stream, because: .stopped))
        let entry = try await desk.record(stream).entry
        await desk.follow(earlier, in: stream, isKept: true)
        #expect(told.value == [false, true])
        let names = await desk.recordings(of: stream).map(\.id)
        #expect(Set(names) == [earlier.id, entry.id] && names.count == 2)
        let again = try await desk.record(stream)
        #expect(again.entry.id == entry.id && !again.isNew)
        await desk.stop()
    }

    @Test func `says why it was ended although the end of a part was being saved by then`() async throws {
        let clock = Watched((asked: 0, pipe: ""))
        let rig = DeskRig {
            let (asked, pipe) = clock.change { clock in
                clock.asked += 1
                return clock
            }
            // Recording began, then the file, and now the part has ended, which is saved next. Whoever opens a pipe
            // waits for its reader.
            if asked == 3 { mkfifo(pipe, 0o600) }
            return Moment.now()
        }
        let desk = rig.desk
        await desk.start { _, _, _ in }
        let stream = try #require(StreamID("s1"))
        let id = try await desk.record(stream).entry.id
        // Where the entry is written before it replaces the one that is there.
        let draft = rig.directory.appending(path: "s1/.\(id).json").path
        clock.change { $0.pipe = draft }
        rig.endPart()
        try await clock.wait { $0.asked == 3 }
        let stopping = Task { await desk.stop(stream, because: .stopped) }
        // For the time that the transcoder is given; from then on the desk knows of it.
        try await clock.wait { $0.asked == 4 }
        let reader = open(draft, O_RDONLY | O_NONBLOCK)
        defer { close(reader) }
        #expect(reader >= 0)
        let ended = await stopping.value
        #expect(ended?.endReason == .stopped)
        let saved = try Data(contentsOf: rig.directory.appending(path: "s1/\(id).json"))
        #expect(try JSONDecoder().decode(RecordingEntry.self, from: saved).endReason == .stopped)
        await desk.stop()
    }
}

/// A clock that the test moves, in seconds.
private final class TestClock: Sendable {
    private let seconds = Mutex(0)

    var now: Moment {
        let seconds = seconds.withLock { $0 }
        return Moment(
            elapsed: .zero + .seconds(seconds), wall: WallTime(milliseconds: Int64(seconds) * 1_000))
    }

    func set(_ time: Int) { seconds.withLock { $0 = time } }
}

@Suite struct `Recordings that are old enough` {
    private let clock = TestClock()
    private let rig: DeskRig
    private let show: StreamID

    init() throws {
        rig = DeskRig { [clock] in clock.now }
        show = try #require(StreamID("show"))
    }

    private func expire(endedBefore seconds: Int, limit: Int = 10) async -> RecordingDesk.Expiry {
        await rig.desk.expire(endedBefore: WallTime(milliseconds: Int64(seconds) * 1_000), limit: limit)
    }

    @Test func `go with their files, the oldest first, so many at a time`() async throws {
        for number in 1...5 { try rig.put("r\(number)", of: "show", endedAt: Int64(number) * 1_000) }
        try rig.put("other", of: "old", endedAt: 0)
        await rig.desk.start { _, _, _ in }
        var expiry = await expire(endedBefore: 5, limit: 3)
        #expect(expiry.recordings == 3 && expiry.bytes == 18 && expiry.isMore)
        #expect(
            rig.files == [
                "show", "show/r3.json", "show/r3.webm", "show/r4.json", "show/r4.webm", "show/r5.json",
                "show/r5.webm",
            ])
        expiry = await expire(endedBefore: 5, limit: 3)
        #expect(expiry.recordings == 2 && !expiry.isMore)
        #expect(await rig.desk.recordings(of: show).map(\.id) == ["r5"])
        #expect(await expire(endedBefore: 5) == RecordingDesk.Expiry())
    }

    @Test func `stay while they are under way`() async throws {
        await rig.desk.start { _, _, _ in }
        _ = try await rig.desk.record(show)
        clock.set(1_000_000)
        #expect(await expire(endedBefore: 999_999) == RecordingDesk.Expiry())
        #expect(await rig.desk.isRecording(show))
        await rig.desk.stop()
    }

    @Test func `stay while somebody plays them, a day at most`() async throws {
        try rig.put("r1", of: "show", endedAt: 0)
        await rig.desk.start { _, _, _ in }
        let entry = try #require(await rig.desk.recordings(of: show).first)
        clock.set(1_000)
        #expect(rig.desk.readingPath(of: entry)?.hasSuffix("show/r1.webm") == true)
        #expect(await expire(endedBefore: 900) == RecordingDesk.Expiry())
        // A player asks for the next part in time.
        clock.set(1_599)
        #expect(await expire(endedBefore: 1_500) == RecordingDesk.Expiry())
        clock.set(1_600)
        #expect(await expire(endedBefore: 1_500).recordings == 1)
        let again = DeskRig { [clock] in clock.now }
        try again.put("r2", of: "show", endedAt: 0)
        await again.desk.start { _, _, _ in }
        let other = try #require(await again.desk.recordings(of: show).first)
        clock.set(90_000)
        _ = again.desk.readingPath(of: other)
        let cut = WallTime(milliseconds: 86_400_001)
        #expect(await again.desk.expire(endedBefore: cut, limit: 9).recordings == 1)
    }

    /// A file whose bytes are being sent is open: it goes on from there, whatever becomes of its name.
    @Test func `are whole to somebody who has the file open`() async throws {
        try rig.put("r1", of: "show", endedAt: 0)
        await rig.desk.start { _, _, _ in }
        let reader = try FileHandle(forReadingFrom: rig.directory.appendingPathComponent("show/r1.webm"))
        #expect(try reader.read(upToCount: 2) == Data("a ".utf8))
        #expect(await expire(endedBefore: 10).recordings == 1)
        #expect(try reader.readToEnd() == Data("film".utf8))
    }

    /// What has a name of the file's, and is none, cannot be removed as one.
    @Test func `are listed as long as they cannot be removed, and whoever asks is told`() async throws {
        try rig.put("r1", of: "show", endedAt: 0)
        let file = rig.directory.appendingPathComponent("show/r1.webm")
        try FileManager.default.removeItem(at: file)
        try FileManager.default.createDirectory(at: file, withIntermediateDirectories: false)
        await rig.desk.start { _, _, _ in }
        #expect(await expire(endedBefore: 10).failure == "recording r1 couldn't be deleted")
        await #expect(throws: RecordingRefusal.storage) { try await rig.desk.remove("r1", of: show) }
        #expect(await rig.desk.recordings(of: show).map(\.id) == ["r1"])
        try FileManager.default.removeItem(at: file)
        try await rig.desk.remove("r1", of: show)
        #expect(rig.files == [])
    }
}
