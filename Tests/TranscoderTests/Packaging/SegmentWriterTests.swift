import Base
import Codecs
import Testing
import Wire

@testable import Transcoder

/// 20 ms.
private let silence = [Float](repeating: 0, count: 1_920)

@Suite struct `The sound of a time line` {
    private static let zero = MonotonicTime(nanoseconds: 7_000_000_000)
    private let writer: SegmentWriter

    init() throws {
        writer = try SegmentWriter(
            nil, framesPerSecond: nil, from: Self.zero, PackagingRequest(rendition: .sound))
    }

    /// Appends blocks that follow each other from so many milliseconds after the beginning on.
    private func append(_ count: Int, from milliseconds: Int, _ block: [Float] = silence) throws {
        for index in 0..<count {
            try writer.append(block, at: Self.zero + .milliseconds(milliseconds + index * 20))
        }
    }

    private func samples(_ reports: [PackagingReport]) -> [PackagingReport.Sample] {
        reports.compactMap { if case .sample(let sample) = $0 { sample } else { nil } }
    }

    private func parts(_ reports: [PackagingReport]) -> [PackagingReport.Part] {
        reports.compactMap { if case .part(let part) = $0 { part } else { nil } }
    }

    @Test func `begins without a size, and without a format for what it does not have`() throws {
        let reports = writer.takeReports()
        guard case .began(let beginning)? = reports.first, reports.count == 1 else {
            Issue.record("it begins with \(reports.count) reports")
            return
        }
        #expect(beginning.codecs == "mp4a.40.2" && beginning.framesPerSecond == nil)
        #expect(beginning.resolution == VideoResolution(width: 0, height: 0))
        #expect(writer.takeReports().isEmpty)
    }

    @Test func `leaves out what is heard before it begins`() throws {
        try append(10, from: -200)
        #expect(writer.soundEnd == 0)
        try append(50, from: 0)
        let reports = samples(writer.takeReports())
        #expect(reports.first?.time == Self.zero)
        #expect((900_000...1_000_000).contains(writer.soundEnd))
    }

    /// Players show a gap where one track begins after the other.
    @Test func `is silence until it begins`() throws {
        try append(50, from: 1_000)
        let reports = samples(writer.takeReports())
        #expect(reports.first?.time == Self.zero)
        #expect((1_900_000...2_000_000).contains(writer.soundEnd))
        // Nothing is left out between two of them: 1,024 samples of 125/6 microseconds.
        let steps = zip(reports, reports.dropFirst()).map { $1.time - $0.time }
        let isEven = steps.allSatisfy { $0 == .microseconds(21_333) || $0 == .microseconds(21_334) }
        #expect(isEven && reports.count > 80)
        #expect(reports.allSatisfy { $0.kind == .sound })
    }

    @Test func `is silence for ten seconds at most`() throws {
        try append(5, from: 15_000)
        let first = try #require(samples(writer.takeReports()).first)
        let begin = first.time - Self.zero
        #expect((.milliseconds(4_970)...(.milliseconds(5_010))).contains(begin))
        #expect((15_000_000...15_100_000).contains(writer.soundEnd))
    }

    @Test func `goes on behind numbers that are none`() throws {
        try append(10, from: 0)
        try append(10, from: 200, [Float](repeating: .nan, count: 1_920))
        try append(10, from: 400, [Float](repeating: -.infinity, count: 1_920))
        try append(30, from: 600)
        #expect((1_100_000...1_200_000).contains(writer.soundEnd))
        let frames = samples(writer.takeReports())
        let decoder = try AACDecoder(configuration: [0x11, 0x90])
        let sound = try frames.flatMap { try decoder.decode($0.bytes) }
        #expect(sound.allSatisfy { abs($0) < 0.001 })
    }

    @Test func `is in the part in which it begins`() throws {
        try append(60, from: 0)
        _ = writer.takeReports()
        let short = try size(until: 200_000, from: 0)
        let long = try size(until: 1_000_000, from: 200)
        #expect(long > short)
    }

    /// The bytes of the next part.
    private func size(until end: Int64, from milliseconds: Int) throws -> Int {
        try writer.endPart(
            at: end, milliseconds: 500, startsSegment: false, endsSegment: true,
            captured: Self.zero + .milliseconds(milliseconds))
        let part = try #require(parts(writer.takeReports()).last)
        #expect(part.milliseconds == 500 && !part.startsSegment && part.endsSegment)
        #expect(part.captured == Self.zero + .milliseconds(milliseconds))
        return part.bytes.count
    }

    @Test func `has no place for a picture`() {
        #expect(throws: CodecError.failed) {
            try writer.write([1, 2, 3], at: 0, duration: 33_333, isKeyFrame: true)
        }
    }
}

@Suite struct `A time line of sound alone` {
    private static let zero = MonotonicTime(nanoseconds: 7_000_000_000)

    @Test(arguments: PackagingTiming.partLengths)
    func `has a first segment of one second, and others of two`(length: Int) throws {
        let timing = try #require(PackagingTiming(partMilliseconds: length))
        let timeline = try SoundTimeline(
            from: Self.zero, PackagingRequest(rendition: .sound, timing: timing))
        // Somewhat more than 5.2 s.
        for index in 0..<270 {
            let tick = Self.zero + .milliseconds(index * 20)
            try timeline.append(silence, at: tick, captured: tick - .milliseconds(150))
        }
        let parts = timeline.takeReports().compactMap { report -> PackagingReport.Part? in
            if case .part(let part) = report { part } else { nil }
        }
        #expect(parts.allSatisfy { Int($0.milliseconds) == length })
        let ends = parts.indices.filter { parts[$0].endsSegment }
        let starts = parts.indices.filter { parts[$0].startsSegment }
        let first = timing.partsOfFirstSegment
        #expect((1_000...1_200).contains(first * length))
        let wanted = [first, first + timing.partsPerSegment, first + 2 * timing.partsPerSegment]
        #expect(Array(ends.prefix(3)) == wanted.map { $0 - 1 })
        #expect(starts.first == 0 && Array(starts.dropFirst().prefix(2)) == Array(wanted.prefix(2)))
        // Each says when its first sample was captured; what the encoder holds back is in the next one.
        for (index, part) in parts.enumerated() {
            let begin = Self.zero + .milliseconds(index * length - 150)
            let late = (part.captured - begin).wholeNanoseconds
            #expect((0...90_000_000).contains(late), "part \(index)")
        }
        #expect(parts.first?.captured == Self.zero - .milliseconds(150))
    }
}
