import Base
import ClientPeer
import TestSupport
import Testing
import Wire

@testable import sfu_bench

@Suite struct `Viewers of a feed` {
    private func options(_ line: String) throws -> Options {
        let words = line.split(separator: " ").map(String.init)
        guard case .run(let options) = try CommandLineParser.parse(words) else {
            Issue.record("help instead of a run")
            return Options(.feed)
        }
        return options
    }

    private static func settings(jumps: Double = 0, turns: Double = 0, callsOff: Double = 0) -> FeedSettings {
        FeedSettings(
            streams: (0..<8).map { "s\($0)" }, interval: 1_000_000_000, jumps: jumps, turns: turns,
            callsOff: callsOff, seed: 1, isMeasured: true)
    }

    @Test func `swipe over streams of their own, or over those that are named`() throws {
        #expect(try options("feed").target.streamNames.count == 8)
        #expect(try options("feed --streams 3").target.streamNames == ["bench-1", "bench-2", "bench-3"])
        #expect(try options("feed --streams ann,b-2,c_3").target.streamNames == ["ann", "b-2", "c_3"])
        for wrong in [
            "feed --streams ann,ann", "feed --streams a,b/c", "load --streams a,b", "load --jumps 3",
            "feed --layers 4", "feed --layers 0", "feed --layers 2 --file a.ivf", "feed --whep /x",
            "load --feed /x",
        ] {
            #expect(throws: UsageError.self) { try options(wrong) }
        }
    }

    @Test func `enter where they are told, and publish in layers`() throws {
        let options = try options("feed --layers 3 --feed /feed/{stream}")
        #expect(options.media.layers == 3)
        #expect(options.target.feed == "/feed/{stream}")
        #expect(try self.options("feed").media.layers == 1)
    }

    @Test func `move alike from the same seed, and go everywhere`() {
        func moves(_ seed: UInt64) -> [SwipeMove] {
            var random = SplitMix64(seed: seed)
            var pattern = SwipePattern(Self.settings(jumps: 0.2, turns: 0.3, callsOff: 0.1))
            return (0..<400).compactMap { pattern.next(from: $0 % 8, using: &random) }
        }
        #expect(moves(5) == moves(5))
        #expect(moves(5) != moves(6))
        let kinds = moves(5).map { move in
            switch move {
            case .jump: 0
            case .swipe: 1
            case .callOff: 2
            }
        }
        #expect((50...110).contains(kinds.filter { $0 == 0 }.count))
        #expect((15...60).contains(kinds.filter { $0 == 2 }.count))
    }

    @Test func `go straight on if they never turn`() {
        var random = SplitMix64(seed: 1)
        var pattern = SwipePattern(Self.settings())
        var focus = 6
        for expected in [7, 0, 1, 2] {
            #expect(pattern.next(from: focus, using: &random) == .swipe(expected, direction: 1))
            focus = expected
        }
        #expect(pattern.neighbour(of: 2) == 3)
    }

    @Test func `turn back at every swipe if they always turn`() {
        var random = SplitMix64(seed: 1)
        var pattern = SwipePattern(Self.settings(turns: 1))
        #expect(pattern.next(from: 0, using: &random) == .swipe(7, direction: -1))
        #expect(pattern.next(from: 7, using: &random) == .swipe(0, direction: 1))
    }

    @Test(arguments: 2...9) func `never jump to where they are`(count: Int) {
        var settings = Self.settings(jumps: 1)
        settings.streams = (0..<count).map { "s\($0)" }
        var pattern = SwipePattern(settings)
        var random = SplitMix64(seed: 3)
        for focus in 0..<200 {
            guard case .jump(let target) = pattern.next(from: focus % count, using: &random) else { continue }
            #expect((0..<count).contains(target) && target != focus % count)
        }
    }

    // MARK: Attachments

