import Base
import Codecs
import TestSupport
import Testing
import Wire

@testable import Transcoder

@Suite struct `A packager` {
    private static let start = MonotonicTime(nanoseconds: 1_000_000_000)
    private let packager = Packager(
        at: start,
        codecs: Packager.Codecs(makePictureDecoder: { _, _ in nil }, makeSoundDecoder: { _ in nil }))

    /// What is reported until a time after the start, looked at every 20 ms.
    private func reports(until end: Duration, from begin: Duration = .zero) -> [PackagingReport] {
        var reports: [PackagingReport] = []
        var time = begin
        while time <= end {
            reports += packager.advance(to: Self.start + time)
            time += .milliseconds(20)
        }
        return reports
    }

    private static func parts(_ reports: [PackagingReport]) -> [PackagingReport.Part] {
        reports.compactMap { if case .part(let part) = $0 { part } else { nil } }
    }

    @Test func `waits a while for a picture, and shows something then`() throws {
        #expect(reports(until: .milliseconds(1_480)).isEmpty)
        let later = reports(until: .seconds(3), from: .milliseconds(1_500))
        guard case .began(let beginning) = try #require(later.first) else {
            Issue.record("it begins with \(later)")
            return
        }
        #expect(beginning.initialization[4..<8].elementsEqual("ftyp".utf8))
        #expect(beginning.codecs.hasPrefix("avc1.") && beginning.codecs.hasSuffix(",mp4a.40.2"))
        #expect(beginning.resolution == VideoResolution(width: 640, height: 360))
        #expect(beginning.framesPerSecond == 30)
        #expect(later.count == 2 + Self.parts(later).count)
        #expect(!packager.hasFailed)
    }

    @Test func `makes parts of the same length, and segments of four after the first`() {
        let parts = Self.parts(reports(until: .milliseconds(8_600)))
        #expect(parts.count == 14)
        #expect(parts.allSatisfy { $0.milliseconds == 500 })
        #expect(parts.allSatisfy { $0.bytes[4..<8].elementsEqual("moof".utf8) })
        #expect(parts.indices.filter { parts[$0].startsSegment } == [0, 2, 6, 10])
        #expect(parts.indices.filter { parts[$0].endsSegment } == [1, 5, 9, 13])
        for (part, next) in zip(parts, parts.dropFirst()) {
            #expect((next.captured - part.captured).wholeNanoseconds / 1_000_000 == 500)
        }
    }

    @Test(arguments: PackagingTiming.partLengths)
    func `makes parts as long as they are wanted`(length: Int) throws {
        let timing = try #require(PackagingTiming(partMilliseconds: length))
        let packager = Packager(
            at: Self.start,
            codecs: Packager.Codecs(makePictureDecoder: { _, _ in nil }, makeSoundDecoder: { _ in nil }),
            request: PackagingRequest(timing: timing))
        let reports = (0...375).flatMap { packager.advance(to: Self.start + .milliseconds(20 * Int64($0))) }
        let parts = Self.parts(reports)
        #expect(parts.count == 6_000 / length)
        #expect(parts.allSatisfy { Int($0.milliseconds) == length })
        let starts = parts.indices.filter { parts[$0].startsSegment }
        #expect(starts.prefix(2) == [0, timing.partsOfFirstSegment])
        #expect(zip(starts.dropFirst(), starts.dropFirst(2)).allSatisfy { ($1 - $0) * length == 2_000 })
    }

    @Test func `is asked for in a length that playlists can have`() throws {
        for rendition in PackagedRendition.allCases {
            for origin in [nil, Self.start] {
                let timing = try #require(PackagingTiming(partMilliseconds: 400))
                let request = PackagingRequest(rendition: rendition, timing: timing, origin: origin)
                let bytes = request.bytes
                #expect(PackagingRequest(bytes) == request)
                for count in bytes.indices { #expect(PackagingRequest(Array(bytes[..<count])) == nil) }
            }
        }
        #expect(PackagingRequest([0, 0, 0, 3] + Array("big".utf8) + [5]) == nil)
        #expect(PackagingTiming(partMilliseconds: 300) == nil)
        #expect(PackagingTiming.usual.partMilliseconds == 500)
    }

    /// Those of a stream have one clock, so that players can go from one to the other.
    @Test func `makes smaller pictures, or sound alone, by the times of the whole stream`() throws {
        for rendition in [PackagedRendition.low, .sound] {
            let packager = Packager(
                at: Self.start,
                codecs: Packager.Codecs(makePictureDecoder: { _, _ in nil }, makeSoundDecoder: { _ in nil }),
                request: PackagingRequest(rendition: rendition, origin: Self.start - .seconds(10)))
            let reports = (0...400).flatMap {
                packager.advance(to: Self.start + .milliseconds(20 * Int64($0)))
            }
            guard case .began(let beginning) = try #require(reports.first) else {
                Issue.record("it begins with \(reports)")
                return
            }
            #expect(beginning.codecs == (rendition == .low ? "avc1.64001E,mp4a.40.2" : "mp4a.40.2"))
            #expect(beginning.resolution.width == (rendition == .low ? 640 : 0))
            let parts = Self.parts(reports)
            #expect(parts.count >= (rendition == .low ? 12 : 15))
            #expect(parts.allSatisfy { $0.milliseconds == 500 })
            #expect(parts.indices.filter { parts[$0].startsSegment }.prefix(3) == [0, 2, 6])
            // Ten seconds, and what was waited for a picture; in 1/48000 s where there is sound alone.
            let times = Self.decodeTimes(of: try #require(parts.first))
            #expect(times.count == (rendition == .low ? 2 : 1))
            if rendition == .sound { #expect((480_000...483_000).contains(times.first ?? 0)) }
            let bytes = parts.reduce(0) { $0 + $1.bytes.count }
            #expect(bytes * 16 / parts.count < (rendition == .low ? 590_000 : 86_000))
            #expect(!packager.hasFailed)
        }
    }

    /// Of each track, in its own units (ISO/IEC 14496-12 §8.8.12, version 1).
    private static func decodeTimes(of part: PackagingReport.Part) -> [UInt64] {
        let bytes = part.bytes
        return bytes.indices.dropLast(16).filter { bytes[$0..<($0 + 4)].elementsEqual("tfdt".utf8) }.map {
            at in
            bytes[(at + 8)..<(at + 16)].reduce(0) { $0 << 8 | UInt64($1) }
        }
    }

    /// Players see a gap where one of the tracks begins later.
    @Test(arguments: [0, 7, 57, 400])
    func `begins with sound and pictures at the same time, whenever it is looked at`(late: Int64) throws {
        _ = reports(until: .milliseconds(1_480))
        let part = try #require(
            Self.parts(reports(until: .seconds(4), from: .milliseconds(1_500 + late))).first)
        #expect(Self.decodeTimes(of: part) == [0, 0])
    }

    @Test func `begins anew after it was held up for long`() {
        let before = reports(until: .seconds(3))
        #expect(before.count { if case .began = $0 { true } else { false } } == 1)
        let after = reports(until: .seconds(7), from: .seconds(5))
        #expect(after.count { if case .began = $0 { true } else { false } } == 1)
        #expect(Self.parts(after).first?.startsSegment == true)
    }
}

