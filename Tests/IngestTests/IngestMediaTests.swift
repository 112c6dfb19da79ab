import Base
import Ingest
import TestSupport
import Testing
import Wire

@Suite struct IngestMediaTests {
    private var media = IngestMedia(isDecoding: true, seed: 42)
    private var now = MonotonicTime(nanoseconds: 5_000_000_000)

    /// Baseline, 640x360.
    private static func configuration(profile: String = "42") -> [UInt8] {
        hexBytes(
            """
            17 00 000000 01 \(profile)c01e ff e1 0019 67\(profile)c01ed900a02ff970110000030001000003003c8f162e48
            01 0005 68cb83cb20
            """)
    }

    private static let soundConfiguration = hexBytes("af 00 1190")

    /// One slice behind its length.
    private static func picture(key: Bool, size: Int = 20, delay: Int = 0) -> [UInt8] {
        let slice = [key ? 0x65 : 0x41, 0x88] + [UInt8](repeating: 0xAB, count: size - 2)
        return [key ? 0x17 : 0x27, 1, 0, UInt8(delay >> 8), UInt8(delay & 0xFF), 0, 0, UInt8(size >> 8)]
            + [UInt8(size & 0xFF)] + slice
    }

    private mutating func video(_ bytes: [UInt8], at timestamp: UInt32 = 0) -> [IngestMedia.Effect] {
        media.receive(video: bytes.span, timestamp: timestamp, at: now)
    }

    private mutating func audio(_ bytes: [UInt8], at timestamp: UInt32 = 0) -> [IngestMedia.Effect] {
        media.receive(audio: bytes.span, timestamp: timestamp, at: now)
    }

    /// With a session, and both kinds of media.
    private mutating func begin() -> [IngestMedia.Effect] {
        _ = video(Self.configuration())
        _ = audio(Self.soundConfiguration)
        return media.open()
    }

    private static func packets(_ effects: [IngestMedia.Effect]) -> [[UInt8]] {
        effects.flatMap { if case .picture(let picture) = $0 { picture.packets } else { [[UInt8]]() } }
    }

    private static func refusal(_ effects: [IngestMedia.Effect]) -> IngestEnd? {
        effects.lazy.compactMap { if case .refuse(let reason) = $0 { reason } else { nil } }.first
    }

    @Test mutating func `begins once both configurations are there`() throws {
        #expect(video(Self.configuration()).isEmpty)
        let begun = audio(Self.soundConfiguration)
        guard case .begin(let formats)? = begun.first else {
            Issue.record("nothing begins")
            return
        }
        #expect(formats.hasVideo && formats.hasAudio && formats.profile == 66)
        #expect(formats.resolution == VideoResolution(width: 640, height: 360))
        #expect(media.open() == [.soundFormat([0x11, 0x90])])
    }

    @Test mutating func `waits a second for what may still come`() {
        #expect(video(Self.configuration()).isEmpty)
        #expect(media.deadline == now + .seconds(1))
        #expect(media.advance(to: now + .milliseconds(999)).isEmpty)
        #expect(media.advance(to: now + .seconds(1)).count == 1)
        // From then on it measures.
        #expect(media.deadline == now + .seconds(3))
    }

    @Test mutating func `waits for nothing that the encoder does not announce`() {
        #expect(media.receive(metadata: [.init("videocodecid", .number(7))], at: now).isEmpty)
        #expect(video(Self.configuration()).count == 1)
    }

    @Test mutating func `keeps what comes before there is a session`() {
        _ = video(Self.configuration())
        _ = audio(Self.soundConfiguration)
        #expect(video(Self.picture(key: true)).isEmpty && audio(hexBytes("af 01 2110")).isEmpty)
        let kept = media.open()
        #expect(kept.count == 3 && Self.packets(kept).count == 2)
        #expect(Self.packets(video(Self.picture(key: false), at: 33)).count == 1)
    }

    @Test mutating func `keeps no more than its limit, and goes on with a key frame`() {
        _ = video(Self.configuration())
        _ = audio(Self.soundConfiguration)
        for index in 0..<200 { _ = video(Self.picture(key: index == 0, size: 60_000), at: UInt32(index)) }
        #expect(media.open() == [.soundFormat([0x11, 0x90])])
        #expect(Self.packets(video(Self.picture(key: false), at: 300)).isEmpty)
        #expect(!Self.packets(video(Self.picture(key: true), at: 310)).isEmpty)
    }

