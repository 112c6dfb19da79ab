import Base
import Forwarding
import HLS
import Recordings
import TestSupport
import Testing
import Wire

@testable import Node
@testable import Transcoder

/// Jobs that die, streams that end, and what is still said of them.
@Suite(.timeLimit(.minutes(10))) struct `A desk of packagings, when something ends` {
    private let show: StreamID
    private let quiz: StreamID
    private let source: Packaging.Key
    private let clock = Watched((time: MonotonicTime.zero + .seconds(1_000), asked: 0))
    private let transcoder: TranscoderSupervisor
    private let desk: PackagingDesk

    init() throws {
        show = try #require(StreamID("show"))
        quiz = try #require(StreamID("quiz"))
        source = Packaging.Key(stream: show, rendition: .source)
        var settings = TranscoderSettings()
        settings.executable = "/nonexistent"
        transcoder = TranscoderSupervisor(settings, log: .silent)
        // Nobody starts it, so that it hears of jobs what the test says.
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

    private func advance(by time: Duration, ended: Set<StreamID> = []) async {
        clock.change { $0.time = $0.time + time }
        await desk.advance(ended: { ended.contains($0) }, off: { _ in false })
    }

    private func end() async {
        await desk.stop()
        transcoder.stop()
    }

    private func part(_ byte: UInt8) -> PackagingReport {
        .part(
            PackagingReport.Part(
                bytes: [byte], milliseconds: 500, startsSegment: true, endsSegment: false, captured: .zero))
    }

    private var beginning: PackagingReport {
        .began(
            PackagingReport.Beginning(
                initialization: [1], codecs: "avc1.42e01f,mp4a.40.2",
                resolution: VideoResolution(width: 640, height: 360), framesPerSecond: 30))
    }

    /// How many parts of jobs it has taken so far.
    private var parts: UInt64 { get async { await desk.counters.parts } }

    /// Somebody asks for the first playlist, and waits for it.
    private func ask() async throws -> Task<HLSRefusal?, Never> {
        let asked = clock.value.asked
        let answer = Task { [desk, show] () -> HLSRefusal? in
            do throws(HLSRefusal) {
                _ = try await desk.multivariantPlaylist(
                    of: show, HLSNames(media: "media.m3u8", window: "dvr.m3u8"))
                return nil
            } catch {
                return error
            }
        }
        // The desk notes when they asked, and does nothing else before they wait.
        try await clock.wait { $0.asked > asked }
        #expect(await desk.counters.waiting == 1)
        return answer
    }

    @Test func `begins a job anew a second after it was lost, and hears the new one alone`() async throws {
        try await desk.begin(source, nil)
        await desk.take(.report(source, 1, part(1)))
        #expect(await parts == 1)
        await desk.take(.over(source, 1))
        #expect(await desk.counters.lost == 1)
        await advance(by: .milliseconds(999))
        await desk.take(.report(source, 2, part(2)))
        #expect(await parts == 1, "there is no second job yet")
        await advance(by: .milliseconds(1))
        await desk.take(.report(source, 2, part(2)))
        #expect(await parts == 2)
        // What the first one had still to say.
        await desk.take(.report(source, 1, part(1)))
        await desk.take(.over(source, 1))
        #expect(await parts == 2)
        #expect(await desk.counters.lost == 1)
        await desk.take(.over(source, 2))
        #expect(await desk.counters.lost == 2)
        await end()
    }

    /// A player on a phone that was put away asks for the number that comes next.
    @Test func `counts on from where it ended because nobody asked`() async throws {
        try await desk.begin(source, nil)
        await desk.take(.report(source, 1, beginning))
        for byte in 1...3 { await desk.take(.report(source, 1, part(UInt8(byte)))) }
        await advance(by: PackagingDesk.idleTime)
        #expect(await desk.counters.active == 0)
        try await desk.begin(source, nil)
        await desk.take(.report(source, 2, beginning))
        await desk.take(.report(source, 2, part(4)))
        let query = try PlaylistQuery(sequenceNumber: "3", part: "0", skip: nil)
        let text = try await desk.mediaPlaylist(of: source, uri: "media.m3u8", query)
        #expect(text.contains("#EXT-X-MEDIA-SEQUENCE:3\n"))
        #expect(text.contains("#EXT-X-DISCONTINUITY-SEQUENCE:1\n"))
        await end()
    }

    @Test func `counts from zero again once players were told of the end`() {
        var earlier = EarlierPlaylists()
        var playlist = LivePlaylist(tag: "a", timing: PackagingTiming.usual.ofPlaylists)
        earlier.note(playlist, of: source)
        #expect(earlier.playlist(tag: "b", after: source) == nil, "it has nothing yet")
        playlist.begin(
            initialization: [1], codecs: "avc1.42e01f,mp4a.40.2", width: 640, height: 360,
            framesPerSecond: 30, meant: LivePlaylist.Bitrates(peak: 1, average: nil))
        playlist.append(
            LivePlaylist.Part(
                bytes: [2, 3], milliseconds: 500, startsSegment: true, endsSegment: true,
                date: WallTime(milliseconds: 1_000_000)))
        earlier.note(playlist, of: source)
        let low = Packaging.Key(stream: show, rendition: .low)
        let sound = Packaging.Key(stream: show, rendition: .sound)
        let next = earlier.playlist(tag: "b", after: low)
        #expect(next?.text().contains("#EXT-X-MEDIA-SEQUENCE:1\n") == true)
        #expect(earlier.playlist(tag: "b", after: sound) == nil)
        playlist.end()
        earlier.note(playlist, of: source)
        #expect(earlier.playlist(tag: "b", after: source) == nil)
    }

    private func playlist(segments: Int) -> LivePlaylist {
        var playlist = LivePlaylist(tag: "a", timing: PackagingTiming.usual.ofPlaylists)
        playlist.begin(
            initialization: [1], codecs: "avc1.42e01f,mp4a.40.2", width: 640, height: 360,
            framesPerSecond: 30, meant: LivePlaylist.Bitrates(peak: 1, average: nil))
        for _ in 0..<segments {
            playlist.append(
                LivePlaylist.Part(
                    bytes: [2, 3], milliseconds: 500, startsSegment: true, endsSegment: true,
                    date: WallTime(milliseconds: 1_000_000)))
        }
        return playlist
    }

    /// A publisher's own key frames may be rarer, so that `original` has fewer and longer segments.
    @Test func `counts on from the rendition that was furthest, whichever ended last`() {
        let original = Packaging.Key(stream: show, rendition: .original)
        var earlier = EarlierPlaylists()
        earlier.note(playlist(segments: 3), of: source)
        earlier.note(playlist(segments: 1), of: original)
        let next = earlier.playlist(tag: "b", after: source)
        #expect(next?.nextSequenceNumber == 3)
        earlier.note(playlist(segments: 5), of: original)
        let last = earlier.playlist(tag: "b", after: source)
        #expect(last?.nextSequenceNumber == 5)
    }

    @Test func `has nothing more to say of what has ended, and lets nobody wait for it`() async throws {
        try await desk.begin(source, nil)
        let answer = try await ask()
        await advance(by: .seconds(1), ended: [show])
        #expect(await answer.value == .late)
        #expect(await desk.counters.watched == 0)
        #expect(await desk.isKept(source))
        #expect(await desk.isActive(source) == false)
        // The job's last words were on their way.
        await desk.take(.report(source, 1, beginning))
        await desk.take(.report(source, 1, part(1)))
        await desk.take(.over(source, 1))
        #expect(await desk.counters.lost == 0, "it was ended")
        let bytes = await desk.counters.bytes
        await desk.take(.report(source, 1, part(2)))
        #expect(await desk.counters.bytes == bytes)
        await advance(by: PackagingDesk.idleTime, ended: [show])
        #expect(await desk.counters.active == 0)
        await desk.take(.report(source, 1, part(1)))
        await desk.take(.tapEnded(source, TapID(number: 1)))
        await desk.take(.stored(source, "a-s1.m4s"))
        #expect(await desk.counters.active == 0)
        await end()
    }

    @Test func `refuses those who wait when the server stops, and begins nothing then`() async throws {
        try await desk.begin(source, nil)
        let answer = try await ask()
        await desk.stop()
        #expect(await answer.value == .stopping)
        await #expect(throws: HLSRefusal.stopping) { try await desk.begin(source, nil) }
        await desk.listen(to: show, nil, as: 1) { _ in }
        #expect(await desk.counters.active == 0)
        #expect(await desk.counters.waiting == 0)
        transcoder.stop()
    }

    /// Only so many are kept after their end, however many end.
    @Test func `forgets first what ended first`() async throws {
        let other = Packaging.Key(stream: quiz, rendition: .source)
        try await desk.begin(source, nil)
        await #expect(throws: HLSRefusal.full) { try await desk.begin(other, nil) }
        #expect(await desk.counters.refused == 1)
        await advance(by: .seconds(1), ended: [show])
        try await desk.begin(other, nil)
        await advance(by: .seconds(1), ended: [show])
        #expect(await desk.isKept(source), "nothing has ended since")
        await advance(by: .seconds(1), ended: [show, quiz])
        await advance(by: .seconds(1), ended: [show, quiz])
        #expect(await desk.isKept(source) == false)
        #expect(await desk.isKept(other))
        #expect(await desk.counters.active == 1)
        await end()
    }

    @Test func `gives a listener what each began with, and nothing once it has gone`() async throws {
        let format = PackagingReport.format(
            PackagingReport.Format(
                resolution: VideoResolution(width: 640, height: 360), framesPerSecond: 30,
                pictureHeader: [1], soundConfiguration: [2]))
        let told = Watched<[String]>([])
        func listen(as name: UInt64) async {
            await desk.listen(to: show, nil, as: name) { report in
                if case .format = report { told.change { $0.append("\(name)") } }
            }
        }
        await listen(as: 1)
        #expect(told.value == [])
        await desk.take(.report(source, 1, format))
        await listen(as: 2)
        #expect(told.value == ["1", "2"], "the second one at once")
        await desk.endListening(1, to: show)
        await desk.endListening(7, to: show)
        await desk.take(.report(source, 1, format))
        #expect(told.value == ["1", "2", "2"])
        await desk.endListening(2, to: show)
        await advance(by: .seconds(1))
        #expect(await desk.counters.active == 0)
        await end()
    }

    /// A stream that begins again has media times of its own, and an encode of its own.
    @Test func `does not give a target what is left of an ended stream`() async throws {
        try await desk.begin(source, nil)
        await advance(by: .seconds(1), ended: [show])
        #expect(await desk.isKept(source))
        await desk.listen(to: show, nil, as: 1) { _ in }
        #expect(await desk.isKept(source) == false)
        // The encode that ended was the first job, and this one's is the second.
        await desk.take(.report(source, 1, part(1)))
        #expect(await parts == 0)
        await desk.take(.report(source, 2, part(2)))
        #expect(await parts == 1)
        await end()
    }

    /// A camera's clock may be wrong by years.
    @Test(
        arguments: [(0, 0), (1, 0), (-1, 1), (-59_999, 59_999), (-60_001, 60_000), (-9_999_999, 60_000)]
            as [(Int64, Int64)])
    func `dates pictures within the last minute`(captured: Int64, age: Int64) {
        let now = Moment(elapsed: .zero + .seconds(20_000), wall: WallTime(milliseconds: 1_000_000))
        let date = now.date(of: now.elapsed + .milliseconds(captured))
        #expect(date == WallTime(milliseconds: 1_000_000 - age))
    }
}
