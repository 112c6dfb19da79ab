/// The report as an HTML page: tables, and plots as inline SVG.
///
/// It loads nothing, so that it can be sent and opened as one file.
enum HTMLReport {
    /// Sections without content are left out.
    static func page(_ report: Report) -> String {
        let title = "sfu-bench \(report.command) \(report.server)"
        return """
            <!doctype html>
            <html lang="en">
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <title>\(HTMLText.escaped(title))</title>
            <style>\(style)</style>
            <h1>\(HTMLText.escaped(title))</h1>
            <p class="setup">\(HTMLText.escaped(report.startedAt)) · \(HTMLText.escaped(setup(report.setup)))</p>
            \(verdict(report.verdict))
            \(tiles(report))
            \(restartTable(report.restart))
            \(phaseTable(report.phases))
            \(rampTable(report.ramp))
            \(swipingTable(report.swiping))
            \(NetworkPage.sections(report.network))
            \(plots(report).map(\.svg).map { "<figure>\($0)</figure>" }.joined(separator: "\n"))
            <details><summary>All numbers</summary><pre>\(HTMLText.escaped(TextReport.text(report)))</pre></details>
            </html>

            """
    }

    private static func setup(_ setup: Report.Setup) -> String {
        [
            setup.isFeed == true
                ? "\(setup.streams) streams · \(setup.viewersPerStream) viewers"
                : "\(setup.streams) × \(setup.viewersPerStream) viewers",
            "video \(Format.short(Double(setup.videoBitrate) / 1e6)) Mbit/s at \(setup.framesPerSecond) fps",
            "audio \(setup.audioBitrate / 1_000) kbit/s", "bursts of \(setup.burstMilliseconds) ms",
            "SRTP \(setup.srtp)", "one packet in \(setup.decryptEvery) decrypted",
            "\(Format.short(setup.durationSeconds)) s",
        ].joined(separator: " · ")
    }

    private static func verdict(_ verdict: Report.Verdict) -> String {
        let failures = verdict.failures.map { ("failed", "Failed: " + $0) }
        let reasons = verdict.reasons.map { ("void", "Void: " + $0) }
        let notes = verdict.notes.map { ("note", $0) }
        return (failures + reasons + notes).map { style, text in
            "<p class=\"\(style)\">\(HTMLText.escaped(text))</p>"
        }.joined(separator: "\n")
    }

    /// The most important numbers, each in a box of its own.
    private static func tiles(_ report: Report) -> String {
        var tiles: [(String, String)] = []
        if let most = report.ramp?.maximum { tiles.append(("most viewers per stream", "\(most)")) }
        if let media = report.media {
            tiles.append(("packets per second", Format.count(media.packetsPerSecond)))
            tiles.append(("Mbit/s", Format.short(media.megabitsPerSecond)))
            tiles.append(("lost", Format.short(media.lossPercent) + " %"))
            if let latency = media.latency {
                tiles.append(("latency p50", Format.short(latency.p50) + " ms"))
                tiles.append(("latency p99", Format.short(latency.p99) + " ms"))
            }
        }
        if let use = report.serverUse {
            tiles.append(("server CPU", Format.short(use.cores * 100) + " %"))
            if let cost = use.microsecondsPerPacket {
                tiles.append(("CPU per packet", Format.short(cost) + " µs"))
            }
            if let cost = use.microsecondsPerHandshake {
                tiles.append(("CPU per handshake", Format.short(cost) + " µs"))
            }
            if let bytes = use.residentBytesPerViewer {
                tiles.append(("memory per viewer", Format.bytes(bytes)))
            }
        }
        if let joins = report.joins { tiles.append(("handshakes per second", Format.short(joins.perSecond))) }
        let cells = tiles.map { label, value in
            "<div><b>\(HTMLText.escaped(value))</b><span>\(HTMLText.escaped(label))</span></div>"
        }
        return "<section class=\"tiles\">\(cells.joined())</section>"
    }

    private static func phaseTable(_ phases: [Report.Phase]) -> String {
        guard !phases.isEmpty else { return "" }
        let rows = phases.map { phase in
            let values = phase.milliseconds
            return row(
                [phase.title] + [values.p50, values.p95, values.p99, values.maximum].map(Format.short), "td")
        }
        return table(row(["joining, ms", "p50", "p95", "p99", "max"], "th"), rows)
    }

    private static func rampTable(_ ramp: Report.Ramp?) -> String {
        guard let ramp else { return "" }
        let rows = ramp.levels.map { level in
            row(
                [
                    "\(level.viewersPerStream)", Format.short(level.lossPercent),
                    level.latencyP99.map(Format.short) ?? "-",
                    level.serverCores.map { Format.short($0 * 100) } ?? "-",
                    level.microsecondsPerPacket.map(Format.short) ?? "-",
                    Format.short(level.generatorBusy * 100), level.limit ?? "",
                ], "td")
        }
        let head = [
            "viewers", "loss, %", "p99, ms", "server CPU, %", "µs per packet", "own CPU, %", "over the limit",
        ]
        return table(row(head, "th"), rows)
    }

    private static func restartTable(_ restart: Report.Restart?) -> String {
        guard let restart else { return "" }
        return tables("since the server was ready again, ms", restart.rows, "restart", restart.facts)
    }

