import Foundation
import Testing

@testable import sfu_bench

@Suite struct `Text from elsewhere` {
    /// A combining mark makes one Swift character of itself and what precedes it; browsers see two.
    @Test(arguments: [
        ("<script>", "&lt;script&gt;"), ("a & b", "a &amp; b"), ("&amp;", "&amp;amp;"),
        ("say \"no\"", "say &quot;no&quot;"), ("<\u{301}b>", "&lt;\u{301}b&gt;"),
        ("x\"\u{20DD} onload=1", "x&quot;\u{20DD} onload=1"), ("&\u{200D}lt;", "&amp;\u{200D}lt;"),
        ("Zoë 👩‍👩‍👧", "Zoë 👩‍👩‍👧"), ("", ""),
    ])
    func `stays text in a page`(text: String, escaped: String) {
        // Equal scalars, not only equivalent ones.
        #expect(Array(HTMLText.escaped(text).unicodeScalars) == Array(escaped.unicodeScalars))
    }

    @Test(arguments: [
        ("no such stream", "no such stream"), ("one\ntwo\r\nthree", "one two  three"),
        ("\u{1B}[2Jgone", " [2Jgone"), ("a\tb\u{0}c\u{7F}d\u{9B}e", "a b c d e"),
        ("\u{202E}txt.exe", " txt.exe"), ("a\u{2028}b\u{2029}c", "a b c"), ("\u{FEFF}x", " x"), ("", ""),
        ("größer 5 µs", "größer 5 µs"),
    ])
    func `is one line without control characters`(text: String, line: String) {
        #expect(Array(Format.line(text).unicodeScalars) == Array(line.unicodeScalars))
    }

    @Test func `is no longer than a line`() {
        #expect(Format.line(String(repeating: "x", count: 201)).count == 200)
        // Any number of marks on one letter are one Swift character.
        let tower = "e" + String(repeating: "\u{301}", count: 10_000)
        #expect(Format.line(tower).unicodeScalars.count == 200)
        #expect(Format.line("abcdef", limit: 3) == "abc")
    }

    @Test func `cannot leave its place in a report`() {
        let hostile = "</title><img src=x onerror=\"alert(1)\">\u{301}&<\u{301}script>"
        var report = `A report`.sample
        report.command = hostile
        report.server = hostile
        report.startedAt = hostile
        report.setup.srtp = hostile
        report.verdict.failures = [hostile]
        report.verdict.reasons = [hostile]
        report.verdict.notes = [hostile]
        for index in report.phases.indices { report.phases[index].title = hostile }
        report.serverUse?.source = hostile
        report.generator?.threads[0].name = hostile
        report.ramp = .init(
            levels: [
                .init(
                    viewersPerStream: 1, lossPercent: 0, latencyP99: nil, stalled: 0, serverCores: nil,
                    microsecondsPerPacket: nil, generatorBusy: 0, limit: hostile)
            ], maximum: nil, isToolLimited: true)
        report.restart = .init(isCommanded: false)
        report.restart?.reasons = [hostile: 2]
        let page = HTMLReport.page(report)
        // Without the marks: a search for characters would not find those with a mark behind them.
        var scalars = page.unicodeScalars
        scalars.removeAll { $0 == "\u{301}" }
        let plain = String(scalars)
        #expect(!plain.contains("<img") && !plain.contains("<script") && !plain.contains("onerror=\""))
        #expect(plain.components(separatedBy: "</title>").count == 2)
        #expect(plain.components(separatedBy: "&lt;script&gt;").count > 10)
    }

    @Test func `cannot leave its place in a report on networks`() throws {
        var report = `A report`.sample
        report.network = NetworkReport(
            layers: [], feedback: "x",
            runs: [
                .init(
                    profile: "<b>", summary: "<i>", seconds: 1, firstPicture: nil, best: nil,
                    frozen: 1, soundLost: 0, use: 0, changes: 0, queue: nil, overflowed: 0, samples: [])
            ])
        let page = HTMLReport.page(report)
        #expect(!page.contains("<b>:") && page.contains("&lt;b&gt;: &lt;i&gt;"))
        #expect(page.components(separatedBy: "nothing measured").count == 4)
    }
}

