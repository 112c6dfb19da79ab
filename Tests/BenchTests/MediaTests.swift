import Base
import ClientPeer
import TestSupport
import Testing
import Wire

@testable import sfu_bench

@Suite struct `A media stamp` {
    @Test(arguments: [0, 1_000, 123_456_789_000, 86_400_000_000_000_000] as [Int64])
    func `survives a payload`(nanoseconds: Int64) {
        let stamp = MediaStamp(MonotonicTime(nanoseconds: nanoseconds))
        var payload = [UInt8](repeating: 7, count: 20)
        stamp.write(to: &payload, at: 5)
        let bits = payload[5..<13].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        #expect(MediaStamp(bits: bits)?.time.nanoseconds == nanoseconds)
        #expect(payload[4] == 7 && payload[13] == 7)
    }

    @Test func `is told from other bytes`() {
        #expect(MediaStamp(bits: 0) == nil)
        #expect(MediaStamp(bits: .max) == nil)
    }

    @Test func `leaves payloads alone that have no room for it`() {
        var payload = [UInt8](repeating: 7, count: 8)
        MediaStamp(.zero).write(to: &payload, at: 1)
        MediaStamp(.zero).write(to: &payload, at: -1)
        #expect(payload.allSatisfy { $0 == 7 })
    }

    @Test func `is found in every packet of synthetic video`() throws {
        var random = SeededGenerator(seed: 3)
        var video = SyntheticVideo(using: &random)
        let stamp = MediaStamp(MonotonicTime(nanoseconds: 5_000_000))
        for _ in 0..<3 {
            for packet in video.nextFrame() {
                var payload = packet.payload
                stamp.write(to: &payload, at: try MediaStamp.offset(inVideo: payload.span))
                let mark = try SyntheticMark(reading: payload.span)
                #expect(MediaStamp(bits: mark.stamp) == stamp)
            }
        }
    }
}

@Suite struct `Synthetic audio` {
    @Test(arguments: [10_000, 48_000, 64_000, 128_000, 400_000])
    func `is Opus of the right size and duration`(bitrate: Int) throws {
        let audio = SyntheticAudio(bitrate: bitrate)
        #expect(abs(audio.payload.count - max(bitrate / 400, 14)) <= 2)
        let duration = try OpusPayload.duration(audio.payload.span)
        #expect(duration == 960)
    }

    /// Walks the packet as RFC 6716 §3.2.5 says.
    @Test(arguments: [10_000, 48_000, 128_000, 400_000])
    func `has two bytes of silence before its padding`(bitrate: Int) {
        let payload = SyntheticAudio(bitrate: bitrate).payload
        #expect(payload[1] == 0x41)
        var offset = 2
        var padding = 0
        while payload[offset] == 255 {
            padding += 254
            offset += 1
        }
        padding += Int(payload[offset])
        offset += 1
        #expect(payload.count - offset - padding == 2)
        #expect(Array(payload[offset..<(offset + 2)]) == [0xFF, 0xFE])
    }

    @Test func `carries a stamp`() throws {
        let audio = SyntheticAudio(bitrate: 160_000)
        var payload = audio.payload
        let before = try SyntheticAudio.stamp(in: payload.span)
        #expect(before == nil)
        let stamp = MediaStamp(MonotonicTime(nanoseconds: 99_000))
        stamp.write(to: &payload, at: audio.stampOffset)
        let after = try SyntheticAudio.stamp(in: payload.span)
        #expect(after == stamp)
        #expect(throws: WireError.self) {
            let short = Array(payload.prefix(3))
            _ = try SyntheticAudio.stamp(in: short.span)
        }
    }
}

@Suite struct `The first frame` {
    private func feed(
        _ frame: inout FirstFrame, _ packets: [(Int64, UInt32, Bool, Bool)]
    ) -> [Bool] {
        packets.map { frame.receive(index: $0.0, timestamp: $0.1, marker: $0.2, startsKeyFrame: $0.3) }
    }