    @Test mutating func `puts parameter sets before each key frame`() throws {
        _ = begin()
        let packets = Self.packets(video(Self.picture(key: true), at: 100))
        try #require(packets.count == 2)
        let (first, second) = (packets[0], packets[1])
        let head = try RTPHeader(parsing: first.span)
        let slice = try RTPHeader(parsing: second.span)
        #expect(!head.marker && slice.marker && head.timestamp == slice.timestamp)
        #expect(slice.sequenceNumber == head.sequenceNumber &+ 1)
        let payload = first[head.payloadRange]
        // A STAP-A of both sets.
        #expect(payload.first.map { $0 & 0x1F } == 24 && payload.count == 1 + 2 + 25 + 2 + 5)
        let described = try VideoPayload.describe(
            .h264, payload: Array(payload).span, marker: false, dependencyDescriptor: nil)
        #expect(described.startsKeyFrame && described.resolution?.width == 640)
        // One that the encoder repeats is not repeated again.
        let repeating: [UInt8] = hexBytes("17 01 000000 00000002 6742 00000002 68cb 00000003 658801")
        #expect(Self.packets(video(repeating, at: 200))[0].count == 12 + 1 + 4 + 4)
    }

    @Test mutating func `cuts large pictures into fragments that give the slice again`() throws {
        _ = begin()
        let packets = Self.packets(video(Self.picture(key: true, size: 5_000), at: 0)).dropFirst()
        var slice: [UInt8] = []
        for (index, packet) in packets.enumerated() {
            let header = try RTPHeader(parsing: packet.span)
            #expect(packet.count <= 1_200 && header.marker == (index == packets.count - 1))
            let payload = Array(packet[header.payloadRange])
            #expect(payload[0] == 0x60 | 28)
            #expect(payload[1] & 0xC0 == (index == 0 ? 0x80 : index == packets.count - 1 ? 0x40 : 0))
            if index == 0 { slice.append(payload[0] & 0x60 | payload[1] & 0x1F) }
            slice += payload[2...]
        }
        #expect(slice == Array(Self.picture(key: true, size: 5_000).dropFirst(9)))
    }

    @Test mutating func `begins with a key frame`() {
        _ = begin()
        #expect(Self.packets(video(Self.picture(key: false))).isEmpty)
        #expect(!Self.packets(video(Self.picture(key: true), at: 33)).isEmpty)
        // After one that makes no sense, too.
        #expect(Self.packets(video(hexBytes("27 01 000000 ffffffff 41"), at: 66)).isEmpty)
        #expect(Self.packets(video(Self.picture(key: false), at: 99)).isEmpty)
    }

    /// As x264 writes it: high, with three B-frames, and with none.
    private static let reordered = hexBytes(
        """
        17 00 000000 01 64001e ff e1 001a 6764001eacd940a02ff97011000003000100000300 3c0f162d96
        01 0006 68ebe3cb22c0
        """)
    private static let inOrder = hexBytes(
        """
        17 00 000000 01 64001e ff e1 001a 6764001eacb201405ff2e02200000300020000030079 1e2c5c90
        01 0006 68ebc3cb22c0
        """)

    private func conversion(_ effects: [IngestMedia.Effect]) -> IngestConversion?? {
        effects.lazy.compactMap { if case .begin(let formats) = $0 { formats.conversion } else { nil } }.first
    }

    private mutating func begun(_ configuration: [UInt8]) -> [IngestMedia.Effect] {
        media = IngestMedia(isDecoding: true, seed: 42)
        return audio(Self.soundConfiguration) + video(configuration)
    }

    @Test mutating func `has pictures converted that are shown in another order`() {
        let effects = begun(Self.reordered)
        #expect(conversion(effects) == .some(.reordering))
        #expect(effects.last == .notice(.converted(.reordering)))
        _ = media.open()
        // They come as they are, with their times.
        let pictures = [(true, 66), (false, 133), (false, 0), (false, 0)].enumerated().flatMap {
            index, frame in
            video(Self.picture(key: frame.0, delay: frame.1), at: UInt32(index * 33))
        }.compactMap { if case .picture(let picture) = $0 { picture } else { nil } }
        let times = pictures.map { ($0.timestamp &- pictures[0].timestamp) / 90 }
        #expect(times == [0, 100, 0, 33] && pictures.map(\.isKeyFrame) == [true, false, false, false])
        // A decoder begins there, whatever kind of picture it is.
        let parameters = video(Self.picture(key: true).map { $0 == 0x65 ? 0x41 : $0 }, at: 200)
        #expect(Self.packets(parameters).count == 2)
    }

