import Base
import Codecs
import TestSupport
import Testing
import Wire

@testable import Transcoder

/// A publisher before a packager, 30 pictures a second from the start on.
final class PassRig {
    static let start = MonotonicTime(nanoseconds: 50_000_000_000)
    private static let input = InputID(number: 1)

    let packager: Packager
    private(set) var reports: [PackagingReport] = []
    /// By so many milliseconds the publisher's clock is ahead.
    var ahead: Int64 = 0
    /// Times at which a key frame was asked for, in milliseconds.
    private(set) var wishes: [Int] = []
    private var sequence: Int64 = 0
    private var milliseconds: Int64 = 0

    init(
        _ rendition: PackagedRendition = .source, timing: PackagingTiming = .usual,
        origin: MonotonicTime? = nil,
        makePictureDecoder: @escaping (VideoCodec) -> (any PictureDecoder)? = { try? VideoDecoder($0) }
    ) {
        packager = Packager(
            at: Self.start,
            codecs: Packager.Codecs(
                makePictureDecoder: { codec, _ in makePictureDecoder(codec) }, makeSoundDecoder: { _ in nil }),
            request: PackagingRequest(rendition: rendition, timing: timing, origin: origin))
        packager.open(Self.input)
    }

    var beginnings: [PackagingReport.Beginning] {
        reports.compactMap { if case .began(let beginning) = $0 { beginning } else { nil } }
    }
    var parts: [PackagingReport.Part] {
        reports.compactMap { if case .part(let part) = $0 { part } else { nil } }
    }
    /// How long segments are, the one under way left out.
    var segments: [Int] {
        var lengths: [Int] = []
        for part in parts {
            if part.startsSegment { lengths.append(0) }
            if !lengths.isEmpty { lengths[lengths.count - 1] += Int(part.milliseconds) }
        }
        return lengths.dropLast()
    }

    /// Lets time go on, in steps of 5 ms.
    func run(until end: Int64) {
        while milliseconds < end {
            milliseconds += 5
            let now = Self.start + .milliseconds(milliseconds)
            reports += packager.advance(to: now)
            if packager.takeKeyFrameWish(at: now) != nil { wishes.append(Int(milliseconds)) }
        }
    }

    /// Sends a frame that was captured a moment ago.
    /// - Parameter index: counts pictures of 30 a second.
    func send(
        _ frame: [UInt8], _ index: Int, orientation: UInt8? = nil, codec: VideoCodec = .h264,
        epoch: UInt32 = 0, isCached: Bool = false
    ) throws {
        let captured = Self.start + .milliseconds(Int64(index) * 1_000 / 30 + ahead)
        let units =
            switch codec {
            case .h264: Self.units(frame)
            case .hevc: Self.hevcUnits(frame)
            case .vp8, .vp9, .av1: [frame]
            }
        // Random access points of HEVC; types 16 to 23.
        let isHEVCKeyFrame = codec == .hevc && units.contains { 16...23 ~= ($0.first ?? 0) >> 1 & 0x3F }
        for (place, unit) in units.enumerated() {
            let marker = place == units.count - 1
            let startsKeyFrame =
                try codec == .hevc
                ? isHEVCKeyFrame && place == 0
                : VideoPayload.describe(codec, payload: unit.span, marker: marker).startsKeyFrame
            let now = Self.start + .milliseconds(milliseconds)
            packager.receive(
                InputPacket(
                    sequenceNumber: sequence, timestamp: UInt32(index) * 3_000, marker: marker,
                    codec: InputCodec(codec), isEntryPoint: startsKeyFrame, epoch: epoch, arrival: now,
                    captured: isCached ? nil : captured, orientation: orientation, payload: unit),
                of: Self.input, at: now)
            sequence += 1
        }
    }

    /// Sends frames, each 20 ms after its capture.
    func play(_ frames: [[UInt8]], from first: Int = 0, orientation: UInt8? = nil) throws {
        for (index, frame) in frames.enumerated() {
            run(until: Int64(first + index) * 1_000 / 30 + 20)
            try send(frame, first + index, orientation: orientation)
        }
    }

    func close() { packager.close(Self.input, at: Self.start + .milliseconds(milliseconds)) }

