import Base
import Testing

@testable import Gateway

@Suite struct `The text of metrics` {
    private func lines(_ metrics: [Metric]) -> [String] {
        metrics.text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    private func line(_ value: Double) -> String? {
        lines([Metric("rostrum_x", .gauge, "X.", value)]).dropFirst(2).first
    }

    /// One sample is one line, whatever comes in its labels: a reader takes the rest for further samples.
    @Test(arguments: [
        ("plain", "plain"), ("", ""), ("a b", "a b"), ("a\"b", #"a\"b"#), (#"a\b"#, #"a\\b"#),
        ("a\nb", #"a\nb"#), (#"a\nb"#, #"a\\nb"#), (#"\""#, #"\\\""#), ("{},=#", "{},=#"), ("ü→", "ü→"),
        ("a\r\nb", "a\r\\nb"), ("\"\u{301}", "\\\"\u{301}"), ("\\\u{301}", "\\\\\u{301}"),
        ("\n\n\"", #"\n\n\""#),
    ]) func `escapes what would end a label`(value: String, escaped: String) {
        let metric = Metric("rostrum_x", .gauge, "X.", [Metric.Sample(1, [Metric.Label("l", value)])])
        // By bytes: texts that look alike may differ in them.
        let text = Array([metric].text.utf8)
        let head = "# HELP rostrum_x X.\n# TYPE rostrum_x gauge\n"
        let expected = Array("\(head)rostrum_x{l=\"\(escaped)\"} 1\n".utf8)
        #expect(text == expected)
    }

    @Test(arguments: [
        ("Says \"x\".", "Says \"x\"."), ("One\nTwo", #"One\nTwo"#), ("One\r\nTwo", "One\r\\nTwo"),
        (#"C:\x"#, #"C:\\x"#),
    ]) func `escapes in a help what would end its line, but no quotes`(help: String, escaped: String) {
        let text = Array([Metric("rostrum_x", .gauge, help, 1)].text.utf8)
        let expected = Array("# HELP rostrum_x \(escaped)\n# TYPE rostrum_x gauge\nrostrum_x 1\n".utf8)
        #expect(text == expected)
    }

    @Test(
        arguments: [
            (0, "0"), (1, "1"), (-3, "-3"), (0.5, "0.5"), (-0.25, "-0.25"), (123_456_789_012, "123456789012"),
            (999_999_999_999_999, "999999999999999"),
        ] as [(Double, String)])
    func `has whole numbers without a fraction`(value: Double, text: String) {
        let expected = "rostrum_x \(text)"
        #expect(line(value) == expected)
    }

    /// As from a counter that overflows a `Double`, or a division by zero.
    @Test(arguments: [1e15, -1e15, 1e300, .leastNonzeroMagnitude, .greatestFiniteMagnitude] as [Double])
    func `has numbers that do not fit an integer, and they are read again as the same`(value: Double) throws {
        let text = try #require(line(value))
        let words = text.split(separator: " ")
        #expect(words.count == 2)
        let last = words.last.flatMap { Double($0) }
        let read = try #require(last)
        #expect(read == value)
    }

    @Test(arguments: [Double.infinity, -Double.infinity, Double.nan])
    func `survives what is no number`(value: Double) throws {
        let text = try #require(line(value))
        #expect(text.split(separator: " ").count == 2)
    }

    @Test func `separates labels and keeps their order`() {
        let labels = [Metric.Label("b", "1"), Metric.Label("a", "2")]
        let metric = Metric("rostrum_x_total", .counter, "X.", [Metric.Sample(2, labels), Metric.Sample(3)])
        let samples = Array(lines([metric]).dropFirst(2))
        #expect(samples == [#"rostrum_x_total{b="1",a="2"} 2"#, "rostrum_x_total 3", ""])
    }

    @Test func `has a metric without samples, so that its meaning is known before its first`() {
        let none: [Metric.Sample] = []
        let text = lines([Metric("rostrum_x", .gauge, "X.", none)])
        #expect(text == ["# HELP rostrum_x X.", "# TYPE rostrum_x gauge", ""])
    }

    @Test func `has histograms whose buckets contain those before, up to all`() throws {
        var first = DurationHistogram(.joins)
        for nanoseconds in [1_000_000, 2_000_000, 500_000_000_000] as [Int64] { first.add(nanoseconds) }
        let metric = Metric(
            "rostrum_x_seconds", "X.",
            [([Metric.Label("k", "v")], first), ([Metric.Label("k", "w")], DurationHistogram(.joins))])
        let text = try Exposition([metric].text)
        #expect(text["rostrum_x_seconds_bucket{k=\"v\",le=\"+Inf\"}"] == 3)
        #expect(text["rostrum_x_seconds_count{k=\"v\"}"] == 3)
        #expect(text["rostrum_x_seconds_count{k=\"w\"}"] == 0)
        #expect(text["rostrum_x_seconds_sum{k=\"w\"}"] == 0)
        // The longest one is in no bucket but the last.
        let finite = metric.samples.filter { sample in
            sample.labels.contains { $0.name == "le" && $0.value != "+Inf" }
                && sample.labels.contains(Metric.Label("k", "v"))
        }
        let counts = finite.map(\.value)
        #expect(counts.max() == 2)
        #expect(counts == counts.sorted())
    }
}
