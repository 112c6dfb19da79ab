import Base
import Foundation
import Forwarding
import HLS
import Recordings
import Stage
import TestSupport
import Testing
import Wire

@testable import Node
@testable import Transcoder

@Suite(.timeLimit(.minutes(10))) struct `A desk of packagings` {
    private let show: StreamID
    private let source: Packaging.Key
    private let clock = Watched((time: MonotonicTime.zero + .seconds(1_000), asked: 0))
    private let transcoder: TranscoderSupervisor
    private let desk: PackagingDesk

    init() throws {
        show = try #require(StreamID("show"))
        source = Packaging.Key(stream: show, rendition: .source)
        var settings = TranscoderSettings()
        settings.executable = "/nonexistent"
        transcoder = TranscoderSupervisor(settings, log: .silent)
        desk = PackagingDesk(
            limit: 1, timing: .usual, transcoder: transcoder, taps: NoTaps(), log: .silent,
            now: Self.now(by: clock))
    }

    private static func now(
        by clock: Watched<(time: MonotonicTime, asked: Int)>
    ) -> @Sendable () -> Moment {
        {
            clock.change { clock in
                clock.asked += 1
                return Moment(elapsed: clock.time, wall: WallTime(milliseconds: 1_000_000))
            }
        }
    }

    private func pass(_ time: Duration) { clock.change { $0.time = $0.time + time } }

    /// Has somebody ask for what is not there yet.
    /// - Returns: their answer, once they wait for it.
    private func wait<Answer: Sendable>(
        _ ask: @escaping @Sendable () async -> Answer
    ) async throws -> Task<Answer, Never> {
        let asked = clock.value.asked
        let answer = Task { await ask() }
        // The desk notes when they asked, and does nothing else before they wait.
        try await clock.wait { $0.asked > asked }
        #expect(await desk.counters.waiting == 1)
        return answer
    }

    /// What somebody hears who asks for the first playlist, and comes to wait for it before this returns.
    private func ask() async throws -> Task<HLSRefusal?, Never> {
        try await wait { [desk, show] () -> HLSRefusal? in
            do throws(HLSRefusal) {
                _ = try await desk.multivariantPlaylist(
                    of: show, HLSNames(media: "media.m3u8", window: "dvr.m3u8"))
                return nil
            } catch {
                return error
            }
        }
    }

    private func advance(isOff: Bool) async {
        await desk.advance(ended: { _ in false }, off: { _ in isOff })
    }

    @Test func `make no more HLS of a stream once its settings say so, but go on for targets`() async throws {
        try await desk.begin(source, nil)
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
        try await desk.begin(source, nil)
        #expect(await desk.counters.watched == 1)
        await advance(isOff: true)
        await desk.endListening(1, to: show)
        await advance(isOff: true)
        #expect(await desk.counters.active == 0)
        await desk.stop()
        transcoder.stop()
    }

    /// The next process is there in a moment, which a player that is told of no stream does not wait for.
    @Test func `tell those who wait and those who come that the server stops`() async throws {
        try await desk.begin(source, nil)
        let answer = try await ask()
        await desk.stop()
        #expect(await answer.value == .stopping)
        let query = try PlaylistQuery(sequenceNumber: nil, part: nil, skip: nil)
        for reachesBack in [false, true] {
            await #expect(throws: HLSRefusal.stopping) {
                try await desk.mediaPlaylist(
                    of: source, uri: "media.m3u8", query, reachesBack: reachesBack)
            }
        }
        await #expect(throws: HLSRefusal.stopping) { try await desk.file(named: "a-s1.m4s", of: show) }
        await #expect(throws: HLSRefusal.stopping) { try await desk.begin(source, nil) }
        transcoder.stop()
    }

    /// What they waited for has come by then, but they cannot go on before the desk has stopped.
    @Test func `tell those who have just been answered that the server stops`() async throws {
        try await desk.begin(source, nil)
        let answer = try await ask()
        pass(PackagingDesk.waitingTime)
        await desk.advanceAndStop()
        #expect(await answer.value == .stopping)
        transcoder.stop()
    }

    @Test func `a lower rendition of a stream does not count as another stream`() async throws {
        let low = Packaging.Key(stream: show, rendition: .low)
        try await desk.begin(source, nil)
        try await desk.begin(low, nil)
        var counters = await desk.counters
        #expect((counters.watched, counters.active, counters.reduced) == (1, 2, 1))
        let other = try #require(StreamID("other"))
        await #expect(throws: HLSRefusal.full) {
            try await desk.begin(Packaging.Key(stream: other, rendition: .low), nil)
        }
        // Nobody asks for one of them any more.
        pass(.seconds(20))
        let query = try PlaylistQuery(sequenceNumber: nil, part: nil, skip: nil)
        let answer = try await wait { [desk] in
            try? await desk.mediaPlaylist(of: low, uri: "media.m3u8", query)
        }
        pass(.seconds(20))
        await advance(isOff: false)
        #expect(await answer.value == nil)
        counters = await desk.counters
        #expect((counters.watched, counters.active, counters.reduced) == (1, 1, 1))
        await advance(isOff: true)
        #expect(await desk.counters.active == 0)
        await desk.stop()
        transcoder.stop()
    }

    /// What carries less goes when nobody asks, though the source is kept for those who go back.
    @Test func `keep a stream that viewers can go back in, and nothing beside it`() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "dvr-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let desk = PackagingDesk(
            limit: 1, timing: .usual, dvr: DVRSettings(directory: folder, secondsLimit: 600),
            transcoder: transcoder, taps: NoTaps(), log: .silent, now: Self.now(by: clock))
        func advance(by seconds: Int, ended: Bool = false, window: Int = 7_200) async {
            pass(.seconds(seconds))
            await desk.advance(ended: { _ in ended }, off: { _ in false }, window: { _ in window })
        }
        try await desk.begin(source, nil)
        await advance(by: 1)
        try await desk.begin(Packaging.Key(stream: show, rendition: .low), nil)
        await advance(by: 60)
        #expect(await desk.counters.active == 1)
        #expect(await desk.counters.kept == 1)
        // It is there for as long again as it could be gone back in, which the server limits.
        await advance(by: 1, ended: true)
        await advance(by: 590, ended: true)
        #expect(await desk.isKept(source))
        await advance(by: 20, ended: true)
        #expect(await desk.counters.active == 0)
        // Once nobody can go back, it is as any other.
        try await desk.begin(source, nil)
        await advance(by: 60)
        #expect(await desk.counters.active == 1)
        await advance(by: 1, window: 0)
        #expect(await desk.counters.active == 0)
        await desk.stop()
        transcoder.stop()
    }

    @Test func `a rendition that saves nothing is not offered`() {
        func variants(
            _ width: Int, _ height: Int, _ bandwidth: Int, average: Int? = nil
        ) -> [MultivariantPlaylist.Variant?] {
            let source = MultivariantPlaylist.Variant(
                uri: "media.m3u8", bandwidth: bandwidth, averageBandwidth: average, codecs: "avc1.64001F",
                resolution: MultivariantPlaylist.Resolution(width: width, height: height), framesPerSecond: 30
            )
            return [PackagedRendition.low, .sound].map { rendition in
                rendition.expectedVariant(besides: source, uri: rendition.uri(besides: source.uri))
            }
        }
        let large = variants(1_280, 720, 3_260_400)
        #expect(large.map { $0?.uri } == ["media.m3u8?rendition=low", "media.m3u8?rendition=sound"])
        #expect(large.first??.resolution == MultivariantPlaylist.Resolution(width: 640, height: 360))
        #expect(large.last??.resolution == nil)
        // Upright, and one that is small, but rich.
        #expect(
            variants(1_080, 1_920, 6_000_000).first??.resolution
                == MultivariantPlaylist.Resolution(width: 360, height: 640))
        #expect(
            variants(320, 240, 1_500_000).first??.resolution
                == MultivariantPlaylist.Resolution(width: 320, height: 240))
        // What comes counts more than what may come.
        #expect(
            variants(1_280, 720, 3_260_400, average: 500_000).map { $0?.uri }
                == [nil, "media.m3u8?rendition=sound"])
        #expect(variants(640, 360, 800_000).map { $0?.uri } == [nil, "media.m3u8?rendition=sound"])
    }

    /// Players begin with what comes first, and some know nothing of codecs.
    @Test func `name H.264 before pictures that go on as they are in another codec`() throws {
        func expected(_ width: Int, _ height: Int) throws -> MultivariantPlaylist.Variant {
            let original = MultivariantPlaylist.Variant(
                uri: PackagedRendition.original.uri(besides: "media.m3u8"), bandwidth: 1_500_000,
                averageBandwidth: 900_000, codecs: "av01.0.05M.08,mp4a.40.2",
                resolution: MultivariantPlaylist.Resolution(width: width, height: height),
                framesPerSecond: nil)
            #expect(original.uri == "media.m3u8?rendition=original")
            return try #require(PackagedRendition.expectedSource(beside: original, uri: "media.m3u8"))
        }
        // At most what is encoded; what is smaller stays as it is.
        let source = try expected(1_920, 1_080)
        #expect((source.uri, source.codecs) == ("media.m3u8", "avc1.64001F,mp4a.40.2"))
        #expect(source.resolution == MultivariantPlaylist.Resolution(width: 1_280, height: 720))
        #expect((source.bandwidth, source.averageBandwidth) == (3_260_400, 2_213_600))
        #expect(
            try expected(640, 360).resolution == MultivariantPlaylist.Resolution(width: 640, height: 360))
        let low = PackagedRendition.low.expectedVariant(besides: source, uri: "low")
        #expect(low?.resolution == MultivariantPlaylist.Resolution(width: 640, height: 360))
        #expect(PackagedRendition.original.expectedVariant(besides: source, uri: "x") == nil)
        let sound = MultivariantPlaylist.Variant(
            uri: "x", bandwidth: 1, averageBandwidth: nil, codecs: "mp4a.40.2", resolution: nil,
            framesPerSecond: nil)
        #expect(PackagedRendition.expectedSource(beside: sound, uri: "media.m3u8") == nil)
    }

    @Test func `offer no pictures as they are for a while after they could not be passed on`() async throws {
        let original = Packaging.Key(stream: show, rendition: .original)
        try await desk.begin(original, nil)
        #expect(await desk.counters.reduced == 0)
        #expect(await desk.mayPassOriginal(of: show))
        await desk.refuseOriginal(original)
        // Nobody plays it.
        #expect(await desk.counters.active == 0)
        #expect(await !desk.mayPassOriginal(of: show))
        pass(.seconds(599))
        await advance(isOff: false)
        #expect(await !desk.mayPassOriginal(of: show))
        pass(.seconds(2))
        await advance(isOff: false)
        #expect(await desk.mayPassOriginal(of: show))
        // Who plays it already keeps what there is.
        try await desk.begin(original, nil)
        let query = try PlaylistQuery(sequenceNumber: nil, part: nil, skip: nil, rendition: "original")
        let answer = try await wait { [desk] in
            try? await desk.mediaPlaylist(of: original, uri: "media.m3u8", query)
        }
        await desk.refuseOriginal(original)
        #expect(await desk.counters.active == 1)
        await advance(isOff: true)
        #expect(await answer.value == nil)
        await desk.stop()
        transcoder.stop()
    }

    /// A still picture in H.264 stands in for an encoder that is away, and is there for a moment after it came back.
    @Test func `offer pictures as they are of a publisher who has just come back`() async throws {
        let original = Packaging.Key(stream: show, rendition: .original)
        let publisher = try #require(SessionID(String(repeating: "1", count: 32)))
        let names = HLSNames(media: "media.m3u8", window: "dvr.m3u8")
        let picture = ProgrammeSource(session: publisher, mid: "1", worker: 0)
        let programme = RecordingDesk.Programme(video: picture, audio: nil)
        func encode(_ codecs: String) async {
            await desk.take(
                .report(
                    original, 1,
                    .began(
                        PackagingReport.Beginning(
                            initialization: [1], codecs: codecs,
                            resolution: VideoResolution(width: 640, height: 360), framesPerSecond: nil))))
        }
        try await desk.begin(original, nil)
        await encode("avc1.42e01f,mp4a.40.2")
        await desk.update(show, to: programme)
        #expect(try await desk.originalPlaylist(of: show, names) == nil)
        #expect(await desk.mayPassOriginal(of: show))
        await encode("hvc1.1.6.L93.B0,mp4a.40.2")
        let offered = try await desk.originalPlaylist(of: show, names)
        #expect(offered?.contains("hvc1") == true)
        // Their own pictures end, which is found out in time, and are to be had again.
        await encode("avc1.42e01f,mp4a.40.2")
        pass(OriginalRefusals.settlingTime)
        await desk.renewOriginal(of: show, from: publisher)
        #expect(try await desk.originalPlaylist(of: show, names) == nil)
        #expect(await desk.mayPassOriginal(of: show))
        pass(OriginalRefusals.settlingTime)
        // Another session's pictures are not those of the programme.
        await desk.renewOriginal(of: show, from: try #require(SessionID(String(repeating: "2", count: 32))))
        #expect(try await desk.originalPlaylist(of: show, names) == nil)
        #expect(await !desk.mayPassOriginal(of: show))
        // Nobody watches any more.
        #expect(await desk.counters.active == 0)
        await desk.update(show, to: programme)
        #expect(await !desk.mayPassOriginal(of: show))
        await desk.renewOriginal(of: show, from: publisher)
        #expect(await desk.mayPassOriginal(of: show))
        pass(OriginalRefusals.settlingTime)
        await desk.refuseOriginal(original)
        #expect(await !desk.mayPassOriginal(of: show))
        // Another programme lifts it, also where nobody watches.
        await desk.update(show, to: RecordingDesk.Programme(video: nil, audio: picture))
        #expect(await desk.mayPassOriginal(of: show))
        await desk.stop()
        transcoder.stop()
    }

    /// A lost part leaves a gap until the next time line; what begins or changes one comes once.
    @Test func `hear what begins or changes a time line, however much waits`() {
        let inbox = Inbox<PackagingDesk.Event>(limit: 1)
        let size = VideoResolution(width: 640, height: 360)
        let part = PackagingReport.Part(
            bytes: [1], milliseconds: 500, startsSegment: true, endsSegment: false, captured: .zero)
        let beginning = PackagingReport.Beginning(
            initialization: [1], codecs: "avc1.42e01f", resolution: size, framesPerSecond: 30)
        let format = PackagingReport.Format(
            resolution: size, framesPerSecond: 30, pictureHeader: [1], soundConfiguration: [2])
        #expect(inbox.put(.report(source, 1, .part(part))))
        #expect(!inbox.put(.report(source, 1, .part(part))))
        #expect(inbox.put(.report(source, 1, .began(beginning))))
        #expect(inbox.put(.report(source, 1, .format(format))))
        #expect(inbox.counters == InboxCounters(waiting: 3, dropped: 1))
    }

    /// Who waits for the first playlist when somebody else finds out gets the one of what is encoded.
    @Test func `have nobody wait for what is not offered any more`() async throws {
        let original = Packaging.Key(stream: show, rendition: .original)
        try await desk.begin(original, nil)
        let answer = try await wait { [desk, show] () -> String? in
            try? await desk.originalPlaylist(of: show, HLSNames(media: "media.m3u8", window: "dvr.m3u8"))
        }
        await desk.refuseOriginal(original)
        #expect(await answer.value == nil)
        #expect(await desk.counters.waiting == 0)
        await desk.stop()
        transcoder.stop()
    }

    @Test func `end HLS that nobody asks for, and let no one wait for ever`() async throws {
        try await desk.begin(source, nil)
        let answer = try await ask()
        pass(.seconds(20))
        await advance(isOff: false)
        #expect(await answer.value == .late)
        #expect(await desk.counters.watched == 1)
        pass(PackagingDesk.idleTime)
        await advance(isOff: false)
        #expect(await desk.counters.active == 0)
        await desk.stop()
        transcoder.stop()
    }

    /// What lies in memory is given without the desk, which has to know all the same that somebody takes it.
    @Test func `go on while somebody is given what lies at hand`() async throws {
        try await desk.begin(source, nil)
        var playlist = LivePlaylist(tag: "a", timing: PackagingTiming.usual.ofPlaylists)
        playlist.begin(
            initialization: [1], codecs: "avc1.42e01f,mp4a.40.2", width: 640, height: 360,
            framesPerSecond: 30, meant: LivePlaylist.Bitrates(peak: 1, average: nil))
        playlist.append(
            LivePlaylist.Part(
                bytes: [2, 3], milliseconds: 500, startsSegment: true, endsSegment: false,
                date: WallTime(milliseconds: 1_000_000)))
        pass(.seconds(25))
        desk.atHand.set(playlist, of: source)
        #expect(desk.atHand.file(named: "a-i0.mp4", of: show) == [1])
        #expect(desk.atHand.file(named: "a-p0-0.m4s", of: show) == [2, 3])
        // It comes next, is not complete, is another's, is nobody's.
        for name in ["a-p0-1.m4s", "a-s0.m4s", "b-p0-0.m4s", "a"] {
            #expect(desk.atHand.file(named: name, of: show) == nil, "\(name)")
        }
        #expect(desk.atHand.file(named: "a-i0.mp4", of: try #require(StreamID("other"))) == nil)
        await advance(isOff: false)
        pass(.seconds(25))
        await advance(isOff: false)
        #expect(await desk.counters.watched == 1)
        desk.atHand.set(playlist, of: source)
        #expect(desk.atHand.file(named: "a-i0.mp4", of: show) == [1])
        await advance(isOff: true)
        #expect(desk.atHand.file(named: "a-i0.mp4", of: show) == nil)
        #expect(await desk.counters.active == 0)
        await desk.stop()
        transcoder.stop()
    }
}

extension PackagingDesk {
    /// Answers those whose time is up, and stops before they can go on.
    fileprivate func advanceAndStop() {
        advance(ended: { _ in false }, off: { _ in false })
        stop()
    }
}