    /// The same of HEVC, without delimiters and messages, as those who publish it come here.
    static func hevcUnits(_ frame: [UInt8]) -> [[UInt8]] {
        var units: [[UInt8]] = []
        var zeros = 0
        for byte in frame {
            if byte == 1, zeros >= 2 {
                if let last = units.popLast() { units.append(Array(last.dropLast(zeros))) }
                units.append([])
            } else if !units.isEmpty {
                units[units.count - 1].append(byte)
            }
            zeros = byte == 0 ? zeros + 1 : 0
        }
        return units.filter { ($0.first ?? 0xFF) >> 1 & 0x3F <= 34 }
    }

    /// A frame's units, each as a payload.
    static func units(_ frame: [UInt8]) -> [[UInt8]] {
        var units: [[UInt8]] = []
        var place = AnnexBPicture(parsing: frame.span).units[...]
        while place.count > 4 {
            let length = place.prefix(4).reduce(0) { $0 << 8 | Int($1) }
            units.append(Array(place.dropFirst(4).prefix(length)))
            place = place.dropFirst(4 + length)
        }
        return units
    }
}

extension [UInt8] {
    /// Whether it has these bytes in one piece.
    fileprivate func contains(_ needle: [UInt8]) -> Bool {
        guard let first = needle.first, needle.count <= count else { return needle.isEmpty }
        return indices.dropLast(needle.count - 1).contains {
            self[$0] == first && self[$0..<($0 + needle.count)].elementsEqual(needle)
        }
    }
}

@Suite struct `H.264 of a publisher` {
    private static func frames(_ count: Int, group: Int = 45, width: Int = 320) throws -> [[UInt8]] {
        try SampleVideo.frames(.h264, width: width, height: width * 9 / 16, count: count, group: group)
    }

    @Test func `is passed on as it is, and never decoded`() throws {
        let rig = PassRig { _ in
            Issue.record("something is decoded")
            return nil
        }
        let frames = try Self.frames(300, group: 40)
        try rig.play(frames)
        #expect(rig.beginnings.count == 1)
        let beginning = try #require(rig.beginnings.first)
        #expect(beginning.framesPerSecond == nil)
        #expect(beginning.resolution == VideoResolution(width: 320, height: 180))
        #expect(beginning.codecs.hasPrefix("avc1.") && beginning.codecs.hasSuffix(",mp4a.40.2"))
        // Key frames come often enough, and nobody has to ask but in the first segment.
        #expect(rig.segments.count >= 6 && rig.segments.allSatisfy { (1_333...1_334).contains($0) })
        #expect(rig.parts.allSatisfy { $0.milliseconds == 500 || $0.endsSegment })
        #expect(rig.wishes.allSatisfy { (900..<1_400).contains($0) })
        let made = rig.parts.flatMap(\.bytes)
        for frame in frames.prefix(240) {
            let picture = try #require(PassRig.units(frame).last)
            #expect(made.contains(picture))
        }
        #expect(!rig.packager.hasFailed)
    }

    @Test func `begins in the middle of a group that was kept for whoever comes`() throws {
        let rig = PassRig()
        let frames = try Self.frames(180, group: 60)
        rig.run(until: 1_400)
        // What a cache has comes at once, and tells nothing of when it was captured.
        for index in 0..<42 { try rig.send(frames[index], index, isCached: true) }
        try rig.play(Array(frames[42...]), from: 42)
        #expect(rig.beginnings.map(\.framesPerSecond) == [nil])
        // It has its own length, so that the next key frame is in time to end its segment.
        #expect(rig.segments.first.map { (1_960...2_000).contains($0) } == true)
    }

