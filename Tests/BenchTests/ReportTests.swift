import Base
import Foundation
import Testing

@testable import sfu_bench

extension Report.GeneratorUse {
    /// Of one thread.
    static func thread(
        busy: Double, waiting: Double = 0, overflowed: Int = 0, unsent: Int = 0, process: Double = 0.5
    ) -> Self {
        .init(
            threads: [.init(name: "bench-0", busy: busy, waiting: waiting)], isPinned: false,
            overflowed: overflowed, unsent: unsent, cpuSeconds: 1, processorShare: process)
    }
}

@Suite struct `A run` {
    @Test func `counts while its threads have time to spare`() {
        #expect(VoidRule.reasons(.thread(busy: 0.85)).isEmpty)
        #expect(VoidRule.reasons(.thread(busy: 0.1, waiting: 0.25)).isEmpty)
    }

    @Test(arguments: [
        (Report.GeneratorUse.thread(busy: 0.86), "busy 86 %"),
        (.thread(busy: 0.2, waiting: 0.26), "waited 26 %"),
        (.thread(busy: 0.2, overflowed: 1), "overflowed"),
        (.thread(busy: 0.2, unsent: 3), "did not accept 3"),
        (.thread(busy: 0.6, process: 0.97), "used 97 %"), (.thread(busy: 0.9, process: 0.97), "busy 90 %"),
    ])
    func `is void when the tool was the bottleneck`(use: Report.GeneratorUse, words: String) {
        let reasons = VoidRule.reasons(use)
        #expect(reasons.count == 1)
        #expect(reasons.first?.contains(words) == true)
    }

    @Test func `says so when its threads had to wait`() {
        #expect(VoidRule.notes(.thread(busy: 0.1, waiting: 0.1)).count == 1)
        #expect(VoidRule.notes(.thread(busy: 0.1, waiting: 0.01)).isEmpty)
    }

    /// A storm of half a second in a run of two: on average the thread was busy a quarter of the time.
    @Test func `is void when the tool was the bottleneck for a moment`() throws {
        var moment = BusiestMoment(processors: 2)
        var ran: Int64 = 0
        for step in 0..<20 {
            let time = MonotonicTime(nanoseconds: Int64(step) * 100_000_000)
            moment.add(
                OwnLoad(time: time, threads: ["bench-0": .init(ran: ran, waited: 0)], processNanoseconds: ran)
            )
            if (8..<13).contains(step) { ran += 100_000_000 }
        }
        let peak = try #require(moment.use)
        #expect(peak.threads.map(\.busy) == [1])
        #expect(peak.processorShare == 0.5)
        var whole = Report.GeneratorUse.thread(busy: 0.25, overflowed: 0)
        #expect(VoidRule.reasons(whole).isEmpty)
        whole.takePeak(peak)
        #expect(VoidRule.reasons(whole).count == 1)
        #expect(whole.isPeak == true)
    }

    @Test func `has no busiest moment when it was too short`() {
        var moment = BusiestMoment(processors: 1)
        for milliseconds in [0, 100, 200, 299] {
            moment.add(
                OwnLoad(
                    time: MonotonicTime(nanoseconds: Int64(milliseconds) * 1_000_000),
                    threads: ["bench-0": .init(ran: Int64(milliseconds) * 1_000_000, waited: 0)],
                    processNanoseconds: 0))
        }
        #expect(moment.use == nil)
    }

    @Test func `of handshakes alone counts when the tool was at its limit, and says so`() {
        var report = `A report`.sample
        report.joins = .init(handshakes: 3_000, seconds: 2, perSecond: 1_500)
        report.judgeHandshakes(by: .thread(busy: 0.99))
        #expect(report.joins?.isToolLimited == true)
        #expect(!report.verdict.isVoid && report.verdict.notes.contains { $0.contains("the tool's limit") })
        report.judgeHandshakes(by: .thread(busy: 0.5, overflowed: 2))
        #expect(report.joins?.isToolLimited == false)
        #expect(report.verdict.isVoid)
    }

    @Test func `ends with a code that tells failure from doubt`() {
        var verdict = Report.Verdict()
        #expect(verdict.exitCode == .success)
        verdict.isVoid = true
        #expect(verdict.exitCode == .void)
        verdict.failures = ["no viewer received a packet"]
        #expect(verdict.exitCode == .failure)
    }

    @Test func `that ramps ends at loss, latency or silence`() {
        var level = Report.Ramp.Level(
            viewersPerStream: 100, lossPercent: 0.1, latencyP99: 50, stalled: 0, serverCores: 0.5,
            microsecondsPerPacket: 2, generatorBusy: 0.3)
        #expect(Bench.RampLimit.reason(level) == nil)
        level.stalled = 1
        #expect(Bench.RampLimit.reason(level)?.contains("1 viewers") == true)
        level.stalled = 0
        level.latencyP99 = 50.1
        #expect(Bench.RampLimit.reason(level)?.contains("latency") == true)
        level.lossPercent = 0.2
        #expect(Bench.RampLimit.reason(level)?.contains("loss") == true)
    }
}

