import Base
import Forwarding
import Foundation
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

/// A desk whose transcoder is not there, or has nothing, and whose clock the test moves.
private final class ClipRig: Sendable {
    let desk: ClipDesk
    let recordings: RecordingDesk
    /// In seconds.
    private let clock = Watched(1_000)
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    private let transcoder: TranscoderSupervisor

    init(limit: Int = 2, executable: String = BuiltProducts.path("rostrum")) {
        var settings = TranscoderSettings()
        settings.executable = executable
        transcoder = TranscoderSupervisor(settings, log: .silent)
        var shelf = RecordingSettings(directory: directory.path)
        shelf.reserve = 0
        let now: @Sendable () -> Moment = { [clock] in
            Moment(elapsed: .zero + .seconds(clock.value), wall: WallTime(milliseconds: 1_000_000))
        }
        recordings = RecordingDesk(shelf, transcoder: transcoder, taps: NoTaps(), log: .silent, now: now)
        desk = ClipDesk(
            limit: limit, recordings: recordings, transcoder: transcoder, taps: NoTaps(), log: .silent,
            now: now)
    }

    func pass(seconds: Int) { clock.change { $0 += seconds } }

    /// Has a clip made by a transcoder that does not answer, until its time is over and its file is to be closed,
    /// which takes as long as `disk` is slow.
    /// - Returns: the answer to the request.
    func giveUp(
        on stream: StreamID, _ programme: RecordingDesk.Programme, while disk: Watched<Bool>
    ) async -> Task<RecordingEntry, any Error> {
        await desk.start { _, _ in Issue.record("a clip was made") }
        await desk.update(stream, to: programme)
        let answer = Task { try await self.make(stream) }
        // The job is number 1, the clip number 2.
        while desk.files[2] == nil { await Task.yield() }
        #expect(await desk.counters.making == 1)
        let file = RecordingFile(reserve: 0) { _ in
            let isReady = disk.waitHere { isSlow in !isSlow }
            #expect(isReady)
        }
        file.begin("/nonexistent/clip.mp4", "mp4")
        desk.files[2] = file
        pass(seconds: 1_000)
        await desk.advance { _ in false }
        while desk.files[2] != nil { await Task.yield() }
        return answer
    }

    func make(_ stream: StreamID) async throws(ClipRefusal) -> RecordingEntry {
        try await desk.make(of: stream, seconds: 30, title: nil, tier: nil)
    }

    /// Makes the disk refuse everything of a stream: a file is where its folder belongs.
    func blockFolder(of stream: String) throws {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        try Data().write(to: directory.appendingPathComponent(stream))
    }

    func clearFolder(of stream: String) throws {
        try FileManager.default.removeItem(at: directory.appendingPathComponent(stream))
    }

    /// Puts a clip on the disk that was being made when its server ended.
    func putUnfinished(_ id: String, of stream: String) throws {
        let folder = directory.appendingPathComponent(stream)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let entry =
            #"{"id":"\#(id)","stream":"\#(stream)","part":1,"state":"recording","startedAt":0,"isClip":true,"#
            + #""milliseconds":0,"size":0}"#
        try Data(entry.utf8).write(to: folder.appendingPathComponent("\(id).json"))
        try Data("half a film".utf8).write(to: folder.appendingPathComponent("\(id).mp4"))
    }

    var files: [String] {
        ((try? FileManager.default.subpathsOfDirectory(atPath: directory.path)) ?? []).filter {
            $0.contains(".")
        }
    }

    deinit {
        transcoder.stop()
        try? FileManager.default.removeItem(at: directory)
    }
}

@Suite(.timeLimit(.minutes(10))) struct `A desk of clips` {
    private let programme = RecordingDesk.Programme(video: nil, audio: nil)
    private let names: [StreamID]

    init() throws {
        names = try ["s1", "s2", "s3"].map { try #require(StreamID($0)) }
    }

    @Test func `keeps as many streams as it may, and the next when one ends`() async throws {
        let rig = ClipRig(executable: "/nonexistent")
        await rig.desk.start { _, _ in }
        for name in names { await rig.desk.update(name, to: programme) }
        #expect(await rig.desk.counters.streams == 2)
        await #expect(throws: ClipRefusal.full) { try await rig.make(names[2]) }
        let first = names[0]
        await rig.desk.advance { $0 == first }
        await #expect(throws: ClipRefusal.full) { try await rig.make(first) }
        #expect(await rig.desk.counters.streams == 2)
        // Nobody may make any of this one.
        await rig.desk.forget(names[2])
        #expect(await rig.desk.counters.streams == 1)
        await #expect(throws: ClipRefusal.nothingThere) { try await rig.make(names[2]) }
        await rig.desk.stop()
        await #expect(throws: ClipRefusal.stopping) { try await rig.make(names[1]) }
    }

    @Test func `leaves nothing of a clip for which there is nothing`() async throws {
        let rig = ClipRig()
        await rig.desk.start { _, _ in Issue.record("a clip was made") }
        await rig.desk.update(names[0], to: programme)
        await #expect(throws: ClipRefusal.nothingThere) { try await rig.make(names[0]) }
        #expect(await rig.recordings.recordings(of: names[0]).isEmpty)
        #expect(rig.files == [])
        // Also of what came to nothing there are six a minute.
        for _ in 0..<5 { await #expect(throws: ClipRefusal.nothingThere) { try await rig.make(names[0]) } }
        do throws(ClipRefusal) {
            _ = try await rig.make(names[0])
            Issue.record("a seventh was made")
        } catch {
            if case .tooOften(let seconds) = error {
                #expect(seconds == 60)
            } else {
                Issue.record("\(error)")
            }
        }
        await rig.desk.stop()
    }

    /// Whoever looks after all streams must not wait for the disk with it.
    @Test func `gives a clip up without waiting for its file`() async throws {
        let rig = ClipRig(executable: "/nonexistent")
        let disk = Watched(true)
        let answer = await rig.giveUp(on: names[0], programme, while: disk)
        // There is room for others meanwhile.
        await rig.desk.update(names[1], to: programme)
        #expect(await rig.desk.counters.streams == 2)
        disk.change { $0 = false }
        await #expect(throws: ClipRefusal.lost) { try await answer.value }
        await rig.desk.stop()
    }

    @Test func `answers for a clip that is being given up when the server stops`() async throws {
        let rig = ClipRig(executable: "/nonexistent")
        let disk = Watched(true)
        let answer = await rig.giveUp(on: names[0], programme, while: disk)
        await rig.desk.stop()
        await #expect(throws: ClipRefusal.lost) { try await answer.value }
        disk.change { $0 = false }
    }

    @Test func `makes the next clip after the disk refused one`() async throws {
        let rig = ClipRig()
        await rig.desk.start { _, _ in Issue.record("a clip was made") }
        await rig.desk.update(names[0], to: programme)
        try rig.blockFolder(of: "s1")
        for _ in 0..<2 { await #expect(throws: ClipRefusal.storage) { try await rig.make(names[0]) } }
        #expect(await rig.desk.counters.making == 0)
        #expect(await rig.recordings.recordings(of: names[0]).isEmpty)
        try rig.clearFolder(of: "s1")
        await #expect(throws: ClipRefusal.nothingThere) { try await rig.make(names[0]) }
        await rig.desk.stop()
    }

    @Test func `has no half clips after a restart`() async throws {
        let rig = ClipRig()
        try rig.putUnfinished("c1", of: "s1")
        await rig.recordings.start { _, _, _ in }
        #expect(await rig.recordings.recordings(of: names[0]).isEmpty)
        #expect(rig.files == [])
    }
}