    @Test func `may stand still for a moment, in which parts have sound alone`() throws {
        let rig = PassRig(timing: try #require(PackagingTiming(partMilliseconds: 200)))
        let frames = try Self.frames(150, group: 40)
        // Of the pictures in the middle 27 never were.
        try rig.play(Array(frames.prefix(45)))
        try rig.play(Array(frames.suffix(78)), from: 72)
        #expect(rig.beginnings.map(\.framesPerSecond) == [nil])
        #expect(rig.parts.allSatisfy { $0.milliseconds == 200 || $0.endsSegment })
        #expect(rig.parts.allSatisfy { $0.bytes.dropFirst(4).prefix(4).elementsEqual("moof".utf8) })
        #expect(rig.segments.allSatisfy { $0 < 2_500 })
        let length = rig.parts.reduce(0) { $0 + Int($1.milliseconds) }
        #expect((4_400...5_000).contains(length))
    }

    @Test func `is asked for a key frame while one segment is long enough`() throws {
        let rig = PassRig()
        let group = try Self.frames(150, group: 300)
        var (index, place) = (0, 0)
        while index < 240 {
            try rig.play([group[place]], from: index)
            (index, place) = (index + 1, place + 1)
            // Its publisher's answer takes 100 ms.
            if let wish = rig.wishes.last, index * 1_000 / 30 >= wish + 100, place > 10 { place = 0 }
        }
        #expect(rig.beginnings.map(\.framesPerSecond) == [nil])
        #expect(rig.segments.count >= 3 && rig.segments.allSatisfy { (1_000...1_700).contains($0) })
    }

    /// Browsers answer within some milliseconds, and are not asked twice within two seconds.
    @Test func `goes on where its first answer comes at once, and the next two seconds later`() throws {
        let rig = PassRig()
        try rig.play([28, 59, 60, 60, 60].flatMap { try Self.frames($0, group: 1_000) })
        #expect(rig.beginnings.count == 1, "it is passed on all the time")
        #expect(rig.segments.prefix(3) == [933, 1_967, 2_000])
    }

    @Test func `is encoded anew where no key frame comes, without a moment of darkness`() throws {
        let rig = PassRig()
        try rig.play(try Self.frames(240, group: 300))
        #expect(rig.beginnings.map(\.framesPerSecond) == [nil, 30])
        #expect(
            rig.beginnings.map(\.resolution)
                == Array(repeating: VideoResolution(width: 320, height: 180), count: 2))
        #expect(rig.segments.allSatisfy { $0 < 2_500 })
        // Nobody asks any more.
        #expect(rig.wishes.allSatisfy { $0 < 2_800 }, "\(rig.wishes)")
        // What is missing is the time in which the decoder catches up.
        #expect(rig.parts.reduce(0) { $0 + Int($1.milliseconds) } >= 6_900)
    }

    /// The group that was kept began when somebody came to watch, longer ago than a segment may last.
    @Test(arguments: [PackagedRendition.source, .original])
    func `begins with the key frame that it is asked for, where the last one was too long ago`(
        _ rendition: PackagedRendition
    ) throws {
        let rig = PassRig(rendition)
        let frames = try Self.frames(150, group: 1_000)
        rig.run(until: 3_000)
        for index in 0..<90 { try rig.send(frames[index], index, isCached: true) }
        // Its publisher's answer takes 200 ms.
        try rig.play(Array(frames[90..<96]), from: 90)
        #expect(rig.wishes.count == 1 && rig.wishes.allSatisfy { (3_000...3_100).contains($0) })
        try rig.play(Array(try Self.frames(60, group: 1_000)), from: 96)
        // The source's first second and a half were dark.
        #expect(rig.beginnings.map(\.framesPerSecond) == (rendition == .source ? [30, nil] : [nil]))
    }

    @Test func `is encoded a second later where key frames are too far apart for segments`() throws {
        let rig = PassRig()
        let frames = try Self.frames(240, group: 300, width: 800)
        rig.run(until: 3_000)
        for index in 0..<90 { try rig.send(frames[index], index) }
        try rig.play(Array(frames[90...]), from: 90)
        // Darkness was shown before anything came.
        #expect(rig.beginnings.map(\.framesPerSecond) == [30, 30])
        #expect(rig.beginnings.map(\.resolution.width) == [640, 800])
        // It waits no longer than that for another one.
        #expect(rig.wishes.allSatisfy { $0 < 4_050 }, "\(rig.wishes)")
    }

    @Test func `is turned by who encodes it anew`() throws {
        let rig = PassRig()
        try rig.play(try Self.frames(60), orientation: 1)
        #expect(rig.beginnings.map(\.framesPerSecond) == [30])
        #expect(rig.beginnings.map(\.resolution) == [VideoResolution(width: 180, height: 320)])
    }