@Suite struct `A report` {
    static let sample: Report = {
        var report = Report(
            command: "load", server: "http://127.0.0.1:8080/<&>", startedAt: "2026-01-01T00:00:00Z",
            setup: .init(
                streams: 1, viewersPerStream: 300, videoBitrate: 1_500_000, framesPerSecond: 30,
                audioBitrate: 48_000, burstMilliseconds: 5, transport: "udp", srtp: "gcm", decryptEvery: 20,
                coalesces: false,
                asksForRepair: false, threads: 1, warmUpSeconds: 3, durationSeconds: 10))
        report.clients = .init(publishers: 1, viewers: 300, joined: 299, gotFirstFrame: 298, failed: 1)
        report.verdict.failures = ["1 of 301 clients failed; the first: HTTP 503"]
        report.phases =
            Quantiles([1, 2, 3]).map {
                [.init(name: "http", title: "HTTP", milliseconds: $0)]
            } ?? []
        report.media = .init(
            seconds: 10, packets: 690_000, packetsPerSecond: 69_000, megabitsPerSecond: 480, lost: 7,
            lossPercent: 0.001, reordered: 0, duplicates: 0, repaired: 0, stalled: 0,
            latency: Quantiles([0.4, 1, 12]), jitter: nil)
        report.serverUse = .init(
            source: "process 1", cpuSeconds: 1.5, cores: 0.15, microsecondsPerPacket: 2.17,
            residentBytes: 40_000_000, residentBytesPerViewer: 32_000, microsecondsPerHandshake: 500)
        report.generator = .thread(busy: 0.4)
        report.series = (1...5).map { second in
            .init(
                seconds: Double(second), viewers: 300, packetsPerSecond: 69_000, megabitsPerSecond: 480,
                lossPercent: 0, latencyP50: 0.4, latencyP99: 12, serverCores: 0.15,
                serverResidentBytes: 40_000_000, generatorBusy: 0.4, isMeasured: second > 2)
        }
        report.latencyCurve = [[0.4, 0.5], [1, 0.9], [12, 1]]
        return report
    }()

    @Test func `survives JSON`() throws {
        let data = try JSONReport.data(Self.sample)
        #expect(try JSONDecoder().decode(Report.self, from: data) == Self.sample)
        let text = String(decoding: data, as: UTF8.self)
        #expect(text.contains("\"microsecondsPerPacket\" : 2.17"))
        #expect(text.hasSuffix("}\n"))
    }

    @Test func `has its numbers in the table`() {
        let text = TextReport.text(Self.sample)
        for words in [
            "300, joined 299, saw a frame 298", "690 000 in 10.0 s", "2.17 µs", "32.0 kB",
            "FAILED: 1 of 301", "7 (0.001 %)", "busy 40.0 %", "500 µs: 2000 per second on one core",
        ] {
            #expect(text.contains(words))
        }
    }

    @Test func `is a page that loads nothing and escapes what it shows`() {
        let page = HTMLReport.page(Self.sample)
        #expect(page.hasPrefix("<!doctype html>"))
        #expect(page.contains("/&lt;&amp;&gt;"))
        #expect(!page.contains("<&>"))
        for loading in ["src=", "href=", "@import", "url("] { #expect(!page.contains(loading)) }
        #expect(page.components(separatedBy: "<svg").count == page.components(separatedBy: "</svg>").count)
        #expect(page.components(separatedBy: "<svg").count == 8)
        #expect(!page.contains("nan") && !page.contains("inf,"))
    }

    @Test func `is well-formed XML in its plots`() {
        for plot in HTMLReport.plots(Self.sample) {
            let parser = XMLWellFormedness(plot.svg)
            #expect(parser.isBalanced)
        }
    }

    @Test func `draws nothing where nothing was measured`() {
        let plot = SVGPlot(title: "Loss", xLabel: "s", yLabel: "%", lines: [])
        #expect(plot.svg.contains("nothing measured"))
        let flat = SVGPlot(
            title: "Loss", xLabel: "s", yLabel: "%", lines: [.init(label: "a", points: [(1, 0)])])
        #expect(flat.svg.contains("polyline"))
    }

    @Test(arguments: [(0.0, 1.0), (0.7, 1), (1, 1), (1.1, 2), (2.2, 2.5), (3, 5), (70, 100), (0.03, 0.05)])
    func `has axes that end at round numbers`(value: Double, end: Double) {
        #expect(abs(SVGPlot.niceCeiling(max(value, 1e-9)) - end) < 1e-9 || value == 0)
    }
}

/// Whether every element that opens is closed.
private struct XMLWellFormedness {
    let isBalanced: Bool

    init(_ text: String) {
        var open: [Substring] = []
        var isBalanced = true
        for piece in text.split(separator: "<").dropFirst(text.hasPrefix("<") ? 0 : 1) {
            guard let end = piece.firstIndex(of: ">") else {
                isBalanced = false
                break
            }
            let tag = piece[..<end]
            let name = tag.drop { $0 == "/" }.prefix { $0.isLetter }
            if tag.hasPrefix("/") {
                if open.popLast() != name { isBalanced = false }
            } else if !tag.hasSuffix("/") {
                open.append(name)
            }
        }
        self.isBalanced = isBalanced && open.isEmpty
    }
}

@Suite struct `Numbers for people` {
    @Test func `have three digits that count`() {
        let numbers: [Double] = [0, 0.0344, 1.254, 12.54, 125.4, 1_254, -3.14159, .nan]
        #expect(numbers.map(Format.short) == ["0.000", "0.034", "1.25", "12.5", "125", "1254", "-3.14", "-"])
    }

    @Test func `have gaps between their thousands`() {
        #expect([0, 999, 1_000, 12_345_678.4].map(Format.count) == ["0", "999", "1 000", "12 345 678"])
    }

    @Test func `have units for bytes`() {
        #expect(Format.bytes(32_000) == "32.0 kB")
        #expect(Format.bytes(40_000_000) == "40.0 MB")
    }
}