@Suite struct `A report with gaps` {
    /// What a run has that found nothing: no media, no server, no load of its own.
    private static let bare: Report = {
        var report = `A report`.sample
        report.clients = .init()
        report.verdict = .init()
        report.phases = []
        report.media = nil
        report.serverUse = nil
        report.generator = nil
        report.series = []
        report.latencyCurve = []
        return report
    }()

    @Test func `says nothing of what was not measured`() throws {
        let text = TextReport.text(Self.bare)
        #expect(text.hasSuffix("clients\n  publishers" + String(repeating: " ", count: 32) + "0\n"))
        for word in ["viewers received", "server (", "this tool", "joining", "nan", "inf", "nil"] {
            #expect(!text.contains(word), "\(word)")
        }
        let page = HTMLReport.page(Self.bare)
        #expect(page.contains("Latency: nothing measured") && !page.contains("<svg"))
        #expect(page.contains("<section class=\"tiles\"></section>") && page.contains("</html>"))
    }

    @Test func `has no field in JSON for what was not measured`() throws {
        let data = try JSONReport.data(Self.bare)
        let text = String(decoding: data, as: UTF8.self)
        for name in ["media", "earlier", "serverUse", "generator", "ramp", "swiping", "restart", "network"] {
            #expect(!text.contains("\"\(name)\""), "\(name)")
        }
        #expect(!text.contains("null"))
        #expect(try JSONDecoder().decode(Report.self, from: data) == Self.bare)
    }

