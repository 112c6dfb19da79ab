/// The report on networks as one page for a browser: a table, and three plots of each profile.
enum NetworkPage {
    private static let headings = [
        "profile", "first picture", "best layer", "frozen", "sound lost", "use", "changes",
        "queue p50, p95 (ms)",
        "dropped",
    ]

    static func page(_ report: NetworkReport) -> String {
        let title = "sfu-bench network \(report.server)"
        let rows = report.runs.map { run in
            "<tr>"
                + ([run.profile] + NetworkReport.cells(run)).map { "<td>\(HTMLText.escaped($0))</td>" }
                .joined()
                + "</tr>"
        }
        let notes =
            report.verdict.failures.map { "Failed: " + $0 } + report.verdict.reasons.map { "Void: " + $0 }
        return """
            <!doctype html>
            <html lang="en">
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <title>\(HTMLText.escaped(title))</title>
            <style>\(HTMLReport.style)</style>
            <h1>\(HTMLText.escaped(title))</h1>
            <p class="setup">\(HTMLText.escaped(report.startedAt)) · feedback by \(HTMLText.escaped(report.feedback))</p>
            \(notes.map { "<p class=\"void\">\(HTMLText.escaped($0))</p>" }.joined(separator: "\n"))
            <table><tr>\(headings.map { "<th>\($0)</th>" }.joined())</tr>
            \(rows.joined(separator: "\n"))
            </table>
            \(report.runs.map(section).joined(separator: "\n"))
            </html>

            """
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
        if run.samples.contains(where: { $0.estimate != nil }) {
            rates.append(line("estimate") { $0.estimate.map { Double(min($0, 10_000_000)) / 1e6 } })
        }
        return [
            SVGPlot(title: "Bit rates", xLabel: "seconds", yLabel: "Mbit/s", lines: rates),
            SVGPlot(
                title: "Delay there and back, with the queue", xLabel: "seconds", yLabel: "ms",
                lines: [line("delay") { $0.delay }]),
            SVGPlot(
                title: "Picture", xLabel: "seconds", yLabel: "pixels high",
                lines: [line("height") { Double($0.height ?? 0) }]),
        ]
    }
}