@Suite struct `A time line of HLS` {
    private static let start = MonotonicTime(nanoseconds: 1_000_000_000)

    private static func picture(_ width: Int, _ height: Int) throws -> Picture {
        try Picture(width: width, height: height)
    }

    @Test func `takes pictures of its proportions, larger ones where a segment ends`() throws {
        let timeline = try PackagedTimeline(
            try Self.picture(320, 180), from: Self.start, PackagingRequest())
        for index in 0..<30 {
            if index % 15 != 0 { #expect(timeline.takes(try Self.picture(640, 360))) }
            #expect(timeline.takes(try Self.picture(160, 90)))
            #expect(!timeline.takes(try Self.picture(180, 320)))
            let turns = try timeline.append(try Self.picture(320, 180), captured: Self.start, turns: 1)
            #expect(turns == 1)
        }
        #expect(!timeline.takes(try Self.picture(640, 360)))
        #expect(timeline.takes(try Self.picture(320, 180)))
    }

    @Test func `ends each part in time, whatever its pictures last`() throws {
        let timeline = try PackagedTimeline(
            try Self.picture(320, 180), from: Self.start, PackagingRequest())
        let turns = try [6, 6, 6, 0, 20].map {
            try timeline.append(try Self.picture(320, 180), captured: Self.start, turns: $0)
        }
        #expect(turns == [6, 6, 3, 1, 14])
        let parts = timeline.takeReports().compactMap { if case .part(let part) = $0 { part } else { nil } }
        #expect(parts.map(\.milliseconds) == [500, 500])
        #expect(parts.map(\.endsSegment) == [false, true])
    }
}

@Suite struct `Samples of a packaging` {
    @Test func `are reported where they are asked for, without a gap`() throws {
        let start = MonotonicTime(nanoseconds: 1_000_000_000)
        let packager = Packager(
            at: start,
            codecs: Packager.Codecs(makePictureDecoder: { _, _ in nil }, makeSoundDecoder: { _ in nil }))
        func samples(_ range: Range<Int>) -> [PackagingReport.Sample] {
            range.flatMap { packager.advance(to: start + .milliseconds(20 * Int64($0))) }.compactMap {
                if case .sample(let sample) = $0 { sample } else { nil }
            }
        }
        #expect(samples(0..<100).isEmpty)
        packager.reportsSamples = true
        let reported = samples(100..<250)
        #expect(reported.map(\.number) == Array(1...UInt64(reported.count)))
        let pictures = reported.filter { $0.kind != .sound }
        #expect((88...91).contains(pictures.count))
        // Each segment of two seconds begins with one.
        #expect((1...2).contains(pictures.count { $0.kind == .keyFrame }))
        #expect(zip(pictures, pictures.dropFirst()).allSatisfy { $0.time < $1.time })
        #expect((138...142).contains(reported.count { $0.kind == .sound }))
        packager.reportsSamples = false
        #expect(samples(250..<300).isEmpty)
    }