    @Test func `draws the gaps of a series as such`() throws {
        var report = `A report`.sample
        report.series[1].latencyP50 = nil
        report.series[1].latencyP99 = nil
        report.series[3].serverCores = nil
        for index in report.series.indices { report.series[index].serverResidentBytes = nil }
        let plots = HTMLReport.plots(report)
        func plot(_ title: String) throws -> SVGPlot { try #require(plots.first { $0.title == title }) }
        let latency = try plot("Latency")
        #expect(latency.lines.map(\.points.count) == [4, 4])
        #expect(try plot("CPU").lines.map(\.points.count) == [4, 5])
        #expect(try plot("Server memory").svg.contains("nothing measured"))
        // The second before the first measured point belongs to the measurement.
        #expect(latency.highlighted == 2...5)
        for index in report.series.indices { report.series[index].isMeasured = false }
        #expect(HTMLReport.plots(report).allSatisfy { $0.highlighted == nil })
    }

    @Test func `survives numbers that are none`() {
        var report = `A report`.sample
        report.media?.lossPercent = .nan
        report.media?.packetsPerSecond = .infinity
        report.serverUse?.cores = -.infinity
        report.series[2].lossPercent = .nan
        report.series[2].latencyP99 = .infinity
        report.latencyCurve = [[0, 0.1], [.nan, 0.5], [1], [2, 1]]
        let page = HTMLReport.page(report)
        for word in ["nan", "inf,", "inf ", "infinity"] { #expect(!page.contains(word), "\(word)") }
        #expect(TextReport.text(report).contains("- per second"))
    }

    @Test func `tells what a ramp found, and where it stopped`() {
        var report = `A report`.sample
        report.ramp = .init(
            levels: [
                .init(
                    viewersPerStream: 100, lossPercent: 0, latencyP99: 3.2, stalled: 0, serverCores: 0.5,
                    microsecondsPerPacket: 2, generatorBusy: 0.2),
                .init(
                    viewersPerStream: 200, lossPercent: 0.3, latencyP99: nil, stalled: 4, serverCores: nil,
                    microsecondsPerPacket: nil, generatorBusy: 0.4, limit: "loss is above 0.1 %"),
            ], maximum: 100, isToolLimited: false)
        let text = TextReport.text(report)
        #expect(text.contains("loss 0.000 %, p99 3.20 ms, server 50.0 %, 2.00 µs per packet\n"))
        #expect(text.contains("loss 0.300 %, over: loss is above 0.1 %\n"))
        #expect(text.contains("most viewers per stream" + String(repeating: " ", count: 19) + "100\n"))
        let page = HTMLReport.page(report)
        #expect(page.contains("<td>200</td><td>0.300</td><td>-</td><td>-</td><td>-</td><td>40.0</td>"))
        #expect(page.contains("<b>100</b><span>most viewers per stream</span>"))
        report.ramp?.maximum = nil
        report.ramp?.isToolLimited = true
        #expect(TextReport.text(report).contains("none (the tool's limit)"))
        #expect(!HTMLReport.page(report).contains("<span>most viewers per stream</span>"))
    }

    @Test func `tells what a feed found`() throws {
        var report = `A report`.sample
        report.setup.isFeed = true
        report.swiping = .init(
            preload: "eager", swipes: 90, perSecond: 9, jumps: 8, calledOff: 4, unfinished: 3, refused: 2,
            moved: 1, preloaded: .init(frame: Quantiles([12])), cold: .init(), peekToFrame: nil, skew: nil,
            mostAttached: 2, momentsOverTwo: 0, strays: 5, brokenStarts: 6, keyFrameRequestsAtMost: 7)
        let text = TextReport.text(report)
        for words in [
            "1 stream, 300 viewers, video", "swiping (preload eager), ms",
            "90, 9.00 per second, 8 of them jumps", "4, 3, 2", "preloaded: focus to complete frame",
        ] {
            #expect(text.contains(words), "\(words)")
        }
        #expect(!text.contains("cold:") && !text.contains("picture and sound apart"))
        #expect(HTMLReport.page(report).contains("<td>streams started without a key frame</td><td>6</td>"))
        #expect(try JSONDecoder().decode(Report.self, from: JSONReport.data(report)) == report)
    }

    @Test func `of handshakes alone says nothing of pictures`() {
        var report = `A report`.sample
        report.setup.isHandshakesOnly = true
        report.joins = .init(handshakes: 300, seconds: 0.5, perSecond: 600, isToolLimited: true)
        let text = TextReport.text(report)
        #expect(text.contains("300, joined 299\n") && !text.contains("saw a frame"))
        #expect(text.contains("300 in 0.500 s, 600 per second (the tool's limit)"))
        // A cost of zero must not make it infinite.
        report.serverUse?.microsecondsPerHandshake = 0
        #expect(TextReport.text(report).contains("0.000 µs: 1000000 per second on one core"))
    }

    @Test func `tells of a restart what there is, the most common reason first`() throws {
        var restart = Report.Restart(isCommanded: false)
        restart.publishers = .init(count: 2, back: 2, kept: 2)
        restart.viewers = .init(count: 3, back: 1, attempts: Quantiles([1, 4, 9]))
        restart.reasons = ["b": 2, "a": 2, "c": 7]
        #expect(restart.rows.isEmpty)
        #expect(
            restart.facts.map(\.value) == [
                "0.000 ms", "0.000 ms", "2 of 2, 2 never left", "1 of 3", "none", "median 4, at most 9",
                "c", "a", "b",
            ])
        #expect(restart.failures(after: 30).first?.hasSuffix("mostly: c") == true)
        restart.reasons = ["b": 2, "a": 2]
        #expect(restart.failures(after: 30).first?.hasSuffix("mostly: a") == true)
        restart.reasons = [:]
        let words = try #require(restart.failures(after: 0.5).first)
        #expect(words.hasSuffix("no media 0.500 s after the server was ready again"))
    }
}

@Suite struct `A plot` {
    private func plot(_ points: [(x: Double, y: Double)], _ scale: SVGPlot.Scale = .linear) -> SVGPlot {
        SVGPlot(
            title: "T", xLabel: "x", yLabel: "y", lines: [.init(label: "a", points: points)], xScale: scale)
    }

    /// The points of the first line, as they are written.
    private func drawn(_ plot: SVGPlot) throws -> [Substring] {
        let svg = plot.svg
        let start = try #require(svg.range(of: "points=\""))
        return svg[start.upperBound...].prefix { $0 != "\"" }.split(separator: " ")
    }