    @Test mutating func `has them as they are that are shown as they come`() {
        #expect(conversion(begun(Self.inOrder)) == .some(nil))
        #expect(Self.refusal(video(Self.picture(key: true, delay: 66), at: 0)) == nil)
        #expect(Self.refusal(video(Self.picture(key: false, delay: 66), at: 33)) == nil)
        #expect(Self.refusal(video(Self.picture(key: false, delay: 133), at: 66)) == nil)
        // Who said so and does otherwise.
        #expect(
            Self.refusal(video(Self.picture(key: false, delay: 0), at: 99))?.detail.contains("B-frames")
                == true)
    }

    @Test mutating func `asks the first picture where the configuration does not tell`() {
        // Of high profile, without anything on usability.
        let silent = hexBytes(
            "17 00 000000 01 64001e ff e1 000c 6764001eacd940a02ff97011 01 0006 68ebe3cb22c0")
        for (delay, expected) in [(66, IngestConversion?.some(.reordering)), (0, nil)] {
            #expect(begun(silent).isEmpty)
            #expect(conversion(video(Self.picture(key: true, delay: delay))) == .some(expected))
        }
        // And decides without one after a while.
        #expect(begun(silent).isEmpty)
        #expect(conversion(media.advance(to: now + .seconds(1))) == .some(nil))
    }

    @Test mutating func `has other profiles converted where they can be decoded`() {
        let tenBits = hexBytes(
            "17 00 000000 01 6e001e ff e1 000c 676e001ea6cb201405ff2e02 01 0006 68ebc3cb22c0")
        #expect(conversion(begun(tenBits)) == .some(.profile(110)))
        // Ten bits of 4:2:2.
        let more = hexBytes("17 00 000000 01 7a001e ff e1 000c 677a001eb6cb201405ff1380 01 0006 68ebc3cb22c0")
        #expect(Self.refusal(begun(more))?.detail.contains("profile 122") == true)
    }

    @Test mutating func `has interlaced pictures converted, whatever their profile`() {
        // High, 1920x1080, in order.
        let interlaced = hexBytes(
            "17 00 000000 01 640028 ff e1 000f 67640028ace8078044fdc03c58ba80 01 0004 68ee3cb0")
        let effects = begun(interlaced)
        #expect(conversion(effects) == .some(.interlacing))
        guard case .notice(let notice)? = effects.last else {
            Issue.record("nothing is told")
            return
        }
        #expect(notice.code == "profile" && notice.text.contains("1080p instead of 1080i"))
        media = IngestMedia(isDecoding: false, seed: 42)
        #expect(Self.refusal(video(interlaced))?.detail.contains("progressive") == true)
    }

    @Test mutating func `refuses them where nothing is decoded`() {
        media = IngestMedia(isDecoding: false, seed: 42)
        #expect(Self.refusal(video(Self.reordered))?.detail.contains("B-frames to 0") == true)
    }

    @Test mutating func `refuses what browsers do not show or hear, by its name`() {
        let hevc: [UInt8] = [0x90] + Array("hvc1".utf8) + [1]
        #expect(Self.refusal(video(hevc))?.detail.contains("HEVC") == true)
        #expect(Self.refusal(audio([0x2F, 1]))?.detail.contains("MP3") == true)
        // AAC Main.
        #expect(Self.refusal(audio(hexBytes("af 00 0990")))?.detail.contains("AAC-LC") == true)
    }

    @Test mutating func `places sound and pictures on one time line`() throws {
        _ = begin()
        let start = now
        let effects = video(Self.picture(key: true), at: 1_000)
        now = now + .milliseconds(30)
        guard case .picture(let picture)? = effects.first,
            case .sound(let sound)? = audio(hexBytes("af 01 2110"), at: 1_020).first
        else {
            Issue.record("neither came")
            return
        }
        #expect(picture.captured == start && sound.captured == start + .milliseconds(20))
        #expect(sound.timestamp == 20 * 48 && sound.bytes == [0x21, 0x10])
    }

    @Test mutating func `leaves sound out where nothing is decoded, and says so once`() {
        media = IngestMedia(isDecoding: false, seed: 1)
        #expect(audio(Self.soundConfiguration).isEmpty && audio(hexBytes("af 01 2110")).isEmpty)
        let begun = video(Self.configuration())
        guard case .begin(let formats)? = begun.first else {
            Issue.record("pictures alone do not begin")
            return
        }
        #expect(formats.hasVideo && !formats.hasAudio && begun.dropFirst() == [.notice(.soundLeftOut)])
        #expect(audio(hexBytes("af 01 2110")).isEmpty)
        // What began later is left out, too, and is told.
        media = IngestMedia(isDecoding: false, seed: 1)
        _ = video(Self.configuration())
        #expect(audio(Self.soundConfiguration) == [.notice(.soundLeftOut)])
    }

    @Test mutating func `refuses sound alone where nothing is decoded`() {
        media = IngestMedia(isDecoding: false, seed: 1)
        _ = media.receive(metadata: [.init("audiocodecid", .number(10))], at: now)
        #expect(audio(Self.soundConfiguration).isEmpty && media.deadline == now + .seconds(1))
        #expect(Self.refusal(media.advance(to: now + .seconds(1)))?.detail.contains("transcoder") == true)
    }

    @Test mutating func `measures what comes`() throws {
        _ = begin()
        let start = now
        var reports: [IngestReport] = []
        for index in 0...60 {
            now = start + .milliseconds(index * 50)
            let effects = video(Self.picture(key: index % 30 == 0, size: 1_016), at: UInt32(index * 50))
            for case .report(let report) in effects { reports.append(report) }
            if index % 2 == 0 {
                _ = audio([0xAF, 1] + [UInt8](repeating: 1, count: 98), at: UInt32(index * 50))
            }
        }
        let report = try #require(reports.first)
        #expect(reports.count == 1 && report.notices.isEmpty && report.keyFrameInterval == 1_500)
        // 20 pictures a second, and one that was there at the beginning.
        #expect((20.0...20.6).contains(report.framesPerSecond))
        #expect(
            (160_000...170_000).contains(report.videoBitrate) && (7_500...8_500).contains(report.audioBitrate)
        )
        // Also where nothing comes any more.
        let due = try #require(media.deadline)
        guard case .report(let last)? = media.advance(to: due + .seconds(10)).first else {
            Issue.record("nothing is told")
            return
        }
        #expect(last.framesPerSecond < 3)
    }

    @Test mutating func `tells of key frames that are far apart, once`() {
        _ = begin()
        func notices(_ effects: [IngestMedia.Effect]) -> Int {
            effects.count { if case .notice = $0 { true } else { false } }
        }
        #expect(notices(video(Self.picture(key: true), at: 0)) == 0)
        #expect(notices(video(Self.picture(key: true), at: 4_000)) == 0)
        #expect(notices(video(Self.picture(key: true), at: 8_001)) == 1)
        #expect(notices(video(Self.picture(key: true), at: 13_000)) == 0)
    }

    @Test func `survives random messages`() {
        var random = SeededGenerator(seed: 99)
        for round in 0..<300 {
            var media = IngestMedia(isDecoding: round % 2 == 0, seed: UInt64(round))
            var now = MonotonicTime.zero
            for step in 0..<40 {
                now = now + .milliseconds(Int.random(in: 0..<500, using: &random))
                var bytes = (0..<Int.random(in: 0..<60, using: &random)).map { _ in
                    UInt8.random(in: 0...255, using: &random)
                }
                if step % 7 == 0 { bytes = Self.configuration() }
                if step % 5 == 0 { bytes = Self.picture(key: step % 10 == 0) + bytes }
                let timestamp = UInt32.random(in: 0...UInt32.max, using: &random)
                let effects =
                    step % 3 == 0
                    ? media.receive(audio: bytes.span, timestamp: timestamp, at: now)
                    : media.receive(video: bytes.span, timestamp: timestamp, at: now)
                for effect in effects {
                    if case .picture(let picture) = effect { #expect(picture.captured <= now + .seconds(2)) }
                }
                if step == 20 { _ = media.open() }
            }
        }
    }
}