    /// Players would see a picture for a moment only, each time.
    @Test(arguments: [50, 80, 120])
    func `become fewer pictures where encoding each takes too long, and begin nothing anew`(cost: Int) {
        let start = MonotonicTime(nanoseconds: 1_000_000_000)
        let packager = Packager(
            at: start,
            codecs: Packager.Codecs(makePictureDecoder: { _, _ in nil }, makeSoundDecoder: { _ in nil }))
        packager.reportsSamples = true
        var (time, longest) = (0, 0)
        var reports: [PackagingReport] = []
        while time < 30_000 {
            let made = packager.advance(to: start + .milliseconds(Int64(time)))
            let pictures = made.count {
                if case .sample(let sample) = $0 { sample.kind != .sound } else { false }
            }
            longest = max(longest, pictures * cost)
            time += max(pictures * cost, 10)
            reports += made
        }
        #expect(reports.count { if case .began = $0 { true } else { false } } == 1)
        let parts = reports.compactMap { if case .part(let part) = $0 { part } else { nil } }
        // Nothing is shown at first, and the last part is not complete.
        #expect(parts.count >= (30_000 - 2_500) / 500, "\(parts.count)")
        #expect(parts.allSatisfy { $0.milliseconds == 500 })
        #expect(longest < 1_000, "\(longest) ms")
        let samples = reports.compactMap { if case .sample(let sample) = $0 { sample } else { nil } }
        let pictures = samples.filter { $0.kind != .sound }
        // Most of the time that there is is used.
        #expect(pictures.count * cost > 20_000, "\(pictures.count)")
        #expect(zip(pictures, pictures.dropFirst()).allSatisfy { $0.time < $1.time })
        #expect(samples.count { $0.kind == .sound } > 46 * 27)
        #expect(!packager.hasFailed)
    }
}

@Suite struct `Reports of a packaging` {
    private static let reports: [PackagingReport] = [
        .began(
            PackagingReport.Beginning(
                initialization: [1, 2], codecs: "avc1.64001F,mp4a.40.2",
                resolution: VideoResolution(width: 64, height: 36), framesPerSecond: 30)),
        .part(
            PackagingReport.Part(
                bytes: [1, 2, 3], milliseconds: 500, startsSegment: true, endsSegment: false,
                captured: MonotonicTime(nanoseconds: 5))),
        .format(
            PackagingReport.Format(
                resolution: VideoResolution(width: 64, height: 36), framesPerSecond: nil,
                pictureHeader: [1], soundConfiguration: [2])),
        .sample(
            PackagingReport.Sample(
                kind: .keyFrame, number: 7, time: MonotonicTime(nanoseconds: 5), bytes: [1, 2])),
    ]

    @Test func `are asked for in so many words`() {
        for command in [PackagingCommand.reportSamples(true), .reportSamples(false)] {
            #expect(PackagingCommand(command.bytes) == command)
        }
        for bytes: [UInt8] in [[], [1], [2, 1], [1, 2], [1, 1, 1]] { #expect(PackagingCommand(bytes) == nil) }
    }

    @Test(arguments: reports)
    func `survive being written, and no prefix does`(report: PackagingReport) throws {
        #expect(try PackagingReport(report.bytes) == report)
        for length in 0..<report.bytes.count {
            #expect(throws: WireError.self) { try PackagingReport(Array(report.bytes[..<length])) }
        }
    }

    @Test(arguments: ["avc1\"", "a\nb", "a b", "é"])
    func `name no codecs that a playlist cannot have`(codecs: String) {
        let report = PackagingReport.began(
            PackagingReport.Beginning(
                initialization: [], codecs: codecs, resolution: VideoResolution(width: 1, height: 1),
                framesPerSecond: nil))
        #expect(throws: WireError.self) { try PackagingReport(report.bytes) }
    }
}