    @Test func `is complete with its last packet`() {
        var frame = FirstFrame()
        let done = feed(
            &frame, [(1, 9, true, false), (2, 10, false, true), (3, 10, false, false), (4, 10, true, false)])
        #expect(done == [false, false, false, true])
    }

    @Test func `waits for packets that come late`() {
        var frame = FirstFrame()
        let done = feed(
            &frame, [(2, 10, false, true), (4, 10, true, false), (5, 11, true, false), (3, 10, false, false)])
        #expect(done == [false, false, false, true])
    }

    @Test func `gives way to the next key frame when it has holes`() {
        var frame = FirstFrame()
        let done = feed(
            &frame, [(2, 10, false, true), (4, 10, true, false), (8, 20, false, true), (9, 20, true, false)])
        #expect(done == [false, false, false, true])
    }

    /// Its first packet alone tells that it is a key frame, and that one may be late, or need repair.
    @Test func `is complete even if its own first packet comes last`() {
        var frame = FirstFrame()
        let done = feed(
            &frame, [(1, 9, true, false), (3, 10, false, false), (4, 10, true, false), (2, 10, false, true)])
        #expect(done == [false, false, false, true])
    }

    @Test func `has no part of what precedes it`() {
        var frame = FirstFrame()
        #expect(feed(&frame, [(1, 10, false, false), (2, 10, false, true)]) == [false, false])
        #expect(feed(&frame, [(3, 10, true, false)]) == [true])
    }

    @Test func `may begin with several packets that say so, in any order`() {
        var frame = FirstFrame()
        let done = feed(
            &frame, [(3, 10, false, false), (2, 10, false, true), (4, 10, true, false), (1, 10, false, true)])
        #expect(done == [false, false, true, true])
        frame = FirstFrame()
        let gap = feed(
            &frame, [(5, 10, true, false), (1, 10, false, true), (4, 10, false, false), (2, 10, false, true)])
        #expect(gap == [false, false, false, false])
        #expect(feed(&frame, [(3, 10, false, false)]) == [true])
    }

    @Test func `is found behind any number of other frames`() {
        var frame = FirstFrame()
        let others = feed(&frame, (0..<10_000).map { (Int64($0), UInt32($0), true, false) })
        #expect(!others.contains(true))
        let done = feed(
            &frame, [(10_002, 10_001, true, false), (10_001, 10_001, false, true)])
        #expect(done == [false, true])
    }

    @Test func `is another one where a frame has no end`() {
        var frame = FirstFrame()
        let endless = feed(&frame, (0...5_000).map { (Int64($0), UInt32(10), $0 == 5_000, $0 == 0) })
        #expect(!endless.contains(true))
        #expect(feed(&frame, [(6_000, 20, true, true)]) == [true])
    }

    @Test func `is not an older one that comes late`() {
        var frame = FirstFrame()
        let done = feed(&frame, [(10, 20, false, true), (5, 10, true, true), (11, 20, true, false)])
        #expect(done == [false, false, true])
    }

    @Test func `may be a single packet`() {
        var frame = FirstFrame()
        #expect(feed(&frame, [(7, 3, true, true)]) == [true])
    }
}

@Suite struct `Recorded media` {
    private func littleEndian(_ value: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }

    private func ivf(_ frames: [[UInt8]], rate: Int = 25, scale: Int = 1) -> [UInt8] {
        var file = Array("DKIF".utf8) + littleEndian(0, 2) + littleEndian(32, 2) + Array("VP80".utf8)
        file += littleEndian(640, 2) + littleEndian(360, 2) + littleEndian(rate, 4) + littleEndian(scale, 4)
        file += littleEndian(frames.count, 4) + littleEndian(0, 4)
        for (index, frame) in frames.enumerated() {
            file += littleEndian(frame.count, 4) + littleEndian(index, 8) + frame
        }
        return file
    }

    private let frames: [[UInt8]] = [
        [0x10] + [UInt8](repeating: 1, count: 2_500), [0x11, 5, 5], [0x11, 6, 6], [0x10, 7, 7, 7],
    ]