    @Test func `begins another time line where its size changes`() throws {
        let rig = PassRig()
        try rig.play(try Self.frames(60))
        try rig.play(try Self.frames(60, width: 640), from: 60)
        #expect(rig.beginnings.map(\.framesPerSecond) == [nil, nil])
        #expect(rig.beginnings.map(\.resolution.width) == [320, 640])
    }

    @Test func `is encoded anew where another codec takes its place`() throws {
        let rig = PassRig()
        try rig.play(try Self.frames(60))
        let other = try SampleVideo.frames(.vp8, count: 60)
        for (index, frame) in other.enumerated() {
            rig.run(until: Int64(60 + index) * 1_000 / 30 + 20)
            // VP8's payload descriptor: the start of partition 0.
            try rig.send([0x10] + frame, 60 + index, codec: .vp8, epoch: 1)
        }
        #expect(rig.beginnings.first?.framesPerSecond == nil)
        #expect(rig.beginnings.last?.framesPerSecond == 30)
        #expect(rig.beginnings.last?.resolution.width == 640)
    }

    @Test func `leaves its last picture where nothing more comes`() throws {
        for isClosed in [false, true] {
            let rig = PassRig()
            try rig.play(try Self.frames(75))
            if isClosed { rig.close() }
            rig.run(until: 6_000)
            #expect(rig.beginnings.map(\.framesPerSecond) == [nil, 30])
            #expect(rig.beginnings.map(\.resolution.width) == [320, 320])
            #expect(rig.parts.reduce(0) { $0 + Int($1.milliseconds) } >= 4_400)
        }
    }

    @Test func `is encoded anew where it takes more than viewers have`() throws {
        let rig = PassRig()
        // Bytes behind the picture, which decoders leave alone.
        let filler = [0, 0, 0, 1, 0x0C] + [UInt8](repeating: 0xFF, count: 60_000) + [0x80]
        try rig.play(try Self.frames(120).map { $0 + filler })
        #expect(rig.beginnings.last?.framesPerSecond == 30)
        #expect(rig.parts.count { $0.bytes.count > 200_000 } <= 4)
    }

    @Test func `is not passed on by a clock that is far ahead`() throws {
        let rig = PassRig()
        rig.ahead = 60_000
        try rig.play(try Self.frames(90))
        #expect(rig.beginnings.map(\.framesPerSecond) == [30])
        #expect(rig.parts.reduce(0) { $0 + Int($1.milliseconds) } >= 1_000)
    }

    @Test func `goes on after its packager was held up`() throws {
        let rig = PassRig()
        let frames = try Self.frames(180)
        try rig.play(Array(frames.prefix(90)))
        let now = PassRig.start + .seconds(5)
        let reports = rig.packager.advance(to: now)
        #expect(reports.allSatisfy { if case .began = $0 { false } else { true } })
        #expect(rig.packager.takeKeyFrameWish(at: now) != nil)
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `makes nothing that playlists do not allow, whatever comes`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let rig = PassRig()
        let groups = try [Self.frames(60, group: 30), Self.frames(60, group: 30, width: 480)]
        var index = 0
        for _ in 0..<12 {
            let frames = groups[Int.random(in: 0..<2, using: &random)]
            for frame in frames.prefix(Int.random(in: 1...60, using: &random)) {
                // Lost, late, early, turned, or cut short.
                rig.run(until: Int64(index) * 1_000 / 30 + Int64.random(in: 10...60, using: &random))
                let place = max(
                    index + [0, 0, 0, 0, 0, 0, 0, 0, 2, -3][Int.random(in: 0..<10, using: &random)], 0)
                let turned = Int.random(in: 0..<200, using: &random) == 0 ? UInt8(1) : nil
                if Int.random(in: 0..<40, using: &random) > 0 {
                    try rig.send(frame, place, orientation: turned)
                }
                index += 1
            }
            if Bool.random(using: &random) { index += Int.random(in: 0...90, using: &random) }
        }
        rig.run(until: Int64(index) * 1_000 / 30 + 2_000)
        #expect(!rig.packager.hasFailed)
        #expect(rig.parts.allSatisfy { (1...500).contains($0.milliseconds) })
        #expect(rig.segments.allSatisfy { $0 < 2_500 })
        #expect(!rig.beginnings.isEmpty)
    }
}