@Suite struct MediaTimelineTests {
    private var timeline = MediaTimeline()
    private let start = MonotonicTime(nanoseconds: 1_000_000_000)

    @Test mutating func `counts from the first time stamp`() {
        #expect(timeline.place(70_000, at: start).media == 0)
        #expect(timeline.place(70_033, at: start + .milliseconds(33)).media == 33)
        // The other kind of media may be a little behind.
        #expect(timeline.place(69_990, at: start + .milliseconds(34)).media == -10)
    }

    @Test mutating func `goes on over the end of 32 bits`() {
        _ = timeline.place(.max - 9, at: start)
        #expect(timeline.place(10, at: start + .milliseconds(20)).media == 20)
    }

    @Test mutating func `takes what comes soonest for what was not delayed`() {
        #expect(timeline.place(0, at: start).captured == start)
        // 50 ms late, and then 20 ms less late than the first.
        #expect(timeline.place(100, at: start + .milliseconds(150)).captured == start + .milliseconds(100))
        let early = timeline.place(200, at: start + .milliseconds(180))
        #expect(early.captured == start + .milliseconds(180))
        #expect(timeline.place(300, at: start + .milliseconds(300)).captured == start + .milliseconds(280))
    }

    @Test mutating func `follows a clock that is slower than ours`() {
        _ = timeline.place(0, at: start)
        // A millisecond more behind with each second.
        for second in 1...30 {
            _ = timeline.place(UInt32(second * 999), at: start + .seconds(second))
        }
        let place = timeline.place(31 * 999, at: start + .seconds(31))
        #expect(start + .seconds(31) - place.captured < .milliseconds(25))
    }

    @Test mutating func `does not leap with an encoder that begins anew`() {
        _ = timeline.place(5_000_000, at: start)
        #expect(timeline.place(0, at: start + .milliseconds(40)).media == 40)
        #expect(timeline.place(33, at: start + .milliseconds(73)).media == 73)
        #expect(timeline.place(.max / 2, at: start + .milliseconds(100)).media == 100)
    }
}