    @Test func `of video become frames and packets`() throws {
        let recording = try RecordedVideo(parsing: ivf(frames))
        #expect(recording.frames.map(\.isKeyFrame) == [true, false, false, true])
        #expect(recording.frameInterval == 40_000_000)
        var random = SeededGenerator(seed: 1)
        var player = recording.player(using: &random)
        let first = player.nextFrame()
        #expect(first.count == 3)
        #expect(first.map(\.marker) == [false, false, true])
        var bytes: [UInt8] = []
        for packet in first {
            let descriptor = try VP8Descriptor(parsing: packet.payload.span)
            bytes += packet.payload.dropFirst(descriptor.length)
        }
        #expect(bytes == frames[0])
        let opening = first[0].payload
        let info = try VideoPayload.describe(.vp8, payload: opening.span, marker: false)
        #expect(info.startsKeyFrame)
        let second = player.nextFrame()
        #expect(second[0].timestamp &- first[0].timestamp == 3_600)
    }

    /// A viewer's clock would drift away from the sound's by a third of a millisecond each second.
    @Test(
        arguments: [(1, 90_000), (24, 3_750), (25, 3_600), (30, 3_000), (60, 1_500), (240, 375)]
            as [(Int64, UInt32)])
    func `of video keep the time of their rate`(rate: Int64, ticks: UInt32) throws {
        let frame = RecordedVideo.Frame(bytes: [0x10, 1], isKeyFrame: true)
        var random = SeededGenerator(seed: 1)
        var player = try RecordedVideo([frame], interval: 1_000_000_000 / rate).player(using: &random)
        let first = player.nextFrame()
        let second = player.nextFrame()
        #expect(second[0].timestamp &- first[0].timestamp == ticks)
    }

    @Test(
        arguments: [
            (0, 1, 33_333_333), (30, 0, 33_333_333), (1_000, 1, 4_166_666), (1, 100, 1_000_000_000),
            (30_000, 1_001, 33_366_666), (0xFFFF_FFFF, 1, 4_166_666), (1, 0xFFFF_FFFF, 1_000_000_000),
        ] as [(Int, Int, Int64)])
    func `of video have a rate that makes sense, whatever their file says`(
        rate: Int, scale: Int, nanoseconds: Int64
    ) throws {
        let recording = try RecordedVideo(parsing: ivf(frames, rate: rate, scale: scale))
        #expect(recording.frameInterval == nanoseconds)
    }

    @Test func `of video know their own bit rate`() throws {
        let frame = RecordedVideo.Frame(bytes: [UInt8](repeating: 0x10, count: 125), isKeyFrame: true)
        #expect(try RecordedVideo([frame, frame], interval: 40_000_000).bitrate == 25_000)
    }

    @Test func `of video number their pictures with fifteen bits`() throws {
        let frame = RecordedVideo.Frame(bytes: [0x10], isKeyFrame: true)
        var random = SeededGenerator(seed: 2)
        var player = try RecordedVideo([frame], interval: 40_000_000).player(using: &random)
        var numbers: [Int] = []
        for _ in 0..<40_000 {
            let payload = player.nextFrame()[0].payload
            numbers.append(Int(payload[2]) << 8 | Int(payload[3]))
        }
        // The highest bit says that there are fifteen.
        #expect(numbers.allSatisfy { $0 >= 0x8000 })
        #expect(zip(numbers, numbers.dropFirst()).allSatisfy { ($0 + 1) & 0x7FFF == $1 & 0x7FFF })
    }

    @Test func `of video jump to a key frame on request, and begin again at the end`() throws {
        var random = SeededGenerator(seed: 1)
        var player = try RecordedVideo(parsing: ivf(frames)).player(using: &random)
        _ = player.nextFrame()
        player.requestKeyFrame()
        #expect(player.nextFrame()[0].payload.suffix(3) == [7, 7, 7])
        #expect(player.nextFrame().count == 3)
    }

