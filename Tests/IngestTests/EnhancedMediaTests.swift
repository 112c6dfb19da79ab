import Base
import Ingest
import TestSupport
import Testing
import Wire

/// Pictures of Enhanced RTMP.
@Suite struct EnhancedMediaTests {
    private var media = IngestMedia(isDecoding: true, seed: 42)
    private var now = MonotonicTime(nanoseconds: 5_000_000_000)

    private static let vp9 = hexBytes("00 0a 82 020202 0000")
    private static let av1 = hexBytes("81 00 0c 00 0a0a00000002aff79b5f2008")
    private static let hevc = hexBytes(
        """
        01 01 60000000 900000000000 3c f000 fc fd f8 f8 0000 0f 03
        20 0001 0018 40010c01ffff01600000030090000003000003003c959009
        21 0001 0029 42010101600000030090000003000003003ca0208316595912930bc05a020000030002000003003c10
        22 0001 0006 4401c073c089
        """)
    /// The heads of a key frame of 64x48, and of another picture.
    private static let vp9Key = hexBytes("824983420003f002f60638241c184200")
    private static let vp9Other = hexBytes("860040929c284940")

    private static func tag(
        _ name: String, _ kind: UInt8, _ body: [UInt8], isKey: Bool = true, delay: UInt8? = nil
    ) -> [UInt8] {
        [0x80 | (isKey ? 1 : 2) << 4 | kind] + Array(name.utf8) + (delay.map { [0, 0, $0] } ?? []) + body
    }

    private mutating func video(_ bytes: [UInt8], at timestamp: UInt32 = 0) -> [IngestMedia.Effect] {
        media.receive(video: bytes.span, timestamp: timestamp, at: now)
    }

    private mutating func begin(_ name: String, _ record: [UInt8]) -> [IngestMedia.Effect] {
        media.receive(audio: hexBytes("af 00 1190").span, timestamp: 0, at: now)
            + video(Self.tag(name, 0, record))
    }

    private static func formats(_ effects: [IngestMedia.Effect]) -> IngestFormats? {
        effects.lazy.compactMap { if case .begin(let formats) = $0 { formats } else { nil } }.first
    }

    private static func pictures(_ effects: [IngestMedia.Effect]) -> [IngestPicture] {
        effects.compactMap { if case .picture(let picture) = $0 { picture } else { nil } }
    }

    private static func payloads(_ picture: IngestPicture) throws -> [[UInt8]] {
        try picture.packets.map { Array($0[try RTPHeader(parsing: $0.span).payloadRange]) }
    }

    private static func refusal(_ effects: [IngestMedia.Effect]) -> String? {
        effects.lazy.compactMap { if case .refuse(let reason) = $0 { reason.detail } else { nil } }.first
    }

    // MARK: VP9

    @Test mutating func `has VP9 go on as it is`() throws {
        // Only a picture tells its size.
        #expect(Self.formats(begin("vp09", Self.vp9)) == nil)
        let rest = [UInt8](repeating: 0x55, count: 3_000)
        let formats = try #require(Self.formats(video(Self.tag("vp09", 1, Self.vp9Key + rest), at: 0)))
        #expect(formats.codec == .vp9 && formats.conversion == nil && formats.profile == 0)
        #expect(formats.resolution == VideoResolution(width: 64, height: 48))
        let first = try #require(Self.pictures(media.open()).first)
        let second = try #require(
            Self.pictures(video(Self.tag("vp09", 3, Self.vp9Other, isKey: false), at: 33)).first)
        #expect(first.isKeyFrame && first.packets.count == 3 && !second.isKeyFrame)
        var frame: [UInt8] = []
        for (index, payload) in try Self.payloads(first).enumerated() {
            let descriptor = try VP9Descriptor(parsing: payload.span)
            #expect(descriptor.startsFrame == (index == 0) && descriptor.endsFrame == (index == 2))
            #expect(!descriptor.isInterPredicted && !descriptor.hasLayers && descriptor.pictureID == 0)
            let info = try VideoPayload.describe(.vp9, payload: payload.span, marker: index == 2)
            #expect(info.startsKeyFrame == (index == 0) && info.isKeyFrame)
            if index == 0 { #expect(info.resolution == VideoResolution(width: 64, height: 48)) }
            frame += payload[descriptor.length...]
        }
        #expect(frame == Self.vp9Key + rest)
        let payload = try #require(Self.payloads(second).first)
        let other = try VP9Descriptor(parsing: payload.span)
        #expect(other.pictureID == 1 && other.isInterPredicted && other.startsFrame && other.endsFrame)
        #expect((second.timestamp &- first.timestamp) / 90 == 33)
    }

    @Test mutating func `begins with a key frame, whatever its container says`() {
        _ = begin("vp09", Self.vp9)
        _ = media.advance(to: now + .seconds(1))
        _ = media.open()
        #expect(Self.pictures(video(Self.tag("vp09", 1, Self.vp9Other, isKey: true))).isEmpty)
        #expect(Self.pictures(video(Self.tag("vp09", 1, Self.vp9Key, isKey: false))).count == 1)
        // What makes no sense is left out, and so is what refers to it.
        #expect(Self.pictures(video(Self.tag("vp09", 1, [0x12]))).isEmpty)
        #expect(Self.pictures(video(Self.tag("vp09", 1, Self.vp9Other, isKey: false))).isEmpty)
        #expect(Self.pictures(video(Self.tag("vp09", 1, Self.vp9Key))).count == 1)
    }