    @Test func `begins at its left lower corner and ends at its right upper one`() throws {
        #expect(try drawn(plot([(10, 0), (20, 5)])) == ["62.0,216.0", "704.0,34.0"])
        #expect(try drawn(plot([(1, 0), (10, 50), (100, 100)], .logarithmic)).count == 3)
        #expect(try drawn(plot([(1, 0), (10, 50), (100, 100)], .logarithmic))[1] == "383.0,125.0")
    }

    @Test func `leaves out what has no place`() throws {
        let odd: [(x: Double, y: Double)] = [
            (0, 1), (.nan, 1), (1, .nan), (.infinity, 1), (2, .infinity), (-.infinity, 0), (3, 1),
        ]
        #expect(try drawn(plot(odd)).count == 2)
        // Nothing that is not positive has a logarithm.
        #expect(try drawn(plot([(-1, 1), (0, 1), (1, 1), (2, 1)], .logarithmic)).count == 2)
        #expect(plot([(0, 1), (-5, 1)], .logarithmic).svg.contains("nothing measured"))
        #expect(plot([(.nan, .nan)]).svg.contains("nothing measured"))
    }

    @Test func `keeps negative values on its axis`() throws {
        #expect(try drawn(plot([(0, -3), (1, -1)])).allSatisfy { $0.hasSuffix(",216.0") })
    }

    @Test(arguments: [
        (1, 1), (1_999, 1_999), (2_000, 2_000), (2_001, 1_001), (3_999, 2_000), (4_001, 1_334),
        (100_000, 2_000),
    ])
    func `has no more points than it can show`(count: Int, expected: Int) throws {
        let points = try drawn(plot((0..<count).map { (x: Double($0), y: 1.0) }))
        #expect(points.count == expected)
    }

    @Test(arguments: [1e-9, 1, 86_400, 1e12])
    func `has few labels on its axis, whatever the range`(span: Double) {
        func labels(_ plot: SVGPlot) -> Int { plot.svg.components(separatedBy: "tick middle").count - 1 }
        #expect((3...12).contains(labels(plot([(0, 1), (span, 2)]))))
        #expect(labels(plot([(span, 1), (span * 1e20, 2)], .logarithmic)) == 14)
    }

    @Test func `has a legend only for several lines`() {
        var several = plot([(0, 1), (1, 2)])
        #expect(!several.svg.contains(">a</text>"))
        several.lines.append(.init(label: "<b>", points: []))
        #expect(several.svg.contains(">a</text>") && several.svg.contains(">&lt;b&gt;</text>"))
    }
}

@Suite struct `A number for people` {
    @Test func `is rounded at its last digit`() {
        #expect(Format.fixed(0.05, 1) == "0.1")
        #expect(Format.fixed(9.96, 1) == "10.0")
        #expect(Format.fixed(-0.04, 1) == "0.0")
        #expect(Format.fixed(-0.06, 1) == "-0.1")
        #expect(Format.fixed(1.005e3, 0) == "1005")
        #expect(Format.fixed(2.5, 0) == "3")
        #expect(Format.fixed(3.007, 3) == "3.007")
    }

    @Test func `is a dash where it is none, or has too many digits`() {
        for value in [Double.nan, .infinity, -.infinity, 1e15, -1e15, 1e300] {
            #expect(Format.fixed(value, 3) == "-" && Format.count(value) == "-")
        }
        #expect(Format.fixed(999_999_999_999_999, 0) == "999999999999999")
        #expect(Format.fixed(9e14, 3) == "900000000000000.000")
        #expect(Format.short(1e16) == "-")
    }

    @Test func `keeps its sign in groups of three`() {
        #expect([-1_234_567, -999, -0.4, -0.6].map(Format.count) == ["-1 234 567", "-999", "0", "-1"])
        #expect(Format.count(999_999.5) == "1 000 000")
    }

    @Test func `changes its unit at a megabyte`() {
        #expect(Format.bytes(0) == "0.000 kB")
        #expect(Format.bytes(999_999) == "1000 kB")
        #expect(Format.bytes(1_000_000) == "1.00 MB")
        #expect(Format.bytes(-32_000) == "-32.0 kB")
        #expect(Format.bytes(-2_500_000) == "-2.50 MB")
    }
}