    private static func time(_ milliseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: 1_000_000_000 + milliseconds * 1_000_000)
    }

    private static func most(_ packets: [(Int, Int64)]) -> Int {
        var watch = AttachmentWatch()
        for (stream, at) in packets { _ = watch.receive(stream, at: time(at)) }
        return watch.most
    }

    @Test func `count streams that come at once, not those that follow each other`() {
        #expect(Self.most([(1, 0), (1, 20), (1, 40)]) == 1)
        #expect(Self.most([(1, 0), (2, 10), (1, 20), (2, 30)]) == 2)
        // One leaves before the next comes.
        #expect(Self.most([(1, 0), (2, 10), (1, 20), (2, 30), (3, 40), (2, 50), (3, 60)]) == 2)
        // A third one comes while the first two go on.
        #expect(Self.most([(1, 0), (2, 10), (3, 20), (1, 30), (2, 40), (3, 50)]) == 3)
        // One that came before and comes again after a pause has not been there in between.
        #expect(Self.most([(1, 0), (2, 10), (3, 100), (2, 110), (1, 200), (2, 210), (1, 220)]) == 2)
    }

    @Test func `count a stream that was released and came back at once as two attachments`() {
        func most(isTold: Bool) -> Int {
            var watch = AttachmentWatch()
            for (stream, at): (Int, Int64) in [(1, 0), (2, 5), (1, 10), (2, 20)] {
                _ = watch.receive(stream, at: Self.time(at))
            }
            if isTold { watch.release(1) }
            for (stream, at): (Int, Int64) in [(3, 30), (2, 40), (3, 50)] {
                _ = watch.receive(stream, at: Self.time(at))
            }
            if isTold { watch.release(3) }
            for (stream, at): (Int, Int64) in [(1, 60), (2, 65), (1, 70)] {
                _ = watch.receive(stream, at: Self.time(at))
            }
            return watch.most
        }
        #expect(most(isTold: true) == 2)
        #expect(most(isTold: false) == 3)
    }

    @Test func `count by their order what they read at one time after a pause of the machine`() {
        // The first leaves before the third comes, all within one reading.
        #expect(Self.most([(1, 0), (2, 5), (1, 40), (3, 40), (2, 40), (3, 60)]) == 2)
        #expect(Self.most([(1, 0), (2, 5), (3, 40), (1, 40), (2, 40), (3, 60)]) == 3)
    }

    @Test func `count a stream that goes on after it was released`() {
        var watch = AttachmentWatch()
        for (stream, at): (Int, Int64) in [(1, 0), (2, 5), (1, 20), (2, 25)] {
            _ = watch.receive(stream, at: Self.time(at))
        }
        watch.release(1)
        for (stream, at): (Int, Int64) in [(3, 30), (1, 40), (2, 45), (3, 50), (1, 60)] {
            _ = watch.receive(stream, at: Self.time(at))
        }
        #expect(watch.most == 3)
    }

    @Test func `count as an observer who sees everything would`() {
        var random = SeededGenerator(seed: 11)
        for _ in 0..<200 {
            // Each stream is attached once, for a while, and sends every 20 ms.
            var packets: [(Int, Int64)] = []
            // What comes at one time comes in the order of the streams.
            var intervals: [(start: (Int64, Int), end: (Int64, Int))] = []
            for stream in 0..<6 {
                let start = Int64.random(in: 0...600, using: &random)
                let length = Int64.random(in: 0...15, using: &random) * 20
                intervals.append(((start, stream), (start + length, stream)))
                for at in stride(from: start, through: start + length, by: 20) {
                    packets.append((stream, at))
                }
            }
            let expected = intervals.map { point in
                intervals.filter { $0.start <= point.start && $0.end >= point.start }.count
            }.max()
            packets.sort { ($0.1, $0.0) < ($1.1, $1.0) }
            #expect(Self.most(packets) == expected)
        }
    }

    // MARK: Formats

    @Test func `read what the server says`() {
        let slots =
            #"{"type":"slots","slots":[{"mid":"1","kind":"video","slot":0,"stream":"s1","quality":"full"},"#
            + #"{"mid":"3","kind":"video","slot":1}]}"#
        #expect(
            FeedNotice(parsing: Array(slots.utf8))
                == .slots([
                    .init(mid: "1", stream: "s1", quality: "full"),
                    .init(mid: "3", stream: nil, quality: nil),
                ]))
        #expect(FeedNotice(parsing: Array(#"{"type":"moved","from":"a","to":"b"}"#.utf8)) == .moved(to: "b"))
        #expect(FeedNotice(parsing: Array(#"{"type":"refused","reason":"x"}"#.utf8)) == .refused)
        #expect(FeedNotice(parsing: Array(#"{"type":"pong"}"#.utf8)) == .other)
        #expect(FeedNotice(parsing: Array("nonsense".utf8)) == nil)
    }

    @Test func `find the stream's number in synthetic media`() throws {
        var random = SplitMix64(seed: 1)
        var settings = SyntheticVideo.Settings()
        settings.bitrate = 60_000
        var video = SyntheticVideo(settings, using: &random)
        let now = MonotonicTime(nanoseconds: 5_000_000_000)
        for packet in video.nextFrame() + video.nextFrame() {
            var payload = packet.payload
            let offset = try MediaStamp.offset(inVideo: payload.span)
            #expect(StreamTag(bits: try payload.span.uint64(at: offset + StreamTag.offsetInVideo)) == nil)
            MediaStamp(now).write(to: &payload, at: offset)
            StreamTag(stream: "ann").write(to: &payload, at: offset + StreamTag.offsetInVideo)
            #expect(payload.count == packet.payload.count)
            let bits = try payload.span.uint64(at: offset + StreamTag.offsetInVideo)
            #expect(StreamTag(bits: bits) == StreamTag(stream: "ann"))
            #expect(MediaStamp(bits: try payload.span.uint64(at: offset))?.time == now)
        }
        let layers = (0..<3).map { StreamTag(stream: "ann", layer: $0) }
        #expect(layers.map(\.layer) == [0, 1, 2])
        #expect(Set(layers.map(\.ofStream)) == [StreamTag(stream: "ann")])
        #expect(StreamTag(bits: layers[2].bits)?.layer == 2)
        var audio = SyntheticAudio(bitrate: 48_000).payload
        let offset = try #require(try SyntheticAudio.stampOffset(in: audio.span))
        StreamTag(stream: "ann").write(to: &audio, at: offset + StreamTag.offsetInAudio)
        #expect(
            StreamTag(bits: try audio.span.uint64(at: offset + StreamTag.offsetInAudio))
                == StreamTag(stream: "ann"))
    }

    @Test(arguments: [(0, 1_280, 720, 1_500_000), (1, 640, 360, 500_000), (2, 320, 180, 166_666)])
    func `are published in layers, each half as large`(
        layer: Int, width: Int, height: Int, bitrate: Int
    ) throws {
        var random = SplitMix64(seed: 1)
        let settings = PublisherSettings(media: MediaOptions())
        var source = try #require(VideoSource(settings, layer: layer, using: &random))
        let first = try #require(source.nextFrame().first)
        let info = try VideoPayload.describe(.vp8, payload: first.payload.span, marker: first.marker)
        #expect(info.resolution == VideoResolution(width: width, height: height))
        #expect(source.bitrate == bitrate)
    }

    @Test func `add up and subtract like every tally`() {
        var first = SwipeTally()
        first.swipes = 3
        first.requested(of: 2)
        first.cold.frame.add(5_000_000)
        first.mostAttached = 2
        var later = first
        later.swipes = 10
        later.requested(of: 0)
        later.requested(of: 2)
        later.cold.frame.add(9_000_000)
        let difference = later.since(first)
        #expect(difference.swipes == 7)
        #expect(difference.requests == [1, 0, 1])
        #expect(difference.cold.frame.count == 1)
        #expect((first + difference) == later)
    }

    @Test func `fail a run in which they got what they must not get`() {
        var swiping = Report.Swiping(
            preload: "eager", swipes: 1, perSecond: 1, jumps: 0, calledOff: 0, unfinished: 0, refused: 0,
            moved: 0,
            preloaded: .init(), cold: .init(), mostAttached: 2, momentsOverTwo: 0, strays: 0, brokenStarts: 0,
            keyFrameRequestsAtMost: 0)
        #expect(Bench.failures(swiping).isEmpty)
        swiping.mostAttached = 3
        swiping.strays = 1
        swiping.brokenStarts = 1
        #expect(Bench.failures(swiping).count == 3)
    }
}
