import Foundation

/// Writes reports to the terminal and to the files that the user named.
enum ReportWriter {
    /// Writes a report of `Bench` in all forms.
    /// - Throws: `RunFailure` if a file cannot be written.
    static func write(_ report: Report, _ options: ReportOptions) throws {
        try write(TextReport.text(report), report, options)
        if let path = options.html { try save(Data(HTMLReport.page(report).utf8), path) }
    }

    /// Writes a report's text to the terminal, and its JSON if the user wants that.
    static func write(_ text: String, _ report: some Encodable, _ options: ReportOptions) throws {
        let isPiped = options.json == "-"
        // With `--json -`, standard output contains nothing but JSON.
        (isPiped ? FileHandle.standardError : FileHandle.standardOutput).write(Data(text.utf8))
        if let path = options.json {
            let json = try JSONReport.data(report)
            if isPiped { FileHandle.standardOutput.write(json) } else { try save(json, path) }
        }
    }

    private static func save(_ data: Data, _ path: String) throws {
        do {
            try data.write(to: URL(fileURLWithPath: path))
        } catch {
            throw RunFailure(description: "cannot write \(path): \((error as NSError).localizedDescription)")
        }
    }
}

extension Report.Verdict {
    /// A failure takes precedence over a void run.
    var exitCode: ExitCode {
        if !failures.isEmpty { return .failure }
        return isVoid ? .void : .success
    }
}
