import Base
import Forwarding
import Recordings
import Stage
import TestSupport
import Testing

@testable import Node
@testable import Transcoder

/// Streams of which nothing comes.
private struct NoTaps: ProgrammeTaps {
    func open(
        _ source: ProgrammeSource, into input: InputID, ended: @escaping @Sendable (TapID) -> Void
    ) -> TapID? { nil }

    func close(_ tap: TapID, of source: ProgrammeSource) {}
    func demandKeyFrame(_ tap: TapID, of source: ProgrammeSource) {}
}

@Suite(.timeLimit(.minutes(10))) struct `A desk of packagings` {
    private let show: StreamID
    private let clock = Watched(MonotonicTime.zero + .seconds(1_000))
    private let transcoder: TranscoderSupervisor
    private let desk: PackagingDesk

    init() throws {
        show = try #require(StreamID("show"))
        var settings = TranscoderSettings()
        settings.executable = "/nonexistent"
        transcoder = TranscoderSupervisor(settings, log: .silent)
        desk = PackagingDesk(
            limit: 1, timing: .usual, transcoder: transcoder, taps: NoTaps(), log: .silent
        ) { [clock] in Moment(elapsed: clock.value, wall: WallTime(milliseconds: 1_000_000)) }
    }

    /// What somebody hears who asks for the first playlist, and comes to wait for it before this returns.
    private func ask() async throws -> Task<HLSRefusal?, Never> {
        let (desk, show) = (desk, show)
        let answer = Task { () -> HLSRefusal? in
            do throws(HLSRefusal) {
                _ = try await desk.multivariantPlaylist(of: show, uri: "media.m3u8")
                return nil
            } catch {
                return error
            }
        }
        while await desk.counters.waiting == 0 {
            try Task.checkCancellation()
            await Task.yield()
        }
        return answer
    }

    private func advance(isOff: Bool) async {
        await desk.advance(ended: { _ in false }, off: { _ in isOff })
    }

    @Test func `make no more HLS of a stream once its settings say so, but go on for targets`() async throws {
        try await desk.begin(show, nil)
        await desk.listen(to: show, nil, as: 1) { _ in }
        let answer = try await ask()
        await advance(isOff: false)
        #expect(await desk.counters.watched == 1)
        await advance(isOff: true)
        #expect(await answer.value == .off)
        #expect(await desk.counters.watched == 0)
        #expect(await desk.counters.active == 1)
        await #expect(throws: HLSRefusal.unknownFile) { try await desk.file(named: "a-s1.m4s", of: show) }
        // It may be on again.
        try await desk.begin(show, nil)
        #expect(await desk.counters.watched == 1)
        await advance(isOff: true)
        await desk.endListening(1, to: show)
        await advance(isOff: true)
        #expect(await desk.counters.active == 0)
        await desk.stop()
        transcoder.stop()
    }

    @Test func `end HLS that nobody asks for, and let no one wait for ever`() async throws {
        try await desk.begin(show, nil)
        let answer = try await ask()
        clock.change { $0 = $0 + .seconds(20) }
        await advance(isOff: false)
        #expect(await answer.value == .late)
        #expect(await desk.counters.watched == 1)
        clock.change { $0 = $0 + PackagingDesk.idleTime }
        await advance(isOff: false)
        #expect(await desk.counters.active == 0)
        await desk.stop()
        transcoder.stop()
    }
}
