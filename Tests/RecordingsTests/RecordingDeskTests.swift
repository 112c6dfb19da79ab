import Base
import Forwarding
import Foundation
import Net
import Synchronization
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

/// A desk whose transcoder never says anything, with a folder of its own.
private final class DeskRig: Sendable {
    let desk: RecordingDesk
    private let transcoder: TranscoderSupervisor
    private let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)

    init() {
        var settings = TranscoderSettings()
        settings.executable = "/nonexistent"
        transcoder = TranscoderSupervisor(settings, log: .silent)
        var shelf = RecordingSettings(directory: directory.path)
        shelf.reserve = 0
        desk = RecordingDesk(
            shelf, transcoder: transcoder, taps: NoTaps(), log: .silent, now: { Moment.now() })
    }

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
    }

    @Test func `tells that a recording has ended before those who ended it hear of it`() async throws {
        let rig = DeskRig()
        let desk = rig.desk
        let (telling, tellsNow) = AsyncStream.makeStream(of: Void.self)
        let (gate, opens) = AsyncStream.makeStream(of: Void.self)
        let order = Mutex<[String]>([])
        await desk.start { _, isRecording, _ in
            guard !isRecording else { return }
            tellsNow.yield()
            for await _ in gate { break }
            order.withLock { $0.append("told") }
        }
        let stream = try #require(StreamID("s1"))
        _ = try await desk.record(stream)
        let stopping = Task {
            await desk.stop()
            order.withLock { $0.append("answered") }
        }
        for await _ in telling { break }
        // It has every occasion to be answered first.
        for _ in 0..<100 { await Task.yield() }
        opens.yield()
        await stopping.value
        #expect(order.withLock { $0 } == ["told", "answered"])
    }
}