    private static func swipingTable(_ swiping: Report.Swiping?) -> String {
        guard let swiping else { return "" }
        return tables("swiping, ms", swiping.rows, "swiping", swiping.facts)
    }

    /// A table of quantiles, and one of other facts.
    private static func tables(
        _ title: String, _ rows: [(title: String, values: Quantiles)], _ factsTitle: String,
        _ facts: [(title: String, value: String)]
    ) -> String {
        let cells = rows.map { title, values in
            row([title] + [values.p50, values.p95, values.p99, values.maximum].map(Format.short), "td")
        }
        return table(row([title, "p50", "p95", "p99", "max"], "th"), cells)
            + table(row([factsTitle, ""], "th"), facts.map { row([$0.title, $0.value], "td") })
    }

    /// A table of a head and rows that `row` made.
    static func table(_ head: String, _ rows: [String]) -> String {
        "<table>\(head)\(rows.joined(separator: "\n"))</table>"
    }

    /// - Parameters:
    ///   - cells: plain text, which is escaped here.
    ///   - tag: `td` or `th`.
    static func row(_ cells: [String], _ tag: String) -> String {
        "<tr>" + cells.map { "<\(tag)>\(HTMLText.escaped($0))</\(tag)>" }.joined() + "</tr>"
    }

    // MARK: Plots

    static func plots(_ report: Report) -> [SVGPlot] {
        // Each network profile has its own plots, in `NetworkPage`.
        guard report.network == nil else { return [] }
        let series = report.series
        let measured = series.filter(\.isMeasured).map(\.seconds)
        // The first measured point covers the second before it.
        let highlighted = measured.first.flatMap { first in measured.last.map { (first - 1)...$0 } }
        func plot(_ title: String, _ unit: String, _ lines: [SVGPlot.Line]) -> SVGPlot {
            SVGPlot(
                title: title, xLabel: "seconds", yLabel: unit, lines: lines, highlighted: highlighted)
        }
        func line(_ label: String, _ value: (Report.SeriesPoint) -> Double?) -> SVGPlot.Line {
            SVGPlot.Line(
                label: label, points: series.compactMap { point in value(point).map { (point.seconds, $0) } })
        }
        var plots = [
            plot("Viewers", "viewers", [line("viewers") { Double($0.viewers) }]),
            plot("Packets received by viewers", "packets/s", [line("packets") { $0.packetsPerSecond }]),
            plot(
                "Latency", "ms", [line("p50") { $0.latencyP50 }, line("p99") { $0.latencyP99 }]),
            plot("Loss", "%", [line("loss") { $0.lossPercent }]),
            plot(
                "CPU", "% of a core",
                [
                    line("server") { $0.serverCores.map { $0 * 100 } },
                    line("busiest thread of this tool") { $0.generatorBusy * 100 },
                ]),
            plot(
                "Server memory", "MB",
                [line("memory") { $0.serverResidentBytes.map { Double($0) / 1e6 } }]),
        ]
        if report.latencyCurve.count > 1 {
            let points = report.latencyCurve.compactMap { pair in
                pair.count == 2 ? (x: pair[0], y: pair[1] * 100) : nil
            }
            plots.append(
                SVGPlot(
                    title: "Latency of all packets measured", xLabel: "ms", yLabel: "% took no longer",
                    lines: [SVGPlot.Line(label: "share", points: points)], xScale: .logarithmic))
        }
        return plots
    }

    static let style = """
        :root{color-scheme:light dark;--ink:#1b1e23;--soft:#667;--grid:#8884;--back:#fff;--card:#f3f4f7}
        @media(prefers-color-scheme:dark){:root{--ink:#e8e9ec;--soft:#9aa;--back:#15171b;--card:#22252b}}
        body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--back);max-width:760px;\
        margin:2em auto;padding:0 1em}
        h1{font-size:1.3em;margin-bottom:0}.setup{color:var(--soft);margin-top:.2em}
        .tiles{display:flex;flex-wrap:wrap;gap:.6em;margin:1em 0}
        .tiles div{background:var(--card);border-radius:.5em;padding:.5em .9em;flex:1 1 8em}
        .tiles b{display:block;font-size:1.25em}.tiles span{color:var(--soft);font-size:.85em}
        table{border-collapse:collapse;margin:1em 0;width:100%;font-variant-numeric:tabular-nums}
        td,th{padding:.25em .6em;border-bottom:1px solid var(--grid);text-align:right;font-weight:normal}
        th{color:var(--soft)}td:first-child,th:first-child{text-align:left}
        .void,.failed{background:#c33;color:#fff;padding:.4em .8em;border-radius:.4em}.note{color:var(--soft)}
        figure{margin:1.2em 0}svg{width:100%;height:auto}pre{overflow-x:auto;font-size:12px}
        text{font:11px system-ui,sans-serif;fill:var(--soft)}text.title{font-size:13px;fill:var(--ink)}
        text.end{text-anchor:end}text.middle{text-anchor:middle}
        .grid{stroke:var(--grid);stroke-width:1}.line{fill:none;stroke-width:1.8;stroke:#2a6fdb}
        .l1{stroke:#d9622b}.l2{stroke:#2b9a66}.l3{stroke:#8a4fd3}.measured{fill:#2a6fdb;opacity:.07}
        """
}