    @Test mutating func `has VP9 of more bits or colours converted, whoever says it`() throws {
        let deep = try #require(Self.formats(begin("vp09", hexBytes("020aa20202020000"))))
        #expect(deep.conversion == .colours(.vp9))
        media = IngestMedia(isDecoding: true, seed: 42)
        let colourful = try #require(Self.formats(begin("vp09", hexBytes("010a860202020000"))))
        #expect(colourful.conversion == .colours(.vp9))
        // A picture of profile 1 behind a configuration of profile 0.
        media = IngestMedia(isDecoding: true, seed: 42)
        _ = begin("vp09", Self.vp9)
        let found = video(Self.tag("vp09", 1, hexBytes("a249834200007e005ec0c70483830840")))
        #expect(Self.formats(found)?.conversion == .colours(.vp9))
        media = IngestMedia(isDecoding: true, seed: 42)
        let never = Self.refusal(begin("vp09", hexBytes("020ac20202020000")))
        #expect(never?.contains("8 bits and 4:2:0") == true)
    }

    // MARK: AV1

    @Test mutating func `has AV1 go on as it is, with a sequence header in each key frame`() throws {
        let formats = try #require(Self.formats(begin("av01", Self.av1)))
        #expect(formats.codec == .av1 && formats.conversion == nil)
        #expect(formats.resolution == VideoResolution(width: 64, height: 48))
        _ = media.open()
        let body = [0x10] + [UInt8](repeating: 0xAB, count: 400)
        let first = try #require(
            Self.pictures(video(Self.tag("av01", 1, hexBytes("1200 32 9103") + body))).first)
        let payloads = try Self.payloads(first)
        let payload = try #require(payloads.first)
        #expect(first.isKeyFrame && payloads.count == 1)
        #expect(payload.starts(with: hexBytes("08 0b 08 00000002aff79b5f2008 9203 30")))
        let info = try VideoPayload.describe(.av1, payload: payload.span, marker: true)
        #expect(info.startsKeyFrame && info.resolution == VideoResolution(width: 64, height: 48))
        // Its own is not repeated, and elsewhere there is none.
        let own = Self.pictures(video(Self.tag("av01", 1, hexBytes("0a02aabb 320210aa")), at: 33))
        #expect(try Self.payloads(own[0]) == [hexBytes("08 03 08aabb 03 3010aa")])
        let other = Self.pictures(
            video(Self.tag("av01", 1, hexBytes("0a02aabb 320230aa"), isKey: false), at: 66))
        #expect(try Self.payloads(other[0]) == [hexBytes("00 03 3030aa")])
        #expect(own[0].isKeyFrame && !other[0].isKeyFrame)
    }

    /// A packet that begins with a unit is taken for the beginning of a picture by who gets no dependency descriptor.
    @Test(arguments: 1_110...1_150) mutating func `ends no packet of AV1 between two units`(size: Int) throws
    {
        _ = begin("av01", Self.av1)
        _ = media.open()
        var picture = hexBytes("32 0130")
        for length in [size, 2, 5, size, 1_136, 3] {
            let count = length - 1
            picture += [0x22, UInt8(count & 0x7F | 0x80), UInt8(count >> 7)]
            picture += (0..<count).map { UInt8(truncatingIfNeeded: $0) }
        }
        _ = video(Self.tag("av01", 1, hexBytes("320110")))
        let effects = video(Self.tag("av01", 1, picture, isKey: false), at: 33)
        let payloads = try Self.payloads(try #require(Self.pictures(effects).first))
        #expect(payloads.count > 2)
        for (index, payload) in payloads.enumerated() {
            #expect(payload.count <= 1_136)
            #expect((payload[0] & 0x80 != 0) == (index > 0), "packet \(index)")
            #expect((payload[0] & 0x40 != 0) == (index < payloads.count - 1), "packet \(index)")
        }
    }

    @Test mutating func `has AV1 of ten bits converted`() throws {
        let record = hexBytes("81 00 4c 00 0a0a00000002aff79b5f2808")
        #expect(Self.formats(begin("av01", record))?.conversion == .colours(.av1))
        media = IngestMedia(isDecoding: true, seed: 42)
        #expect(Self.refusal(begin("av01", hexBytes("81 40 6c 00")))?.contains("AV1") == true)
    }

    // MARK: HEVC

    @Test mutating func `has HEVC converted, with its parameters and its composition times`() throws {
        let begun = begin("hvc1", Self.hevc)
        let formats = try #require(Self.formats(begun))
        #expect(formats.codec == .hevc && formats.conversion == .codec(.hevc))
        #expect(formats.resolution == VideoResolution(width: 64, height: 48))
        guard case .notice(let notice)? = begun.last else {
            Issue.record("nobody is told")
            return
        }
        #expect(notice.code == "codec" && notice.text.contains("set the encoder to AV1"))
        _ = media.open()
        let slice = [0x26, 0x01] + [UInt8](repeating: 0xAC, count: 2_998)
        let pictures = Self.pictures(
            video(Self.tag("hvc1", 1, hexBytes("00000bb8") + slice, delay: 67))
                + video(Self.tag("hvc1", 3, hexBytes("00000003 020133"), isKey: false), at: 33))
        #expect(pictures.map(\.isKeyFrame) == [true, false])
        #expect((pictures[1].timestamp &- pictures[0].timestamp) == UInt32(bitPattern: -34 * 90))
        let payloads = try Self.payloads(pictures[0])
        // Three sets, and fragments that give the slice again.
        #expect(payloads.prefix(3).map { $0[0] >> 1 & 0x3F } == [32, 33, 34] && payloads.count == 6)
        #expect(payloads[3...].map { $0[2] } == [0x93, 0x13, 0x53])
        #expect(payloads[3...].flatMap { $0[3...] } == slice.dropFirst(2)[...].map(\.self))
    }

    /// Whoever begins there needs them all; those that the picture brings come behind, and count.
    @Test mutating func `gives HEVC its parameters where it brings only some of them`() throws {
        _ = begin("hvc1", Self.hevc)
        _ = media.open()
        let unit = hexBytes("00000003 2601ac")
        let other = Self.pictures(video(Self.tag("hvc1", 3, hexBytes("00000003 4401c1") + unit)))
        let types = try other.flatMap(Self.payloads).map { $0[0] >> 1 & 0x3F }
        #expect(types == [32, 33, 34, 34, 19])
        let all = hexBytes("00000003 4001c0 00000003 4201c0 00000003 4401c0")
        let own = Self.pictures(video(Self.tag("hvc1", 3, all + unit), at: 33))
        #expect(try own.flatMap(Self.payloads).map { $0[0] >> 1 & 0x3F } == [32, 33, 34, 19])
    }

    @Test mutating func `refuses HEVC where nothing is decoded`() {
        media = IngestMedia(isDecoding: false, seed: 42)
        let words = Self.refusal(video(Self.tag("hvc1", 0, Self.hevc)))
        #expect(words?.contains("transcoder") == true && words?.contains("AV1, VP9, or H.264") == true)
    }

    // MARK: What makes no sense

    @Test mutating func `refuses what makes no sense, and codecs that it does not know`() {
        for (name, codec) in [("vp09", "VP9"), ("av01", "AV1"), ("hvc1", "HEVC"), ("avc1", "H.264")] {
            #expect(Self.refusal(video(Self.tag(name, 0, [7])))?.contains("\(codec) configuration") == true)
        }
        #expect(Self.refusal(video(hexBytes("90 6176")))?.contains("Enhanced RTMP") == true)
        #expect(Self.refusal(video(hexBytes("91 68766331 00")))?.contains("Enhanced RTMP") == true)
        let unknown = Self.refusal(video(Self.tag("vvc1", 0, [1])))
        #expect(unknown?.contains("vvc1") == true && unknown?.contains("AV1, VP9 or HEVC") == true)
        // Commands, ends and colours are none of that.
        #expect(video(hexBytes("d3 01")).isEmpty && video(Self.tag("hvc1", 4, [2])).isEmpty)
        #expect(video(Self.tag("av01", 2, [])).isEmpty)
    }

    @Test mutating func `refuses another codec while the stream is live`() {
        #expect(Self.formats(begin("av01", Self.av1)) != nil)
        #expect(Self.refusal(video(Self.tag("av01", 0, Self.av1))) == nil)
        #expect(Self.refusal(video(Self.tag("vp09", 0, Self.vp9)))?.contains("changed") == true)
    }

    @Test func `survives random pictures`() {
        var random = SeededGenerator(seed: 77)
        for round in 0..<300 {
            var media = IngestMedia(isDecoding: round % 2 == 0, seed: UInt64(round))
            let (name, record) = [("vp09", Self.vp9), ("av01", Self.av1), ("hvc1", Self.hevc)][round % 3]
            _ = media.receive(video: Self.tag(name, 0, record).span, timestamp: 0, at: now)
            _ = media.advance(to: now + .seconds(1))
            _ = media.open()
            for step in 0..<40 {
                let noise = (0..<Int.random(in: 0..<90, using: &random)).map { _ in
                    UInt8.random(in: 0...255, using: &random)
                }
                let head = name == "vp09" ? Self.vp9Key : name == "av01" ? hexBytes("320210aa") : []
                let body = step % 3 == 0 ? head + noise : noise
                let tag = Self.tag(name, step % 5 == 4 ? 0 : 3, body)
                let effects = media.receive(video: tag.span, timestamp: UInt32(step * 33), at: now)
                for picture in Self.pictures(effects) {
                    #expect(picture.packets.allSatisfy { (try? RTPHeader(parsing: $0.span)) != nil })
                }
            }
        }
    }
}