    @Test func `of video are refused when broken`() {
        let file = ivf(frames)
        #expect(throws: RecordedVideo.Problem.unknown) { try RecordedVideo(parsing: []) }
        #expect(throws: RecordedVideo.Problem.unknown) { try RecordedVideo(parsing: Array(file.dropFirst())) }
        #expect(throws: RecordedVideo.Problem.truncated) { try RecordedVideo(parsing: file.dropLast()) }
        #expect(throws: RecordedVideo.Problem.noKeyFrame) { try RecordedVideo(parsing: ivf([[0x11]])) }
        for length in 0..<120 { _ = try? RecordedVideo(parsing: Array(file.prefix(length))) }
    }

    private func page(_ packets: [[UInt8]]) -> [UInt8] {
        var table: [UInt8] = []
        for packet in packets {
            table += [UInt8](repeating: 255, count: packet.count / 255) + [UInt8(packet.count % 255)]
        }
        let head = Array("OggS".utf8) + [UInt8](repeating: 0, count: 22) + [UInt8(table.count)]
        return head + table + packets.flatMap(\.self)
    }

    @Test func `of audio become packets`() throws {
        let opus = [[0xF8] + [UInt8](repeating: 2, count: 300), [0xF8, 3]]
        let file = page([Array("OpusHead".utf8)]) + page([Array("OpusTags".utf8)]) + page(opus)
        let recording = try RecordedAudio(parsing: file)
        #expect(recording.packets == opus)
        #expect(recording.packetInterval == 20_000_000)
        var player = recording.player()
        #expect([player.next(), player.next(), player.next()] == opus + [opus[0]])
        for length in 0..<file.count { _ = try? RecordedAudio(parsing: Array(file.prefix(length))) }
    }

    /// A page of Ogg with its table as it is.
    private func page(table: [UInt8], _ data: [UInt8]) -> [UInt8] {
        Array("OggS".utf8) + [UInt8](repeating: 0, count: 22) + [UInt8(table.count)] + table + data
    }

    @Test func `of audio may go on from page to page`() throws {
        let head = page([Array("OpusHead".utf8), Array("OpusTags".utf8)])
        let long: [UInt8] = [0xF8] + (0..<299).map { UInt8(truncatingIfNeeded: $0) }
        let parts = page(table: [255], Array(long[..<255])) + page(table: [45], Array(long[255...]))
        #expect(try RecordedAudio(parsing: head + parts).packets == [long])
        let whole = Array(long[..<255])
        #expect(try RecordedAudio(parsing: head + page(table: [255, 0], whole)).packets == [whole])
        // Without its end it is no packet.
        #expect(throws: RecordedAudio.Problem.empty) {
            try RecordedAudio(parsing: head + page(table: [255], whole))
        }
    }

    @Test func `of audio leave out what fits into no datagram`() throws {
        let head = page([Array("OpusHead".utf8), Array("OpusTags".utf8)])
        let (largest, larger) = (
            [0xE0] + [UInt8](repeating: 1, count: 1_149), [0xF8] + [UInt8](repeating: 1, count: 1_150)
        )
        let recording = try RecordedAudio(parsing: head + page([larger, [], largest]))
        #expect(recording.packets == [largest])
        // By the first of those that are left: 2.5 ms.
        #expect(recording.packetInterval == 2_500_000)
        #expect(throws: RecordedAudio.Problem.empty) { try RecordedAudio(parsing: head + page([larger])) }
    }

    @Test func `of audio are refused when broken`() {
        #expect(throws: RecordedAudio.Problem.notOpus) { try RecordedAudio(parsing: []) }
        #expect(throws: RecordedAudio.Problem.unknown) {
            try RecordedAudio(parsing: [UInt8](repeating: 0, count: 40))
        }
        #expect(throws: RecordedAudio.Problem.empty) {
            try RecordedAudio(parsing: page([Array("OpusHead".utf8), Array("OpusTags".utf8)]))
        }
    }
}
