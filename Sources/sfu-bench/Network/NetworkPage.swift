/// The part of an HTML report about networks: a table, and three plots for each profile.
enum NetworkPage {
    private static let headings = [
        "profile", "first picture", "best layer", "frozen", "sound lost", "use", "changes",
        "queue p50, p95 (ms)",
        "dropped",
    ]

    /// The table, and a section for each profile; empty for a report on something else.
    static func sections(_ report: NetworkReport?) -> String {
        guard let report else { return "" }
        let rows = report.runs.map { HTMLReport.row([$0.profile] + NetworkReport.cells($0), "td") }
        return HTMLReport.table(HTMLReport.row(headings, "th"), rows)
            + report.runs.map(section).joined(separator: "\n")
    }

    private static func section(_ run: NetworkReport.Run) -> String {
        let title = "\(run.profile): \(run.summary)"
        let figures = plots(run).map { "<figure>\($0.svg)</figure>" }.joined(separator: "\n")
        return "<h2>\(HTMLText.escaped(title))</h2>\n\(figures)"
    }

    private static func plots(_ run: NetworkReport.Run) -> [SVGPlot] {
        func line(_ label: String, _ value: (NetworkRecorder.Sample) -> Double?) -> SVGPlot.Line {
            SVGPlot.Line(
                label: label,
                points: run.samples.compactMap { sample in value(sample).map { (sample.seconds, $0) } })
        }
        var rates = [
            line("capacity") { Double($0.capacity) / 1e6 }, line("sent") { Double($0.sent) / 1e6 },
        ]
        // Only Rostrum reports an estimate. It is cut off at 10 Mbit/s, where it would flatten the other lines.
        if run.samples.contains(where: { $0.estimate != nil }) {
            rates.append(line("estimate") { $0.estimate.map { Double(min($0, 10_000_000)) / 1e6 } })
        }
        return [
            SVGPlot(title: "Bit rates", xLabel: "seconds", yLabel: "Mbit/s", lines: rates),
            SVGPlot(
                title: "Round trip, including the queue", xLabel: "seconds", yLabel: "ms",
                lines: [line("delay") { $0.delay }]),
            SVGPlot(
                title: "Picture", xLabel: "seconds", yLabel: "pixels high",
                lines: [line("height") { Double($0.height ?? 0) }]),
        ]
    }
}
